"""Front ends: what a script or a program says, as SQL statements; a program is read as text and never run.

Each language has a front end, a module with a function ``read`` that :data:`FRONT_ENDS` names. It is imported when a
text of that language comes: a check of SQL loads none of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType

from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.sql import Script, parse_script

__all__ = ["FRONT_ENDS", "read"]


FRONT_ENDS: Mapping[str, str] = MappingProxyType(
    {
        "python": "airflow_flinkcompat.frontends.pyflink.reader",
        "table": "airflow_flinkcompat.frontends.flip11",
    }
)
"""The module whose ``read(job, catalog)`` reads a language other than SQL."""


def read(
    job: JobSpec,
    catalog: Script | None = None,
    like: Script | None = None,
    decided: Mapping[str, bool] | None = None,
) -> Script:
    """The statements of a job.

    Args:
        job: The job.
        catalog: Declares tables that a program may use and does not declare; of no use for SQL.
        like: Another script: statements of SQL that are written the same share its trees.
        decided: How conditions on what only the environment of a Python program knows turn out, by name.

    Returns:
        The script; a :class:`~airflow_flinkcompat.frontends.programs.ProgramScript` where the job is a program.

    Raises:
        ScriptError: The text holds no statement, or is no text of its language.
    """
    if job.language == "sql":
        return parse_script(job.script, job.source, like)
    front_end: Callable[..., Script] = import_module(FRONT_ENDS[job.language]).read
    return front_end(job, catalog, decided) if decided else front_end(job, catalog)
