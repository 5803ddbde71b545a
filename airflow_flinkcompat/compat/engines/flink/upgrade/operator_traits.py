"""What another line of Flink has to read of one operator: what it is planned as, its functions, the types it stores."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from airflow_flinkcompat.compat.engines.flink import lookups
from airflow_flinkcompat.compat.engines.flink.upgrade.table_traits import appending
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression
from airflow_flinkcompat.plan.nodes import Measure
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    OtherKind,
    OtherOperator,
    Output,
    OverOperator,
    RankKind,
    RankOperator,
    Source,
)
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import CHARACTERS, INTEGERS, DataType, TimeAttribute

CLOCKS = {TimeAttribute.ROWTIME: "event-time", TimeAttribute.PROCTIME: "processing-time", None: "timeless"}
_TYPELESS = frozenset({"COUNT", "ROW_NUMBER", "RANK", "DENSE_RANK", "GROUPING", "GROUPING_ID"})
"""Functions that keep the same whatever they are given."""
_ORDER_BY = re.compile(r"ORDER BY `?(\w+)`?")


def operator_traits(operator: Operator, output: Output, program: Program, mini_batch: bool) -> Iterator[str]:
    """What an operator is planned as, with what it keeps.

    Args:
        operator: A stateful operator.
        output: The query it stands in.
        program: The script.
        mini_batch: Whether rows are handed over in bundles, which plans other operators.

    Yields:
        Traits.
    """
    match operator:
        case AggregateOperator():
            yield from _aggregation(operator, program, mini_batch)
        case JoinOperator():
            yield from _join(operator, output, program, mini_batch)
        case OverOperator():
            yield from _over(operator, program)
        case RankOperator():
            yield _rank(operator, program, mini_batch)
            yield from _stored((*operator.row_types, *operator.partition_types, *operator.order_types))
        case OtherOperator():
            yield from _other(operator, program)
        case _:
            yield f"the operator {operator.kind}"


def _aggregation(operator: AggregateOperator, program: Program, mini_batch: bool) -> Iterator[str]:
    updates = "" if appending(operator.segment, program) else " over updates"
    if operator.kind is AggregateKind.GROUP:
        bundled = " with mini-batch" if mini_batch else ""
        name = f"{'' if operator.keys else 'global '}group aggregation{bundled}{updates}"
        context = f"a group aggregation{updates}"
    elif operator.kind is AggregateKind.OVER_WINDOWED_ROWS:
        name = context = f"group aggregation over windowed rows{updates}"
    else:
        assert operator.window is not None
        legacy = operator.kind is AggregateKind.GROUP_WINDOW
        inner = "" if legacy or operator.segment.windows else " of the windows below"
        rows = " over rows" if operator.window.window.measure is Measure.ROWS else ""
        clock = CLOCKS[operator.window.time_attribute]
        kind = "legacy window" if legacy else "window"
        name = f"{clock} {operator.window.window.kind} {kind} aggregation{rows}{inner}{updates}"
        context = f"a {kind} aggregation{updates}"
        if operator.window_computations or operator.window_aggregates:
            yield f"a computation on the fields of a window in a {kind} aggregation"
    yield name
    if operator.grouping_sets is not None:
        yield f"grouping sets in {context}"
    if operator.repeated_keys or operator.repeated_calls:
        yield f"what is written twice in {context}"
    yield from _functions(operator.aggregates, operator.argument_types, context)
    yield from _stored((*operator.key_types, *(each for types in operator.argument_types for each in types)))


def _functions(calls: Iterable[AggregateCall], types: Iterable[tuple[DataType, ...]], context: str) -> Iterator[str]:
    for call, arguments in zip(calls, types, strict=True):
        if call.language != "builtin":
            yield f"the aggregate function {call.function}"
            continue
        of = f" of {_family(arguments[0])}" if arguments and call.function not in _TYPELESS else ""
        yield f"{call.function}{of} in {context}"
        if call.distinct and call.function not in ("MIN", "MAX"):
            yield f"DISTINCT{' with FILTER' if call.filter is not None else ''} in {context}"
        if call.order_by:
            yield f"ORDER BY within {call.function}"


def _family(type: DataType) -> str:
    if type.name in INTEGERS:
        return "integers"
    if type.name in CHARACTERS:
        return "text"
    return type.name if type.is_known else "a type that is not known"


def _stored(types: Iterable[DataType]) -> Iterator[str]:
    for type in types:
        if not type.is_known:
            yield "columns of a type that is not known"
            continue
        yield f"values of type {'STRING' if type.name in CHARACTERS else type.name}"
        yield from _stored(type.elements)


def _join(operator: JoinOperator, output: Output, program: Program, mini_batch: bool) -> Iterator[str]:
    form, clock = operator.form, CLOCKS[operator.clock]
    outer = "" if operator.join == "INNER" else "outer "
    if form is JoinForm.REGULAR:
        yield from _regular(operator, program, mini_batch)
    elif form is JoinForm.LOOKUP:
        updates = "" if appending(operator.segments[0], program) else " over updates"
        yield f"{_lookup(operator, output, program)}{updates}"
    elif form is JoinForm.WINDOW:
        yield f"{operator.join} window join"
    elif form is JoinForm.TEMPORAL:
        what = "table" if isinstance(operator.segments[1].origin, Source) else "view"
        yield f"{clock} {form} with a versioned {what}"
    else:
        yield f"{clock} {outer}{form}"
    yield from _stored(each for row in operator.row_types for each in row)


def _lookup(operator: JoinOperator, output: Output, program: Program) -> str:
    mode = lookups.mode(operator, output, program)
    if mode is lookups.LookupMode.NOT_KNOWN:
        return "a lookup join of which it is not known whether rows wait in it"
    return f"{mode.value} lookup join"


_KEEPS = {
    "INNER": ("rows alone", "rows alone"),
    "LEFT": ("rows and their matches", "rows alone"),
    "RIGHT": ("rows alone", "rows and their matches"),
    "FULL": ("rows and their matches", "rows and their matches"),
}
"""What a regular join keeps of each input: an outer side counts the matches of each row."""


def _regular(operator: JoinOperator, program: Program, mini_batch: bool) -> Iterator[str]:
    bundled = " with mini-batch" if mini_batch else ""
    if operator.join not in _KEEPS or not operator.keys:
        yield f"{operator.join} regular join{'' if operator.keys else ' without keys'}{bundled}"
        return
    for side, (segment, keeps) in enumerate(zip(operator.segments, _KEEPS[operator.join], strict=True)):
        by = {pair[side] for pair in operator.keys}
        yield f"regular join{bundled} that keeps {keeps} of {_joined_rows(segment.origin, by, program, operator, side)}"


def _joined_rows(origin: object, by: set[Expression], program: Program, operator: JoinOperator, side: int) -> str:
    """What is known of a joined input's key, by which its rows are kept."""
    if isinstance(origin, AggregateOperator) and origin.kind is AggregateKind.GROUP and origin.keys:
        inner = [each.output for each in by if isinstance(each, OperatorColumn)]
        outputs = [each.output for each in inner if isinstance(each, OperatorColumn)]
        held = {each.key for each in outputs if isinstance(each, KeyOutput)}
        return "groups by their key" if held == set(origin.keys) else "groups by another key"
    if appending(operator.segments[side], program):
        return "appended rows"
    if isinstance(origin, JoinOperator):
        return "joined rows"
    return "updates from a table" if isinstance(origin, Source) else "other updates"


def _over(operator: OverOperator, program: Program) -> Iterator[str]:
    frame = operator.frame
    other = frame.other or frame.following != 0 or frame.window is not None
    if not other and operator.order:
        name = f"OVER aggregation by {frame.unit}, {'unbounded' if frame.preceding is None else 'bounded'}"
        updates = "" if appending(operator.segment, program) else " over updates"
        yield f"{CLOCKS[operator.clock]} {name}{updates}"
    else:
        name = "OVER aggregation with another frame"
        yield f"an {name}"
    # What a function keeps depends on whether rows leave the frame.
    yield from _functions(operator.aggregates, operator.argument_types, f"an {name}")
    yield from _stored(each.type for each in operator.row if each.type.is_known)


def _rank(operator: RankOperator, program: Program, mini_batch: bool) -> str:
    clock, first = CLOCKS[operator.order_clock], operator.order[0] if operator.order else None
    keeps = "first" if first is not None and first[1] else "last"
    if operator.kind is RankKind.DEDUPLICATION:
        return f"{clock} deduplication that keeps the {keeps} row{' with mini-batch' if mini_batch else ''}"
    if operator.kind is RankKind.WINDOW_DEDUPLICATION:
        return f"window deduplication that keeps the {keeps} row"
    beyond = "" if operator.first == 1 else " from a rank above 1"
    # One row that is kept may be planned as a deduplication, by a clock that is not seen here.
    top = "Top-1" if operator.first == operator.last == 1 else "Top-N"
    if operator.kind is RankKind.WINDOW_TOP_N:
        over = "" if isinstance(operator.segment.origin, AggregateOperator) else " over rows"
        return f"window {top}{over}{beyond}"
    return f"{top} over {_ranked(operator, program)}{beyond}"


def _ranked(operator: RankOperator, program: Program) -> str:
    """The order decides whether a row may only rise, which is planned otherwise."""
    if appending(operator.segment, program):
        return "appended rows"
    first = operator.order[0] if operator.order else None
    call = first[0].output if first is not None and isinstance(first[0], OperatorColumn) else None
    if isinstance(call, AggregateCall) and first is not None:
        rises = {("COUNT", False), ("MAX", False), ("MIN", True)}
        if (call.function, first[1]) in rises:
            return f"groups by a {call.function} that only {'falls' if first[1] else 'rises'}"
        return "groups by a value that rises and falls" if call.function in ("SUM", "AVG") else "groups"
    return "updates"


def _other(operator: OtherOperator, program: Program) -> Iterator[str]:
    kind = operator.kind
    updates = "" if all(appending(each, program) for each in operator.segments) else " over updates"
    if kind == OtherKind.QUERY:
        yield "a query that is not taken apart"
    elif kind == OtherKind.UNION_ALL:
        yield "UNION ALL"
        return
    elif kind == OtherKind.TEMPORAL_SORT:
        clock = dict(operator.attributes).get("clock")
        yield f"{CLOCKS[clock if isinstance(clock, TimeAttribute) else None]} sort"
    elif kind == OtherKind.MATCH_RECOGNIZE:
        yield f"{_pattern_clock(operator, program)} MATCH_RECOGNIZE{updates}"
    else:
        yield f"{kind}{updates}"
    yield from _stored(each for row in operator.row_types for each in row if each.is_known)


def _pattern_clock(operator: OtherOperator, program: Program) -> str:
    """The clock of a pattern: that of the column which every table that has it says it is."""
    found = _ORDER_BY.search(str(dict(operator.attributes).get("text", "")))
    name = "" if found is None else found[1]
    clocks = {column.time_attribute for each in program.tables for column in each.columns if column.name == name}
    return CLOCKS[clocks.pop()] if len(clocks) == 1 else "timeless"
