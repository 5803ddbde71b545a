"""Queries and operators paired across both sides, with their differences."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_flinkcompat.compat.changes.differences import (
    Difference,
    Fates,
    differences_of,
    fates,
    operator_parts,
    output_parts,
)
from airflow_flinkcompat.compat.changes.query_form import QueryForm, nested_alike, query_form
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    AssignedWindow,
    JoinForm,
    JoinOperator,
    Operator,
    OtherKind,
    OtherOperator,
    Output,
    OverOperator,
    RankOperator,
    Rows,
    Source,
    StatelessSegment,
    operators,
    segments,
    sources,
)
from airflow_flinkcompat.plan.program import Pipeline, Program


@dataclass(frozen=True)
class Pairing:
    """Positions of paired, removed and added queries in their scripts, and ambiguous sinks."""

    pairs: tuple[tuple[int, int], ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]
    ambiguous: tuple[str, ...]


def paired(old: Mapping[int, Output], new: Mapping[int, Output]) -> Pairing:
    """Pair the queries of both sides, over the whole script.

    At each level two queries are a pair if no other query of their sides is equal by it. Remaining queries that write
    into one sink on both sides are ambiguous.
    """
    left, right = dict(old), dict(new)
    pairs: list[tuple[int, int]] = []

    def match(i: int, j: int) -> None:
        pairs.append((i, j))
        del left[i], right[j]

    unmatched: dict[str, dict[int, Output]] = {}
    for j, output in new.items():
        unmatched.setdefault(output.sink, {})[j] = output
    for i, output in old.items():  # equal ones in their order: it does not matter which is which
        alike = unmatched.get(output.sink, {})
        twin = next((j for j, other in alike.items() if other == output), None)
        if twin is not None:
            match(i, twin)
            del alike[twin]
    if len(left) == len(right) == 1:  # so they end whatever they are; most changes are of one query
        match(next(iter(left)), next(iter(right)))
    for level in LEVELS:
        if not (left and right):
            break
        ours, theirs = _only(left, level), _only(right, level)
        for sign in [sign for sign in ours if sign in theirs]:
            match(ours[sign], theirs[sign])
    open_sinks = {output.sink for output in right.values()}
    ambiguous = tuple(dict.fromkeys(o.sink for o in left.values() if o.sink in open_sinks))
    if len(left) == len(right) == 1 and not ambiguous:
        match(next(iter(left)), next(iter(right)))  # one query left on each side: its sink changed
    gone, come = (tuple(n for n, output in side.items() if output.sink not in ambiguous) for side in (left, right))
    return Pairing(tuple(sorted(pairs)), gone, come, ambiguous)


Sign = Callable[[Output], Hashable | None]


def _only(outputs: Mapping[int, Output], level: Sign) -> dict[Hashable, int]:
    """The signs that one query alone bears."""
    bearers: dict[Hashable, list[int]] = {}
    for i, output in outputs.items():
        sign = level(output)
        if sign is not None:
            bearers.setdefault(sign, []).append(i)
    return {sign: places[0] for sign, places in bearers.items() if len(places) == 1}


def _stored(output: Output) -> Hashable | None:
    """All that is stored; None if nothing is."""
    return operators(output) or None


def _frame(operator: Operator) -> Hashable:
    """Parts of an operator that an added or removed metric or condition does not change."""
    if not isinstance(operator, AggregateOperator):
        return operator.kind
    window: Any = operator.window and (operator.window.window, operator.window.time)
    return operator.kind, operator.keys, operator.window_keys, window


def _frames(output: Output) -> Hashable:
    return output.sink, sources(output), tuple(map(_frame, operators(output)))


def _kinds(output: Output) -> Hashable:
    return output.sink, sources(output), tuple(operator.kind for operator in operators(output))


LEVELS: tuple[Sign, ...] = (
    lambda output: (output.sink, output.segment),
    _stored,
    _frames,
    _kinds,
    lambda output: output.sink,
)
"""Equality levels of queries: identical operators first, then the sink with less and less of the path."""
STEPS = "Table API operations"
"""The pipeline part with the form of the query."""
NESTING = "nesting"
"""The part with the nesting of subqueries, if it may decide about operators."""
COLUMNS_BELOW = "columns below"
"""The part with the input columns of Table API aggregations, read or not."""


@dataclass(frozen=True)
class OperatorPair:
    """The same operator on both sides, by its place below a sink; ``path`` reads ``sink > 1 > 2``."""

    path: str
    old: Operator
    new: Operator
    pipeline: PipelinePair = field(compare=False, repr=False)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        spans = (self.old.span, self.new.span)
        return differences_of(self.path, operator_parts(self.old), operator_parts(self.new), spans)

    @cached_property
    def parts(self) -> frozenset[str]:
        """The names of the parts that differ."""
        return frozenset(difference.part for difference in self.differences)

    @cached_property
    def aggregations(self) -> tuple[AggregateOperator, AggregateOperator] | None:
        """Both sides if both are aggregations."""
        if isinstance(self.old, AggregateOperator) and isinstance(self.new, AggregateOperator):
            return self.old, self.new
        return None

    @property
    def windowed(self) -> tuple[AggregateOperator, AggregateOperator] | None:
        """Both sides if both are aggregations and at least one runs on a window."""
        pair = self.aggregations
        return pair if pair is not None and (pair[0].window or pair[1].window) else None

    @property
    def ranks(self) -> tuple[RankOperator, RankOperator] | None:
        """Both sides if both are Top-Ns or deduplications."""
        if isinstance(self.old, RankOperator) and isinstance(self.new, RankOperator):
            return self.old, self.new
        return None

    @property
    def windows(self) -> tuple[AssignedWindow | None, AssignedWindow | None] | None:
        """The windows of both sides, an aggregation's or that of ranked rows, where at least one side has one."""
        if self.windowed is not None:
            return self.windowed[0].window, self.windowed[1].window
        assigned = (None, None) if self.ranks is None else (self.ranks[0].assigned, self.ranks[1].assigned)
        return assigned if any(assigned) else None

    @cached_property
    def fates(self) -> Fates | None:
        """Fates of an aggregation's metrics, OVER included."""
        if isinstance(self.old, OverOperator) and isinstance(self.new, OverOperator):
            return fates(self.old, self.new)
        return None if self.aggregations is None else fates(*self.aggregations)

    def claim(self, *parts: str) -> tuple[str, ...]:
        """The keys of the differences in these parts."""
        return tuple(difference.key for difference in self.differences if difference.part in parts)


@dataclass(frozen=True)
class PipelinePair:
    """The same query on both sides, with its paired operators and those that have no partner.

    ``place`` begins the keys of its differences: the sink's name, made unique where several queries write into it.
    ``lines`` are the lines of Flink that plan both sides, where they are known.
    """

    sink: str
    place: str
    old_pipeline: Pipeline
    new_pipeline: Pipeline
    old: Output
    new: Output
    old_program: Program = field(repr=False)
    new_program: Program = field(repr=False)
    lines: tuple[str | None, str | None] = (None, None)

    @cached_property
    def _matched(self) -> tuple[tuple[OperatorPair, ...], tuple[Operator, ...], tuple[Operator, ...]]:
        pairs: list[OperatorPair] = []
        removed: list[Operator] = []
        added: list[Operator] = []

        def below(old: StatelessSegment, new: StatelessSegment, path: str) -> None:
            a, b = old.origin, new.origin
            old_operator = a if isinstance(a, Operator) else None
            new_operator = b if isinstance(b, Operator) else None
            if old_operator is None or new_operator is None or not _alike(old_operator, new_operator):
                removed.extend(_all(old_operator))
                added.extend(_all(new_operator))
                return
            old_operator, new_operator = in_one_order(old_operator, new_operator)
            pairs.append(OperatorPair(path, old_operator, new_operator, self))
            segments = list(zip(old_operator.segments, new_operator.segments, strict=False))
            for i, (one, other) in enumerate(segments):
                below(one, other, f"{path} > {i + 1}")
            for side, found in ((old_operator, removed), (new_operator, added)):
                for extra, _ in _further(side):
                    found.extend(_all(extra.origin))

        below(self.old.segment, self.new.segment, f"{self.place} > 1")
        return tuple(pairs), tuple(removed), tuple(added)

    @property
    def operators(self) -> tuple[OperatorPair, ...]:
        return self._matched[0]

    @property
    def removed(self) -> tuple[Operator, ...]:
        return self._matched[1]

    @property
    def added(self) -> tuple[Operator, ...]:
        return self._matched[2]

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Differences above the operators, and one for operators that come or go."""
        spans = (self.old.span, self.new.span)
        found = differences_of(self.place, output_parts(self.old), output_parts(self.new), spans)
        if self.removed or self.added:
            old, new = (tuple(operator.kind for operator in side) for side in (self.removed, self.added))
            found += (Difference(f"{self.place}/operators", "operators", old, new, *spans),)
        elif not nested_alike(self.old_pipeline.sink, self.new_pipeline.sink):
            found += (Difference(f"{self.place}/{NESTING}", NESTING, None, None, *spans),)
        if self.steps[0] != self.steps[1]:
            found += (Difference(f"{self.place}/{STEPS}", STEPS, *self.steps, *spans),)
        old_columns, new_columns = (side.input_columns for side in self.query_forms)
        if old_columns != new_columns and not self.moved:
            found += (Difference(f"{self.place}/{COLUMNS_BELOW}", COLUMNS_BELOW, old_columns, new_columns, *spans),)
        return found

    @cached_property
    def query_forms(self) -> tuple[QueryForm, QueryForm]:
        """Forms of the query on both sides."""
        return query_form(self.old_pipeline, self.old), query_form(self.new_pipeline, self.new)

    @property
    def moved(self) -> bool:
        """True if the query uses other operations: SQL instead of the Table API, or others within it."""
        old, new = self.query_forms
        return old.without_columns != new.without_columns

    @property
    def steps(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The operations of the Table API the query came through on both sides."""
        return self.old_pipeline.steps, self.new_pipeline.steps

    @cached_property
    def parts(self) -> frozenset[str]:
        return frozenset(difference.part for difference in self.differences)

    @cached_property
    def changed(self) -> bool:
        """True if anything differs between source and sink."""
        return bool(self.differences) or any(pair.differences for pair in self.operators)

    @property
    def stateful(self) -> bool:
        return bool(self.operators or self.added or self.removed)

    @cached_property
    def others(self) -> tuple[Operator, ...]:
        """Operators of either side that have no rules of their own."""
        every = (*operators(self.old), *operators(self.new))
        return tuple(o for o in every if not has_rules(o))

    @cached_property
    def languages(self) -> frozenset[str]:
        """The languages of the aggregate functions on both sides."""
        every = (*operators(self.old), *operators(self.new))
        return frozenset(
            {call.language for each in every if isinstance(each, AggregateOperator) for call in each.aggregates}
        )

    @property
    def segments(self) -> tuple[tuple[StatelessSegment, ...], tuple[StatelessSegment, ...]]:
        """All stateless stretches of both sides."""
        return segments(self.old), segments(self.new)

    def claim(self, *parts: str) -> tuple[str, ...]:
        return tuple(difference.key for difference in self.differences if difference.part in parts)


RULED = frozenset(
    {OtherKind.MATCH_RECOGNIZE, OtherKind.UNION_ALL, OtherKind.TEMPORAL_SORT, OtherKind.LIMIT, OtherKind.SORT_LIMIT}
)
"""Kinds of other operators that rules speak of."""


def has_rules(operator: Operator) -> bool:
    """True if rules cover such an operator; without them, changes above it are not judged."""
    match operator:
        case AggregateOperator() | OverOperator() | RankOperator():
            return True
        case JoinOperator(form=form):
            return form is not JoinForm.JOIN
        case OtherOperator(kind=kind):
            return kind in RULED
    return False


def in_one_order(old: Operator, new: Operator) -> tuple[Operator, Operator]:
    """Both sides of a union, new inputs in the old order; the order becomes a part of both."""
    if not isinstance(old, OtherOperator) or not isinstance(new, OtherOperator) or old.kind != OtherKind.UNION_ALL:
        return old, new
    ours, theirs = (list(zip(side.segments, side.rows, strict=True)) for side in (old, new))
    left = list(range(len(theirs)))
    places: list[int | None] = []
    for one in ours:
        twin = next((i for i in left if theirs[i] == one), None)
        places.append(twin)
        if twin is not None:
            left.remove(twin)
    order = [left.pop(0) if place is None and left else place for place in places]
    found = [place for place in order if place is not None]
    further = (tuple(ours[len(found) :]), tuple(theirs[i] for i in left))
    written = (tuple(range(len(found))), tuple(found))
    said = [(("input order", place), ("further inputs", rest)) for place, rest in zip(written, further, strict=True)]
    common = len(found)
    return (
        replace(
            old,
            attributes=(*old.attributes, *said[0]),
            segments=old.segments[:common],
            rows=old.rows[:common],
            row_types=old.row_types[:common],
        ),
        replace(
            new,
            attributes=(*new.attributes, *said[1]),
            segments=tuple(theirs[i][0] for i in found),
            rows=tuple(theirs[i][1] for i in found),
            row_types=tuple(new.row_types[i] for i in found),
        ),
    )


def _further(operator: Operator) -> tuple[tuple[StatelessSegment, Any], ...]:
    """The inputs a union has and its partner has not."""
    detail = dict(operator.attributes) if isinstance(operator, OtherOperator) else {}
    return tuple(detail.get("further inputs", ()))


def _alike(old: Operator, new: Operator) -> bool:
    """True if two operators may pair: any aggregations, any joins, and other constructs of one kind."""
    if not isinstance(old, OtherOperator) or not isinstance(new, OtherOperator):
        return type(old) is type(new)
    return old.kind == new.kind and (old.kind == OtherKind.UNION_ALL or len(old.segments) == len(new.segments))


def _all(origin: Source | Operator | Rows | None) -> tuple[Operator, ...]:
    if not isinstance(origin, Operator):
        return ()
    return (origin, *(found for segment in origin.segments for found in _all(segment.origin)))
