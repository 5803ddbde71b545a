"""What an upgrade of Flink does to a job: its traits held against those of the restores run between the two lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.sinks import lack_clause, settled_otherwise
from airflow_flinkcompat.compat.engines.flink.upgrade.table_traits import JUDGED_APART
from airflow_flinkcompat.compat.engines.flink.upgrade.traits import told, traits
from airflow_flinkcompat.compat.evidence import RIGHT, Upgrade, upgrades
from airflow_flinkcompat.compat.rule import Verdict, inferred, measured
from airflow_flinkcompat.model import Basis, Consequence, Outcome, Reason

ENDINGS = {
    "not_planned": Consequence.REFUSED_AT_SUBMIT,
    "refused_at_submit": Consequence.REFUSED_AT_SUBMIT,
    "refused_at_restore": Consequence.REFUSED_AT_RESTORE,
    "restored_WRONG": Consequence.SILENTLY_WRONG,
}
"""What a restore that did not end right says of another job with the same trait."""
_WORST = tuple(ENDINGS)
_CALL = re.compile(r"(?P<function>[A-Z_0-9]+)(?: of [\w ]+)? in an? (?P<context>[\w ]+)")
_ACCUMULATES = ("group aggregation", "window aggregation", "legacy window aggregation")
"""Operators that store an aggregate function's own accumulator, each the same."""
WAYS_OUT: Mapping[str, tuple[str, str]] = {
    "event-time deduplication that keeps the first row": (
        "the new line does not find the keys that were seen: the first row of each comes a second time",
        "start without state, or with the deduplication emptied on purpose where its readers can take a row twice",
    ),
}
"""By the beginning of a trait: what the new line does, and what to do about it."""
ACCUMULATOR = (
    "its stored value is laid out otherwise on the new line",
    "start without state, or take this function out of the query before the upgrade and put it back after it",
)


@dataclass(frozen=True)
class Judged:
    """One thing to be said of an upgrade.

    Attributes:
        message: What is to be said.
        verdict: The outcome with the restores it rests on.
    """

    message: str
    verdict: Verdict


def judged(change: Change) -> tuple[Judged, ...]:
    """What is to be said of the change of lines, whatever else changes.

    Args:
        change: A change between two lines of Flink.

    Returns:
        At least one; what does not end right where it was measured comes alone.
    """
    key, run = f"{change.versions[0]} to {change.versions[1]}", upgrades()
    lines = f"Flink {key}"
    if key not in run:
        known = " and ".join(sorted(run))
        return (_unknown(f"{lines}: no restore was run between these lines, but from {known}", change),)
    asked = traits(change.old, change.new) - JUDGED_APART
    covered = _covered(run[key])
    bad = (*_failing(asked, covered, run[key], lines), *_settled_otherwise(change, lines))
    if bad:
        return bad
    missing = sorted(trait for trait in asked if trait not in covered)
    if missing:
        return (_unknown(f"{lines}: not measured between these lines: {'; '.join(missing)}", change),)
    ids = tuple(_fewest(asked, run[key]))
    return (
        Judged(
            f"{lines}: each operator, function, stored type and connector was restored right between these lines",
            _together(ids),
        ),
    )


def _together(ids: tuple[str, ...]) -> Verdict:
    """One restore that had it all is a measurement; that parts of several go together follows from them."""
    if len(ids) == 1:
        return measured(Outcome.COMPATIBLE, *ids)
    return inferred(Outcome.COMPATIBLE, "each part of the job was restored right", ids=ids)


def _unknown(message: str, change: Change) -> Judged:
    alone = len(change.differences) > 1
    way = "; upgrade with the script as it is first, and change it afterwards" if alone else ""
    return Judged(f"{message}{way}", inferred(Outcome.UNKNOWN, "restores between these lines", Reason.VERSION))


def _covered(run: Mapping[str, Upgrade]) -> frozenset[str]:
    """The traits that a restore which ended right had."""
    return frozenset(t for each in run.values() if each.outcome == RIGHT for t in each.traits if told(t))


def _failing(
    asked: frozenset[str], covered: frozenset[str], run: Mapping[str, Upgrade], lines: str
) -> Iterator[Judged]:
    """What did not end right: a restore that went wrong is blamed on the traits that none which went right had."""
    blamed: dict[frozenset[str], list[str]] = {}
    for name, each in run.items():
        culprits = each.traits - covered
        if each.outcome in ENDINGS and culprits and culprits <= asked:
            blamed.setdefault(culprits, []).append(name)
    for culprits in sorted((c for c in blamed if not any(d < c for d in blamed)), key=sorted):
        names = blamed[culprits]
        worst = max((run[name].outcome for name in names), key=_WORST.index)
        yield _incompatible(" with ".join(sorted(culprits)), names, ENDINGS[worst], lines)
    alone = {c for culprits in blamed for c in culprits}
    for trait in sorted(asked - covered - alone):
        if alike := _same_accumulator(trait, covered, run):
            found = _incompatible(trait, alike, Consequence.REFUSED_AT_RESTORE, lines)
            verdict = replace(found.verdict, basis=Basis.INFERRED, source="the same accumulator in another aggregation")
            yield replace(found, verdict=verdict)


def _settled_otherwise(change: Change, lines: str) -> Iterator[Judged]:
    """Sinks in front of which the new line plans another materializer; a changed clause is judged by its own rule."""
    for pair in change.pipelines:
        if "sink hints" in pair.parts or lack_clause(pair)[1]:
            continue
        words, verdict = settled_otherwise(pair)
        if verdict.outcome is Outcome.INCOMPATIBLE:
            yield Judged(f"{lines}: {words} for sink {pair.sink}; add ON CONFLICT DO DEDUPLICATE", verdict)


def _same_accumulator(trait: str, covered: frozenset[str], run: Mapping[str, Upgrade]) -> list[str]:
    """Restores refused for the same function in another kind of aggregation, which stores the same accumulator."""
    call = _CALL.fullmatch(trait)
    if call is None or call["context"] not in _ACCUMULATES:
        return []
    found = []
    for name, each in run.items():
        culprits = [_CALL.fullmatch(culprit) for culprit in each.traits - covered]
        calls = [culprit for culprit in culprits if culprit is not None]
        alone = {culprit["function"] for culprit in calls} == {call["function"]}
        if each.outcome == "refused_at_restore" and alone and all(c["context"] in _ACCUMULATES for c in calls):
            found.append(name)
    return found


def _incompatible(what: str, names: list[str], ending: Consequence, lines: str) -> Judged:
    known = next((words for start, words in WAYS_OUT.items() if what.startswith(start)), None)
    if known is None:
        known = ACCUMULATOR if _CALL.match(what) else ("it did not end right where it was run", "start without state")
    does, way = known
    return Judged(f"{lines}: {what}: {does}; {way}", measured(Outcome.INCOMPATIBLE, *names, consequence=ending))


def _fewest(asked: frozenset[str], run: Mapping[str, Upgrade]) -> Iterator[str]:
    """A few restores that together have every trait."""
    left = set(asked)
    right = {name: each.traits for name, each in run.items() if each.outcome == RIGHT}
    while left:
        best = max(right, key=lambda name: len(left & right[name]))
        yield best
        left -= right[best]
