"""From a program's plan to the steps of its backfill; whatever is not exact is refused here, before Spark starts."""

from __future__ import annotations

import re
from dataclasses import replace

from airflow_flinkcompat.backfill.compiling.origins import agreeing, published, windows_of
from airflow_flinkcompat.backfill.compiling.pruning import pruned
from airflow_flinkcompat.backfill.compiling.relations import Relations
from airflow_flinkcompat.backfill.compiling.sessions import settled
from airflow_flinkcompat.backfill.compiling.sinking import sink_columns
from airflow_flinkcompat.backfill.compiling.steps import Select, Where, Work, Write, reads_of
from airflow_flinkcompat.backfill.connectors.base import Range, Rows
from airflow_flinkcompat.backfill.connectors.places import Places, nested
from airflow_flinkcompat.backfill.errors import FLINK_BATCH, BackfillError, Untranslatable, combined
from airflow_flinkcompat.backfill.spark_sql.expressions import references
from airflow_flinkcompat.backfill.spark_sql.localtime import localised
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.nodes import Node, Scan, walk_nodes
from airflow_flinkcompat.plan.program import Fact, Pipeline, Program

# Settings that change values; what they ask for is done by nobody here.
_REFUSED_SETTINGS = {
    "table.exec.legacy-cast-behaviour": ("disabled", "casts follow older rules"),
    "table.exec.sink.type-length-enforcer": ("ignore", "texts are cut or padded when written"),
}
_SYSTEM_FUNCTION = re.compile(r"CREATE TEMPORARY SYSTEM FUNCTION\b", re.IGNORECASE)


def compile_program(program: Program, places: Places, bounds: Range, drop_late: bool = False) -> Work:
    """The work of a backfill. Raises :class:`BackfillError` that names every construct it cannot do exactly.

    ``drop_late`` leaves out rows that came too late for their window.
    """
    _check_program(program)
    sinks = [pipeline.sink.table for pipeline in program.pipelines if pipeline.sink.table is not None]
    scans = [node for pipeline in program.pipelines for node in walk_nodes(pipeline.sink) if isinstance(node, Scan)]
    places.check((scan.table for scan in scans), sinks)
    errors: list[BackfillError] = []
    writes: dict[tuple[str, str, str], Write] = {}
    done: dict[int, Node] = {}
    times: dict[tuple[int, str], tuple[object, object]] = {}
    pipelines: list[tuple[Relations, Pipeline]] = []
    relations = {
        (line.settings, bool(line.steps)): Relations(places, bounds, dict(line.settings), drop_late, bool(line.steps))
        for line in program.pipelines
    }
    for pipeline in program.pipelines:
        try:
            local = localised(pipeline.sink, dict(pipeline.settings), times)
            own = relations[pipeline.settings, bool(pipeline.steps)]
            pipelines.append((own, replace(pipeline, sink=settled(local, done))))
            _write(*pipelines[-1])
        except BackfillError as error:
            errors.append(error)
    # Now it is known which columns all readers of a relation need, so that what several read is the same step.
    for known_relations, pipeline in pipelines if not errors else ():
        write = _write(known_relations, pipeline)
        path = write.rows.table.path
        known = writes.get(path)
        writes[path] = write if known is None else _together(known, write)
    for write in writes.values():
        try:
            write.target.check(write.rows, bounds)
        except BackfillError as error:
            errors.append(error)
    if errors:
        raise combined(errors)
    work = Work(tuple(writes.values()))
    _check_places(work)
    return work


def _check_program(program: Program) -> None:
    if program.problems:
        # What the parser says holds its own, more exact place.
        spans = [None if problem.reason == "statement" else problem.span for problem in program.problems]
        raise combined(
            [Untranslatable(problem.message, span) for problem, span in zip(program.problems, spans, strict=True)]
        )
    for fact in program.facts:
        if fact.kind.startswith("Alter"):
            raise Untranslatable(
                f"{str(fact.text)[:80]}: a backfill does not follow ALTER; declare the table as it is now", fact.span
            )
        if fact.kind == "Drop" and (name := _dropped(fact, len(program.pipelines))):
            raise Untranslatable(
                f"{str(fact.text)[:80]}: a backfill does not follow DROP of what is declared above it and queries "
                f"stand below it; leave it out, or declare {name} once",
                fact.span,
            )
    for function in program.functions:
        # Flink looks for temporary system functions first, for those of a catalog after its own.
        if _SYSTEM_FUNCTION.match(str(function.definition)) and functions.lookup(function.name) is not None:
            raise Untranslatable(
                f"function {function.name} takes the place of Flink's own {function.name.upper()} and cannot run in "
                f"Spark; give it a name of its own, or {FLINK_BATCH}",
                function.span,
            )
    if not program.pipelines:
        raise BackfillError("the script writes nothing; a backfill runs its INSERT INTO statements")


def _dropped(fact: Fact, queries: int) -> str:
    """The name that a DROP takes from the queries after it; empty where none follow, or it was not declared before."""
    before, *declared = map(str, fact.after)
    name = fact.name.replace("`", "").rpartition(".")[2]
    known = {path.removeprefix("temporary ").rpartition(".")[2] for path in declared}
    return name if int(before) < queries and name in known else ""


def _check_places(work: Work) -> None:
    reads = {
        (read.source.place, read.table) for write in work.writes for step in write.inputs for read in reads_of(step)
    }
    for position, write in enumerate(work.writes):
        sink, target = write.rows.name, write.target.place
        for place, table in sorted(reads):
            if nested(target, place):
                raise BackfillError(
                    f"sink {sink} would be written to {target}, where table {table} is read ({place}); "
                    f"give another place with --sink {sink}=URI"
                )
        for other in work.writes[:position]:
            if nested(target, other.target.place):
                raise BackfillError(
                    f"sinks {other.rows.name} and {sink} would be written to the same place {target}; "
                    "give each a place of its own with --sink NAME=URI"
                )


def _together(first: Write, second: Write) -> Write:
    """Two INSERTs into one sink as one write."""
    rows = replace(first.rows, windows=agreeing(first.rows.windows, second.rows.windows))
    return replace(first, rows=rows, inputs=first.inputs + second.inputs)


def _write(relations: Relations, pipeline: Pipeline) -> Write:
    sink = pipeline.sink
    table = sink.table
    if table is None:
        raise Untranslatable("a bare SELECT has no sink to write to; write INSERT INTO … SELECT", sink.span)
    for setting, (harmless, effect) in _REFUSED_SETTINGS.items():
        if relations.settings.get(setting, harmless).lower() != harmless:
            raise Untranslatable(f"with {setting} = '{relations.settings[setting]}' {effect}; {FLINK_BATCH}", sink.span)
    if sink.hints:
        raise Untranslatable(
            f"sink {table.name}: hints are not understood by a backfill; write options into WITH", sink.span
        )
    target = relations.places.sink(table)
    if sink.overwrite and not target.exclusive:
        raise Untranslatable(
            f"INSERT OVERWRITE {table.name} would replace everything at {target.place}; "
            f"say where to write with --sink {table.path[2]}=URI",
            sink.span,
        )
    try:
        columns, values, condition = sink_columns(sink, relations.settings)
    except BackfillError:
        # What lies below may be the cause, and says more.
        relations.node(sink.input, frozenset(range(len(sink.schema))))
        raise
    body = relations.node(sink.input, references(values.sources))
    # Last, because a window that could not be read is none either.
    if relations.bounds.bounded and None in windows_of(sink.input):
        raise Untranslatable(
            f"the rows written to {table.name} belong to no window, so no time range can be applied; "
            "leave out --from and --to to recompute everything",
            sink.span,
        )
    if condition:
        body = Where(body, condition)
    step = Select(body, tuple(enumerate(values.sql)))
    return Write(Rows(table, columns, published(sink)), target, (pruned(step),))
