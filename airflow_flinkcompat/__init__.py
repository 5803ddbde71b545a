"""Compatibility of a changed Flink SQL job with its stored state, for the command line and Airflow.

``from airflow_flinkcompat import check, Side`` gives the same verdicts as the command ``flinkcompat check``. Names
load on first use, so a DAG processor that imports an operator does not load the parser.
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


if not TYPE_CHECKING:  # with __getattr__, a type checker would accept any name
    __getattr__, __dir__ = lazy_names(__name__, {".compat": ("Report", "Side", "check"), ".model": ("Policy",)})

_FORMER_PATHS = frozenset({"hooks", "links", "operators", "plugin", "provider_info", "sensors", "tasks", "triggers"})
sys.meta_path.append(MovedModules(__name__, "airflow", _FORMER_PATHS))
