"""Effects of a change to a Flink SQL job on its state, for a command line and Airflow.

``from airflow_flinkcompat import check, Side`` is the same judgement as ``flinkcompat check`` on the command line.
Names load on first use: a DAG processor that imports an operator must not pay for the parser.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import MovedModules, lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.compat import Report, Side, check
    from airflow_flinkcompat.model import Policy

__version__ = "0.1.0"

__all__ = ["Policy", "Report", "Side", "__version__", "check"]


if not TYPE_CHECKING:  # a type checker takes a module with __getattr__ to have every name
    __getattr__, __dir__ = lazy_names(__name__, {".compat": ("Report", "Side", "check"), ".model": ("Policy",)})

_FORMER_PATHS = frozenset({"hooks", "links", "operators", "plugin", "provider_info", "sensors", "tasks", "triggers"})
sys.meta_path.append(MovedModules(__name__, "airflow", _FORMER_PATHS))
