"""Flink's messages about the state that a job was to start from: the one place that interprets them."""

from __future__ import annotations

import re

from airflow_flinkcompat.deploy.errors import StateFault, StateRefused, TargetError

# Of Flink 2.3 and 1.20. The first is what the JobManager says where it maps a savepoint to a job.
_SAID = (
    (
        re.compile(
            "Failed to rollback to checkpoint/savepoint|Cannot map checkpoint/savepoint state|Max parallelism mismatch"
        ),
        StateFault.MISFIT,
    ),
    (re.compile("FileNotFound"), StateFault.GONE),
    (re.compile("EOFException|Unexpected magic number"), StateFault.DAMAGED),
)


def fault_of(said: str | None) -> StateFault | None:
    """The fault in the state that a failure's text reports; None if it reports none."""
    return next((fault for words, fault in _SAID if words.search(said or "")), None)


def refusal(message: str, said: str) -> TargetError:
    """The error of a start that was refused with these words."""
    fault = fault_of(said)
    return TargetError(message) if fault is None else StateRefused(message, fault)
