"""Compiler from a program's plan to backfill steps.

The compiler refuses inexact parts before Spark starts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from airflow_flinkcompat.backfill.compile import lateness, over, relations, windowing
from airflow_flinkcompat.backfill.compile.context import Compile, CompileContext, FiltersAbove
from airflow_flinkcompat.backfill.compile.sessions import place_session_filters
from airflow_flinkcompat.backfill.compile.sink_columns import (
    common_window_columns,
    sink_columns,
    window_columns,
    windows_of,
)
from airflow_flinkcompat.backfill.protocols import Locations, Partitioned, PublishedRows, Range, TimeBounded, TimeSpan
from airflow_flinkcompat.backfill.request import nested
from airflow_flinkcompat.backfill.result import FLINK_BATCH, BackfillError, Untranslatable, combined
from airflow_flinkcompat.backfill.spark_sql.expressions import references
from airflow_flinkcompat.backfill.spark_sql.localtime import localised
from airflow_flinkcompat.backfill.spark_sql.windows import DAY, WindowRange
from airflow_flinkcompat.backfill.steps import (
    Assign,
    AssignSessions,
    DropLate,
    Joined,
    Read,
    Select,
    Step,
    UnionAll,
    Where,
    Work,
    Write,
    reads_of,
)
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Filter,
    GroupWindowAggregate,
    Node,
    Opaque,
    Over,
    Project,
    Scan,
    Union,
    WindowAssign,
)
from airflow_flinkcompat.plan.program import OtherStatement, Pipeline, Program


def _over(context: CompileContext, node: Over, needed: frozenset[int], above: FiltersAbove | None) -> Step:
    if over.is_over_aggregate(node):
        return over.over_rows(context, node, needed)
    return over.rank(context, node, needed, above)


def _opaque(context: CompileContext, node: Opaque, needed: frozenset[int], above: FiltersAbove | None) -> Step:
    raise Untranslatable(f"{node.kind} cannot be recomputed in Spark: {node.reason or str(node.text)[:80]}", node.span)


OPERATORS: Mapping[type[Node], Compile] = {
    Scan: lambda context, node, needed, above: relations.scan(context, node, needed),
    Project: relations.project,
    Filter: relations.filtered,
    Union: lambda context, node, needed, above: relations.union(context, node, needed),
    WindowAssign: lambda context, node, needed, above: windowing.windowed_rows(context, node, needed),
    Aggregate: lambda context, node, needed, above: windowing.aggregate_rows(context, node),
    GroupWindowAggregate: lambda context, node, needed, above: windowing.group_window(context, node),
    Over: _over,
    Opaque: _opaque,
}
"""Plan nodes that a backfill can recompute, with their compilers."""


# Settings that change values and that a backfill does not implement.
_REFUSED_SETTINGS = {
    "table.exec.legacy-cast-behaviour": ("disabled", "casts follow Flink's legacy rules"),
    "table.exec.sink.type-length-enforcer": ("ignore", "strings are trimmed or padded when they are written"),
}
_SYSTEM_FUNCTION = re.compile(r"CREATE TEMPORARY SYSTEM FUNCTION\b", re.IGNORECASE)


@dataclass(frozen=True)
class CompiledProgram:
    """Writes to every sink of a program, which can be computed for any published range."""

    writes: tuple[Write, ...]

    def work(self, bounds: Range) -> Work:
        """Return the steps that compute and publish one range."""
        published = WindowRange.inside(bounds.from_, bounds.to, bounds.after)
        return Work(
            tuple(
                replace(write, inputs=tuple(push_down_ranges(for_range(step, published)) for step in write.inputs))
                for write in self.writes
            )
        )


def compile_program(program: Program, locations: Locations, bounds: Range, drop_late: bool = False) -> CompiledProgram:
    """Compile a program once, for a range and all its chunks."""
    _check_program(program)
    sinks = [pipeline.sink.table for pipeline in program.pipelines if pipeline.sink.table is not None]
    scans = [node for pipeline in program.pipelines for node in pipeline.sink.nodes if isinstance(node, Scan)]
    locations.check((scan.table for scan in scans), sinks)
    writes, errors = _compiled(program, locations, bounds, drop_late)
    merged: dict[tuple[str, str, str], Write] = {}
    for write in writes:
        path = write.rows.table.path
        if (first := merged.get(path)) is not None:  # Several INSERTs into one sink are a single write.
            windows = common_window_columns(first.rows.windows, write.rows.windows)
            write = replace(first, rows=replace(first.rows, windows=windows), inputs=first.inputs + write.inputs)
        merged[path] = write
    for write in merged.values() if not errors else ():
        try:
            write.target.check(write.rows, bounds)
        except BackfillError as error:
            errors.append(error)
    if errors:
        raise combined(errors)
    _check_places(Work(tuple(merged.values())))
    return CompiledProgram(tuple(merged.values()))


def _compiled(
    program: Program, locations: Locations, bounds: Range, drop_late: bool
) -> tuple[list[Write], list[BackfillError]]:
    """Compile each pipeline to a write, and collect the parts that cannot be computed."""
    contexts: dict[tuple[object, bool], CompileContext] = {}
    placed: dict[int, Node] = {}
    times: dict[tuple[int, str], tuple[object, object]] = {}
    pipelines: list[tuple[CompileContext, Pipeline]] = []
    writes: list[Write] = []
    errors: list[BackfillError] = []
    for line in program.pipelines:
        settings, key = dict(line.settings), (line.settings, bool(line.steps))
        if key not in contexts:
            contexts[key] = CompileContext(OPERATORS, locations, bounds, settings, drop_late, bool(line.steps))
        try:
            sink = place_session_filters(localised(line.sink, settings, times), placed)
            pipelines.append((contexts[key], replace(line, sink=sink)))
            writes.append(_write(*pipelines[-1]))
        except BackfillError as error:
            errors.append(error)
    if not errors and not all(context.columns.settled for context in contexts.values()):
        # Now the columns that all readers of a relation need are known, so shared relations compile to equal steps.
        writes = [_write(*each) for each in pipelines]
    return writes, errors


def _check_program(program: Program) -> None:
    if program.problems:
        # The parser's message already contains the exact place.
        spans = [None if problem.reason == "statement" else problem.span for problem in program.problems]
        raise combined(
            [Untranslatable(problem.message, span) for problem, span in zip(program.problems, spans, strict=True)]
        )
    if program.inputs:
        raise BackfillError(
            "the script uses variables that only the environment of the program has: "
            f"{', '.join(program.inputs)}. Pass the variables with --var NAME=…, or put the file next to the "
            "program"
        )
    for fact in program.other_statements:
        if fact.kind.startswith("Alter"):
            raise Untranslatable(
                (
                    f"{str(fact.text)[:80]}: a backfill does not support ALTER. Declare the table with its "
                    "current definition"
                ),
                fact.span,
            )
        if fact.kind == "Drop" and (name := _dropped(fact, len(program.pipelines))):
            raise Untranslatable(
                f"{str(fact.text)[:80]}: a backfill does not support DROP of an object that earlier queries use. "
                f"Remove the DROP, or declare {name} only once",
                fact.span,
            )
    for function in program.functions:
        # Flink looks up temporary system functions before built-in functions, and catalog functions after them.
        if _SYSTEM_FUNCTION.match(str(function.definition)) and functions.lookup(function.name) is not None:
            raise Untranslatable(
                f"function {function.name} replaces Flink's built-in {function.name.upper()} and cannot run in "
                f"Spark. Rename the function, or {FLINK_BATCH}",
                function.span,
            )
    if not program.pipelines:
        raise BackfillError("the script has no INSERT INTO statement, so a backfill has nothing to write")


def _dropped(fact: OtherStatement, queries: int) -> str:
    """Name that a DROP removes from later queries; "" if no query follows or the name is undeclared."""
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
                    f"sink {sink} would be written to {target}, but table {table} is read there ({place}). Pass a "
                    f"different location with --sink {sink}=URI"
                )
        for other in work.writes[:position]:
            if nested(target, other.target.place):
                raise BackfillError(
                    f"sinks {other.rows.name} and {sink} would be written to the same location {target}. Pass a "
                    "separate location for each with --sink NAME=URI"
                )


def _write(context: CompileContext, pipeline: Pipeline) -> Write:
    sink = pipeline.sink
    table = sink.table
    if table is None:
        raise Untranslatable(
            "a SELECT without INSERT INTO has no sink to write to. Write INSERT INTO … SELECT", sink.span
        )
    for setting, (harmless, effect) in _REFUSED_SETTINGS.items():
        if context.settings.get(setting, harmless).lower() != harmless:
            raise Untranslatable(
                (
                    f"{setting} = '{context.settings[setting]}' is not supported, because {effect}. Remove the "
                    f"setting, or {FLINK_BATCH}"
                ),
                sink.span,
            )
    conflict = dict(sink.hints).get("ON CONFLICT", "DEDUPLICATE").upper()
    if conflict != "DEDUPLICATE":
        raise Untranslatable(
            f"sink {table.name}: ON CONFLICT DO {conflict} depends on which row of a key arrives first, which a "
            "backfill does not know. Write DO DEDUPLICATE",
            sink.span,
        )
    if any(name != "ON CONFLICT" for name, _ in sink.hints):
        raise Untranslatable(
            f"sink {table.name}: a backfill does not support SQL hints. Write the options into WITH", sink.span
        )
    target = context.locations.sink(table)
    if sink.overwrite and not target.exclusive:
        raise Untranslatable(
            f"INSERT OVERWRITE {table.name} would replace all data at {target.place}. Pass a different location "
            f"with --sink {table.path[2]}=URI",
            sink.span,
        )
    try:
        columns, values, condition = sink_columns(sink, context.settings)
    except BackfillError:
        # An error in the sink's input may be the cause, and is more specific.
        context.compile(sink.input, frozenset(range(len(sink.schema))))
        raise
    body = context.compile(sink.input, references(values.sources))
    # This check must be last, because windows_of also returns None for an unreadable window.
    if context.bounds.bounded and None in windows_of(sink.input):
        raise Untranslatable(
            f"the rows written to {table.name} belong to no window, so no time range can be applied. Omit --from "
            "and --to to recompute all rows",
            sink.span,
        )
    if condition:
        body = Where(body, condition)
    step = Select(body, tuple(enumerate(values.sql)))
    return Write(PublishedRows(table, columns, window_columns(sink)), target, (step,))


def for_range(step: Step, published: WindowRange) -> Step:
    if isinstance(step, Read):
        return step
    if isinstance(step, UnionAll | Joined):
        return replace(step, inputs=tuple(for_range(inner, published) for inner in step.inputs))
    below = for_range(step.input, published)
    match step:
        case Assign(asked=asked) if asked is not None:
            return replace(step, input=below, window_range=asked.within(published))
        case AssignSessions(asked=asked) if asked is not None:
            counted = None if step.counted is None else published
            return replace(step, input=below, window_range=asked.within(published), counted=counted)
        case DropLate(ends=ends) if ends is not None:
            return replace(step, input=below, counted=lateness.late_in(*ends, published))
    return replace(step, input=below)


_COLUMN = re.compile(r"\bc([0-9]+)\b")


def push_down_ranges(step: Step) -> Step:
    """Push requested ranges down to sources, so that they can skip rows outside all requested windows."""
    if isinstance(step, Read):
        return step
    if isinstance(step, UnionAll | Joined):
        return replace(step, inputs=tuple(push_down_ranges(inner) for inner in step.inputs))
    below = push_down_ranges(step.input)
    if isinstance(step, Where) and isinstance(below, Read) and _chooses_folders(step.condition, below):
        return replace(below, condition=step.condition)
    if isinstance(step, Assign):
        first, last = step.windows.span(step.window_range)
        if step.zone:  # The difference between local time and UTC is less than a day.
            first, last = (None if first is None else first - DAY), (None if last is None else last + DAY)
        if first is not None or last is not None:
            below = _narrowed(below, step.time, first, last)
    return replace(step, input=below)


def _chooses_folders(condition: str, read: Read) -> bool:
    """True if a condition selects folders of a table.

    A text that looks like a column does no harm.
    """
    asked = {int(position) for position in _COLUMN.findall(condition)}
    folders = read.source.folders if isinstance(read.source, Partitioned) else frozenset()
    chosen = any(field in folders for position, field in read.fields if position in asked)
    return (
        chosen and read.watermark is None and not read.condition and asked <= {position for position, _ in read.columns}
    )


def _narrowed(step: Step, position: int, first: int | None, last: int | None) -> Step:
    match step:
        case Where():
            return replace(step, input=_narrowed(step.input, position, first, last))
        case UnionAll():
            return replace(step, inputs=tuple(_narrowed(inner, position, first, last) for inner in step.inputs))
        case Select():
            passed = dict(step.columns)[position]
            if passed.startswith("c") and passed[1:].isdigit():
                return replace(step, input=_narrowed(step.input, int(passed[1:]), first, last))
        case Read() if position in (fields := dict(step.fields)) and isinstance(step.source, TimeBounded):
            if step.watermark is not None:
                return step  # Every row affects the watermark.
            return replace(step, source=step.source.within(TimeSpan(fields[position], first, last)))
    return step
