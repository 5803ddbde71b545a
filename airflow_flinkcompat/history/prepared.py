"""History that is aggregated while the old job still runs, up to an earlier savepoint.

When the job is replaced, only rows after that savepoint are read. The result of the later rows is merged with the
prepared result. The prepared folder contains the rows of each aggregation as Parquet, named by a digest of the
computation. The folder also contains Python's results for sampled keys. For aggregations and sampled keys, the folder
stores the position up to which each table was read. If the computation of a part has changed, the folder lacks that
part, and the part is computed from all rows. A part is also computed from all rows if the job fell back to a checkpoint
and, at the savepoint, had not read all rows of the part.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Set
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.backfill.connectors.files_spark import normal
from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource, Position
from airflow_flinkcompat.backfill.execution.frames import Execution
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.backfill.request import normalised
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark import FileSystem, configured
from airflow_flinkcompat.backfill.steps import Group, Read, Step, inputs_of, reads_of, with_sources
from airflow_flinkcompat.history.archived_topic import TopicWithArchive, topic_of
from airflow_flinkcompat.savepoint.source_positions import FilesRead

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_MANIFEST = "prepared.json"
_VARYING = ("input", "inputs", "window_range")
"""Fields of a step that differ between savepoints or are compared separately."""
_HOW_FAR = ("end", "read", "span")
"""Fields of a source that limit which rows are read."""
Reads = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class PreparedPart:
    """A result over the rows up to a savepoint: one aggregation, or Python's results for some keys.

    ``reads``: End positions by table name: ``offsets`` by partition, or the list ``files``. ``watermark``: The
    watermark. Rows whose windows had all fired were omitted. If ``watermark`` is None, no row was omitted.
    """

    reads: Reads
    watermark: int | None


@dataclass(frozen=True)
class PreparedHistory:
    """Prepared aggregations of a history, and Python's results for some keys; empty by default."""

    folder: str = ""
    parts: Mapping[str, PreparedPart] = field(default_factory=dict)

    @classmethod
    def read(cls, session: SparkSession, folder: str) -> PreparedHistory:
        place = normalised(folder, "the prepared history")
        found = FileSystem(session, place).read(f"{place}/{_MANIFEST}")
        if found is None:
            raise BackfillError(
                f"{folder} contains no complete prepared history: write one with flinkcompat migrate prepare"
            )
        try:
            return cls(place, {digest: PreparedPart(**each) for digest, each in json.loads(found).items()})
        except (AttributeError, TypeError, ValueError):
            raise BackfillError(f"{folder}/{_MANIFEST} was not written by migrate prepare: prepare again") from None

    def covers(self, step: Step, watermark: int | None) -> bool:
        """True if prepared results exist for all rows that a step reads."""
        return can_resume(step) and all(self.of(group, watermark) is not None for group in _groups_of(step))

    def of(self, step: Step, watermark: int | None) -> PreparedPart | None:
        return self.part(digest_of(step), step, watermark) if isinstance(step, Group) and step.merge else None

    def part(self, digest: str, step: Step, watermark: int | None) -> PreparedPart | None:
        found = self.parts.get(digest)
        if found is None or not all(_has_read(each, found.reads) for each in reads_of(step)):
            return None
        late = found.watermark is not None and (watermark is None or watermark < found.watermark)
        return None if late else found


NOTHING = PreparedHistory()


# For a union over unions of prepared and later rows, Spark 4.1 builds a plan that it then rejects.
_SETTINGS = {"spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.RemoveRedundantAliases"}


class PreparedExecution(Execution):
    """Execution of steps that uses prepared results where they exist."""

    def __init__(self, session: SparkSession, prepared: PreparedHistory, watermark: int | None) -> None:
        super().__init__(session)
        self._prepared, self._watermark = prepared, watermark

    def sources(self, step: Step) -> Iterator[BackfillSource]:
        if isinstance(step, Read):
            yield step.source
        elif (found := self._prepared.of(step, self._watermark)) is not None:
            yield from map(after_prepared(found.reads), reads_of(step))
        else:
            for inner in inputs_of(step):
                yield from self.sources(inner)

    def planning(self) -> AbstractContextManager[None]:
        return configured(self.session, _SETTINGS) if self._prepared.parts else nullcontext()

    def _group(self, step: Group) -> DataFrame:
        from pyspark.sql import functions as F

        found = self._prepared.of(step, self._watermark)
        if found is None or step.merge is None:
            return super()._group(step)
        rest = super()._group(replace(step, input=with_sources(step.input, after_prepared(found.reads))))
        before = self.session.read.parquet(f"{self._prepared.folder}/{digest_of(step)}").select(rest.columns)
        if before.dtypes != rest.dtypes:
            raise BackfillError(
                f"the columns of the prepared rows in {self._prepared.folder} have different types now: prepare again"
            )
        rows = before.union(rest)
        keys = [F.expr(key).alias(f"c{i}") for i, key in enumerate(step.merge.keys)]
        if not step.aggregates:
            return rows.select(*keys).distinct()
        return rows.groupBy(*keys).agg(*(F.expr(sql).alias(f"c{i}") for i, sql in step.merge.aggregates))


class PreparedFolder:
    """A new folder of prepared results. The manifest of the folder is written last.

    Raises BackfillError if the path or URI already exists.
    """

    def __init__(self, session: SparkSession, folder: str) -> None:
        self.session = session
        self._place = normalised(folder, "migrate prepare")
        self._files = FileSystem(session, self._place)
        if self._files.exists(self._place):
            raise BackfillError(f"{folder} already exists: pass a folder that does not exist")
        self._parts: dict[str, PreparedPart] = {}

    @property
    def written(self) -> PreparedHistory:
        """Parts that are already written."""
        return PreparedHistory(self._place, self._parts)

    def write_groups(self, step: Step, watermark: int | None, say: Callable[[str], None]) -> None:
        """Aggregate the parts of a step from which a later run can continue."""
        for group in _groups_of(step):
            digest, reads = digest_of(group), positions(group)
            if reads is None or digest in self._parts:
                continue
            Execution(self.session).frame(with_sources(group, settled)).write.parquet(f"{self._place}/{digest}")
            self._parts[digest] = PreparedPart(reads, watermark)
            say(f"prepared rows of {', '.join(sorted(read.source.place for read in reads_of(group)))}")

    def write_part(self, digest: str, part: PreparedPart, content: bytes) -> None:
        """Write Python's results for sampled keys."""
        self._files.write(f"{self._place}/{digest}", content)
        self._parts[digest] = part

    def finish(self) -> None:
        ends = {digest: asdict(part) for digest, part in self._parts.items()}
        self._files.write(f"{self._place}/{_MANIFEST}", json.dumps(ends).encode())


def delete_prepared(session: SparkSession, folder: str) -> None:
    place = normalised(folder, "migrate prepare")
    files = FileSystem(session, place)
    # Delete the manifest first, so that no run uses a half-deleted folder.
    files.delete(f"{place}/{_MANIFEST}")
    files.delete(place)


def can_resume(step: Step) -> bool:
    """True if all tables that a step reads can be prepared."""
    groups = [group for group in _groups_of(step) if positions(group) is not None]
    return sum(len(reads_of(group)) for group in groups) == len(reads_of(step))


def digest_of(step: Step) -> str:
    """Digest of a step's computation, independent of the rows that were read."""
    return sha256("\n".join(_step_texts(step)).encode()).hexdigest()[:32]


def _step_texts(step: Step) -> Iterator[str]:
    own = [each.name for each in fields(step) if each.compare and each.name not in _VARYING]
    ends = [(name, by_value(getattr(step, name), _HOW_FAR if name == "source" else ())) for name in own]
    yield f"{type(step).__name__} {ends}"
    for inner in inputs_of(step):
        yield "("
        yield from _step_texts(inner)
        yield ")"


def by_value(part: Any, without: Collection[str] = ()) -> Any:
    """Convert a value to a form that depends only on its content and is equal in every process."""
    if is_dataclass(part):
        own = [each.name for each in fields(part) if each.compare and each.name not in without]
        return [type(part).__name__, *((name, by_value(getattr(part, name), without)) for name in own)]
    if isinstance(part, Mapping):
        return sorted((repr(key), repr(by_value(value, without))) for key, value in part.items())
    if isinstance(part, Set):
        return sorted(repr(by_value(each, without)) for each in part)
    if isinstance(part, tuple | list):
        return [by_value(each, without) for each in part]
    return repr(part)


def _groups_of(step: Step) -> Iterator[Group]:
    """Topmost mergeable aggregations of a step."""
    if isinstance(step, Group) and step.merge is not None:
        yield step
    else:
        for inner in inputs_of(step):
            yield from _groups_of(inner)


def positions(step: Step) -> Reads | None:
    """Positions up to which the tables of a step are read; None if a source has no positions."""
    found: dict[str, Mapping[str, Any]] = {}
    for read in reads_of(step):
        source, topic = read.source, topic_of(read.source)
        if topic is not None and topic.end.mode == "read":
            found[read.table] = {"offsets": {str(number): at for number, at in topic.end.offsets if at >= 0}}
        elif isinstance(source, FileSource) and source.read is not None:
            found[read.table] = {"files": sorted(map(normal, _done(source.read)))}
        else:
            return None
    return found


def settled(read: Read) -> BackfillSource:
    source = read.source
    if not isinstance(source, FileSource) or source.read is None:
        return source
    return replace(source, read=FilesRead(_done(source.read), (), ()))


def _done(read: FilesRead) -> frozenset[str]:
    open_yet = {normal(split.path) for split in (*read.waiting, *read.in_progress)}
    return frozenset(path for path in read.seen if normal(path) not in open_yet)


def _has_read(read: Read, reads: Reads) -> bool:
    """True if, at the savepoint, the job had read all rows that were prepared from a table."""
    ends, topic = reads.get(read.table, {}), topic_of(read.source)
    if topic is not None and "offsets" in ends:
        by_now = dict(topic.end.offsets)
        return all(by_now.get(int(partition), -1) >= offset for partition, offset in ends["offsets"].items())
    if isinstance(read.source, FileSource) and read.source.read is not None and "files" in ends:
        return set(ends["files"]) <= set(map(normal, _done(read.source.read)))
    return False


def after_prepared(reads: Reads) -> Callable[[Read], BackfillSource]:
    """Return a function that restricts a table read to the rows after the prepared rows."""

    def source_of(read: Read) -> BackfillSource:
        source, ends = read.source, reads[read.table]
        if isinstance(source, TopicWithArchive):
            return replace(source, topic=_topic_after(source.topic, ends["offsets"]))
        if isinstance(source, KafkaSource):
            return _topic_after(source, ends["offsets"])
        assert isinstance(source, FileSource)
        assert source.read is not None
        seen = frozenset(path for path in source.read.seen if normal(path) not in ends["files"])
        return replace(source, read=replace(source.read, seen=seen))

    return source_of


def _topic_after(topic: KafkaSource, ends: Mapping[str, int]) -> KafkaSource:
    return replace(topic, start=Position("after", offsets=tuple((int(each), ends[each]) for each in sorted(ends))))
