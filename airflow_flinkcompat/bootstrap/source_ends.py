"""How far each source of a job that has never run is read, and the positions at which it goes on behind that."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from airflow_flinkcompat.backfill.connectors.files.spec import FileSource
from airflow_flinkcompat.backfill.connectors.kafka.spec import KafkaSource, Position
from airflow_flinkcompat.backfill.connectors.locations import TableLocations
from airflow_flinkcompat.backfill.errors import Untranslatable
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.bootstrap.archived_topic.spec import TopicWithArchive, topic_of
from airflow_flinkcompat.bootstrap.archives import require_looks
from airflow_flinkcompat.bootstrap.until import Until
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.savepoint.metadata import OperatorState
from airflow_flinkcompat.savepoint.source_positions import FilesRead, PartitionRead, with_files, with_partitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class SourceEnd(Protocol):
    """How far one table is read."""

    @property
    def source(self) -> BackfillSource:
        """The rows that are read."""

    def behind(self, operator: OperatorState, path: str) -> OperatorState:
        """A source of the job that goes on behind these rows."""

    def __str__(self) -> str:
        """What is read, in words."""


Resumable = KafkaSource | TopicWithArchive | FileSource
"""What a source goes on behind."""


@dataclass(frozen=True)
class TopicEnd:
    """Offsets of the partitions of a topic."""

    source: KafkaSource | TopicWithArchive
    partitions: tuple[PartitionRead, ...]

    def behind(self, operator: OperatorState, path: str) -> OperatorState:
        return with_partitions(operator, path, self.partitions)

    def __str__(self) -> str:
        """The offsets as ``--until`` takes them."""
        offsets = ",".join(f"{each.partition}:{each.offset}" for each in self.partitions)
        return f"{self.source.place} below the offsets {offsets}"


@dataclass(frozen=True)
class FolderEnd:
    """The files of a folder."""

    source: FileSource
    files: frozenset[str]

    def behind(self, operator: OperatorState, path: str) -> OperatorState:
        return with_files(operator, path, self.files)

    def __str__(self) -> str:
        """How many files there are."""
        return f"{self.source.place}, files there: {len(self.files)}"


@dataclass(frozen=True)
class SourceEnds(TableLocations):
    """Places of tables that are read to their ends.

    Attributes:
        ends: By the name of a table how far it is read.
    """

    ends: tuple[tuple[str, SourceEnd], ...] = ()

    def source(self, table: Table) -> BackfillSource:
        """Where a table is read from, and how far."""
        found = dict(self.ends).get(table.path[2])
        if found is None:
            raise Untranslatable(f"the history of table {table.name} is not named", table.span)
        return found.source


def resumable(table: Table, locations: TableLocations) -> Resumable:
    """A table whose source can be told to go on behind rows that it has not read."""
    found, connector = locations.source(table), table.option("connector")
    topic = topic_of(found)
    if topic is not None and connector == "kafka":
        if len(topic.topics.names) > 1:
            raise Untranslatable(f"table {table.name}: positions in several topics are not written yet", table.span)
        if table.option("scan.bounded.mode", "unbounded") != "unbounded":
            raise Untranslatable(f"table {table.name} is read to an end (scan.bounded.mode)", table.span)
        return found if isinstance(found, TopicWithArchive) else topic
    if isinstance(found, FileSource) and connector == "filesystem":
        declared = TableLocations().source(table)
        if found.place != declared.place:
            raise Untranslatable(
                f"table {table.name}: its source goes on behind files of {declared.place}, and which of them hold the "
                f"rows of {found.place} is not known",
                table.span,
            )
        if not found.place.startswith("file:"):
            raise Untranslatable(
                f"table {table.name}: by which names Flink lists the files of {found.place} was not measured",
                table.span,
            )
        require_looks(table)
        return found
    raise Untranslatable(
        f"table {table.name}: where a source with connector {connector} goes on after the rows of {found.place} is "
        "not written yet",
        table.span,
    )


def end_of(session: SparkSession, source: Resumable, until: Until) -> SourceEnd:
    """How far a source is read."""
    return _folder_end(session, source, until) if isinstance(source, FileSource) else _topic_end(session, source, until)


def _topic_end(session: SparkSession, of: KafkaSource | TopicWithArchive, until: Until) -> TopicEnd:
    from airflow_flinkcompat.backfill.connectors.kafka.read import offsets

    source = of.topic if isinstance(of, TopicWithArchive) else of

    def at(position: Position) -> dict[int, int]:
        return {number: offset for (_, number), offset in offsets(session, source.topics, position).items()}

    first, start, end = map(at, (Position("earliest"), source.start, Position("latest")))
    wanted = dict(until.offsets) or end
    if until.millis is not None:
        wanted = at(Position("timestamp", millis=until.millis))
    asked = f"--until {source.table}"
    if wanted.keys() != end.keys():
        known = ", ".join(map(str, sorted(end)))
        raise InputError(f"{asked}: {source.place} has the partitions {known}: write an offset of each of them")
    for number in sorted(end):
        if not first[number] <= wanted[number] <= end[number]:
            raise InputError(
                f"{asked}: partition {number} of {source.place} holds the offsets from {first[number]} to "
                f"{end[number]}, and {wanted[number]} is none of them"
            )
        if source is of and source.start.mode != "specific" and start[number] == first[number] > 0:
            raise NotMigratable(
                f"{source.place}: partition {number} begins at offset {first[number]} by now, and what stood before it "
                "is gone. Where the job is to begin there, say so: scan.startup.mode 'specific-offsets'"
            )
    read = {number: max(wanted[number], start[number]) for number in sorted(end)}
    (topic,) = source.topics.names
    ended = replace(source, end=Position("specific", offsets=tuple(read.items())))
    return TopicEnd(
        replace(of, topic=ended) if isinstance(of, TopicWithArchive) else ended,
        tuple(PartitionRead(topic, number, offset) for number, offset in read.items()),
    )


def _folder_end(session: SparkSession, source: FileSource, until: Until) -> FolderEnd:
    from airflow_flinkcompat.backfill.connectors.files.read import FileReader
    from airflow_flinkcompat.backfill.connectors.files.read_files import normal

    if until.offsets:
        raise InputError(
            f"--until {source.table}: its rows lie in files, which have no offsets: write a moment, or none"
        )
    reader = FileReader(session, source)
    reader.check()
    files = frozenset(
        normal(path) for path, changed in reader.files() if until.millis is None or changed < until.millis
    )
    return FolderEnd(replace(source, read=FilesRead(files, (), ())), files)
