"""Pairs of old and new queries and operators, with their differences."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_flinkcompat.compat.changes.differences import (
    Difference,
    MetricFates,
    differences_of,
    fates,
    operator_parts,
    output_parts,
)
from airflow_flinkcompat.compat.changes.query_form import QueryForm, query_form, same_nesting
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
    """Positions of paired, removed and added queries in their scripts, and sinks with ambiguous pairs."""

    pairs: tuple[tuple[int, int], ...]
    removed: tuple[int, ...]
    added: tuple[int, ...]
    ambiguous: tuple[str, ...]


def pair_queries(old: Mapping[int, Output], new: Mapping[int, Output]) -> Pairing:
    """Pair the old and new queries of the whole script.

    Each level in ``LEVELS`` compares less of a query than the level before. At each level, two equal queries become a
    pair if no other query of either side equals them. If queries that write into the same sink remain on both sides,
    these queries are ambiguous.
    """
    left, right = dict(old), dict(new)
    pairs: list[tuple[int, int]] = []

    def match(i: int, j: int) -> None:
        pairs.append((i, j))
        del left[i], right[j]

    unmatched: dict[str, dict[int, Output]] = {}
    for j, output in new.items():
        unmatched.setdefault(output.sink, {})[j] = output
    for i, output in old.items():  # equal queries are interchangeable, and paired in their order
        alike = unmatched.get(output.sink, {})
        twin = next((j for j, other in alike.items() if other == output), None)
        if twin is not None:
            match(i, twin)
            del alike[twin]
    if len(left) == len(right) == 1:  # shortcut for scripts with one query; the code below would also pair them
        match(next(iter(left)), next(iter(right)))
    for level in LEVELS:
        if not (left and right):
            break
        ours, theirs = _unique_signs(left, level), _unique_signs(right, level)
        for sign in [sign for sign in ours if sign in theirs]:
            match(ours[sign], theirs[sign])
    open_sinks = {output.sink for output in right.values()}
    ambiguous = tuple(dict.fromkeys(o.sink for o in left.values() if o.sink in open_sinks))
    if len(left) == len(right) == 1 and not ambiguous:
        match(next(iter(left)), next(iter(right)))  # the only remaining queries have different sinks
    gone, come = (tuple(n for n, output in side.items() if output.sink not in ambiguous) for side in (left, right))
    return Pairing(tuple(sorted(pairs)), gone, come, ambiguous)


Sign = Callable[[Output], Hashable | None]


def _unique_signs(outputs: Mapping[int, Output], level: Sign) -> dict[Hashable, int]:
    """Positions of queries by sign, without the signs that several queries share."""
    bearers: dict[Hashable, list[int]] = {}
    for i, output in outputs.items():
        sign = level(output)
        if sign is not None:
            bearers.setdefault(sign, []).append(i)
    return {sign: places[0] for sign, places in bearers.items() if len(places) == 1}


def _stateful_operators(output: Output) -> Hashable | None:
    """The stateful operators of a query; None if it has no state."""
    return operators(output) or None


def _frame(operator: Operator) -> Hashable:
    """The parts of an operator that stay equal if a metric or condition is added or removed."""
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
    _stateful_operators,
    _frames,
    _kinds,
    lambda output: output.sink,
)
"""Levels of equality, in the order of their use: each later level compares less of a query."""
STEPS = "Table API operations"
"""Name of the part that contains the Table API operations of a query."""
NESTING = "nesting"
"""Name of the part for nested subqueries, whose nesting may change the planned operators."""
COLUMNS_BELOW = "columns below"
"""Name of the part that contains all input columns of Table API operators, read or unread."""


@dataclass(frozen=True)
class OperatorPair:
    """An operator on both sides, paired by its path upstream from a sink, such as ``sink > 1 > 2``."""

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
        """The old and the new operator if both are aggregations; else None."""
        if isinstance(self.old, AggregateOperator) and isinstance(self.new, AggregateOperator):
            return self.old, self.new
        return None

    @property
    def windowed(self) -> tuple[AggregateOperator, AggregateOperator] | None:
        """The old and the new operator if both are aggregations, and at least one has a window; else None."""
        pair = self.aggregations
        return pair if pair is not None and (pair[0].window or pair[1].window) else None

    @property
    def ranks(self) -> tuple[RankOperator, RankOperator] | None:
        """The old and the new operator if each is a Top-N or a deduplication; else None."""
        if isinstance(self.old, RankOperator) and isinstance(self.new, RankOperator):
            return self.old, self.new
        return None

    @property
    def windows(self) -> tuple[AssignedWindow | None, AssignedWindow | None] | None:
        """The windows of the aggregations or rankings on both sides; None if neither side has a window."""
        if self.windowed is not None:
            return self.windowed[0].window, self.windowed[1].window
        assigned = (None, None) if self.ranks is None else (self.ranks[0].assigned, self.ranks[1].assigned)
        return assigned if any(assigned) else None

    @cached_property
    def fates(self) -> MetricFates | None:
        """The fates of the metrics of an aggregation or of an OVER operator; None for other operators."""
        if isinstance(self.old, OverOperator) and isinstance(self.new, OverOperator):
            return fates(self.old, self.new)
        return None if self.aggregations is None else fates(*self.aggregations)

    def claim(self, *parts: str) -> tuple[str, ...]:
        """The keys of the differences in some parts."""
        return tuple(difference.key for difference in self.differences if difference.part in parts)


@dataclass(frozen=True)
class PipelinePair:
    """A query on both sides, with its paired operators and the operators without a partner.

    ``place`` is the first part of the key of every difference of the query: the name of the sink, made unique if
    several queries write into that sink. ``lines`` are the Flink minor versions that plan both sides; None if unknown.
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
            if old_operator is None or new_operator is None or not _may_pair(old_operator, new_operator):
                removed.extend(_operators_at(old_operator))
                added.extend(_operators_at(new_operator))
                return
            old_operator, new_operator = align_union_inputs(old_operator, new_operator)
            pairs.append(OperatorPair(path, old_operator, new_operator, self))
            segments = list(zip(old_operator.segments, new_operator.segments, strict=False))
            for i, (one, other) in enumerate(segments):
                below(one, other, f"{path} > {i + 1}")
            for side, found in ((old_operator, removed), (new_operator, added)):
                for extra, _ in _extra_inputs(side):
                    found.extend(_operators_at(extra.origin))

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
        """Differences downstream of all stateful operators, and one difference for added or removed operators."""
        spans = (self.old.span, self.new.span)
        found = differences_of(self.place, output_parts(self.old), output_parts(self.new), spans)
        if self.removed or self.added:
            old, new = (tuple(operator.kind for operator in side) for side in (self.removed, self.added))
            found += (Difference(f"{self.place}/operators", "operators", old, new, *spans),)
        elif not same_nesting(self.old_pipeline.sink, self.new_pipeline.sink):
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
        """True if the API of the query changed, or its Table API operations did."""
        old, new = self.query_forms
        return old.without_columns != new.without_columns

    @property
    def steps(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The Table API operations of the query on both sides."""
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
        """Operators of either side that no rule covers."""
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
        """All stateless segments of both sides."""
        return segments(self.old), segments(self.new)

    def claim(self, *parts: str) -> tuple[str, ...]:
        return tuple(difference.key for difference in self.differences if difference.part in parts)


RULED = frozenset(
    {OtherKind.MATCH_RECOGNIZE, OtherKind.UNION_ALL, OtherKind.TEMPORAL_SORT, OtherKind.LIMIT, OtherKind.SORT_LIMIT}
)
"""Kinds of :class:`OtherOperator` that rules cover."""


def has_rules(operator: Operator) -> bool:
    """True if rules cover an operator. Changes downstream of an operator without rules are not judged."""
    match operator:
        case AggregateOperator() | OverOperator() | RankOperator():
            return True
        case JoinOperator(form=form):
            return form is not JoinForm.JOIN
        case OtherOperator(kind=kind):
            return kind in RULED
    return False


def align_union_inputs(old: Operator, new: Operator) -> tuple[Operator, Operator]:
    """Both sides of a union: new inputs in the order of the old inputs, with their order as an attribute."""
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
    order_attributes = [
        (("input order", place), ("further inputs", rest)) for place, rest in zip(written, further, strict=True)
    ]
    common = len(found)
    return (
        replace(
            old,
            attributes=(*old.attributes, *order_attributes[0]),
            segments=old.segments[:common],
            rows=old.rows[:common],
            row_types=old.row_types[:common],
        ),
        replace(
            new,
            attributes=(*new.attributes, *order_attributes[1]),
            segments=tuple(theirs[i][0] for i in found),
            rows=tuple(theirs[i][1] for i in found),
            row_types=tuple(new.row_types[i] for i in found),
        ),
    )


def _extra_inputs(operator: Operator) -> tuple[tuple[StatelessSegment, Any], ...]:
    """The inputs of a union that its partner does not have."""
    detail = dict(operator.attributes) if isinstance(operator, OtherOperator) else {}
    return tuple(detail.get("further inputs", ()))


def _may_pair(old: Operator, new: Operator) -> bool:
    """True if two operators may form a pair: the same class and, for ``OtherOperator``, the same kind."""
    if not isinstance(old, OtherOperator) or not isinstance(new, OtherOperator):
        return type(old) is type(new)
    return old.kind == new.kind and (old.kind == OtherKind.UNION_ALL or len(old.segments) == len(new.segments))


def _operators_at(origin: Source | Operator | Rows | None) -> tuple[Operator, ...]:
    if not isinstance(origin, Operator):
        return ()
    return (origin, *(found for segment in origin.segments for found in _operators_at(segment.origin)))
