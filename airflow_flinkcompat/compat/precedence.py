"""Who decides over whom: once for the script, for each sink and for each operator."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter

from airflow_flinkcompat.compat.report import Finding
from airflow_flinkcompat.compat.rule import Level
from airflow_flinkcompat.model import Outcome

Fired = Sequence[tuple[Level, Finding]]
"""Every finding with the level of its rule, before any is overruled."""


def decision_groups(fired: Fired) -> list[tuple[Fired, Fired]]:
    """The findings that are weighed together, and those of them that decide.

    A version decides for all; else what fired at the highest level in each sink's pipeline, and in the script.
    """
    whole = [entry for entry in fired if entry[0] is Level.VERSION]
    if whole:
        return [(fired, whole)]
    groups: dict[str | None, list[tuple[Level, Finding]]] = {}
    for entry in fired:
        groups.setdefault(entry[1].sink, []).append(entry)
    found: list[tuple[Fired, Fired]] = []
    for group in groups.values():
        top = min(group, key=itemgetter(0))[0]
        found.append((group, group if len(group) == 1 else [entry for entry in group if entry[0] is top]))
    return found


def decided_outcome(fired: Fired) -> Outcome:
    """The worst of what decides."""
    return Outcome.worst([finding.outcome for _, deciders in decision_groups(fired) for _, finding in deciders])
