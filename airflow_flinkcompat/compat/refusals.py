"""Faults of a program that Flink refuses, and questionable constructs that Flink accepts.

The parser already reports faults of a single Table API call. This module finds faults that depend on table columns:
columns that are no time attribute, or that have the wrong clock. These are FLIP-11's rules V2 and V3, as PyFlink 2.3.0
implements them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.frontends import WindowUse
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan.expressions import Expression, InputRef
from airflow_flinkcompat.plan.nodes import (
    GroupWindowAggregate,
    Measure,
    Node,
    Opaque,
    Over,
    Table,
    Window,
    WindowAggregate,
    WindowKind,
)
from airflow_flinkcompat.plan.program import REFUSALS, REFUSED_NAME, Pipeline, Program
from airflow_flinkcompat.plan.types import Column, TimeAttribute
from airflow_flinkcompat.plan.windows import refusal

_CALLS = {WindowKind.TUMBLE: "TUMBLE", WindowKind.HOP: "HOP", WindowKind.SESSION: "SESSION"}
_WATERMARK = (
    "declare WATERMARK FOR this column in its table, or compute a column with PROCTIME(); after another window, "
    "select the window's rowtime, not its end"
)
_WITHOUT_OLD_STYLE = frozenset({"2.3"})
"""Lines of Flink that, by measurement, refuse tables declared with ``connector.type``."""
_OLD_STYLE = frozenset({"elasticsearch", "hbase", "jdbc", "kafka"})
"""Values of ``connector.type`` that Flink refuses. Old-style ``filesystem`` tables may still work."""


@dataclass(frozen=True)
class Refusal:
    """A refusal by Flink, with its message, remedy and place.

    ``of_name`` is True if a name is already in use or belongs to no table, so that every engine refuses the name.
    ``of_session`` is True if a new session lacks a name that VVR's catalog may contain. ``certain`` is False if Flink
    may accept the construct.
    """

    message: str
    span: Span | None
    what: str = "program"
    of_name: bool = False
    of_session: bool = False
    certain: bool = True

    @property
    def verb(self) -> str:
        return "refuses" if self.certain else "may refuse"


def refusals(program: Program) -> tuple[Refusal, ...]:
    """All constructs in a program that Flink refuses, in the order of its queries.

    In SQL, the refused constructs are windowing functions with incompatible lengths, intervals with too many digits for
    their unit, and LIKE clauses that cannot be merged.
    """
    # Only refused SQL statements have a text; refused Table API calls have none.
    found = [
        Refusal(problem.message, problem.span, "script" if problem.text else "program", problem.reason == REFUSED_NAME)
        for problem in program.problems
        if problem.reason in REFUSALS
    ]
    found += [
        Refusal(each.message, each.span, "script", of_session=True, certain=each.certain) for each in program.absences
    ]
    for pipeline in program.pipelines:
        if pipeline.steps:
            found += _of_query(pipeline, program.windows)
        for node in pipeline.sink.nodes:
            if isinstance(node, WindowAggregate) and (words := refusal(_without_offset(node.window))):
                what = "program" if pipeline.steps else "script"
                found.append(Refusal(f"{words}; use different lengths", node.span or pipeline.span, what))
    return tuple(dict.fromkeys(found))


def old_style_refusals(side: Side) -> Iterator[Refusal]:
    """Used tables with old-style options that this line of Flink no longer supports."""
    line = side.flink_line
    if line not in _WITHOUT_OLD_STYLE:
        return
    used = side.program.used_tables
    for table in side.program.tables:
        style = table.option("connector.type")
        if table.name in used and style in _OLD_STYLE and table.option("connector") is None and _in_memory(table):
            yield Refusal(
                f"table {table.name} is declared with 'connector.type' = '{style}', which Flink {line} does "
                "not support: declare the table with 'connector', or pass --engine-version if the job runs on an "
                "older line",
                table.span,
                "script",
            )


def _in_memory(table: Table) -> bool:
    """True if the table is in Flink's in-memory catalog. Other catalogs may interpret options freely."""
    return table.path[0] in ("", "default_catalog")


def _without_offset(window: Window) -> Window:
    """A window without its offset, because a separate rule judges offsets."""
    return replace(window, offset=0) if window.offset else window


def notes(program: Program) -> tuple[str, ...]:
    """Misleading constructs that Flink accepts, one line for each, with its place."""
    found = [f"{note.span}: {note.text}" for note in program.notes]
    for pipeline in program.pipelines:
        for node in pipeline.sink.nodes if pipeline.steps else ():
            if isinstance(node, GroupWindowAggregate):
                found += [
                    (
                        f"{use.span}: the window {use.alias} has the name of a column of its table: FLIP-11 requires "
                        "a unique name, but Flink 2.3 uses the window if both are possible; use a different alias"
                    )
                    for use in _uses(node, program.windows)
                    if use.alias in _names(node.input.schema) and not use.fields
                ]
    if program.windows:
        found += [
            (
                f"{table.span}: {table.name} has a column named rowtime: FLIP-11 treats rowtime as a keyword, Flink "
                "2.3 as a regular column; rename the column"
            )
            for table in program.tables
            if "rowtime" in _names(table.columns)
        ]
    return tuple(dict.fromkeys((*found, *_of_jobs(program.pipelines))))


def _of_jobs(pipelines: Sequence[Pipeline]) -> Iterator[str]:
    jobs = {place if each.statement_set is None else ~each.statement_set for place, each in enumerate(pipelines)}
    if len(jobs) > 1:
        yield (
            f"the script starts {len(jobs)} jobs, each with a separate savepoint: SET the savepoint path before each "
            f"job and RESET it afterwards, or later jobs resume from the first job's savepoint"
        )
    if any(not each.sink.table and not each.steps for each in pipelines):
        yield (
            "Flink stores the results of a query without INSERT for the client: this verdict assumes that a deployed "
            "script writes them to a sink without state"
        )


def _of_query(pipeline: Pipeline, windows: Sequence[WindowUse]) -> Iterator[Refusal]:
    batch = dict(pipeline.settings).get("execution.runtime-mode", "").lower() == "batch"
    for node in pipeline.sink.nodes:
        match node:
            case GroupWindowAggregate():
                uses = _uses(node, windows)
                for message in _in_batch(node, uses) if batch else _on_stream(node, uses):
                    yield Refusal(message, _place(uses, pipeline))
            case Over():
                uses = [use for use in windows if use.call == "OVER"]
                for order in {call.order_by[0][0] for call in node.calls if len(call.order_by) == 1}:
                    named = [use for use in uses if use.time == _name(node, order)]
                    for message in _over(node, order, batch) if named else ():
                        yield Refusal(message, _place(named, pipeline))
            case Opaque(error="unknown-column", reason=reason, span=span):
                yield Refusal(
                    f"{reason}; use a column of the table (Flink: Cannot resolve field)",
                    span,
                )


def _on_stream(node: GroupWindowAggregate, uses: Sequence[WindowUse]) -> Iterator[str]:
    name = _name(node, node.time)
    if node.time_attribute is None and _known(node, node.time):
        yield (
            f"the column {name} of a window is not a time attribute ({_type(node, node.time)}); {_WATERMARK} "
            "(Flink: A group window expects a time attribute for grouping in a stream environment.)"
        )
    if node.time_attribute is TimeAttribute.ROWTIME and node.window.measure is Measure.ROWS:
        yield (
            f"a window over rows uses {name}, which is event time, but the window counts rows in processing time; use "
            "a column computed as PROCTIME() (Flink: Event-time grouping windows on row intervals are currently "
            "not supported.)"
        )
    for use in uses[:1]:
        if node.time_attribute is TimeAttribute.PROCTIME and "rowtime" in use.fields:
            yield (
                f"{use.alias}.rowtime belongs to a window on {name}, which is processing time; select "
                f"{use.alias}.proctime (Flink: A proctime window cannot provide a rowtime attribute.)"
            )
        if use.alias in _names(node.input.schema) and use.fields:
            yield (
                f"the window {use.alias} has the name of a column of its table, and the query selects its "
                f"{use.fields[0]}; use a different alias (Flink: Reference to a rowtime or proctime window required.)"
            )


def _in_batch(node: GroupWindowAggregate, uses: Sequence[WindowUse]) -> Iterator[str]:
    kind = "Session" if node.window.kind is WindowKind.SESSION else "Tumbling"
    if node.window.kind is WindowKind.SESSION or node.window.measure is Measure.ROWS:
        what = "a session window" if kind == "Session" else "a window over rows"
        yield (
            f"{what} is not supported in batch mode; run the program in streaming mode, even for bounded input, or "
            f"compute the result with `flinkcompat backfill` (Flink: Window {kind}GroupWindow is not supported "
            f"right now.)"
        )
    elif node.time_attribute is TimeAttribute.PROCTIME:
        yield (
            "a window on processing time is not supported in batch mode; use a time column of the data (Flink: its "
            "planner fails "
            "with ArrayIndexOutOfBoundsException)"
        )
    elif any("proctime" in use.fields for use in uses[:1]):
        yield (
            "the query selects the proctime of an event-time window in batch mode; select the window's rowtime or end "
            "(Flink: "
            "refused in batch mode, accepted on a stream)"
        )
    elif node.window.slide and node.window.size and node.window.slide > node.window.size:
        yield (
            "the slide of a sliding window is larger than its size, which batch mode does not support; run the "
            "program in streaming mode "
            "(Flink: ClassCastException when it runs)"
        )


def _over(node: Over, order: Expression, batch: bool) -> Iterator[str]:
    name = _name(node, order)
    column = node.input.schema[order.index] if isinstance(order, InputRef) else None
    if batch:
        yield (
            "a row window needs a time attribute, and batch mode has none; write the window as OVER in SQL, or run "
            "the program in streaming mode (Flink: Second argument in OVER window must be a TIME ATTRIBUTE)"
        )
    elif column is not None and column.time_attribute is None and _known(node, order):
        yield (
            f"the ORDER BY column {name} of a row window is not a time attribute ({column.type}); {_WATERMARK} "
            f"(Flink: Second argument in OVER window must be a TIME ATTRIBUTE, but is: {column.type})"
        )
    if not batch and any(call.frame.following != 0 and call.frame.window is None for call in node.calls):
        yield (
            "a row window reaches beyond the current row; end the window with CURRENT_ROW or CURRENT_RANGE "
            "(Flink: OVER RANGE FOLLOWING windows are not supported yet.)"
        )


def _uses(node: GroupWindowAggregate, windows: Sequence[WindowUse]) -> list[WindowUse]:
    """Places in the program that define this window."""
    window = node.window
    lengths = tuple(length for length in (window.slide, window.size, window.gap) if length is not None)
    key = (_CALLS.get(window.kind, ""), _name(node, node.time), lengths)
    return [use for use in windows if (use.call, use.time, use.lengths) == key]


def _place(uses: Sequence[WindowUse], pipeline: Pipeline) -> Span | None:
    """The window's place if it is unique; else the place of the query."""
    return uses[0].span if len({use.span for use in uses}) == 1 else pipeline.span


def _column(node: Node, time: Expression) -> Column | None:
    schema = node.inputs[0].schema
    return schema[time.index] if isinstance(time, InputRef) and time.index < len(schema) else None


def _name(node: Node, time: Expression) -> str:
    column = _column(node, time)
    return "" if column is None else column.name


def _type(node: Node, time: Expression) -> str:
    column = _column(node, time)
    return "" if column is None else str(column.type)


def _known(node: Node, time: Expression) -> bool:
    """True if the type of the column is known."""
    column = _column(node, time)
    return column is not None and column.type.name != "UNKNOWN"


def _names(columns: Sequence[Column]) -> set[str]:
    return {column.name for column in columns}
