"""Report entries on each sink and each stateful operator: the outcome, and the fate of state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from airflow_flinkcompat.compat import rules
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import MetricFates
from airflow_flinkcompat.compat.changes.format import format_expressions, format_value, format_window
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink import lookups
from airflow_flinkcompat.compat.findings import Fired, decided_outcome
from airflow_flinkcompat.compat.report import Finding, OperatorReport, OperatorSide
from airflow_flinkcompat.compat.restore_verdict import DIFFERS
from airflow_flinkcompat.compat.rule import NOT_COVERED, Fate, KeyFate, Level
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall
from airflow_flinkcompat.plan.nodes import WindowField
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    AssignedWindow,
    JoinOperator,
    Operator,
    Output,
    OverOperator,
    RankOperator,
    operators,
)
from airflow_flinkcompat.plan.origins import describe
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import BOOLEAN

_STAGES = (Consequence.REFUSED_AT_SUBMIT, Consequence.REFUSED_AT_RESTORE, Consequence.SILENTLY_WRONG)
"""Failures of a start, earliest first: a change that is refused at submit is never restored."""
_REFUSALS = frozenset(_STAGES[:2])
_PARTS_WITH_FATES = frozenset(
    {"window", "offset", "time", "clock", "notation", "windowed", "session keys"}
    | {"kind", "aggregates", "keys", "window keys", "key order"}
)
"""Parts of an aggregation that a report shows as kind, window, keys and metrics."""


def sink_outcomes(change: Change, fired: Fired) -> tuple[tuple[str, Outcome], ...]:
    """The outcome of every sink of either side, in the proposed script's order, with removed sinks last."""
    names = [*(pair.sink for pair in change.pipelines), *change.ambiguous]
    names += [output.sink for output in (*change.added, *change.removed)]
    about = _FindingsByPlace(fired)
    return tuple((name, decided_outcome(about(name))) for name in dict.fromkeys(names))


def operator_reports(change: Change, fired: Fired) -> tuple[OperatorReport, ...]:
    """Reports on every stateful operator of either side, by sink; operators near the sink come first."""
    return tuple(_operator_reports(change, fired))


def ending(findings: Iterable[Finding]) -> Consequence | None:
    """The result of a restore with these findings; None if unknown. A refusal by Flink's plans decides."""
    decisive = [finding for finding in findings if finding.outcome is Outcome.INCOMPATIBLE]
    planned = {finding.consequence for finding in decisive if finding.rule == DIFFERS.code}
    found = planned & _REFUSALS or {finding.consequence for finding in decisive}
    if Consequence.REFUSED_AT_SUBMIT in found:
        return Consequence.REFUSED_AT_SUBMIT
    return None if None in found else next((stage for stage in _STAGES if stage in found), None)


def _operator_reports(change: Change, fired: Fired) -> Iterator[OperatorReport]:
    about = _FindingsByPlace(fired)
    for pipeline in change.pipelines:
        stateless = [
            each.path for each in pipeline.operators if isinstance(each.new, JoinOperator) and _is_stateless(each)
        ]
        for pair in pipeline.operators:
            if pair.path not in stateless:
                below = (path for path in stateless if path.startswith(f"{pair.path} > "))
                yield _pair_report(pair, about(pipeline.sink, pair.path, *below))
        removed = _stateful(pipeline.removed, pipeline.old, pipeline.old_program)
        added = _stateful(pipeline.added, pipeline.new, pipeline.new_program)
        yield from _one_sided_reports(pipeline.sink, removed, added, about(pipeline.sink, ""))
    before, after = change.programs
    for output in change.removed:
        yield from _one_sided_reports(
            output.sink, _stateful(operators(output), output, before), (), about(output.sink, "")
        )
    for output in change.added:
        yield from _one_sided_reports(
            output.sink, (), _stateful(operators(output), output, after), about(output.sink, "")
        )


def _is_stateless(pair: OperatorPair) -> bool:
    """True if an operator stores no state on either side, so that findings concern downstream operators."""
    pipeline = pair.pipeline
    return lookups.keeps_nothing(pair.old, pipeline.old, pipeline.old_program) and lookups.keeps_nothing(
        pair.new, pipeline.new, pipeline.new_program
    )


def _stateful(found: Iterable[Operator], output: Output, program: Program) -> list[Operator]:
    return [each for each in found if not lookups.keeps_nothing(each, output, program)]


class _FindingsByPlace:
    """Findings about a sink or about operators of the sink, together with findings about the script.

    Findings are grouped once, because a script may have as many sinks as findings. A group's outcome and result depend
    only on levels, outcomes and consequences. Therefore only one finding about the script is kept for each combination.
    """

    def __init__(self, fired: Fired) -> None:
        of_script = [(level, finding) for level, finding in fired if finding.sink is None]
        kinds = {(level, f.rule, f.outcome, f.consequence): (level, f) for level, f in of_script}
        self._of_script = list(kinds.values())
        self._of_sinks: dict[tuple[str, str], list[tuple[Level, Finding]]] = {}
        self._paths: dict[str, dict[str, None]] = {}
        for entry in fired:
            sink, path = entry[1].sink, entry[1].operator
            if sink is not None:
                self._of_sinks.setdefault((sink, path), []).append(entry)
                self._paths.setdefault(sink, {})[path] = None

    def __call__(self, sink: str, *operators: str) -> list[tuple[Level, Finding]]:
        paths = dict.fromkeys(("", *operators)) if operators else self._paths.get(sink, {})
        own = [entry for path in paths for entry in self._of_sinks.get((sink, path), ())]
        return [*self._of_script, *own]


@dataclass(frozen=True)
class _StoredState:
    """The stored state of an operator: window, keys, metrics, and rows."""

    window: AssignedWindow | None = None
    keys: tuple[Any, ...] = ()
    metrics: tuple[AggregateCall, ...] = ()
    rows: str = ""


def _stored_state(operator: Operator) -> _StoredState:
    match operator:
        case AggregateOperator():
            return _StoredState(operator.window, operator.keys, operator.aggregates)
        case OverOperator():
            return _StoredState(None, operator.partition_by, operator.aggregates)
        case RankOperator():
            ranks = (
                f"rank {operator.last}"
                if operator.first == operator.last
                else f"ranks {operator.first} to {operator.last}"
            )
            rows = f"{ranks} by {_order(operator.order)}"
            return _StoredState(operator.window, operator.partition, rows=rows)
        case JoinOperator():
            keys = tuple(FunctionCall("=", pair, BOOLEAN) for pair in operator.keys)
            return _StoredState(
                None, keys, rows=" and ".join(f"({format_expressions(side)})" for side in operator.rows)
            )
    return _StoredState()


def _order(order: Iterable[tuple[Expression, bool, bool | None]]) -> str:
    return ", ".join(describe(expression) + ("" if ascending else " DESC") for expression, ascending, _ in order)


def _is_outside_operators(code: str) -> bool:
    rule = NOT_COVERED if code == NOT_COVERED.code else rules.BY_CODE.get(code)
    return rule is not None and rule.beside_operators


def _pair_report(pair: OperatorPair, group: Fired) -> OperatorReport:
    outcome = decided_outcome(group)
    consequence = ending(finding for _, finding in group)
    sides = pair.aggregations
    old, new = _stored_state(pair.old), _stored_state(pair.new)
    doubts = {finding.rule for _, finding in group if finding.outcome is Outcome.UNKNOWN}
    same = outcome is Outcome.UNKNOWN and not pair.differences and all(map(_is_outside_operators, doubts))
    return OperatorReport(
        path=pair.path,
        sink=pair.pipeline.sink,
        outcome=outcome,
        before=_side(pair.old, old),
        after=_side(pair.new, new),
        keys=_keys(
            [*old.keys, *(sorted(sides[0].window_keys - sides[1].window_keys) if sides else ())],
            [*new.keys, *(sorted(sides[1].window_keys - sides[0].window_keys) if sides else ())],
        ),
        metrics=tuple(
            (metric, Fate.SAME if same else fate.under(outcome))
            for metric, fate in (pair.fates or MetricFates(old.metrics, new.metrics)).table
        ),
        rows=tuple((which, Fate.SAME if same else fate) for which, fate in _rows(old.rows, new.rows, outcome)),
        parts=tuple(
            (difference.part, format_value(difference.before), format_value(difference.after))
            for difference in pair.differences
            if not sides or difference.part not in _PARTS_WITH_FATES
        ),
        consequence=consequence,
        resumed=tuple(_misread(*sides)) if sides and consequence is Consequence.SILENTLY_WRONG else (),
    )


def _rows(before: str, after: str, outcome: Outcome) -> tuple[tuple[str, Fate], ...]:
    """The fate of stored rows, for every kind of change in the clause that selects the rows."""
    text = after if before == after else f"{before}, now {after}"
    return ((text, Fate.KEPT.under(outcome)),) if text else ()


def _one_sided_reports(
    sink: str, removed: Iterable[Operator], added: Iterable[Operator], group: Fired
) -> Iterator[OperatorReport]:
    """Reports on operators without a counterpart on the other side."""
    outcome = decided_outcome(group)
    consequence = ending(finding for _, finding in group)
    for before, found in ((True, removed), (False, added)):
        key_fate, alone = (KeyFate.REMOVED, Fate.DROPPED) if before else (KeyFate.ADDED, Fate.FROM_ZERO)
        fate = alone.under(outcome)
        for operator in found:
            stored = _stored_state(operator)
            yield OperatorReport(
                path=sink or "query",
                sink=sink,
                outcome=outcome,
                before=_side(operator, stored) if before else None,
                after=None if before else _side(operator, stored),
                keys=tuple((describe(key), key_fate) for key in stored.keys),
                metrics=tuple((describe(call), fate) for call in stored.metrics),
                rows=((stored.rows, fate),) if stored.rows else (),
                consequence=consequence,
            )


def _side(operator: Operator, stored: _StoredState) -> OperatorSide:
    return OperatorSide(operator.kind, format_window(stored.window) if stored.window else "", operator.span)


def _keys(before: list[Any], after: list[Any]) -> tuple[tuple[str, KeyFate], ...]:
    """The keys of both sides with their fates."""
    common = [key for key in before if key in after]
    places = [key for key in after if key in before]
    rows = []
    for key in before:
        if key not in after:
            rows.append((_key(key), KeyFate.REMOVED))
        else:
            in_place = common.index(key) == places.index(key)
            rows.append((_key(key), KeyFate.SAME if in_place else KeyFate.MOVED))
    return (*rows, *((_key(key), KeyFate.ADDED) for key in after if key not in before))


def _key(key: Any) -> str:
    return key.value if isinstance(key, WindowField) else describe(key)


def _misread(old: AggregateOperator, new: AggregateOperator) -> Iterator[str]:
    """Sentences on misread accumulators and keys: Flink reads them by position, not by name."""
    for stored, read in zip(old.aggregates, new.aggregates, strict=False):
        if stored != read:
            yield f"{describe(read)} would continue from the values stored for {describe(stored)}"
    if old.keys != new.keys:
        yield f"groups stored for ({format_expressions(old.keys)}) would be read as ({format_expressions(new.keys)})"
    if old.window != new.window:
        yield (
            f"values accumulated for {format_window(old.window)} would be emitted as those of "
            f"{format_window(new.window)}"
        )
    if old.segment.filters != new.segment.filters:
        yield "rows that passed the old condition would remain in the stored values"
