"""``airflow flinkcompat``: the commands of the ledger with the connections of Airflow.

The definition that ``airflow --help`` needs is separate from the commands, which load when they are called.
"""

from __future__ import annotations

from airflow_flinkcompat.airflow.cli.definition import get_flinkcompat_cli_commands

__all__ = ["get_flinkcompat_cli_commands"]
