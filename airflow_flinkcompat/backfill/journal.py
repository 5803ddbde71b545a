"""Journal of a backfill in chunks: files with the rows and counts of each finished chunk.

A chunk's rows are first written to a separate folder. After all rows are written, an entry with the name of this folder
is written. The rows of an existing entry are therefore always complete. The journal's name depends on all values in a
request that affect the rows. A different request therefore never uses this journal. If sources report versions and a
version has changed, all finished chunks are discarded. The journal is deleted after all rows are published.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat import __version__
from airflow_flinkcompat.backfill.connectors.registry import reader
from airflow_flinkcompat.backfill.protocols import Versioned
from airflow_flinkcompat.backfill.request import BackfillRequest, normalised
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark import FileSystem
from airflow_flinkcompat.backfill.steps import Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOLDER = re.compile(r"(file|hdfs|viewfs|s3|s3a|s3n|gs|abfs|abfss|wasb|wasbs|oss|o3fs|ofs)://?/?[^/]")
# Fields of a request that affect how rows are computed, but do not affect the rows.
_NEUTRAL = ("source", "master", "journal")
_ROUNDS = 200_000


def journal_place(request: BackfillRequest, work: Work) -> str:
    """Folder of the journal: in the requested folder, otherwise next to the first sink that is a folder."""
    decisive = {key: value for key, value in request.to_dict().items() if key not in _NEUTRAL}
    key = hashlib.sha256(json.dumps([__version__, decisive], sort_keys=True).encode()).hexdigest()[:16]
    if request.journal is not None:
        return f"{normalised(request.journal, '--journal')}/backfill-{key}"
    for write in work.writes:
        folder, _, name = write.target.place.rpartition("/")
        if _FOLDER.match(write.target.place) and name:
            return f"{folder}/.{name}.chunks-{key}"
    raise BackfillError(
        "the rows of finished chunks must be stored until all chunks are done, but no sink is a folder next to "
        "which they could be stored. Specify a location with --journal URI, in which Spark's executors can write"
    )


def history_of(session: SparkSession, work: Work) -> dict[str, str]:
    """Version of each source that reports one, by table and location."""
    readers = ((source, reader(session, source)) for source in work.sources)
    return {
        f"{source.table} {source.place}": known.version() for source, known in readers if isinstance(known, Versioned)
    }


def filled_in(request: BackfillRequest, environment: Mapping[str, str]) -> dict[str, str]:
    text = "\n".join(request.texts)
    values = {each.variable: environment.get(each.variable) for each in request.placeholders}
    if not values:
        return {}
    known = json.dumps(values, sort_keys=True).encode()
    return {"the values of placeholders": hashlib.pbkdf2_hmac("sha256", known, text.encode(), _ROUNDS).hex()}


@dataclass(frozen=True)
class FinishedChunk:
    """A finished chunk: the folder with its rows, and its counts as JSON values."""

    rows: str
    counts: Mapping[str, Any]


class ChunkJournal:
    """Finished chunks of one request, by number."""

    def __init__(self, session: SparkSession, place: str) -> None:
        self.session = session
        self.place = place
        self._files = FileSystem(session, place)

    def begin(self, history: Mapping[str, str]) -> tuple[str, ...]:
        """Discard finished chunks if the history has changed. Return the names of changed sources."""
        before = self._read(self._history)
        if before == history:
            return ()
        self.discard()
        self._note(self._history, history)
        names = sorted({*(before or {}), *history})
        return () if before is None else tuple(name for name in names if before.get(name) != history.get(name))

    def finished(self, number: int) -> FinishedChunk | None:
        data = self._read(self._entry(number))
        return None if data is None else FinishedChunk(data["rows"], data["counts"])

    def folder(self, number: int) -> str:
        """Name of a new folder for the rows of a chunk. Leftovers of earlier attempts are ignored."""
        return f"{self.place}/rows-{number:06d}-{uuid.uuid4().hex[:8]}"

    def finish(self, number: int, chunk: FinishedChunk) -> None:
        """Record that all rows of a chunk are written."""
        self._note(self._entry(number), {"rows": chunk.rows, "counts": chunk.counts})

    def rows(self, chunks: Sequence[FinishedChunk], sink: int, columns: int) -> DataFrame:
        places = [f"{chunk.rows}/sink-{sink}" for chunk in chunks]
        return self.session.read.parquet(*places).select(*(f"c{i}" for i in range(columns)))

    def discard(self) -> None:
        """Remove the journal after all rows are published. After an interrupted removal, nothing is resumed."""
        self._files.delete(self._history)
        self._files.delete(self.place)

    @property
    def _history(self) -> str:
        return f"{self.place}/history.json"

    def _entry(self, number: int) -> str:
        return f"{self.place}/chunk-{number:06d}.json"

    def _read(self, entry: str) -> Any:
        """Content of an entry; None if it does not exist."""
        content = self._files.read(entry)
        return None if content is None else json.loads(content)

    def _note(self, entry: str, data: Mapping[str, Any]) -> None:
        """Write an entry completely or not at all."""
        draft = f"{entry}.{uuid.uuid4().hex[:8]}"
        self._files.write(draft, json.dumps(data).encode())
        self._files.move(draft, entry)
