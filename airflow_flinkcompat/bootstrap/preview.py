"""What would be computed from where, of how many rows, and what of it is not exact: told before anything is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_flinkcompat.backfill.connectors.files.spec import FileSource
from airflow_flinkcompat.backfill.connectors.kafka.spec import KafkaSource
from airflow_flinkcompat.backfill.protocols import BackfillSource, Locations
from airflow_flinkcompat.bootstrap.archived_topic.spec import topic_of
from airflow_flinkcompat.bootstrap.queries import state_query
from airflow_flinkcompat.bootstrap.state_rows import StateQuery
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.exec_graph.layout import CallPart
from airflow_flinkcompat.exec_graph.model import StateSpec
from airflow_flinkcompat.plan.types import APPROXIMATE


def preview(new: Side, specs: Iterable[StateSpec], locations: Locations, otherwise: str) -> Iterator[str]:
    """What a run would read, and what of it is not exact."""
    queries = [(spec, state_query(new, spec, locations)) for spec in specs]
    for read in {read.table: read for _, query in queries for read in query.reads}.values():
        yield f"{read.table} is read from {read.source.place}, {_how_far(read.source, otherwise)}"
    for spec, query in queries:
        doubts = "; ".join(_inexact(query))
        yield f"{spec.name}: {doubts or 'all that is computed is exact'}"


def _how_far(source: BackfillSource, otherwise: str) -> str:
    topic = topic_of(source)
    if isinstance(topic, KafkaSource) and topic.end.offsets:
        # Of a partition without records a reader says how it begins, by a number below 0.
        begins = dict(topic.start.offsets)
        ends = {partition: max(offset, 0) for partition, offset in topic.end.offsets}
        below = ",".join(f"{partition}:{offset}" for partition, offset in sorted(ends.items()))
        records = sum(max(offset - begins.get(partition, 0), 0) for partition, offset in ends.items())
        return f"{records:,} records or fewer, below the offsets {below}"
    if isinstance(source, FileSource) and source.read is not None and source.read.seen:
        files, begun = len(source.read.seen), len({split.path for split in source.read.begun})
        in_part = f", and of {begun} a part has been read" if begun else ""
        return f"{files:,} {'file' if files == 1 else 'files'} that the job has found{in_part}"
    return otherwise


def _inexact(query: StateQuery) -> Iterator[str]:
    if query.time_to_live:
        yield "when values were last written is by when their rows came, which the job may have read later"
    fields = [field for state in query.states for field in state.state.value.fields]
    sums = [field for field in fields if isinstance(field.meaning, CallPart) and field.meaning.part == "sum"]
    if any(field.type.partition(" ")[0] in APPROXIMATE for field in sums):
        yield "sums of FLOAT and DOUBLE are added up in another order, and may differ by a billionth"
    for doubt in query.doubts:
        yield f"the run ends where {doubt.reason}"
    if query.incomparable:
        yield f"what the savepoint holds in its place is not compared with history: {query.incomparable}"
    if not query.states:
        yield "nothing is stored between two watermarks"
