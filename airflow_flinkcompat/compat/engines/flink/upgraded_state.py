"""The kinds of state that an upgrade restores: exec nodes, accumulators, serializers, connectors.

Each kind of state is a row in ``evidence/upgrades.json``. Names, window lengths, conditions and projections are left
out, because they affect neither Flink's classes nor serializers. An unknown part is also a row, but no restore covers
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.query_form import stateless_expressions
from airflow_flinkcompat.compat.engines.flink import lookups
from airflow_flinkcompat.compat.engines.flink.settings import MINI_BATCH
from airflow_flinkcompat.compat.engines.flink.upgraded_connectors import UNKNOWN_PART, connectors_of
from airflow_flinkcompat.compat.engines.flink.validation.changelog import changes
from airflow_flinkcompat.compat.engines.flink.validation.conflicts import (
    REQUIRED,
    Materializer,
    conflict_faults,
    materializer,
)
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.connectors.facts import Known
from airflow_flinkcompat.exec_graph.nodes.aggregate import KINDS
from airflow_flinkcompat.exec_graph.nodes.join import JOINS
from airflow_flinkcompat.exec_graph.nodes.rank import RANKS
from airflow_flinkcompat.plan.expressions import AggregateCall, FunctionCall, walk
from airflow_flinkcompat.plan.functions import lookup
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
    StatelessSegment,
    operators,
    segments,
)
from airflow_flinkcompat.plan.origins import FunctionColumn, KeyOutput, OperatorColumn
from airflow_flinkcompat.plan.program import Pipeline, Program
from airflow_flinkcompat.plan.types import CHARACTERS, DataType, TimeAttribute

REFUSED = "an INSERT that the new line refuses for its ON CONFLICT, or for the lack of one"
OTHER_MATERIALIZER = "another materializer in front of a sink"
JUDGED_APART = frozenset({REFUSED, OTHER_MATERIALIZER})
"""Rows of ``upgrades.json`` that the verdict on the sink covers."""
_CLOCKS = {TimeAttribute.ROWTIME: "event time", TimeAttribute.PROCTIME: "processing time", None: "no time"}
_NUMBERS = frozenset({"AVG", "COUNT", "SUM", "SUM0"})
"""Functions that store plain numbers in every aggregation, with or without retractions."""
_SAME_FIELDS = {
    **dict.fromkeys(("MIN", "MAX"), "MIN or MAX"),
    **dict.fromkeys(("FIRST_VALUE", "LAST_VALUE"), "FIRST_VALUE or LAST_VALUE"),
    **dict.fromkeys(("STDDEV_POP", "STDDEV_SAMP", "VAR_POP", "VAR_SAMP", "STDDEV", "VARIANCE"), "STDDEV or VAR"),
}
"""One name for each group of functions with the same stored fields."""
_TYPELESS = frozenset({"ROW_NUMBER", "RANK", "DENSE_RANK", "GROUPING", "GROUPING_ID", "GROUP_ID"})
_PLANNED = frozenset({"UNNEST", "PROCTIME_MATERIALIZE", "VALUES"})
_STATELESS_STATEMENTS = frozenset(
    ("USE", "SHOW", "DESCRIBE", "EXPLAIN", "DROP", "CREATENAMESPACE", "NOT CREATED: EXISTS", "KEPT")
)
"""Kinds of statements that run no job."""
_NEUTRAL = (
    "execution.attached", "execution.checkpointing.", "execution.savepoint", "execution.state-recovery.",
    "execution.target", "jobmanager.", "kubernetes.", "metrics.", "parallelism.default",
    "pipeline.auto-watermark-interval", "pipeline.classpaths", "pipeline.jars", "pipeline.name",
    "pipeline.object-reuse", "rest.", "restart-strategy", "sql-client.", "state.backend.incremental",
    "state.backend.local-recovery", "state.backend.rocksdb.", "state.checkpoints.", "state.savepoints.",
    "table.dml-sync", "table.exec.mini-batch.allow-latency", "table.exec.mini-batch.size",
    "table.exec.source.idle-timeout", "table.local-time-zone", "table.optimizer.state-compatibility.",
    "taskmanager.", "yarn.",
)  # fmt: skip
"""Prefixes of keys that affect neither operators nor serializers."""
_DEFAULTS = {"execution.runtime-mode": "streaming", "state.backend.type": "hashmap", "sql.dialect": "default"}


def stored(old: Side, new: Side) -> frozenset[str]:
    """Rows of ``upgrades.json`` for the state of ``old`` and for the state that the new line plans."""
    before, after = _materializers(old), _materializers(new)
    differ = any(before.get(sink, planned) is not planned for sink, planned in after.items())
    sides = chain(_of_side(old, None), _of_side(new, new.flink_line))
    return frozenset((*sides, *connectors_of(old), *connectors_of(new), *([OTHER_MATERIALIZER] if differ else [])))


def is_known(row: str) -> bool:
    """True if a row concerns a part that was parsed, is declared and has a known type."""
    return not row.startswith(UNKNOWN_PART)


def _materializers(side: Side) -> Mapping[str, Materializer]:
    """The materializer that a side's line of Flink plans before each sink, by sink name."""
    program, outputs = side.program, side.outputs[0]
    return {
        output.sink: materializer(output, program.pipelines[n], program, program.table(output.sink), side.flink_line)
        for n, output in outputs.items()
    }


def _of_side(side: Side, line: str | None) -> Iterator[str]:
    program, (outputs, failures) = side.program, side.outputs
    if program.problems or failures:
        yield f"{UNKNOWN_PART}statement that was not read"
    for statement in program.other_statements:
        if statement.kind.upper() not in _STATELESS_STATEMENTS:
            yield f"{UNKNOWN_PART}statement {statement.kind}"
    if _shares(program, outputs):
        yield "an operator that several INSERTs share"
    into = [(program.pipelines[n].statement_set, output.sink) for n, output in outputs.items()]
    if any(job is not None and into.count((job, sink)) > 1 for job, sink in into):
        yield "several INSERTs of one job into one table"
    for place, output in outputs.items():
        yield from _of_query(output, program.pipelines[place], program, line)


def _of_query(output: Output, pipeline: Pipeline, program: Program, line: str | None) -> Iterator[str]:
    given = {settings.name(key): value for key, value in pipeline.settings}
    yield from _settings(given)
    batches = " in mini-batches" if settings.effective(given, MINI_BATCH, "flink") == "true" else ""

    def updates(segment: StatelessSegment) -> bool:
        return changes(segment, pipeline, program) is not Known.NO

    for operator in operators(output):
        match operator:
            case AggregateOperator():
                yield from _aggregate(operator, batches, updates(operator.segment))
            case JoinOperator():
                yield from _join(operator, output, program, batches, list(map(updates, operator.segments)))
            case OverOperator():
                yield from _over(operator, updates(operator.segment))
            case RankOperator():
                yield _rank(operator, batches, updates(operator.segment))
                yield from _types((*operator.row_types, *operator.partition_types, *operator.order_types))
            case _:
                yield from _other(operator, program)
    windowed = {id(each.segment) for each in operators(output) if isinstance(each, AggregateOperator)}
    for segment in segments(output):
        kinds = {each.window.kind for each in segment.windows[: len(segment.windows) - (id(segment) in windowed)]}
        yield from (f"window-table-function: {kind}" for kind in kinds)
        yield from _normalized(segment, output, program)
    every = chain(stateless_expressions(output), *(each.expressions for each in operators(output)))
    for part in chain.from_iterable(map(walk, every)):
        inner = walk(part.call) if isinstance(part, FunctionColumn) else (part,)
        for each in inner:
            if isinstance(each, FunctionCall) and lookup(each.function) is None and each.function not in _PLANNED:
                yield f"{UNKNOWN_PART}function {each.function}, whose class the new line runs"
    yield from _front_of_sink(output, pipeline, program, line)


def _normalized(segment: StatelessSegment, output: Output, program: Program) -> Iterator[str]:
    """The changelog-normalize operator, which since Flink 2.1 depends on the operators that read from it."""
    found = program.table(segment.origin.table) if isinstance(segment.origin, Source) else None
    if found is not None and found.option("connector") == "upsert-kafka":
        where = " below a condition" if segment.filters else ""
        yield f"changelog-normalize{where}{' straight into a sink' if segment is output.segment else ''}"


def _settings(given: Mapping[str, str]) -> Iterator[str]:
    for key in sorted(given):
        text = settings.value(key, given[key])
        default = text == settings.default(key, "flink") or text.lower() == _DEFAULTS.get(key)
        if not (default or key == REQUIRED or key.startswith(_NEUTRAL)):
            yield "setting table.exec.state.ttl" if key == "table.exec.state.ttl" else f"setting {key} = {text}"


def _aggregate(operator: AggregateOperator, batches: str, updates: bool) -> Iterator[str]:
    kind = KINDS.get(operator.kind, KINDS[AggregateKind.GROUP])
    if operator.kind is AggregateKind.OVER_WINDOWED_ROWS:
        yield f"{kind}: over windowed rows"
    elif operator.window is None:
        yield f"{kind}{batches}"
    else:
        rows = " of rows" if operator.window.window.measure is Measure.ROWS else ""
        # One operator class fires all windows of a kind, for every clock.
        clock = "" if operator.kind is AggregateKind.GROUP_WINDOW else f" by {_CLOCKS[operator.window.time_attribute]}"
        yield f"{kind}: {operator.window.window.kind}{rows}{clock}"
    if operator.grouping_sets is not None:
        yield f"{kind}: grouping sets"
    yield from _accumulators(operator.aggregates, "", updates)
    yield from _types((*operator.key_types, *(each for types in operator.argument_types for each in types)))


def _accumulators(calls: Iterable[AggregateCall], of: str, updates: bool) -> Iterator[str]:
    for call in calls:
        if call.language != "builtin" or lookup(call.function) is None:
            yield f"{UNKNOWN_PART}aggregate function {call.function}, whose class the new line runs"
            continue
        plain, name = call.function in _NUMBERS, _SAME_FIELDS.get(call.function, call.function)
        yield f"accumulator: {name}{'' if plain or not updates else ' over updates'}{'' if plain else of}"
        if call.distinct and call.function not in ("MIN", "MAX"):
            yield f"accumulator: DISTINCT{' with FILTER' if call.filter is not None else ''}"
        if call.order_by:
            yield f"accumulator: {call.function} with ORDER BY"


def _types(types: Iterable[DataType]) -> Iterator[str]:
    for type in types:
        if not type.is_known:
            yield f"{UNKNOWN_PART}type of a stored column"
            continue
        yield f"serializer: {'STRING' if type.name in CHARACTERS else type.name}"
        yield from _types(type.elements)


def _join(operator: JoinOperator, output: Output, program: Program, batches: str, updates: list[bool]) -> Iterator[str]:
    if operator.form is JoinForm.LOOKUP:
        mode = lookups.mode(operator, output, program)
        if mode is lookups.LookupMode.SYNCHRONOUS and not updates[0]:
            return  # without state
        if mode is lookups.LookupMode.NOT_KNOWN:
            yield f"{UNKNOWN_PART}lookup join in which rows may wait"
        else:
            yield f"lookup-join: {mode.value}{' over updates' if updates[0] else ''}"
    elif operator.form is JoinForm.REGULAR:
        outer = operator.join if operator.join in ("SEMI", "ANTI") else ""
        sides = {"LEFT": (True, False), "RIGHT": (False, True), "FULL": (True, True)}.get(operator.join, (False, False))
        for side, counts in enumerate(sides):
            key = _unique_key(operator, side, program)
            if key is None:
                yield f"{UNKNOWN_PART}key of joined rows"
            else:
                yield f"join{batches}:{f' {outer}' if outer else ''} rows {'with matches ' if counts else ''}{key}"
        if not operator.keys:
            yield "join: without keys"
    elif operator.form not in JOINS and operator.form is not JoinForm.TEMPORAL:
        yield f"{UNKNOWN_PART}join whose form is not certain"
    elif operator.form is JoinForm.TEMPORAL:
        versions = "table" if isinstance(operator.segments[1].origin, Source) else "view"
        yield f"temporal-join: {_CLOCKS[operator.clock]}, versioned {versions}"
    else:
        detail = _CLOCKS[operator.clock] if operator.form is JoinForm.INTERVAL else operator.join
        yield f"{JOINS[operator.form]}: {detail}"
    yield from _types(each for row in operator.row_types for each in row)


def _unique_key(operator: JoinOperator, side: int, program: Program) -> str | None:
    """The key by which a join stores the rows of an input, which determines the kind of state."""
    origin = operator.segments[side].origin
    if isinstance(origin, AggregateOperator) and origin.kind is AggregateKind.GROUP and origin.keys:
        columns = (pair[side] for pair in operator.keys)
        outer = (each.output for each in columns if isinstance(each, OperatorColumn))
        inner = (each.output for each in outer if isinstance(each, OperatorColumn))
        held = {each.key for each in inner if isinstance(each, KeyOutput)}
        return "by the join's own key" if held == set(origin.keys) else "by another key"
    if isinstance(origin, JoinOperator) and origin.form is JoinForm.REGULAR:
        keys = {_unique_key(origin, below, program) for below in (0, 1)}
        return "without a key" if keys == {"without a key"} else None
    found = program.table(origin.table) if isinstance(origin, Source) else None
    return "without a key" if found is not None and found.declared and not found.primary_key else None


def _over(operator: OverOperator, updates: bool) -> Iterator[str]:
    frame = operator.frame
    other = frame.other or frame.following != 0 or frame.window is not None or not operator.order
    bounds = "another frame" if other else f"{frame.unit} {'unbounded' if frame.preceding is None else 'bounded'}"
    yield f"over-aggregate: {_CLOCKS[operator.clock]}, {bounds}{' over updates' if updates else ''}"
    ranks = (each for each in operator.aggregates if each.function not in _TYPELESS)
    yield from _accumulators(ranks, f" in over-aggregate {bounds}", updates)
    yield from _types(each.type for each in operator.row if each.type.is_known)


def _rank(operator: RankOperator, batches: str, updates: bool) -> str:
    kind, clock = RANKS[operator.kind], _CLOCKS[operator.order_clock]
    keeps = "first" if operator.order and operator.order[0][1] else "last"
    if operator.kind is RankKind.DEDUPLICATION:
        return f"{kind}: {clock}, keeps the {keeps} row{batches}"
    if operator.kind is RankKind.WINDOW_DEDUPLICATION:
        return f"{kind}: keeps the {keeps} row"
    if operator.kind is RankKind.WINDOW_TOP_N:
        return f"{kind}{', of one row' if operator.first == operator.last == 1 else ''}"
    beyond = "" if operator.first == 1 else ", from a rank above 1"
    # Flink may plan a rank of one row as a deduplication by a clock that is unknown here.
    one = ", of one row" if operator.first == operator.last == 1 else ""
    return f"{kind}: {_strategy(operator) if updates else 'appended rows'}{beyond}{one}"


def _strategy(operator: RankOperator) -> str:
    """The rows that a ranking over updates stores: all rows for a SUM or AVG, because the value may fall."""
    first = operator.order[0] if operator.order else None
    call = first[0].output if first is not None and isinstance(first[0], OperatorColumn) else None
    return "all rows" if isinstance(call, AggregateCall) and call.function in ("SUM", "AVG") else "updated rows"


def _other(operator: Operator, program: Program) -> Iterator[str]:
    kind = operator.kind
    if not isinstance(operator, OtherOperator) or kind == OtherKind.QUERY:
        yield f"{UNKNOWN_PART}query that is not taken apart"
    elif kind == OtherKind.TEMPORAL_SORT:
        clock = dict(operator.attributes).get("clock")
        yield f"temporal-sort: {_CLOCKS[clock if isinstance(clock, TimeAttribute) else None]}"
    elif kind != OtherKind.UNION_ALL:
        yield f"{kind}"
    if isinstance(operator, OtherOperator) and kind != OtherKind.UNION_ALL:
        yield from _types(each for row in operator.row_types for each in row if each.is_known)


def _front_of_sink(output: Output, pipeline: Pipeline, program: Program, line: str | None) -> Iterator[str]:
    """The row for the materializer before a sink, or for an INSERT that the new line refuses."""
    found = program.table(output.sink) if output.sink else None
    if found is None or not found.primary_key or line is None:
        return
    refused = list(conflict_faults(output, pipeline, program, found, line))
    if refused:
        yield from (REFUSED for each in refused if each.certain)
        return
    planned = materializer(output, pipeline, program, found, line)
    if planned is Materializer.NOT_KNOWN:
        yield f"{UNKNOWN_PART}operator in front of a sink with a PRIMARY KEY"
    elif planned is not Materializer.NONE:
        yield f"sink-materialize: {planned.value}"


def _shares(program: Program, outputs: Mapping[int, Output]) -> bool:
    """True if two queries of one job read the same operator, which Flink plans only once."""
    seen: set[tuple[int, Operator]] = set()
    for place, output in outputs.items():
        job = program.pipelines[place].statement_set
        found = set() if job is None else {(job, each) for each in operators(output)}
        if seen & found:
            return True
        seen |= found
    return False
