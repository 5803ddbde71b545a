"""``airflow flinkcompat``: the commands of the ledger with the connections of Airflow.

What ``airflow --help`` shows stands apart from what runs, which loads with the command that is called.
"""

from __future__ import annotations

from airflow_flinkcompat.airflow.cli.definition import get_flinkcompat_cli_commands

__all__ = ["get_flinkcompat_cli_commands"]
