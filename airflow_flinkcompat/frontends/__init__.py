"""Front ends: scripts and programs as SQL statements; a program is read as text and never runs.

Each language other than SQL has a front end, a module with a function ``read`` in :data:`FRONT_ENDS`. It is imported on
first use: a check of SQL loads none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.sql import Script, parse_script

__all__ = ["FRONT_ENDS", "read"]


FRONT_ENDS: Mapping[str, str] = MappingProxyType(
    {"python": "airflow_flinkcompat.frontends.pyflink.reader", "table": "airflow_flinkcompat.frontends.flip11"}
)
"""The module whose ``read(job, catalog)`` reads a language other than SQL."""


def read(
    job: JobSpec, catalog: Script | None = None, like: Script | None = None, decided: Mapping[str, bool] | None = None
) -> Script:
    """Read the statements of a job.

    Args:
        job: The job.
        catalog: Declares tables that a program may use and does not declare; not used for SQL.
        like: Another script; equal statements of SQL share its trees.
        decided: The outcome of conditions on inputs of a Python program, by name.

    Returns:
        The script; a :class:`~airflow_flinkcompat.frontends.programs.ProgramScript` where the job is a program.

    Raises:
        ScriptError: The text holds no statement, or is not of its language.
    """
    if job.language == "sql":
        return parse_script(job.script, job.source, like)
    front_end: Callable[..., Script] = import_module(FRONT_ENDS[job.language]).read
    return front_end(job, catalog, decided) if decided else front_end(job, catalog)
