"""Explanation of a plan before anything runs: reads, computations and publications, with sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from airflow_flinkcompat.backfill.compile.sink_columns import windows_of
from airflow_flinkcompat.backfill.journal import journal_place
from airflow_flinkcompat.backfill.planning import BackfillPlan
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.backfill.request import BackfillRequest
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.steps import Write, reads_of
from airflow_flinkcompat.compat.changes.format import (
    format_conditions,
    format_expressions,
    format_group_by,
    format_order_by,
    format_window,
)
from airflow_flinkcompat.model.durations import shown_duration
from airflow_flinkcompat.plan.lineage import resolve_operators
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    Operator,
    Output,
    OverOperator,
    RankOperator,
    Rows,
    StatelessSegment,
    TooLarge,
)
from airflow_flinkcompat.plan.operators import Source as TableSource
from airflow_flinkcompat.secrets import mask_secrets

_WIDTH = 12
_SIZES = ("bytes", "KB", "MB", "GB", "TB", "PB")
# If there are more chunks, only their number and some examples are shown.
_LISTED = 6


@dataclass(frozen=True)
class Estimate:
    """Number of files and bytes in a local folder."""

    files: int
    bytes: int

    def __str__(self) -> str:
        amount, unit = float(self.bytes), 0
        while amount >= 1000 and unit < len(_SIZES) - 1:
            amount, unit = amount / 1000, unit + 1
        return f"{self.files} file{'' if self.files == 1 else 's'}, {amount:.3g} {_SIZES[unit]}"


def estimate(source: BackfillSource) -> Estimate | None:
    """Size of a source in a local folder; None for all other sources."""
    parts = urlsplit(source.place)
    if parts.scheme != "file":
        return None
    root = Path(unquote(parts.path))
    paths = [root] if root.is_file() else root.rglob("*")
    sizes = [path.stat().st_size for path in paths if path.is_file() and _visible(path.relative_to(root))]
    return Estimate(len(sizes), sum(sizes))


def explain(plan: BackfillPlan, request: BackfillRequest) -> str:
    """Explain a plan as text.

    Args:
        plan: The backfill plan.
        request: The request, with its bounds as the user wrote them.

    Returns:
        Lines of text, with secrets masked.

    Raises:
        BackfillError: There is no location for chunks, or a folder cannot be inspected.
    """
    lines = [f"Backfill of {request.job.source}: nothing is computed or written (dry run)", "", *_range(plan, request)]
    needs = plan.work.needs
    if needs.packages:
        lines.append(_line("Spark needs", ", ".join(needs.packages)))
    if plan.hand_over is not None:
        lines += ["", "hand-over", *(f"  {line}" for line in plan.hand_over.lines())]
    for write in plan.work.writes:
        lines += ["", *_sink(plan, write)]
    lines += ["", "input", *_inputs(plan)]
    return mask_secrets("\n".join(line.rstrip() for line in lines)) + "\n"


def _range(plan: BackfillPlan, request: BackfillRequest) -> Iterator[str]:
    bounds = plan.bounds
    span = f"windows within [{bounds.from_ or 'the beginning'}, {bounds.to or 'the end'})"
    yield _line("range", span if bounds.bounded else "all of history")
    windows = [window for pipeline in plan.program.pipelines for window in windows_of(pipeline.sink.input)]
    if bounds.bounded and any(window is not None and window.kind is WindowKind.SESSION for window in windows):
        yield _line("sessions", "all rows are read, because rows outside the range affect where sessions begin and end")
    yield from _arrival(plan)
    if request.late == "drop":
        yield _line(
            "late rows", ("dropped, as if a watermark followed each row; files are read in the order of modification")
        )
    if request.boundary is not None:
        passed = "not checked (--allow-incomplete)" if request.allow_incomplete else "checked when it runs"
        yield _line("boundary", f"{plan.request.boundary}; whether the history has passed it is {passed}")
    if plan.chunks and request.chunk is not None:
        yield _line("chunks", f"{len(plan.chunks)} of {shown_duration(request.chunk)}, one after another")
        first = bounds.from_
        for number, (part, _) in enumerate(plan.chunks, start=1):
            if len(plan.chunks) <= _LISTED or number in (1, 2, len(plan.chunks)):
                yield _line("", f"{number:>3}  windows that end after {part.after or first} and at or before {part.to}")
            elif number == 3:
                yield _line("", "  …")
        yield _line("journal", f"{journal_place(plan.request, plan.work)} until all chunks are published")


def _arrival(plan: BackfillPlan) -> Iterator[str]:
    """Describe the order of arrival of each table whose order matters."""
    reads = (read for write in plan.work.writes for step in write.inputs for read in reads_of(step))
    for table, declared in sorted({(read.table, bool(read.arrival)) for read in reads if read.arrival is not None}):
        place = "their position in a file or partition (the run fails if the rows of a key are in several)"
        yield _line("arrival", f"rows of {table} by {'the columns of --order-by' if declared else place}")


def _sink(plan: BackfillPlan, write: Write) -> Iterator[str]:
    yield f"sink {write.rows.name}"
    queries = [pipeline.sink for pipeline in plan.program.pipelines if pipeline.sink.table == write.rows.table]
    for number, sink in enumerate(queries):
        if number:
            yield _line("", "and")
        try:
            output = resolve_operators(sink)
        except TooLarge as error:
            yield _line("compute", str(error))
            continue
        yield from _steps(output)
    yield _line("publish", ", ".join(column.name for column in write.rows.columns))
    yield _line("to", write.target.place)
    yield _line("how", write.target.write_mode)


def _steps(output: Output) -> Iterator[str]:
    yield from _segment(output.segment)
    yield _line("select", format_expressions(output.columns))


def _segment(segment: StatelessSegment) -> Iterator[str]:
    origin = segment.origin
    match origin:
        case TableSource():
            yield _line("read", origin.table)
        case Rows():
            yield _line("rows", f"{len(origin.rows)} literal rows")
        case None:
            pass
        case _:
            yield from _operator(origin)
    if segment.filters:
        yield _line("keep", format_conditions(segment.filters))
    for windowing in segment.windows:
        yield _line("windows", format_window(windowing))
    if segment.window_filters:
        yield _line("keep", format_conditions(segment.window_filters))


def _operator(operator: Operator) -> Iterator[str]:
    for below in operator.segments:
        yield from _segment(below)
    match operator:
        case AggregateOperator():
            if operator.window is not None and operator.window not in operator.segment.windows:
                yield _line("windows", format_window(operator.window))
            yield _line("aggregate", f"{format_expressions(operator.aggregates)} {format_group_by(operator)}")
        case OverOperator():
            keys = f" of each {format_expressions(operator.partition_by)}" if operator.partition_by else ""
            yield _line("over", f"{format_expressions(operator.aggregates)}{keys}, {format_order_by(operator.order)}")
        case RankOperator():
            ranks = f"{operator.first} to {operator.last}" if operator.first < operator.last else str(operator.first)
            keys = format_expressions(operator.partition)
            yield _line("rank", f"keep {ranks} of each {keys}, {format_order_by(operator.order)}")
        case _:
            yield _line("combine", operator.kind)


def _inputs(plan: BackfillPlan) -> Iterator[str]:
    steps = (step for write in plan.work.writes for step in write.inputs)
    sources = {(read.table, read.source) for step in steps for read in reads_of(step)}
    for table, place, found in sorted(_estimates(sources)):
        yield f"  {table}: {place}"
        yield f"    {found}" + (f", read once per chunk ({len(plan.chunks)} times)" if len(plan.chunks) > 1 else "")


def _estimates(sources: Iterable[tuple[str, BackfillSource]]) -> Iterator[tuple[str, str, str]]:
    for table, source in sources:
        try:
            found = estimate(source)
        except OSError as error:
            raise BackfillError(f"table {table}: {source.place} cannot be inspected: {error.strerror}") from None
        yield table, source.place, "size unknown until Spark inspects the source" if found is None else str(found)


def _visible(path: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in path.parts)


def _line(name: str, text: str) -> str:
    return f"  {name:<{_WIDTH}}{text}"
