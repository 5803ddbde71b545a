"""State of a job, derived from its script alone if Flink's plan for the script is certain."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import replace
from itertools import product

from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import SinkState, SourceState
from airflow_flinkcompat.connectors.registry import by_place
from airflow_flinkcompat.exec_graph.kinds import OperatorKind, SinkOperator
from airflow_flinkcompat.exec_graph.layout import CannotLower, StateLayout, Unknown
from airflow_flinkcompat.exec_graph.lowering import (
    LOOKUP,
    SCAN,
    STATEFUL,
    Lowered,
    OperatorKinds,
    PlannedJob,
    check_functions,
    check_no_operators,
    check_planning,
)
from airflow_flinkcompat.exec_graph.model import MEANING, UNSURE, ExecGraph, Facets, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.nodes import layout
from airflow_flinkcompat.exec_graph.nodes.aggregate import KINDS, lower_aggregation, planned_calls
from airflow_flinkcompat.exec_graph.nodes.join import JOINS, lower_join
from airflow_flinkcompat.exec_graph.nodes.lookup_join import lookup_operators, waiting_rows
from airflow_flinkcompat.exec_graph.nodes.rank import RANKS, lower_rank
from airflow_flinkcompat.exec_graph.nodes.sink import derive_sink
from airflow_flinkcompat.exec_graph.nodes.source import derive_source, stateless_operators, table_with_only_state
from airflow_flinkcompat.exec_graph.nodes.window_aggregate import aggregated_table, aggregation_operators
from airflow_flinkcompat.exec_graph.operator_ids import StreamGraph, StreamNode
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    Output,
    RankOperator,
    Source,
    operators,
)
from airflow_flinkcompat.plan.origins import OperatorColumn, SourceColumn, leaves
from airflow_flinkcompat.plan.program import Pipeline, Program
from airflow_flinkcompat.plan.types import TimeAttribute

_TIME_TO_LIVE = "table.exec.state.ttl"


def job_state(output: Output, pipeline: Pipeline, program: Program) -> ExecGraph | Unknown:
    """Derive the state of a job with one query."""
    try:
        return _job_state(PlannedJob(output, pipeline, program))
    except CannotLower as error:
        return error.unknown


def query_state(output: Output, pipeline: Pipeline, program: Program, symbols: Symbols) -> ExecGraph | Unknown:
    """Derive the state of a query with one stateful operator, without operator ids.

    Ids are not needed to derive the state that a migration keeps.
    """
    found = operators(output)
    if len(found) != 1:
        return Unknown("only queries with one operator that reads tables directly are supported")
    job, operator = PlannedJob(output, pipeline, program), found[0]
    layout = _operator_layout(job, operator, symbols)
    if isinstance(layout, Unknown):
        return Unknown(layout.reason)
    try:
        check_no_operators(output.segment)
        conditions = (part for segment in (output.segment, *operator.segments) for part in segment.filters)
        check_functions(job, (*output.columns, *operator.expressions, *conditions))
        read = [job.table(segment.origin.table) for segment in operator.segments if isinstance(segment.origin, Source)]
        _, sink = derive_sink(job)
    except CannotLower as error:
        return error.unknown
    if isinstance(operator, JoinOperator) and operator.join != "INNER" and output.segment.filters:
        return Unknown("a condition after an outer join may turn it into an inner join")
    computed = output.segment.filters or any(isinstance(column, FunctionCall) for column in output.columns)
    if computed and not isinstance(operator, AggregateOperator):
        return Unknown("a computation on stored rows may read a column that is NULL in old rows")
    if len({table.name for table in read}) < len(read):
        return Unknown("a table that is read twice may have one source or two")
    spec = _operator_spec(operator, layout, job.settings.get(_TIME_TO_LIVE, ""))
    if isinstance(operator, AggregateOperator):
        spec = _with_windows(_with_outputs(spec, operator, output), operator, read)
    specs = [*(StateSpec(StateKind.POSITIONS, table.name, meaning=table) for table in read), spec]
    if sink is not SinkState.NONE:
        written = job.table(output.sink)
        by_name = registry.sink(written.option("connector")).state_survives_columns
        into = None if by_name else (written, output.columns, output.types)
        specs.append(
            StateSpec(StateKind.SINK, written.name, meaning=written.option("connector"), unmeasured_properties=into)
        )
    return ExecGraph((), tuple(specs))


def _with_outputs(spec: StateSpec, aggregation: AggregateOperator, output: Output) -> StateSpec:
    """Add the sets of aggregate calls from which one value is computed."""
    calls = planned_calls(aggregation, Symbols())

    def read(parts: Iterable[Expression]) -> frozenset[Hashable]:
        found = {leaf.output for part in parts for leaf in leaves(part) if isinstance(leaf, OperatorColumn)}
        return frozenset(calls[each] for each in found if isinstance(each, AggregateCall))

    segment = replace(aggregation.segment, filters=frozenset())
    return replace(
        spec,
        meaning_without_filter=(spec.name, segment, aggregation.window),
        co_dependent_calls=frozenset(read([column]) for column in output.columns),
        filtering_calls=read(output.segment.filters),
    )


def _with_windows(spec: StateSpec, aggregation: AggregateOperator, read: Iterable[Table]) -> StateSpec:
    """Add the windows of an aggregation, and its meaning without these windows."""
    assigned = aggregation.window
    if aggregation.kind is not AggregateKind.WINDOW or assigned is None:
        return spec
    rowtime = TimeAttribute.ROWTIME
    times = {column.type.name for table in read for column in table.columns if column.time_attribute is rowtime}
    # A time attribute with a time zone shifts the windows.
    by_itself = aggregation.segment.windows == (assigned,) and times == {"TIMESTAMP"}
    sliced = by_itself and assigned.time_attribute is rowtime and not assigned.partition_by
    return replace(
        spec,
        windows=SlicedWindow.of(assigned.window) if sliced else None,
        meaning_without_window=(
            spec.name,
            replace(aggregation.segment, windows=()),
            assigned.time,
            assigned.time_attribute,
        ),
    )


def _operator_spec(operator: Operator, layout: StateLayout, time_to_live: str) -> StateSpec:
    """Describe an operator's state by facts that determine its fields, and facts that may determine them."""
    match operator:
        case AggregateOperator():
            name = KINDS[operator.kind]
            meaning: tuple[object, ...] = operator.segment, operator.window
            unmeasured_properties: tuple[object, ...] = ()
        case RankOperator():
            name = RANKS[operator.kind]
            meaning = operator.segment, operator.window, frozenset(operator.partition), operator.order, operator.last
            # The state of a windowed ranking does not depend on the output of the rank (measured).
            number_read = operator.window is None and operator.number_read
            unmeasured_properties = operator.first, number_read, time_to_live
        case JoinOperator():
            name = JOINS[operator.form]
            inner = operator.form is not JoinForm.REGULAR or operator.join == "INNER"
            none: frozenset[object] = frozenset()
            decides, may_decide = (none, operator.conditions) if inner else (operator.conditions, none)
            meaning = operator.segments, operator.keys, operator.times, decides
            unmeasured_properties = operator.join, operator.bounds, may_decide, time_to_live
        case _:
            raise AssertionError(f"{operator.kind} has a layout, but no description")
    return StateSpec(
        StateKind.OPERATOR, name, layout=layout, meaning=(name, *meaning), unmeasured_properties=unmeasured_properties
    )


def _operator_layout(job: PlannedJob, operator: Operator, symbols: Symbols) -> StateLayout | Unknown:
    try:
        check_planning(job)
        for segment in operator.segments:
            if isinstance(segment.origin, Source):
                derive_source(job, segment.origin)
    except CannotLower as error:
        return error.unknown
    return _stored(job, operator, symbols)


def _stored(job: PlannedJob, operator: Operator, symbols: Symbols) -> StateLayout | Unknown:
    if any(segment.hints for segment in (job.output.segment, *operator.segments)):
        return Unknown("a hint may set the time to live of state")
    lives = re.fullmatch(r"(\d+) *[a-z]*", job.settings.get(_TIME_TO_LIVE, "0").strip().lower())
    if lives is None:
        return Unknown(f"the value of {_TIME_TO_LIVE} cannot be parsed")
    return operator_layout(operator, symbols, time_to_live=int(lives[1]) > 0)


def _job_state(job: PlannedJob) -> ExecGraph:
    check_planning(job)
    top = job.output.segment.origin
    aggregation: AggregateOperator | None = None
    waiting: StateSpec | None = None
    if isinstance(top, Source):
        head = table_with_only_state(job, top)
        source = head or derive_source(job, top)
        lower = stateless_operators(job, source, at_head=head is not None)
    elif isinstance(top, JoinOperator) and top.form is JoinForm.LOOKUP:
        source, lower = lookup_operators(job, top)
        waiting = waiting_rows(job, top)
    elif isinstance(top, AggregateOperator):
        source, aggregation = aggregated_table(job, top)
        lower = aggregation_operators(job, top, source)
    else:
        raise CannotLower("only queries over one table, with at most one lookup or aggregation, are supported")
    sink, state = derive_sink(job)
    graphs = tuple(_line((*below, *behind)) for below, behind in product(dict.fromkeys(lower), sink))
    specs, symbols = [], Symbols()
    if registry.source(source.option("connector")).positions is not SourceState.NOTHING:
        specs.append(StateSpec(StateKind.POSITIONS, source.name, _id(graphs, SCAN)))
    if aggregation is not None:
        kind = next(kind for kind in lower[0] if kind in STATEFUL)
        layout = _stored(job, aggregation, symbols)
        declared = _declared(aggregation, source)
        specs.append(StateSpec(StateKind.OPERATOR, kind, _id(graphs, kind), layout, _input_rows(aggregation), declared))
    if waiting is not None:
        specs.append(replace(waiting, id=_id(graphs, LOOKUP)))
    if state is not SinkState.NONE:
        specs.append(StateSpec(StateKind.SINK, job.output.sink, _id(graphs, SinkOperator.WRITER)))
    return ExecGraph(graphs, tuple(replace(spec, facets=_facets(spec)) for spec in specs), symbols=symbols)


def _facets(spec: StateSpec) -> Facets:
    """The facets of an operator that determine its state."""
    stored = spec.layout if isinstance(spec.layout, StateLayout) else None
    states = frozenset(replace(state, time_to_live=False) for state in stored.states) if stored else None
    return {
        (MEANING, "operator"): (spec.kind, stored is None),
        (MEANING, "layout"): stored and (stored.key, states, stored.timers),
        (MEANING, "rows"): spec.meaning,
        (UNSURE, "declarations"): spec.unmeasured_properties,
    }


def _declared(aggregation: AggregateOperator, source: Table) -> Hashable:
    """The column declarations that determine the values that an aggregation reads."""
    conditions = (*aggregation.segment.filters, *aggregation.segment.window_filters)
    read = {leaf.column for part in (*aggregation.expressions, *conditions) for leaf in leaves(part)
            if isinstance(leaf, SourceColumn)}  # fmt: skip
    computed, metadata = dict(source.computed), {name: rest for name, *rest in source.metadata}
    places = source.physical if by_place(dict(source.options)) else ()
    return frozenset(
        (column.name, str(column.type), computed.get(column.name), tuple(metadata.get(column.name, ())),
         places.index(column.name) if column.name in places else None)
        for column in source.columns
        if column.name in read
    )  # fmt: skip


def _input_rows(aggregation: AggregateOperator) -> Hashable:
    """The rows and windows that an aggregation reads, without table names."""
    below, assigned = aggregation.segment, aggregation.window
    rows = below.filters, below.window_filters, below.windows[:-1], below.functions
    if assigned is None:
        return rows, below.windows
    window = replace(assigned.window, offset=assigned.window.normalised_offset)
    return rows, replace(assigned, window=window)


def _line(kinds: OperatorKinds) -> StreamGraph:
    """A linear graph of operators, which are chained except before a keyed operator."""
    return StreamGraph(
        tuple(
            StreamNode(kind, (place - 1,) if place else (), place > 0 and kind not in STATEFUL)
            for place, kind in enumerate(kinds)
        )
    )


def _id(graphs: tuple[StreamGraph, ...], kind: OperatorKind) -> str:
    """The id of the only operator of a kind; "" if the possible graphs disagree."""
    found = {graph.ids[next(i for i, node in enumerate(graph.nodes) if node.kind == kind)] for graph in graphs}
    return found.pop() if len(found) == 1 else ""


def lower(operator: Operator, symbols: Symbols, time_to_live: bool = False) -> Lowered | Unknown:
    """Lower an operator that reads tables directly to the exec node that Flink plans."""
    try:
        if any(not isinstance(each.origin, Source) or each.functions for each in operator.segments):
            raise CannotLower("only operators that read tables directly are supported")
        match operator:
            case AggregateOperator():
                return lower_aggregation(operator, symbols, time_to_live)
            case RankOperator():
                return lower_rank(operator, symbols, time_to_live)
            case JoinOperator():
                return lower_join(operator, symbols, time_to_live)
        raise CannotLower(f"the state of {operator.kind} is known only from compiled plans")
    except CannotLower as error:
        return error.unknown.at(str(operator.kind))


def operator_layout(operator: Operator, symbols: Symbols, time_to_live: bool = False) -> StateLayout | Unknown:
    """The layout of an operator that reads tables directly."""
    lowered = lower(operator, symbols, time_to_live)
    if isinstance(lowered, Unknown):
        return lowered
    return layout(lowered.node, lowered.inputs, symbols) or Unknown("it keeps no keyed state", str(operator.kind))
