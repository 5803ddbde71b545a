"""The light values that every other package speaks in: outcomes, policies, jobs and their words.

It imports nothing outside of the standard library, so that a DAG file pays for none of the parser, the rules or a
client by naming a policy or a start mode.
"""

from airflow_flinkcompat.model.job import (
    ENGINES,
    FUNCTION_KINDS,
    FUNCTION_LANGUAGES,
    LANGUAGES,
    PROGRAM_SUFFIXES,
    EngineName,
    FunctionDeclaration,
    InputError,
    JobSpec,
    Language,
    language_of,
)
from airflow_flinkcompat.model.options import (
    LATE,
    NATIVE,
    Late,
    Native,
    RehearsalFinding,
    RehearsalFindingName,
    StartMode,
    StartModeName,
)
from airflow_flinkcompat.model.outcome import Basis, Consequence, Outcome, Reason
from airflow_flinkcompat.model.policy import BRANCHES, Branch, Policy
from airflow_flinkcompat.model.text import NormalForm, Span

__all__ = [
    "BRANCHES",
    "ENGINES",
    "FUNCTION_KINDS",
    "FUNCTION_LANGUAGES",
    "LANGUAGES",
    "LATE",
    "NATIVE",
    "PROGRAM_SUFFIXES",
    "Basis",
    "Branch",
    "Consequence",
    "EngineName",
    "FunctionDeclaration",
    "InputError",
    "JobSpec",
    "Language",
    "Late",
    "Native",
    "NormalForm",
    "Outcome",
    "Policy",
    "Reason",
    "RehearsalFinding",
    "RehearsalFindingName",
    "Span",
    "StartMode",
    "StartModeName",
    "language_of",
]
