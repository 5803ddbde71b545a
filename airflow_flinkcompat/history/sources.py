"""Sources of past rows: where they are, where each ends, and where the job resumes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource, Position
from airflow_flinkcompat.backfill.connectors.registry import TableLocations, reader
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.backfill.result import BackfillError, Untranslatable
from airflow_flinkcompat.exec_graph.exec_node import last_name
from airflow_flinkcompat.history.archived_topic import OffsetArchive, TopicWithArchive, topic_of
from airflow_flinkcompat.history.parsed_topic import ParsedTopic
from airflow_flinkcompat.history.time_boundary import BoundaryArchive, is_event_time
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.savepoint.metadata import OperatorState
from airflow_flinkcompat.savepoint.source_positions import (
    FilesRead,
    PartitionRead,
    file_positions,
    kafka_positions,
    with_files,
    with_partitions,
)
from airflow_flinkcompat.savepoint.store import read_metadata

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class HistoryLocations(TableLocations):
    """Locations of past rows by table name. ``URI#…`` is an archive of a topic.

    The text after ``#`` is ``PARTITION,OFFSET``, the archive's columns of partition and offset, or an event time. Rows
    from this event time on are read from the topic.
    """

    def source(self, table: Table) -> BackfillSource:
        name = table.path[2]
        uri, mark, joined = self.tables.get(name, "").partition("#")
        if not mark:
            found = super().source(table)
            return ParsedTopic.of(table) if isinstance(found, KafkaSource) else found
        if table.option("connector") != "kafka":
            raise Untranslatable(
                (
                    f"table {table.name} is not read from a Kafka topic, so {uri} cannot be an archive of it: "
                    f"remove #{joined}"
                ),
                table.span,
            )
        of = BoundaryArchive.of if is_event_time(joined) else OffsetArchive.of
        return of(table, ParsedTopic.of(table), TableLocations({name: uri}).source, joined)


@dataclass(frozen=True)
class AssumedHistory(HistoryLocations):
    """Locations of past rows, used before the job's positions are known."""

    def source(self, table: Table) -> BackfillSource:
        found = super().source(table)
        if not isinstance(found, FileSource):
            return found
        if table.option("connector") == "kafka":
            raise Untranslatable(no_positions(table, found), table.span)
        return replace(found, read=FilesRead(frozenset(), (), ()))


def require_monitored_folder(table: Table) -> None:
    """Check that a file source monitors its folder, so that savepoints store the files that it has found."""
    if table.option("connector") == "filesystem" and table.option("source.monitor-interval") is None:
        raise Untranslatable(
            f"table {table.name} is bounded: set source.monitor-interval, so that savepoints store which files "
            "the source has found",
            table.span,
        )


def no_positions(table: Table, found: BackfillSource) -> str:
    """Explain why the source's positions in a savepoint do not identify rows of a different location."""
    name = table.path[2]
    columns = f". Specify the partition and offset columns of that location: {name}=URI#PARTITION,OFFSET"
    time = f", or the event time before which its rows are read: {name}=URI#2026-01-31T00:00:00Z"
    remedy = columns + time if table.option("connector") == "kafka" else ""
    return f"the positions of table {table.name} do not show which rows of {found.place} the job had read{remedy}"


_OFFSETS = re.compile(r"\d+:\d+(,\d+:\d+)*")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Until:
    """End position of one table's rows.

    If both fields are empty, every row is read that exists at the time of reading. ``offsets``: Pairs of a topic
    partition and the offset of the first record that is not read. ``moment``: In each partition, reading ends before
    the first record with this timestamp or a later timestamp. Files of a folder are read only if they were last changed
    before this time.
    """

    offsets: tuple[tuple[int, int], ...] = ()
    moment: datetime | None = None

    @classmethod
    def of(cls, table: str, text: str) -> Until:
        if _OFFSETS.fullmatch(text):
            pairs = [tuple(map(int, pair.split(":"))) for pair in text.split(",")]
            if twice := sorted({pair[0] for pair in pairs if sum(pair[0] == other[0] for other in pairs) > 1}):
                raise InputError(f"--until {table}={text}: partition {twice[0]} is specified twice")
            return cls(offsets=tuple((partition, offset) for partition, offset in pairs))
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise InputError(
                f"--until {table}={text} is neither offsets nor a time: write partition offsets such as "
                "0:1200,1:800, or a time such as 2026-01-31T00:00:00Z"
            ) from None
        if moment.tzinfo is None:
            raise InputError(f"--until {table}={text} has no time zone: write a time such as 2026-01-31T00:00:00Z")
        if moment.microsecond % 1000:
            raise InputError(
                f"--until {table}={text} is more precise than the timestamps of records and files: write at most "
                "milliseconds"
            )
        return cls(moment=moment)

    @property
    def millis(self) -> int | None:
        """The time in milliseconds since 1970."""
        return None if self.moment is None else (self.moment - EPOCH) // _MILLISECOND


ALL = Until()
"""End position that includes all existing rows."""


class SourceEnd(Protocol):
    """End position of one table's rows, determined when the run starts."""

    @property
    def source(self) -> BackfillSource:
        """Source that reads the rows up to this end position."""

    def advance_source(self, operator: OperatorState, path: str) -> OperatorState:
        """State of a source operator that resumes after the rows up to this end position."""

    def __str__(self) -> str:
        """Description of the end position."""


Resumable = KafkaSource | TopicWithArchive | FileSource
"""Sources from which a job can resume after past rows."""


@dataclass(frozen=True)
class TopicEnd:
    """End offsets of a topic's partitions."""

    source: KafkaSource | TopicWithArchive
    partitions: tuple[PartitionRead, ...]

    def advance_source(self, operator: OperatorState, path: str) -> OperatorState:
        return with_partitions(operator, path, self.partitions)

    def __str__(self) -> str:
        """The offsets in the form that ``--until`` accepts."""
        offsets = ",".join(f"{each.partition}:{each.offset}" for each in self.partitions)
        return f"{self.source.place} below the offsets {offsets}"


@dataclass(frozen=True)
class FolderEnd:
    """End position of a folder: the files to read."""

    source: FileSource
    files: frozenset[str]

    def advance_source(self, operator: OperatorState, path: str) -> OperatorState:
        return with_files(operator, path, self.files)

    def __str__(self) -> str:
        """The folder and its number of files."""
        return f"{self.source.place}, {len(self.files)} files"


@dataclass(frozen=True)
class SourceEnds(TableLocations):
    """Tables whose rows are read up to known end positions, by table name."""

    ends: tuple[tuple[str, SourceEnd], ...] = ()

    def source(self, table: Table) -> BackfillSource:
        found = dict(self.ends).get(table.path[2])
        if found is None:
            raise Untranslatable(
                f"the history of table {table.name} is not specified: pass --history {table.name}", table.span
            )
        return found.source


def resumable(table: Table, locations: TableLocations) -> Resumable:
    """Return a source that can resume after rows that the job itself has not read."""
    found, connector = locations.source(table), table.option("connector")
    topic = topic_of(found)
    if topic is not None and connector == "kafka":
        if len(topic.topics.names) > 1:
            raise Untranslatable(
                (f"table {table.name} reads several topics, and positions cannot be written for several topics yet"),
                table.span,
            )
        if table.option("scan.bounded.mode", "unbounded") != "unbounded":
            raise Untranslatable(
                (f"table {table.name} is bounded (scan.bounded.mode), so a job cannot resume after its rows"),
                table.span,
            )
        return found if isinstance(found, TopicWithArchive) else topic
    if isinstance(found, FileSource) and connector == "filesystem":
        declared = TableLocations().source(table)
        if found.place != declared.place:
            raise Untranslatable(
                f"table {table.name} resumes after files of {declared.place}, but it is unknown which of these "
                f"files contain the rows of {found.place}",
                table.span,
            )
        if not found.place.startswith("file:"):
            raise Untranslatable(
                f"table {table.name}: it was not measured under which names Flink lists the files of {found.place}",
                table.span,
            )
        require_monitored_folder(table)
        return found
    raise Untranslatable(
        (
            f"table {table.name}: positions after the rows of {found.place} cannot be written yet for the "
            f"connector {connector}"
        ),
        table.span,
    )


def end_of(session: SparkSession, source: Resumable, until: Until) -> SourceEnd:
    return _folder_end(session, source, until) if isinstance(source, FileSource) else _topic_end(session, source, until)


def _topic_end(session: SparkSession, of: KafkaSource | TopicWithArchive, until: Until) -> TopicEnd:
    from airflow_flinkcompat.backfill.connectors.kafka_spark import offsets

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
        raise InputError(f"{asked}: {source.place} has the partitions {known}. Write an offset for each partition")
    for number in sorted(end):
        if not first[number] <= wanted[number] <= end[number]:
            raise InputError(
                f"{asked}: partition {number} of {source.place} contains the offsets from {first[number]} to "
                f"{end[number]}, not {wanted[number]}"
            )
        if source is of and source.start.mode != "specific" and start[number] == first[number] > 0:
            raise NotMigratable(
                f"{source.place}: partition {number} now begins at offset {first[number]}, because earlier "
                "records were deleted. To start at this offset, set scan.startup.mode to 'specific-offsets'"
            )
    read = {number: max(wanted[number], start[number]) for number in sorted(end)}
    (topic,) = source.topics.names
    ended = replace(source, end=Position("specific", offsets=tuple(read.items())))
    return TopicEnd(
        replace(of, topic=ended) if isinstance(of, TopicWithArchive) else ended,
        tuple(PartitionRead(topic, number, offset) for number, offset in read.items()),
    )


def _folder_end(session: SparkSession, source: FileSource, until: Until) -> FolderEnd:
    from airflow_flinkcompat.backfill.connectors.files_spark import FileReader, normal

    if until.offsets:
        raise InputError(
            f"--until {source.table}: the rows are in files, which have no offsets. Write a time, or omit --until"
        )
    reader = FileReader(session, source)
    reader.check()
    files = frozenset(
        normal(path) for path, changed in reader.files() if until.millis is None or changed < until.millis
    )
    return FolderEnd(replace(source, read=FilesRead(files, (), ())), files)


@dataclass(frozen=True)
class RowsRead(HistoryLocations):
    """Locations of tables, restricted to the rows that a job had read by its savepoint.

    Attributes:
        readers: Source operator in the savepoint, by table name.
        new_tables: Names of tables that the job did not read.
        ends: End positions of the new tables, as soon as they are known.
    """

    savepoint: str = ""
    readers: Mapping[str, OperatorState] = field(default_factory=dict)
    new_tables: frozenset[str] = frozenset()
    ends: Mapping[str, SourceEnd] = field(default_factory=dict)

    def source(self, table: Table) -> BackfillSource:
        found, name = super().source(table), table.path[2]
        if name in self.new_tables:
            return self.ends[name].source if name in self.ends else found
        operator = self.readers.get(name)
        if operator is None:
            raise Untranslatable(f"the savepoint has no source positions of table {table.name}", table.span)
        connector = table.option("connector")
        if isinstance(found, TopicWithArchive):
            return replace(found, topic=_of_topic(found.topic, operator, self.savepoint))
        if isinstance(found, KafkaSource) and connector == "kafka":
            return _of_topic(found, operator, self.savepoint)
        if isinstance(found, FileSource) and connector == "filesystem":
            require_monitored_folder(table)
            read = file_positions(operator, self.savepoint)
            if not read.seen and (read.waiting or read.in_progress):
                raise Untranslatable(
                    f"table {table.name}: the savepoint is from a bounded source, which does not store the files "
                    "that it has found. Set source.monitor-interval and take a savepoint again",
                    table.span,
                )
            return replace(found, read=read)
        raise Untranslatable(no_positions(table, found), table.span)


def read_positions(savepoint: str, sources: Mapping[str, str], tables: Mapping[str, str]) -> RowsRead:
    """Restrict tables to the rows that a job had read by its savepoint."""
    held: Mapping[str, OperatorState] = {each.id: each for each in read_metadata(savepoint).operators}
    readers = {last_name(name): held[number] for name, number in sources.items() if number in held}
    return RowsRead(tables=dict(tables), savepoint=savepoint, readers=readers)


def _of_topic(source: KafkaSource, operator: OperatorState, savepoint: str) -> KafkaSource:
    if len(source.topics.names) > 1:
        raise Untranslatable(
            f"table {source.table} reads several topics, and positions of several topics cannot be read yet"
        )
    offsets = tuple((each.partition, each.offset) for each in kafka_positions(operator, savepoint))
    return replace(source, end=Position("read", offsets=offsets))


RESUMES_AFTER_ROWS = "it resumes after the rows from which state is computed"


def check_source(session: SparkSession, source: BackfillSource, say: Callable[[str], None]) -> None:
    """Check that a source can be read completely."""
    from airflow_flinkcompat.backfill.connectors.kafka_spark import is_compacted
    from airflow_flinkcompat.history.archived_topic_spark import OffsetArchiveReader

    found = reader(session, source)
    found.check()
    topic = topic_of(source)
    if topic is None or (isinstance(found, OffsetArchiveReader) and not found.reads_topic()):
        return
    compacted = is_compacted(session, topic.topics)
    if compacted:
        raise BackfillError(
            f"table {topic.table}: {topic.place} is compacted (cleanup.policy), so some records were removed. "
            "Specify an archive that contains all records the job has read, with their offsets"
        )
    if compacted is None:
        say(
            f"the configuration of {topic.place} cannot be read with this user's permissions. If the topic is "
            "compacted (cleanup.policy), rows are missing"
        )
