"""Lookup joins: output columns, rows that wait for an answer, and adjacent operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known, LookupSupport
from airflow_flinkcompat.exec_graph.exec_node import ExecNode, row_type
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import CannotLower, NamedState, StateLayout, Stored
from airflow_flinkcompat.exec_graph.lowering import (
    CALC,
    LOOKUP,
    NodeFamily,
    PlannedJob,
    PossibleChains,
    check_functions,
    check_no_operators,
)
from airflow_flinkcompat.exec_graph.model import StateKind, StateSpec
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets
from airflow_flinkcompat.exec_graph.nodes.sink import cast_by_calc
from airflow_flinkcompat.exec_graph.nodes.source import (
    check_conditions,
    derive_source,
    simplified_stretch,
    with_output_calc,
)
from airflow_flinkcompat.exec_graph.streams import output_meanings, own
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, columns, frozen, resolved, row
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, Leaf, walk
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import JoinOperator, Source
from airflow_flinkcompat.plan.origins import OperatorColumn, PassedOutput, leaves
from airflow_flinkcompat.plan.types import DataType
from airflow_flinkcompat.savepoint.binary import KeyedStateKind


def looked_up(node: ExecNode, first: ColumnMeanings, table: str, symbols: Symbols) -> ColumnMeanings:
    """The output of a lookup join: input columns, and looked-up columns identified by name."""
    found = node.config.get("projectionOnTemporalTable")
    conditions = (node.config.get(each) for each in ("filterOnTemporalTable", "joinCondition"))
    # Positions in conditions refer to the projected columns.
    asked = () if any(conditions) else ("projectionOnTemporalTable",)
    but = ("retryOptions", "asyncOptions", "temporalTable", *asked)
    op = symbols.of(node.kind, table, resolved(own(node, *but), first, symbols), first.rows)
    names, _ = row_type(node.config["temporalTable"]["outputType"])
    places = range(len(names)) if found is None else [each.get("inputIndex") for each in found]
    columns = [symbols.of("made", op, i if place is None else names[place]) for i, place in enumerate(places)]
    known = [*first.symbols, *columns]
    if len(known) != len(node.names):
        known = [symbols.of("made", op, frozen(found), i) for i in range(len(node.names))]
    return output_meanings(node, known, symbols.of("rows of", op))


def lookup_identifier(node: ExecNode) -> str:
    """The identifier of the looked-up table; for a legacy source, its whole description."""
    table = node.config["temporalTable"]
    return str(table.get("lookupTableSource", {}).get("table", {}).get("identifier") or frozen(table))


def lookup_operators(job: PlannedJob, join: JoinOperator) -> tuple[Table, PossibleChains]:
    """The possible operators of a synchronous lookup, which has no state; Calcs around it are optional."""
    left, right = join.segments
    if not isinstance(left.origin, Source) or not isinstance(right.origin, Source):
        raise CannotLower("only lookups from the rows of a table are supported")
    for segment in (left, right, job.output.segment):
        check_no_operators(segment)
        if segment.windows:
            raise CannotLower("windows around a lookup are separate operators")
    check_functions(
        job, (*join.expressions, *join.conditions, *job.output.columns, *left.filters, *job.output.segment.filters)
    )
    looked_up = job.table(right.origin.table)
    if right.origin.hints or looked_up.option("connector") is None:
        raise CannotLower("a lookup may keep rows that wait for an answer")
    if any(name == "LOOKUP" for segment in (left, right, job.output.segment) for name, _ in segment.hints):
        raise CannotLower("a LOOKUP hint may change the operators")
    table = derive_source(job, left.origin)
    check_conditions(left, table)
    check_conditions(job.output.segment, table, looked_up)
    below = simplified_stretch(table, join.rows[0], bool(left.filters))
    around = tuple(dict.fromkeys((*below, *with_output_calc(below, Known.YES))))
    put_out = ((CALC,),) if _rearranged(job) else ((), (CALC,))
    return table, tuple((*kinds, LOOKUP, *above) for kinds, above in product(around, put_out))


def _rearranged(job: PlannedJob) -> bool:
    """True if a Calc certainly follows a lookup, which appends columns to the columns of its input."""
    if cast_by_calc(job) is Known.YES:
        return True
    inputs = [{each.input for each in _passed_outputs(column)} for column in job.output.columns]
    return any(len(each) > 1 for each in inputs) or any(
        found == {1} and {0} in inputs[place:] for place, found in enumerate(inputs)
    )


def _passed_outputs(column: Expression) -> Iterator[PassedOutput]:
    for leaf in leaves(column):
        if isinstance(leaf, OperatorColumn) and isinstance(leaf.output, PassedOutput):
            yield leaf.output


def _has_condition_only_column(job: PlannedJob, join: JoinOperator) -> bool:
    """True if an input column is only read by a condition downstream of the lookup."""
    asked, shown = (
        {each.column for part in parts for each in _passed_outputs(part) if each.input == 0}
        for parts in (job.output.segment.filters, job.output.columns)
    )
    joined = (*join.conditions, *(key for key, _ in join.keys))
    read = {each.output for part in joined for each in leaves(part) if isinstance(each, OperatorColumn)}
    return bool(asked - shown - read)


def waiting_rows(job: PlannedJob, join: JoinOperator) -> StateSpec | None:
    """The state of rows that wait for an answer; None for a synchronous lookup.

    A lookup that may be asynchronous may store rows that wait for an answer. A migration carries these rows unchanged
    if all facts that may affect them are equal.
    """
    looked_up = join.segments[1].origin
    assert isinstance(looked_up, Source)
    table = job.table(looked_up.table)
    connector, given = table.option("connector"), table.option("lookup.async")
    support = registry.lookup(connector).support
    by_option = "false" if support is LookupSupport.BY_OPTION else ""
    if support is LookupSupport.SYNCHRONOUS or (given or by_option).lower() == "false":
        return None
    if _has_condition_only_column(job, join):
        raise CannotLower(
            "a column is read only by a condition: if Flink moves the condition before the "
            "lookup, waiting rows lack the column"
        )
    computed = computed_in_front(join, job.output.segment.filters)
    decides = connector, given, join.rows[0], join.row_types[0], computed
    return StateSpec(StateKind.OPERATOR, LOOKUP, unmeasured_properties=decides)


def delta_join_layout(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout:
    """The layout of a delta join: the rows that wait for an answer from the other side."""
    left, right = (row(each).fields for each in inputs)
    element = "StreamElement<row>"
    waiting = Stored(f"List<Tuple<{element}, {element}, {element}, Int>>", (*left, *right, *left))
    state = NamedState("_delta_join_operator_async_wait_state_", KeyedStateKind.LIST, waiting)
    return StateLayout(columns(inputs[0], node.config["leftJoinKeys"]), (state,), carried_only=True)


FAMILIES = (
    NodeFamily((ExecKind.LOOKUP_JOIN,), kept_row_facets),
    NodeFamily((ExecKind.DELTA_JOIN,), kept_row_facets, delta_join_layout),
)


COMPUTED = "a value computed from the looked-up row"


def computed_in_front(join: JoinOperator, above: Iterable[Expression] = ()) -> frozenset[tuple[Expression, str]]:
    """The sides of equations that Flink computes from a row upstream of the lookup."""
    equations = list(join.keys)
    for condition in (*join.conditions, *above):
        for part in walk(condition):
            if isinstance(part, FunctionCall) and part.function == "=" and len(part.args) == 2:
                equations.append((part.args[0], part.args[1]))
    types = _types(join)
    both = (sides for equation in equations for sides in (equation, equation[::-1]))
    return frozenset(found for side, other in both for found in _computed(side, other, types))


def _computed(
    side: Expression, other: Expression, types: dict[tuple[int, object], DataType]
) -> Iterator[tuple[Expression, str]]:
    if {place for place, _ in _columns(side)} != {0}:
        return
    if not isinstance(side, Leaf):
        yield side, ""
        return
    if not isinstance(other, Leaf):
        # The key is a literal or has a different type. Flink refuses a lookup with such keys alone.
        if {place for place, _ in _columns(other)} == {1}:
            yield side, COMPUTED
        return
    own, asked = (types.get(column) for each in (side, other) for column in _columns(each)[:1] or [(-1, None)])
    if own is not None and asked is not None and own != asked:
        yield side, str(asked)


def _columns(expression: Expression) -> list[tuple[int, object]]:
    """The columns that an expression reads, each with the number of its input."""
    return [
        (each.output.input, each.output.column)
        if isinstance(each.output, PassedOutput)
        else (each.operator, each.output)
        for each in leaves(expression)
        if isinstance(each, OperatorColumn)
    ]


def _types(join: JoinOperator) -> dict[tuple[int, object], DataType]:
    return {
        (place, column): replace(kind, nullable=True)
        for place, (row, kinds) in enumerate(zip(join.rows, join.row_types, strict=True))
        for column, kind in zip(row, kinds, strict=False)
    }
