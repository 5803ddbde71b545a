"""History that was aggregated while the old job still ran, up to an earlier savepoint of it.

At the switch only the rows behind that savepoint are read then, and what they come to is merged with what was prepared.
A folder holds for each aggregation its rows as Parquet, under a digest of what computes them, and how far each table
was read for them. What is not found there, as it is computed otherwise by now, is computed of all rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.connectors.files.read_files import normal
from airflow_flinkcompat.backfill.connectors.files.spec import FileSource
from airflow_flinkcompat.backfill.connectors.kafka.spec import KafkaSource, Position
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.execution.frames import Execution
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.backfill.spark.filesystem import FileSystem
from airflow_flinkcompat.backfill.spark.session import configured
from airflow_flinkcompat.backfill.steps import Group, Read, Step, inputs_of, reads_of, with_sources
from airflow_flinkcompat.backfill.uris import normalised
from airflow_flinkcompat.bootstrap.archived_topic.spec import TopicWithArchive
from airflow_flinkcompat.bootstrap.time_boundary.spec import BoundaryArchive
from airflow_flinkcompat.savepoint.source_positions import FilesRead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MANIFEST = "prepared.json"
_VARYING = ("input", "inputs", "source", "window_range")
"""What of a step differs from one savepoint to the next, or is told by itself."""
Reads = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class PreparedGroup:
    """One aggregation of the rows up to a savepoint.

    Attributes:
        reads: By the name of a table how far it was read: ``offsets`` by partition, or the ``files``.
        watermark: How far time had come; rows of which all windows had fired were left out. None: none were.
    """

    reads: Reads
    watermark: int | None


@dataclass(frozen=True)
class PreparedHistory:
    """What was aggregated of a history; nothing by default.

    Attributes:
        folder: Path or URI, for Spark.
        groups: By digest.
    """

    folder: str = ""
    groups: Mapping[str, PreparedGroup] = field(default_factory=dict)

    @classmethod
    def read(cls, session: SparkSession, folder: str) -> PreparedHistory:
        """What a folder holds.

        Args:
            session: Of Spark.
            folder: Path or URI.

        Returns:
            Its aggregations; their rows are not read yet.

        Raises:
            BackfillError: No history was prepared there, or that did not come to its end.
        """
        place = normalised(folder, "the prepared history")
        found = FileSystem(session, place).read(f"{place}/{_MANIFEST}")
        if found is None:
            raise BackfillError(f"{folder} holds no history that was prepared to its end: migrate --prepare writes one")
        told = json.loads(found)
        return cls(place, {digest: PreparedGroup(**each) for digest, each in told.items()})

    def covers(self, step: Step) -> bool:
        """Whether all rows of a step go on from what was prepared.

        Args:
            step: What computes a state.

        Returns:
            False where some are read from the beginning.
        """
        return goes_on(step) and all(digest_of(group) in self.groups for group in _groups_of(step))

    def of(self, step: Step, watermark: int | None) -> PreparedGroup | None:
        """What was prepared for an aggregation.

        Args:
            step: Any step.
            watermark: How far time has come by now.

        Returns:
            None where nothing was, or less than is needed.
        """
        found = self.groups.get(digest_of(step)) if isinstance(step, Group) and step.merge else None
        behind = found is None or (found.watermark is not None and (watermark is None or watermark < found.watermark))
        return None if behind else found


NOTHING = PreparedHistory()


# Spark 4.1 makes a plan that it refuses itself of a union that reads unions of what was prepared and what came since.
_SETTINGS = {"spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAliases"}


class PreparedExecution(Execution):
    """Computes steps, of which some go on from what was prepared.

    Args:
        session: Of Spark.
        prepared: What was.
        watermark: How far time has come by now.
    """

    def __init__(self, session: SparkSession, prepared: PreparedHistory, watermark: int | None) -> None:
        super().__init__(session)
        self._prepared, self._watermark = prepared, watermark

    def sources(self, step: Step) -> Iterator[BackfillSource]:
        """What is read for a step.

        Args:
            step: Any step.

        Yields:
            Each source, with how far it is read and from where on.

        Raises:
            BackfillError: A savepoint has read less than was prepared.
        """
        if isinstance(step, Read):
            yield step.source
        elif (found := self._prepared.of(step, self._watermark)) is not None:
            yield from map(_behind(found.reads), reads_of(step))
        else:
            for inner in inputs_of(step):
                yield from self.sources(inner)

    def planning(self) -> AbstractContextManager[None]:
        """For as long as rows are planned.

        Returns:
            A block, in which Spark plans unions of unions.
        """
        return configured(self.session, _SETTINGS) if self._prepared.groups else nullcontext()

    def _group(self, step: Group) -> DataFrame:
        from pyspark.sql import functions as F

        found = self._prepared.of(step, self._watermark)
        if found is None or step.merge is None:
            return super()._group(step)
        rest = super()._group(replace(step, input=with_sources(step.input, _behind(found.reads))))
        rows = self.session.read.parquet(f"{self._prepared.folder}/{digest_of(step)}").select(rest.columns).union(rest)
        keys = [F.expr(key).alias(f"c{i}") for i, key in enumerate(step.merge.keys)]
        if not step.aggregates:
            return rows.select(*keys).distinct()
        return rows.groupBy(*keys).agg(*(F.expr(sql).alias(f"c{i}") for i, sql in step.merge.aggregates))


def write_prepared(
    session: SparkSession, folder: str, steps: Iterable[tuple[Step, int | None]], say: Callable[[str], None]
) -> None:
    """Aggregate what can go on later, and write it; the folder says last what it holds.

    Args:
        session: Of Spark.
        folder: Path or URI of a folder that does not exist.
        steps: What computes states from the rows up to a savepoint, each with how far time has come there.
        say: Gets a line for what is written, and one for what is not.

    Raises:
        BackfillError: Something is there already.
    """
    place = normalised(folder, "--prepare")
    files = FileSystem(session, place)
    if files.exists(place):
        raise BackfillError(f"{folder} exists already: name a folder that does not")
    written: dict[str, Mapping[str, Any]] = {}
    for step, watermark in steps:
        for group in _groups_of(step):
            digest, reads = digest_of(group), _positions(group)
            if reads is None or digest in written:
                continue
            Execution(session).frame(with_sources(group, _settled)).write.parquet(f"{place}/{digest}")
            written[digest] = {"reads": reads, "watermark": watermark}
            say(f"prepared of {', '.join(sorted(read.source.place for read in reads_of(group)))}")
    files.write(f"{place}/{_MANIFEST}", json.dumps(written).encode())


def delete_prepared(session: SparkSession, folder: str) -> None:
    """Delete what was prepared.

    Args:
        session: Of Spark.
        folder: Path or URI.

    Raises:
        BackfillError: It is no place.
    """
    place = normalised(folder, "--prepare")
    files = FileSystem(session, place)
    # First what says that it is whole: no run goes on from what is half deleted.
    files.delete(f"{place}/{_MANIFEST}")
    files.delete(place)


def goes_on(step: Step) -> bool:
    """Whether all that is read for a step can be prepared.

    Args:
        step: What computes a state.

    Returns:
        False where some rows are read again.
    """
    groups = [group for group in _groups_of(step) if _positions(group) is not None]
    return sum(len(reads_of(group)) for group in groups) == len(reads_of(step))


def digest_of(step: Step) -> str:
    """A name of what a step computes, whatever of it was read.

    Args:
        step: Of a query.

    Returns:
        The name.
    """
    return sha256("\n".join(_told(step)).encode()).hexdigest()[:32]


def _told(step: Step) -> Iterator[str]:
    own = [(each.name, getattr(step, each.name)) for each in fields(step) if each.compare]
    yield f"{type(step).__name__} {[(name, value) for name, value in own if name not in _VARYING]}"
    if isinstance(step, Read):
        topic = _topic(step.source)
        yield f"{type(step.source).__name__} {step.source.place} {topic.start if topic else ''}"
    for inner in inputs_of(step):
        yield "("
        yield from _told(inner)
        yield ")"


def _groups_of(step: Step) -> Iterator[Group]:
    """The widest aggregations of a step whose rows of parts come together."""
    if isinstance(step, Group) and step.merge is not None:
        yield step
    else:
        for inner in inputs_of(step):
            yield from _groups_of(inner)


def _positions(group: Group) -> Reads | None:
    """By table how far it is read; None where that is not told, or not of one that a later savepoint tells too."""
    found: dict[str, Mapping[str, Any]] = {}
    for read in reads_of(group):
        source, topic = read.source, _topic(read.source)
        if topic is not None and topic.end.mode == "read":
            found[read.table] = {"offsets": {str(number): at for number, at in topic.end.offsets if at >= 0}}
        elif isinstance(source, FileSource) and source.read is not None and source.read.seen is not None:
            found[read.table] = {"files": sorted(map(normal, _done(source.read)))}
        else:
            return None
    return found


def _settled(read: Read) -> BackfillSource:
    """What is read of a source of which positions are told: of folders the files alone that are read to their end."""
    source = read.source
    if not isinstance(source, FileSource) or source.read is None:
        return source
    return replace(source, read=FilesRead(_done(source.read), (), ()))


def _done(read: FilesRead) -> frozenset[str]:
    open_yet = {normal(split.path) for split in (*read.waiting, *read.begun)}
    return frozenset(path for path in read.seen or () if normal(path) not in open_yet)


def _topic(source: BackfillSource) -> KafkaSource | None:
    found = source.topic if isinstance(source, TopicWithArchive) else source
    return found if isinstance(found, KafkaSource) else None


def _behind(reads: Reads) -> Callable[[Read], BackfillSource]:
    """The rows behind what was prepared. Raises BackfillError for a savepoint that has read less."""

    def source_of(read: Read) -> BackfillSource:
        source, told = read.source, reads[read.table]
        if isinstance(source, BoundaryArchive):  # whatever their time: those below it were told apart when prepared
            return _topic_behind(source.topic, told["offsets"])
        if isinstance(source, TopicWithArchive):
            return replace(source, topic=_topic_behind(source.topic, told["offsets"]))
        if isinstance(source, KafkaSource):
            return _topic_behind(source, told["offsets"])
        assert isinstance(source, FileSource)
        return _files_behind(source, told["files"])

    return source_of


def _topic_behind(topic: KafkaSource, told: Mapping[str, int]) -> KafkaSource:
    read = dict(topic.end.offsets)
    for partition, offset in told.items():
        if read.get(int(partition), -1) < offset:
            raise BackfillError(
                f"table {topic.table}: history was prepared below offset {offset} of partition {partition}, and the "
                "savepoint has not read so far: leave --prepared out, or name a later savepoint"
            )
    return replace(topic, start=Position("behind", offsets=tuple((int(each), told[each]) for each in sorted(told))))


def _files_behind(source: FileSource, told: Sequence[str]) -> FileSource:
    read = source.read
    assert read is not None
    if missing := sorted(set(told) - set(map(normal, _done(read)))):
        raise BackfillError(
            f"table {source.table}: history was prepared with {missing[0]}, which the savepoint has not read to its "
            "end: leave --prepared out, or name a later savepoint"
        )
    seen = frozenset(path for path in read.seen or () if normal(path) not in told)
    return replace(source, read=replace(read, seen=seen))
