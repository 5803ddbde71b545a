"""What of a job another line of Flink has to read: operators, functions, stored types, connectors, settings, in words.

Two jobs with the same traits are restored alike by another line. Whatever decides which classes Flink plans, or how
they lay out their state, is therefore part of a trait; what decides nothing of it (names, lengths of windows,
conditions, projections) is none. A construct that is not known by name gives a trait too, which no restore has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.changes.references import stateless_expressions
from airflow_flinkcompat.compat.engines.flink import lookups
from airflow_flinkcompat.compat.engines.flink.settings import MINI_BATCH
from airflow_flinkcompat.compat.engines.flink.sinks import table
from airflow_flinkcompat.compat.engines.flink.upgrade.operator_traits import CLOCKS, operator_traits
from airflow_flinkcompat.compat.engines.flink.upgrade.table_traits import (
    MAYBE_MATERIALIZED,
    OTHER_MATERIALIZER,
    sink_traits,
    source_traits,
)
from airflow_flinkcompat.compat.engines.flink.validation.conflicts import REQUIRED, Materializer, materializer
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, walk
from airflow_flinkcompat.plan.functions import lookup
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    Operator,
    Output,
    Rows,
    Source,
    StatelessSegment,
    operators,
    segments,
)
from airflow_flinkcompat.plan.origins import FunctionColumn
from airflow_flinkcompat.plan.program import Pipeline, Program

NEUTRAL = (
    "execution.attached",
    "execution.checkpointing.",
    "execution.savepoint",
    "execution.state-recovery.",
    "execution.target",
    "jobmanager.",
    "kubernetes.",
    "metrics.",
    "parallelism.default",
    "pipeline.auto-watermark-interval",
    "pipeline.classpaths",
    "pipeline.jars",
    "pipeline.name",
    "pipeline.object-reuse",
    "rest.",
    "restart-strategy",
    "sql-client.",
    "state.backend.incremental",
    "state.backend.local-recovery",
    "state.backend.rocksdb.",
    "state.checkpoints.",
    "state.savepoints.",
    "table.dml-sync",
    "table.exec.mini-batch.allow-latency",
    "table.exec.mini-batch.size",
    "table.exec.source.idle-timeout",
    "table.local-time-zone",
    "table.optimizer.state-compatibility.",
    "taskmanager.",
    "yarn.",
)
"""Beginnings of keys that decide neither what is planned nor how it is stored."""
DEFAULTS = {"execution.runtime-mode": "streaming", "state.backend.type": "hashmap", "sql.dialect": "default"}
"""Values that say what Flink does anyway, beside those of :mod:`~airflow_flinkcompat.compat.changes.settings`."""
_UNTOLD = (
    "a statement that was not read",
    "a query that is not taken apart",
    "columns of a type that is not known",
    "a lookup join of which it is not known",
    MAYBE_MATERIALIZED,
    "the table ",
)
STATEMENTS = frozenset({"USE", "SHOW", "DESCRIBE", "EXPLAIN", "not created: exists", "kept"})
"""Kinds of statements that change nothing of a job."""


def traits(old: Side, new: Side) -> frozenset[str]:
    """Everything that another line of Flink has to read of a job, and to plan again.

    Args:
        old: The job that took the savepoint.
        new: The job that is restored from it, the same or another one.

    Returns:
        The traits of both, in the words of a reader.
    """
    before, after = _materializers(old), _materializers(new)
    differ = any(before.get(sink, planned) is not planned for sink, planned in after.items())
    return frozenset((*_traits(old, None), *_traits(new, new.flink_line), *([OTHER_MATERIALIZER] if differ else [])))


def _materializers(side: Side) -> Mapping[str, Materializer]:
    """By the names of its sinks, the materializer that the line of a side plans in front of each."""
    program, outputs = side.program, side.outputs[0]
    return {
        output.sink: materializer(output, program.pipelines[n], program, table(program, output.sink), side.flink_line)
        for n, output in outputs.items()
    }


def told(trait: str) -> bool:
    """Whether a trait says what is there: of what is not understood, a restore of something like it shows nothing.

    Args:
        trait: A trait.

    Returns:
        False for what was not read, not declared, or whose type is not known.
    """
    return not trait.startswith(_UNTOLD)


def _traits(side: Side, line: str | None) -> Iterator[str]:
    program, (outputs, failures) = side.program, side.outputs
    if program.problems or failures:
        yield "a statement that was not read"
    for statement in program.other_statements:
        if statement.kind.upper() not in STATEMENTS and statement.kind not in STATEMENTS:
            yield f"the statement {statement.kind}"
    jobs = [pipeline.statement_set for pipeline in program.pipelines]
    if any(number is not None and jobs.count(number) > 1 for number in jobs):
        yield "several INSERTs in one job"
    written = [(job, output.sink) for job, output in zip(jobs, outputs.values(), strict=False) if job is not None]
    if len(written) != len(set(written)):
        yield "several INSERTs into one table"
    if _shared(program, outputs):
        yield "an operator that several INSERTs share"
    for place, output in outputs.items():
        yield from _pipeline_traits(output, program.pipelines[place], program, line)


def _pipeline_traits(output: Output, pipeline: Pipeline, program: Program, line: str | None) -> Iterator[str]:
    """The traits of one query with its tables and the settings in force, some more than once."""
    if pipeline.steps:
        yield "a query through the Table API"
    given = {settings.name(key): value for key, value in pipeline.settings}
    yield from _setting_traits(given)
    mini_batch = settings.effective(given, MINI_BATCH, "flink") == "true"
    for operator in operators(output):
        yield from operator_traits(operator, output, program, mini_batch)
    every = operators(output)
    windowed = {id(each.segment) for each in every if isinstance(each, AggregateOperator)}
    looked_up = {id(each.segments[1]) for each in every if lookups.is_lookup(each)}
    for segment in segments(output):
        yield from _segment_traits(segment, program, id(segment) in windowed)
        # A table that is looked up keeps nothing: what waits for its answer is the join's.
        yield from () if id(segment) in looked_up else _origin_traits(segment, program, segment is output.segment)
    yield from _function_traits(output)
    yield from sink_traits(output, pipeline, given, program, line)


def _setting_traits(given: dict[str, str]) -> Iterator[str]:
    for key in sorted(given):
        text = settings.value(key, given[key])
        if (
            key.startswith(NEUTRAL)
            or key == REQUIRED
            or text == settings.default(key, "flink")
            or text.lower() == DEFAULTS.get(key)
        ):
            continue
        if key == "table.exec.state.ttl":
            yield "a time to live of state"
        else:
            yield f"the setting {key} = {text}"


def _segment_traits(segment: StatelessSegment, program: Program, below_aggregation: bool) -> Iterator[str]:
    for call, _ in segment.functions:
        yield "UNNEST" if call.function == "UNNEST" else f"the table function {call.function}"
    if segment.window_filters:
        yield "a condition on the fields of a window"
    for name, _ in segment.hints:
        yield f"the hint {name}"
    for window in segment.windows[: len(segment.windows) - below_aggregation]:
        yield f"rows in {CLOCKS[window.time_attribute]} {window.window.kind} windows"


def _origin_traits(segment: StatelessSegment, program: Program, last: bool) -> Iterator[str]:
    if isinstance(segment.origin, Source):
        yield from source_traits(segment, program, last)
    elif isinstance(segment.origin, Rows) or segment.origin is None:
        yield "rows of VALUES"


def _function_traits(output: Output) -> Iterator[str]:
    """Functions that are not built in: what they keep, and whether they still run, no restore of others tells."""
    every = chain(stateless_expressions(output), *(each.expressions for each in operators(output)))
    for part in chain.from_iterable(map(_parts, every)):
        if isinstance(part, FunctionCall) and lookup(part.function) is None and part.function not in _PLANNED:
            yield f"the function {part.function}"


_PLANNED = frozenset({"UNNEST", "PROCTIME_MATERIALIZE"})


def _parts(value: Expression) -> Iterator[Expression]:
    for part in walk(value):
        yield part
        if isinstance(part, FunctionColumn):
            yield from (each for arg in part.call.args for each in walk(arg))


def _shared(program: Program, outputs: Mapping[int, Output]) -> bool:
    """Whether two queries of one job read the same operator, which Flink then plans once."""
    seen: set[tuple[int, Operator]] = set()
    for place, output in outputs.items():
        job = program.pipelines[place].statement_set
        found = set() if job is None else {(job, each) for each in operators(output)}
        if seen & found:
            return True
        seen |= found
    return False
