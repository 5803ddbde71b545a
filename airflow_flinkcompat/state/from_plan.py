"""What a job keeps, told from its script: the operators that Flink will plan, where that is certain.

Known so far: one query over one table, stateless or with one aggregation. Anything else is not predicted, with its
reason; where a Calc may stand or not, both graphs are made, and an id is told where it is the same in all of them.
What is certain was seen in compiled plans of Flink 2.3 and in restores over Kafka.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import Known, LookupSupport, SinkState, StoredPositions
from airflow_flinkcompat.connectors.formats import FORMATS
from airflow_flinkcompat.model import FunctionDeclaration
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, Literal, walk
from airflow_flinkcompat.plan.lookup_rows import computed_in_front
from airflow_flinkcompat.plan.nodes import Table, WindowField, WindowKind
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    Output,
    RankOperator,
    Source,
    StatelessSegment,
    operators,
)
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn, PassedOutput, SourceColumn, leaves, window_field
from airflow_flinkcompat.plan.program import Pipeline, Program
from airflow_flinkcompat.plan.types import MAX_LENGTH, TimeAttribute
from airflow_flinkcompat.state.compiled.symbols import Symbols
from airflow_flinkcompat.state.layout import LayoutUnknown, StateLayout
from airflow_flinkcompat.state.layouts.of_aggregation import planned_calls
from airflow_flinkcompat.state.layouts.of_operator import operator_layout
from airflow_flinkcompat.state.layouts.of_rows import JOINS, RANKS
from airflow_flinkcompat.state.model import JobState, NotPredicted, StateKind, StateSpec
from airflow_flinkcompat.state.operator_ids import StreamGraph, StreamNode
from airflow_flinkcompat.state.simplified import at_least, contradictory, decided

SCAN, WATERMARK, CALC, LOCAL, GLOBAL, GROUP = (
    "table-source-scan", "watermark-assigner", "calc", "local-window-aggregate", "global-window-aggregate",
    "group-aggregate",
)  # fmt: skip
LOOKUP = "lookup-join"
ENFORCER, INSERTER, WRITER, COMMITTER = "constraint-enforcer", "timestamp-inserter", "sink", "committer"
_STATEFUL = (GLOBAL, GROUP)
_FAMILIES = {
    AggregateKind.GROUP: GROUP,
    AggregateKind.GROUP_WINDOW: "group-window-aggregate",
    AggregateKind.WINDOW: "window-aggregate",
}
"""Aggregations in the words of compiled plans, whether in one phase or two."""
_REPLANS = ("table.optimizer.", "table.exec.mini-batch.", "table.exec.emit.", "table.exec.uid.", "pipeline.operator-",
            "table.exec.legacy-", "table.exec.simplify-", "table.exec.source.cdc-", "table.exec.sink.rowtime-inserter",
            "table.exec.sink.keyed-shuffle", "table.exec.sink.nested-constraint",
            "table.exec.async-lookup.key-ordered")  # fmt: skip
"""Settings that may decide which operators there are, or which ids they have."""
_APPEND_FORMATS = frozenset({None, "json", "csv", "avro", "avro-confluent", "raw", "protobuf", "parquet", "orc"})
_IN_TWO_PHASES = frozenset({"SUM", "COUNT", "MAX", "MIN", "AVG"})
"""Calls that a windowed aggregation computes in two phases."""
_TIME_TO_LIVE = "table.exec.state.ttl"
_READS_OTHERWISE = frozenset({"changelog-mode", "scan.read-changelog-as-append-only.enabled", "scan.full-changelog"})
"""Options by which changes of a database come as other kinds of rows, which other operators may follow."""
_LIMITED = ("CHAR", "VARCHAR", "BINARY", "VARBINARY")
_REACHES_IN = frozenset({"FIELD", "ITEM"})

Kinds = tuple[str, ...]
Alternatives = tuple[Kinds, ...]


class _Unsure(Exception):
    """The operators cannot be told; says why."""


@dataclass(frozen=True)
class _Job:
    output: Output
    pipeline: Pipeline
    program: Program

    def table(self, name: str) -> Table:
        found = next((table for table in self.program.tables if table.name == name), None)
        if found is None or not found.declared:
            raise _Unsure(f"table {name} is not declared")
        return found

    @property
    def settings(self) -> Mapping[str, str]:
        return dict(self.pipeline.settings)


def job_state(output: Output, pipeline: Pipeline, program: Program) -> JobState | NotPredicted:
    """What the job of one query keeps.

    Args:
        output: The query as its operators see it.
        pipeline: The query as it stands in its script.
        program: The script, which declares the tables.

    Returns:
        The states with their ids, or why they cannot be told.
    """
    try:
        return _job_state(_Job(output, pipeline, program))
    except _Unsure as error:
        return NotPredicted(str(error))


def sole_layout(
    output: Output, pipeline: Pipeline, program: Program, symbols: Symbols
) -> StateLayout | LayoutUnknown | None:
    """How the only stateful operator of one query stores what it keeps.

    Args:
        output: The query as its operators see it.
        pipeline: The query as it stands in its script.
        program: The script, which declares the tables.
        symbols: The table of meanings.

    Returns:
        The layout, or why it cannot be told; None of a query with no such operator, or several.
    """
    found = operators(output)
    return _operator_layout(_Job(output, pipeline, program), found[0], symbols) if len(found) == 1 else None


def query_state(output: Output, pipeline: Pipeline, program: Program, symbols: Symbols) -> JobState | NotPredicted:
    """What the job of a query with one stateful operator keeps, without the ids.

    That is enough to say what a rewritten savepoint would keep.

    Args:
        output: The query as its operators see it.
        pipeline: The query as it stands in its script.
        program: The script, which declares the tables.
        symbols: The table of meanings, one for both sides of a change.

    Returns:
        The states of the sources, the operator and the sink, or why they cannot be told.
    """
    found = operators(output)
    if len(found) != 1:
        return NotPredicted("only one operator straight over tables is told")
    job, operator = _Job(output, pipeline, program), found[0]
    layout = _operator_layout(job, operator, symbols)
    if isinstance(layout, LayoutUnknown):
        return NotPredicted(layout.reason)
    try:
        _bare(output.segment)
        conditions = (part for segment in (output.segment, *operator.segments) for part in segment.filters)
        _readable(job, (*output.columns, *operator.expressions, *conditions))
        read = [job.table(segment.origin.table) for segment in operator.segments if isinstance(segment.origin, Source)]
        _, sink = _sink(job)
    except _Unsure as error:
        return NotPredicted(str(error))
    if len({table.name for table in read}) < len(read):
        return NotPredicted("a table that is read twice may be one source or two")
    told = _operator_spec(operator, layout, job.settings.get(_TIME_TO_LIVE, ""))
    if isinstance(operator, AggregateOperator):
        told = _with_outputs(told, operator, output)
    specs = [*(StateSpec(StateKind.POSITIONS, table.name, meaning=table) for table in read), told]
    if sink is not SinkState.NONE:
        written = job.table(output.sink)
        by_name = registry.sink(written.option("connector")).outlives_columns
        into = None if by_name else (written, output.columns, output.types)
        specs.append(StateSpec(StateKind.SINK, written.name, meaning=written.options, unmeasured=into))
    return JobState((), tuple(specs))


def _with_outputs(told: StateSpec, aggregation: AggregateOperator, output: Output) -> StateSpec:
    """An aggregation with the calls of which something is computed together."""
    calls = planned_calls(aggregation)

    def read(parts: Iterable[Expression]) -> frozenset[Hashable]:
        found = {leaf.output for part in parts for leaf in leaves(part) if isinstance(leaf, OperatorColumn)}
        return frozenset(calls[each] for each in found if isinstance(each, AggregateCall))

    segment = replace(aggregation.segment, filters=frozenset())
    return replace(
        told,
        unfiltered=(told.name, segment, aggregation.window),
        together=frozenset(read([column]) for column in output.columns),
        deciding=read(output.segment.filters),
    )


def _operator_spec(operator: Operator, layout: StateLayout, time_to_live: str) -> StateSpec:
    """The operator with what decides what stands in its fields, and with what may decide it, as compiled plans do."""
    match operator:
        case AggregateOperator():
            name = _FAMILIES[operator.kind]
            meaning: tuple[object, ...] = operator.segment, operator.window
            unmeasured: tuple[object, ...] = ()
        case RankOperator():
            name = RANKS[operator.kind]
            meaning = operator.segment, operator.window, frozenset(operator.partition), operator.order, operator.last
            # Whether the rank is put out changes nothing of what is stored by window (measured).
            number_read = operator.window is None and operator.number_read
            unmeasured = operator.first, number_read, time_to_live
        case JoinOperator():
            name = JOINS[operator.form]
            inner = operator.form is not JoinForm.REGULAR or operator.join == "INNER"
            decides, may_decide = ((), operator.conditions) if inner else (operator.conditions, ())
            meaning = operator.segments, operator.keys, operator.times, decides
            unmeasured = operator.join, operator.bounds, may_decide, time_to_live
        case _:
            raise AssertionError(f"a layout of {operator.kind} was told")
    return StateSpec(StateKind.OPERATOR, name, layout=layout, meaning=(name, *meaning), unmeasured=unmeasured)


def _operator_layout(job: _Job, operator: Operator, symbols: Symbols) -> StateLayout | LayoutUnknown:
    try:
        _sure_of_planning(job)
        for segment in operator.segments:
            if isinstance(segment.origin, Source):
                _source(job, segment.origin)
    except _Unsure as error:
        return LayoutUnknown(str(error))
    return _stored(job, operator, symbols)


def _stored(job: _Job, operator: Operator, symbols: Symbols) -> StateLayout | LayoutUnknown:
    if any(segment.hints for segment in (job.output.segment, *operator.segments)):
        return LayoutUnknown("a hint may say how long what is kept lives")
    lives = re.fullmatch(r"(\d+) *[a-z]*", job.settings.get(_TIME_TO_LIVE, "0").strip().lower())
    if lives is None:
        return LayoutUnknown(f"{_TIME_TO_LIVE} is not read")
    return operator_layout(operator, symbols, time_to_live=int(lives[1]) > 0)


def _job_state(job: _Job) -> JobState:
    _sure_of_planning(job)
    top = job.output.segment.origin
    aggregation: AggregateOperator | None = None
    waiting: StateSpec | None = None
    if isinstance(top, Source):
        head = _head(job, top)
        source = head or _source(job, top)
        lower = _stateless(job, source, at_head=head is not None)
    elif isinstance(top, JoinOperator) and top.form is JoinForm.LOOKUP:
        source, lower = _looked_up(job, top)
        waiting = _waiting(job, top)
    elif isinstance(top, AggregateOperator):
        source, aggregation = _aggregated(job, top)
        lower = _aggregation(job, top, source)
    else:
        raise _Unsure("only queries over one table, with at most one lookup or aggregation, are known")
    sink, state = _sink(job)
    graphs = tuple(_line((*below, *behind)) for below, behind in product(dict.fromkeys(lower), sink))
    specs = []
    if registry.source(source.option("connector")).positions is not StoredPositions.NOTHING:
        specs.append(StateSpec(StateKind.POSITIONS, source.name, _id(graphs, SCAN)))
    if aggregation is not None:
        kind = next(kind for kind in lower[0] if kind in _STATEFUL)
        specs.append(StateSpec(StateKind.OPERATOR, kind, _id(graphs, kind), _stored(job, aggregation, Symbols())))
    if waiting is not None:
        specs.append(replace(waiting, id=_id(graphs, LOOKUP)))
    if state is not SinkState.NONE:
        specs.append(StateSpec(StateKind.SINK, job.output.sink, _id(graphs, WRITER)))
    return JobState(graphs, tuple(specs))


def _line(kinds: Kinds) -> StreamGraph:
    """One operator behind the other, in one task but where rows are spread by their key."""
    return StreamGraph(
        tuple(
            StreamNode(kind, (place - 1,) if place else (), place > 0 and kind not in _STATEFUL)
            for place, kind in enumerate(kinds)
        )
    )


def _id(graphs: tuple[StreamGraph, ...], kind: str) -> str:
    """The id of an operator of which there is one, where it is the same in all graphs."""
    found = {graph.ids[next(i for i, node in enumerate(graph.nodes) if node.kind == kind)] for graph in graphs}
    return found.pop() if len(found) == 1 else ""


def _sure_of_planning(job: _Job) -> None:
    alone = [p for p in job.program.pipelines if p.statement_set == job.pipeline.statement_set is not None]
    if len(alone) > 1:
        raise _Unsure("several queries of one statement set are planned together")
    if job.pipeline.steps:
        raise _Unsure("queries of the Table API are planned otherwise")
    for key in job.settings:
        if key.startswith(_REPLANS):
            raise _Unsure(f"{key} may decide about operators")
    if (
        job.settings.get("pipeline.operator-chaining.enabled", job.settings.get("pipeline.operator-chaining"))
        == "false"
    ):
        raise _Unsure("no operators are chained")
    if job.settings.get("execution.runtime-mode", "streaming").lower() != "streaming":
        raise _Unsure("a batch job keeps nothing")


# -- sources


def _source(job: _Job, source: Source) -> Table:
    table = job.table(source.table)
    facts = registry.source(table.option("connector"))
    if facts.positions not in (StoredPositions.PARTITIONS, StoredPositions.FILES) or facts.appends is not Known.YES:
        raise _Unsure(f"what a source of {_named(table)} keeps is not known")
    options = dict(table.options)
    if "scan.parallelism" in options or _hinted(source.hints, "parallelism"):
        raise _Unsure("a source with a parallelism of its own may be chained to nothing")
    if _hinted(source.hints, "format", "connector"):
        raise _Unsure("a hint says in which format a source is read")
    formats = {options.get(key) for key in registry.format_keys(table.option("connector"))}
    if not formats <= _APPEND_FORMATS:
        raise _Unsure(f"rows of format {', '.join(map(str, formats))} may be taken back")
    if table.primary_key:
        raise _Unsure("a source with a primary key may be kept once more")
    if table.partitioned_by:
        raise _Unsure("what is planned for a partitioned source is not known")
    return table


def _head(job: _Job, source: Source) -> Table | None:
    """A table whose positions are all that a job keeps: the id of a scan follows from nothing that comes behind it.

    None where another operator may keep something, or what the source itself makes of its options is not certain.
    """
    table = job.table(source.table)
    facts, options = registry.source(table.option("connector")), dict(table.options)
    written = job.table(job.output.sink) if job.output.sink else None
    sink = None if written is None else registry.sink(written.option("connector"))
    if source.hints or "scan.parallelism" in options or (sink is not None and sink.state is not SinkState.NONE):
        return None
    by_key = written is not None and bool(written.primary_key)
    taken = sink is None or (sink.updates is Known.YES and not by_key)
    match facts.positions:
        case StoredPositions.LOG:
            return table if taken and not _READS_OTHERWISE & options.keys() else None
        case StoredPositions.PARTITIONS | StoredPositions.FILES:
            # All changes of a row come from such a format, so that none is kept to tell them.
            whole = facts.appends is Known.YES and _format_appends(table) is Known.NO
            return table if taken and whole and not table.partitioned_by else None
        case StoredPositions.NOTHING:
            return table if taken and not table.primary_key else None
        case StoredPositions.COUNTER:
            counted = [key for key, value in options.items() if key.endswith(".kind") and value.lower() != "random"]
            return None if counted or table.primary_key else table
    return None


def _format_appends(table: Table) -> Known:
    """Whether rows of a table's format are only ever added; one that nobody said anything of is not known."""
    given = [name for key in registry.format_keys(table.option("connector")) if (name := table.option(key))]
    format = FORMATS.get(given[0]) if len(given) == 1 else None
    return Known.NOT_KNOWN if format is None else format.appends


def _named(table: Table) -> str:
    connector = table.option("connector")
    return f"connector {connector}" if connector else "a catalog's own connector"


def _hinted(hints: Iterable[tuple[str, str]], *words: str) -> bool:
    return any(word in text.lower() for _, text in hints for word in words)


def _bare(segment: StatelessSegment) -> None:
    if segment.functions:
        raise _Unsure("table functions are operators of their own")
    if segment.window_filters:
        raise _Unsure("conditions on window fields are planned as operators of their own")


def _readable(job: _Job, parts: Iterable[Expression]) -> None:
    """Whether a Calc calls all functions: a Python or asynchronous one is an operator of its own."""
    called = {part.function for whole in parts for part in walk(whole) if isinstance(part, FunctionCall)}
    declared = {each.name.lower(): each for each in job.program.functions}
    for name in sorted(called - _REACHES_IN):
        if functions.lookup(name) is not None:
            continue
        match declared.get(name.lower()):
            case FunctionDeclaration(kind="scalar", language="java" | "scala"):
                continue
            case FunctionDeclaration(language="python"):
                raise _Unsure(f"the Python function {name} is an operator of its own")
        remedy = f"say what it is, for instance --function {name}=scalar:java"
        raise _Unsure(f"whether {name} is an operator of its own, as a Python function is, is not told: {remedy}")


def _stateless(job: _Job, table: Table, *, at_head: bool) -> Alternatives:
    segment = job.output.segment
    _bare(segment)
    if segment.windows:
        raise _Unsure("windows without an aggregation are operators of their own")
    _readable(job, (*job.output.columns, *segment.filters))
    _undecided(segment, table)
    if at_head:
        return ((SCAN, CALC),)  # what comes behind such a scan keeps nothing
    seen = _simplified(table, job.output.columns, bool(segment.filters))
    return _put_out(seen, _converted(job))


def _undecided(segment: StatelessSegment, *tables: Table) -> None:
    if any(decided(condition, *tables) for condition in segment.filters) or contradictory(segment.filters):
        raise _Unsure("a condition may hold of every row or of none, and then be left out, or its source")


def _simplified(table: Table, wanted: tuple[Expression, ...], filtered: bool) -> Alternatives:
    """The operators from the scan to what stands above it, also where the planner simplifies what is wanted."""
    ways = dict.fromkeys((wanted, at_least(wanted)))
    return tuple(dict.fromkeys(kinds for way in ways for kinds in _stretch(table, way, filtered, ordered=False)))


def _put_out(stretch: Alternatives, converted: Known) -> Alternatives:
    """What is put out may be cast, or filled up, in a Calc."""
    with_calc = tuple(kinds if kinds[-1] == CALC else (*kinds, CALC) for kinds in stretch)
    return {Known.YES: with_calc, Known.NO: stretch, Known.NOT_KNOWN: (*stretch, *with_calc)}[converted]


def _stretch(table: Table, wanted: tuple[Expression, ...], filtered: bool, *, ordered: bool) -> Alternatives:
    """The operators from the scan to what stands above it.

    Args:
        table: What is read.
        wanted: What the operator above takes, in order.
        filtered: Whether conditions stand in between.
        ordered: Whether the planner asks the source for columns in the order of the table, as below a window.

    Returns:
        The kinds, in each way that they may be planned.
    """
    facts = registry.source(table.option("connector"))
    if Known.NOT_KNOWN in (facts.projection, facts.watermark):
        raise _Unsure(f"what is handed down into a source of {_named(table)} is not known")
    names = tuple(part.column if isinstance(part, SourceColumn) else "" for part in wanted)
    stored = all(name in table.physical for name in names)
    assigned = table.watermark is not None and facts.watermark is Known.NO
    if facts.projection is Known.NO:
        return _whole(table, names, filtered or not stored, assigned)
    if any(name in {key for key, _, _ in table.metadata} for name in _read(wanted)):
        raise _Unsure("what is planned for metadata columns of this source is not known")
    if assigned:
        return _projected_below_watermark(table, wanted, names, filtered or not stored, ordered)
    every = len(set(names)) == len(table.physical)
    calc = filtered or not stored or len(set(names)) < len(names) or (every and names != table.physical)
    return ((SCAN, CALC) if calc else (SCAN,),)


def _whole(table: Table, names: tuple[str, ...], computed: bool, assigned: bool) -> Alternatives:
    """A source that hands out all its columns: a Calc drops and reorders them."""
    if assigned:
        raise _Unsure("watermarks above a source that reads all columns were not seen")
    emitted = (*table.physical, *(name for name, _, _ in table.metadata))
    time = table.watermark.column if table.watermark is not None else ""
    if time and time not in emitted and (time in names or not computed):
        return ((SCAN, CALC), (SCAN, CALC, CALC), (SCAN,))
    if computed or names != emitted:
        return ((SCAN, CALC),)
    return ((SCAN,),) if not table.metadata else ((SCAN,), (SCAN, CALC))


def _projected_below_watermark(
    table: Table, wanted: tuple[Expression, ...], names: tuple[str, ...], computed: bool, ordered: bool
) -> Alternatives:
    """A source that hands out what is asked for, and the time, below an operator that makes watermarks."""
    time = table.watermark.column if table.watermark is not None else ""
    clocks = {column.name for column in table.columns if column.time_attribute is TimeAttribute.PROCTIME}
    if time not in table.physical or clocks & set(_read(wanted)):
        raise _Unsure("where a computed time is planned is not certain")
    if computed and any(name not in clocks for name, _ in table.computed):
        raise _Unsure("where computed columns are planned below watermarks is not certain")
    used = {*_read(wanted), time}
    if ordered:
        natural = tuple(name for name in table.physical if name in used)
        return ((SCAN, WATERMARK, CALC) if computed or names != natural else (SCAN, WATERMARK),)
    above = computed or time not in names or len(set(names)) < len(names)
    upper = (WATERMARK, CALC) if above else (WATERMARK,)
    if used < set(table.physical):
        return ((SCAN, *upper),)
    if computed:  # in which order a source of which all columns are read hands them on
        return ((SCAN, *upper), (SCAN, CALC, *upper))
    order = names if time in names else (*names, time)
    return ((SCAN, CALC, *upper) if tuple(dict.fromkeys(order)) != table.physical else (SCAN, *upper),)


def _every(table: Table) -> set[str]:
    """The columns that a source hands out which is not asked for some of them."""
    return {*table.physical, *(name for name, _, _ in table.metadata)}


def _read(wanted: Iterable[Expression]) -> tuple[str, ...]:
    return tuple(leaf.column for part in wanted for leaf in leaves(part) if isinstance(leaf, SourceColumn))


def _looked_up(job: _Job, join: JoinOperator) -> tuple[Table, Alternatives]:
    """A lookup that asks row by row keeps nothing; where a Calc stands around it is left open."""
    left, right = join.segments
    if not isinstance(left.origin, Source) or not isinstance(right.origin, Source):
        raise _Unsure("only lookups from a table are known")
    for segment in (left, right, job.output.segment):
        _bare(segment)
        if segment.windows:
            raise _Unsure("windows around a lookup are operators of their own")
    _readable(
        job, (*join.expressions, *join.conditions, *job.output.columns, *left.filters, *job.output.segment.filters)
    )
    looked_up = job.table(right.origin.table)
    if right.origin.hints or looked_up.option("connector") is None:
        raise _Unsure("a lookup may keep rows that wait for an answer")
    if any(name == "LOOKUP" for segment in (left, right, job.output.segment) for name, _ in segment.hints):
        raise _Unsure("a LOOKUP hint may decide about operators")
    table = _source(job, left.origin)
    _undecided(left, table)
    _undecided(job.output.segment, table, looked_up)
    below = _simplified(table, join.rows[0], bool(left.filters))
    around = tuple(dict.fromkeys((*below, *_put_out(below, Known.YES))))
    put_out = ((CALC,),) if _rearranged(job) else ((), (CALC,))
    return table, tuple((*kinds, LOOKUP, *above) for kinds, above in product(around, put_out))


def _rearranged(job: _Job) -> bool:
    """Whether a Calc surely stands behind a lookup, which hands on its input's columns before those it found."""
    if _converted(job) is Known.YES:
        return True
    inputs = [{each.input for each in _passed(column)} for column in job.output.columns]
    return any(len(each) > 1 for each in inputs) or any(
        found == {1} and {0} in inputs[place:] for place, found in enumerate(inputs)
    )


def _passed(column: Expression) -> Iterator[PassedOutput]:
    for leaf in leaves(column):
        if isinstance(leaf, OperatorColumn) and isinstance(leaf.output, PassedOutput):
            yield leaf.output


def _asked_about_alone(job: _Job, join: JoinOperator) -> bool:
    """Whether a condition above a lookup reads a column of what comes in that nothing else reads."""
    asked, shown = (
        {each.column for part in parts for each in _passed(part) if each.input == 0}
        for parts in (job.output.segment.filters, job.output.columns)
    )
    joined = (*join.conditions, *(key for key, _ in join.keys))
    read = {each.output for part in joined for each in leaves(part) if isinstance(each, OperatorColumn)}
    return bool(asked - shown - read)


def _waiting(job: _Job, join: JoinOperator) -> StateSpec | None:
    """The rows that wait for an answer, as they came in; None of a lookup that asks row by row.

    Where nothing says how it asks, it may keep them: that is carried where all that could decide it is the same.
    """
    looked_up = join.segments[1].origin
    assert isinstance(looked_up, Source)
    table = job.table(looked_up.table)
    connector, given = table.option("connector"), table.option("lookup.async")
    support = registry.lookup(connector).support
    by_option = "false" if support is LookupSupport.BY_OPTION else ""
    if support is LookupSupport.SYNCHRONOUS or (given or by_option).lower() == "false":
        return None
    if _asked_about_alone(job, join):
        raise _Unsure("a column of rows that wait is asked about alone: where it is asked below, it does not wait")
    computed = computed_in_front(join, job.output.segment.filters)
    decides = connector, given, join.rows[0], join.row_types[0], computed
    return StateSpec(StateKind.OPERATOR, LOOKUP, unmeasured=decides)


# -- aggregations


def _aggregated(job: _Job, operator: AggregateOperator) -> tuple[Table, AggregateOperator]:
    _bare(operator.segment)
    _bare(job.output.segment)
    if not isinstance(operator.segment.origin, Source) or job.output.segment.windows:
        raise _Unsure("only aggregations over one table are known")
    odd = operator.grouping_sets is not None or operator.repeated_keys or operator.repeated_calls
    if odd or operator.pruned_inputs or operator.window_computations or operator.window_aggregates:
        raise _Unsure("this form of an aggregation is planned with further operators")
    if any(call.language != "builtin" or call.order_by for call in operator.aggregates):
        raise _Unsure("aggregate functions of one's own are not known")
    _readable(job, (*operator.expressions, *operator.segment.filters, *job.output.columns, *job.output.segment.filters))
    return _source(job, operator.segment.origin), operator


def _aggregation(job: _Job, operator: AggregateOperator, table: Table) -> Alternatives:
    wanted = tuple(dict.fromkeys((*operator.keys, *(part for call in operator.aggregates for part in _taken(call)))))
    filtered = bool(operator.segment.filters)
    if operator.kind is AggregateKind.GROUP:
        if operator.segment.windows:
            raise _Unsure("only aggregations over one table are known")
        times = {column.name for column in table.columns if column.time_attribute is not None}
        if times & {part.column for part in wanted if isinstance(part, SourceColumn)}:
            raise _Unsure("a time that is grouped by or aggregated is planned as a value")
        below = _stretch(table, wanted, filtered, ordered=False)
        if below == ((SCAN, CALC),) and not filtered and set(_read(wanted)) == _every(table):
            below = (*below, (SCAN,))  # all columns in another order: the aggregation may take them as they come
        return tuple((*kinds, GROUP, *above) for kinds, above in product(below, _above(job, operator)))
    window = operator.window
    if operator.kind is not AggregateKind.WINDOW or window is None or len(operator.segment.windows) != 1:
        raise _Unsure(f"a {operator.kind} is not known")
    if window.window.kind is WindowKind.SESSION or window.time_attribute is not TimeAttribute.ROWTIME:
        raise _Unsure("session windows and windows of processing time are not known")
    if not isinstance(window.time, SourceColumn) or window.partition_by:
        raise _Unsure("a window over a computed time is not known")
    if any(call.function not in _IN_TWO_PHASES for call in operator.aggregates):
        raise _Unsure("whether these calls are computed in two phases is not known")
    wanted = tuple(dict.fromkeys((*wanted, window.time)))
    below = _stretch(table, wanted, filtered, ordered=True)
    return tuple((*kinds, LOCAL, GLOBAL, *above) for kinds, above in product(below, _above(job, operator)))


def _taken(call: AggregateCall) -> Iterator[Expression]:
    """What a call wants of its input; COUNT of a constant counts rows."""
    for part in (*call.args, call.filter):
        if part is not None and not (call.function == "COUNT" and isinstance(part, Literal) and part.value is not None):
            # A condition is handed on as a value of its own.
            yield part if part is not call.filter else FunctionCall("IS TRUE", (part,), part.type)


def _above(job: _Job, operator: AggregateOperator) -> Alternatives:
    """Whether a Calc stands between an aggregation and the sink."""
    converted, columns = _converted(job), job.output.columns
    if job.output.segment.filters or converted is Known.YES:
        return ((CALC,),)
    handed = (*operator.keys, *operator.aggregates)
    shown = tuple(_shown(column) for column in columns)
    fields = (WindowField.START, WindowField.END) if operator.window is not None else ()
    if shown[: len(handed)] == handed and tuple(map(window_field, columns[len(handed) :])) == fields:
        return ((),) if converted is Known.NO else ((), (CALC,))
    if operator.window is None:
        # A projection of nothing but columns may be merged into an aggregation with a condition below.
        merged = operator.segment.filters and len(operator.keys) > 1
        return ((), (CALC,)) if merged else ((CALC,),)
    return ((CALC,),) if not any(map(window_field, columns)) else ((), (CALC,))


def _shown(column: Expression) -> object:
    if not isinstance(column, OperatorColumn):
        return None
    return column.output.key if isinstance(column.output, KeyOutput) else column.output


# -- sinks


def _converted(job: _Job) -> Known:
    """Whether a Calc casts values to the sink's types, or fills its columns up."""
    if not job.output.sink:
        return Known.NO
    sink = job.table(job.output.sink)
    virtual = {name for name, _, is_virtual in sink.metadata if is_virtual} | {name for name, _ in sink.computed}
    columns = [column for column in sink.columns if column.name not in virtual]
    named = job.output.insert_columns
    if job.output.partition or (named and named != tuple(column.name for column in columns)):
        return Known.YES
    if len(columns) != len(job.output.types):
        return Known.NOT_KNOWN
    pairs = [(column.type, given) for column, given in zip(columns, job.output.types, strict=True)]
    if any(one.is_known and other.is_known and one.name != other.name for one, other in pairs):
        return Known.YES
    alike = all(one.with_nullability(True) == other.with_nullability(True) for one, other in pairs)
    return Known.NO if alike else Known.NOT_KNOWN


def _sink(job: _Job) -> tuple[Alternatives, SinkState]:
    inserter = (INSERTER,) if _has_rowtime(job) else ()
    if not job.output.sink:  # as a bare query was measured
        return ((*inserter, WRITER),), SinkState.NONE
    sink = job.table(job.output.sink)
    facts = registry.sink(sink.option("connector"))
    if facts.state is SinkState.NOT_KNOWN or facts.operators not in (1, 2):
        raise _Unsure(f"what a sink of {_named(sink)} keeps is not known")
    if sink.option("sink.parallelism") is not None or _hinted(job.output.hints, "parallelism"):
        raise _Unsure("a sink with a parallelism of its own may be chained to nothing")
    if _rolls_otherwise(sink) or sink.partitioned_by:
        raise _Unsure("what is planned for a sink that compacts, partitions or commits is not known")
    writer = (WRITER, COMMITTER)[: facts.operators]
    front = (ENFORCER,) if _enforces(job, sink) else ()
    behind = (*front, *inserter, *writer)
    if not _materialized(job, sink):
        return (behind,), facts.state
    raise _Unsure("results may be kept once more in front of the sink, by its primary key")


def _rolls_otherwise(sink: Table) -> bool:
    return any(key.startswith(("auto-compaction", "sink.partition-commit")) for key, _ in sink.options)


def _enforces(job: _Job, sink: Table) -> bool:
    lengths = job.settings.get("table.exec.sink.type-length-enforcer", "IGNORE").upper() != "IGNORE"
    for column in sink.stored:
        if not column.type.nullable or column.name in sink.primary_key:
            return True
        if lengths and column.type.name in _LIMITED and column.type.parameters != (MAX_LENGTH,):
            return True
    return False


def _has_rowtime(job: _Job) -> bool:
    """Whether a column of event time comes to the sink as such; a lookup hands it on."""
    source = job.output.segment.origin
    if isinstance(source, JoinOperator) and source.form is JoinForm.LOOKUP:
        source = source.segments[0].origin
    times = {
        table.watermark.column
        for table in job.program.tables
        if table.watermark is not None and isinstance(source, Source) and table.name == source.table
    }
    bare = {_as_it_came(column) for column in job.output.columns}
    return bool(times & bare) or any(window_field(column) is WindowField.TIME for column in job.output.columns)


def _as_it_came(column: Expression) -> str:
    """The column of the table that is read which is put out as it is; "" of any other."""
    if isinstance(column, OperatorColumn) and isinstance(column.output, PassedOutput) and column.output.input == 0:
        column = column.output.column
    return column.column if isinstance(column, SourceColumn) else ""


def _materialized(job: _Job, sink: Table) -> bool:
    """Whether updates may reach a sink by another key than its own."""
    mode = job.settings.get("table.exec.sink.upsert-materialize", "AUTO").upper()
    if not sink.primary_key or mode == "NONE":
        return False
    top = job.output.segment.origin
    if mode != "AUTO" or not isinstance(top, AggregateOperator):
        return mode != "AUTO"
    if top.windowed:
        return False
    names = [column.name for column in sink.stored]
    held = {
        shown
        for name, column in zip(names, map(_shown, job.output.columns), strict=False)
        if name in sink.primary_key
        for shown in [column]
    }
    return bool(job.output.insert_columns) or held != set(top.keys)
