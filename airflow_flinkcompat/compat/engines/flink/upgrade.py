"""Verdict on an upgrade of Flink's line, by measured restores of the same kinds of state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.engines.flink.sinks import lack_clause, materializer_verdict
from airflow_flinkcompat.compat.engines.flink.upgraded_connectors import (
    ConnectorEffect,
    restored_connectors,
)
from airflow_flinkcompat.compat.engines.flink.upgraded_state import JUDGED_APART, is_known, stored
from airflow_flinkcompat.compat.evidence import RIGHT, Upgrade, upgrades
from airflow_flinkcompat.compat.verdict import Verdict, expected, inferred, measured, right, unknown
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateEffect
from airflow_flinkcompat.exec_graph.prediction import Prediction
from airflow_flinkcompat.model import Consequence, Outcome, Reason

ENDINGS = {
    "not_planned": Consequence.REFUSED_AT_SUBMIT,
    "refused_at_submit": Consequence.REFUSED_AT_SUBMIT,
    "refused_at_restore": Consequence.REFUSED_AT_RESTORE,
    "restored_WRONG": Consequence.SILENTLY_WRONG,
}
"""The consequence for a job with the same kind of state, by the outcome of a failed restore."""
_WORST = tuple(ENDINGS)
_WAYS_OUT: Mapping[str, str] = {
    "deduplicate: event time, keeps the first row": (
        "the new line does not find the stored keys, so the first row of each key is emitted again; start without "
        "state, or accept an empty deduplication if consumers tolerate duplicate rows"
    ),
    "accumulator": (
        "the layout of its stored value differs on the new line; start without state, or remove this function before "
        "the upgrade and add it again afterwards"
    ),
}
"""Clauses with a cause and a remedy, by the prefix of the failed kind of state."""


@dataclass(frozen=True)
class Judged:
    """A sentence and a verdict on an upgrade.

    Attributes:
        message: The sentence.
        verdict: The outcome with its restores.
        refused: True if the new line refuses the job even without state.
    """

    message: str
    verdict: Verdict
    refused: bool = False


def judged(change: Change) -> tuple[Judged, ...]:
    """Judge the change of Flink's line, independent of other changes."""
    key, run = f"{change.versions[0]} to {change.versions[1]}", upgrades()
    lines = f"Flink {key}"
    if key not in run:
        known = " and ".join(sorted(run))
        return (_unknown(f"{lines}: no restore between these lines was measured; measured are {known}", change),)
    asked = stored(change.old, change.new) - JUDGED_APART
    covered = _restored_right(run[key].values())
    bad = (*_failing(asked, covered, run[key], lines), *_changed_materializers(change, lines))
    if bad:
        return bad
    if missing := sorted(row for row in asked if row not in covered and row not in restored_connectors()):
        return (_unknown(f"{lines}: not measured between these lines: {'; '.join(missing)}", change),)
    ids = tuple(_fewest(asked & covered, run[key]))
    message = f"{lines}: each operator, function, stored type and connector was restored correctly between these lines"
    together = right(*ids) if len(ids) == 1 else inferred(
        Outcome.COMPATIBLE, "each part of the job was restored correctly", ids=ids or tuple(_any_right())
    )  # fmt: skip
    return (Judged(message, together),)


def judged_by_planners(
    change: Change,
    prediction: Prediction,
    compiled: Iterable[StateEffect],
    connectors: Sequence[ConnectorEffect],
) -> tuple[Judged, ...]:
    """Judge an upgrade by the jobs that both lines plan, without a refusal of a state by Flink.

    ``compiled`` are the effects by the compiled plans.
    """
    lines = f"Flink {change.versions[0]} to {change.versions[1]}"
    absent = [each.message for each in connectors if each.effect is RestoreEffect.REFUSED_AT_SUBMIT]
    lost = prediction.restore.having(RestoreEffect.DROPPED)
    if absent or lost:
        listed = expected("the connector's list of releases")
        return (
            *(Judged(f"{lines}: {each}", listed, refused=True) for each in dict.fromkeys(absent)),
            *(Judged(f"{lines}: {each.message}", expected(_PLANNED, Consequence.SILENTLY_WRONG)) for each in lost),
            *failures(change),
        )
    doubts = [each.message or each.operator for each in (*prediction.restore.differences, *compiled)]
    doubts += [*prediction.contradicted, *_unknown_states(connectors)]
    if doubts:
        return (_unknown(f"{lines}: {'; '.join(dict.fromkeys(doubts))}", change),)
    planned = "the new line plans the same operators and reads the state of each"
    old, new = (tuple(map(int, line.split("."))) for line in (change.old.version, change.new.version))
    if new < old:
        return (_unknown(f"{lines}: {planned}; no restore on an older line was measured", change),)
    rows = frozenset(each.row for each in connectors if each.row)
    ids = tuple(_fewest(rows, {name: each for run in upgrades().values() for name, each in run.items()}))
    assumed = sorted({each.table for each in connectors if not each.connector})
    words = f"; assumed for tables without a declared connector: the new line reads its state ({', '.join(assumed)})"
    jars = sorted({f"{each.connector} ({each.release})" for each in connectors if each.release})
    also = f"; replace the jars of these connectors: {', '.join(jars)}"
    verdict = inferred(Outcome.COMPATIBLE, _PLANNED, ids=ids or tuple(_any_right()))
    return (Judged(f"{lines}: {planned}{words if assumed else ''}{also if jars else ''}", verdict),)


_PLANNED = "plans of both lines, and a dry restore"


def failures(change: Change) -> tuple[Judged, ...]:
    """Failed restores of the same kinds of state as in an upgraded job, each with a way out."""
    return tuple(each for each in judged(change) if each.verdict.outcome is Outcome.INCOMPATIBLE)


def _unknown_states(connectors: Iterable[ConnectorEffect]) -> Iterator[str]:
    yield from (each.message for each in connectors if each.effect is RestoreEffect.UNKNOWN)


def _unknown(message: str, change: Change) -> Judged:
    way = (
        ("; upgrade the unchanged script first, and change the script afterwards")
        if len(change.differences) > 1
        else ""
    )
    return Judged(f"{message}{way}", unknown("the verdict needs restores between these Flink versions", Reason.VERSION))


def _restored_right(run: Iterable[Upgrade]) -> frozenset[str]:
    return frozenset(row for each in run if each.outcome == RIGHT for row in each.stored if is_known(row))


def _any_right() -> Iterator[str]:
    """A correct restore of any job, as evidence for a job without stored parts."""
    yield next(name for run in upgrades().values() for name, each in run.items() if each.outcome == RIGHT)


def _failing(
    asked: frozenset[str], covered: frozenset[str], run: Mapping[str, Upgrade], lines: str
) -> Iterator[Judged]:
    """Verdicts on the kinds of state that occur in failed restores, but in no correct restore."""
    blamed: dict[frozenset[str], list[str]] = {}
    for name, each in run.items():
        culprits = each.stored - covered
        if each.outcome in ENDINGS and culprits and culprits <= asked:
            blamed.setdefault(culprits, []).append(name)
    for culprits in sorted((c for c in blamed if not any(d < c for d in blamed)), key=sorted):
        names, what = blamed[culprits], " with ".join(sorted(culprits))
        worst = max((run[name].outcome for name in names), key=_WORST.index)
        known = (way for start, way in _WAYS_OUT.items() if what.startswith(start))
        way = next(known, "its measured restore was not correct; start without state")
        verdict = measured(Outcome.INCOMPATIBLE, *names, consequence=ENDINGS[worst])
        yield Judged(f"{lines}: {what}: {way}", verdict)


def _changed_materializers(change: Change, lines: str) -> Iterator[Judged]:
    """Verdicts on sinks for which the new line plans a different materializer for an unchanged clause."""
    for pair in change.pipelines:
        if "sink hints" in pair.parts or lack_clause(pair)[1]:
            continue
        words, verdict = materializer_verdict(pair)
        if verdict.outcome is Outcome.INCOMPATIBLE:
            yield Judged(f"{lines}: {words} for sink {pair.sink}; add ON CONFLICT DO DEDUPLICATE", verdict)


def _fewest(asked: frozenset[str], run: Mapping[str, Upgrade]) -> Iterator[str]:
    """A small set of restores that together cover all kinds of state."""
    remaining = set(asked)
    right = {name: each.stored for name, each in run.items() if each.outcome == RIGHT}
    while remaining:
        best = max(right, key=lambda name: len(remaining & right[name]))
        yield best
        remaining -= right[best]
