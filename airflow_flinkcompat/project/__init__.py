"""The project file ``flinkcompat.toml``: one schema and one reader for the command line and for DAGs.

It knows the model alone, and names load on first use, so that a DAG file and the bare install can afford it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.project.file import (
        DEPLOYMENT_KEYS,
        FILE_NAME,
        ProjectTables,
        find_project_file,
        flat_options,
        read_tables,
        unknown_key,
    )
    from airflow_flinkcompat.project.job_options import DEFAULT_GATE, FAIL_ON, JobOptions
    from airflow_flinkcompat.project.settings import ProjectDeployment, ProjectFile, load_project

_HOMES = {
    ".file": (
        "DEPLOYMENT_KEYS",
        "FILE_NAME",
        "ProjectTables",
        "find_project_file",
        "flat_options",
        "read_tables",
        "unknown_key",
    ),
    ".job_options": ("DEFAULT_GATE", "FAIL_ON", "JobOptions"),
    ".settings": ("ProjectFile", "ProjectDeployment", "load_project"),
}

__all__ = [
    "DEFAULT_GATE", "DEPLOYMENT_KEYS", "FAIL_ON", "FILE_NAME", "JobOptions", "ProjectFile", "ProjectDeployment",
    "ProjectTables", "find_project_file", "flat_options", "load_project", "read_tables", "unknown_key",
]  # fmt: skip


if not TYPE_CHECKING:  # a type checker takes a module with __getattr__ to have every name
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
