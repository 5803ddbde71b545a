"""Light values that every other package uses: jobs, options, outcomes, policies and waivers.

This package imports nothing outside the standard library, and its names load on first use. A DAG file that imports a
policy or a start mode therefore loads no parser, no rules and no client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_flinkcompat.lazy import lazy_names

if TYPE_CHECKING:
    from airflow_flinkcompat.model.engine import ENGINES
    from airflow_flinkcompat.model.installation import Extra, install_command, missing_packages
    from airflow_flinkcompat.model.job import FunctionDeclaration, InputError, JobSpec, OutOfReachError, ScriptError
    from airflow_flinkcompat.model.options import (
        ACCEPTED,
        FUNCTION_KINDS,
        FUNCTION_LANGUAGES,
        LANGUAGES,
        LATE,
        NATIVE,
        PLANNER_MODES,
        PLANNER_NETWORKS,
        PLANNER_VARIABLE,
        PROGRAM_SUFFIXES,
        AcceptName,
        EngineName,
        Language,
        Late,
        Native,
        PlannerMode,
        PlannerNetwork,
        RehearsalFinding,
        RehearsalFindingName,
        StartMode,
        StartModeName,
        is_path,
        language_of,
    )
    from airflow_flinkcompat.model.outcome import BRANCHES, Basis, Branch, Consequence, Outcome, Policy, Reason
    from airflow_flinkcompat.model.text import NormalForm, Span, join_ddl
    from airflow_flinkcompat.model.waiver import AppliedWaiver, Waiver, WaiverState

_HOMES = {
    ".engine": ("ENGINES",),
    ".installation": ("Extra", "install_command", "missing_packages"),
    ".job": ("FunctionDeclaration", "InputError", "JobSpec", "OutOfReachError", "ScriptError"),
    ".options": (
        "ACCEPTED", "FUNCTION_KINDS", "FUNCTION_LANGUAGES", "LANGUAGES", "LATE", "NATIVE", "PLANNER_MODES",
        "PLANNER_NETWORKS", "PLANNER_VARIABLE", "PROGRAM_SUFFIXES", "AcceptName", "EngineName", "Language", "Late",
        "Native", "PlannerMode", "PlannerNetwork", "RehearsalFinding", "RehearsalFindingName", "StartMode",
        "StartModeName", "is_path", "language_of",
    ),
    ".outcome": ("BRANCHES", "Basis", "Branch", "Consequence", "Outcome", "Policy", "Reason"),
    ".text": ("NormalForm", "Span", "join_ddl"),
    ".waiver": ("AppliedWaiver", "Waiver", "WaiverState"),
}  # fmt: skip

__all__ = [
    "ACCEPTED", "BRANCHES", "ENGINES", "FUNCTION_KINDS", "FUNCTION_LANGUAGES", "LANGUAGES", "LATE", "NATIVE",
    "PLANNER_MODES", "PLANNER_NETWORKS", "PLANNER_VARIABLE", "PROGRAM_SUFFIXES", "AcceptName", "AppliedWaiver",
    "Basis", "Branch", "Consequence", "EngineName", "Extra", "FunctionDeclaration", "InputError", "JobSpec",
    "Language", "Late", "Native", "PlannerMode", "PlannerNetwork", "NormalForm", "OutOfReachError", "Outcome",
    "Policy", "Reason", "RehearsalFinding", "RehearsalFindingName", "Span", "ScriptError", "StartMode",
    "StartModeName", "Waiver", "WaiverState", "install_command", "is_path", "join_ddl", "language_of",
    "missing_packages",
]  # fmt: skip


if not TYPE_CHECKING:  # with __getattr__, a type checker would accept any name
    __getattr__, __dir__ = lazy_names(__name__, _HOMES)
