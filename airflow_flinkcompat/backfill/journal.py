"""Progress of a backfill in chunks: the rows and counts of each finished chunk, in a folder of files.

A chunk's rows are written first, into a separate folder, and then its entry, which names that folder: an existing entry
is complete. The journal's name depends on everything in a request that affects the rows, so another request never finds
it. If sources report the state of their history, finished chunks of another state are discarded. The journal is deleted
when all is published.
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
# Fields that affect how rows are computed, but not the rows.
_NEUTRAL = ("source", "master", "journal")
_ROUNDS = 200_000


def journal_place(request: BackfillRequest, work: Work) -> str:
    """Folder of a request's journal: inside the requested one, else next to the first sink in a folder."""
    decisive = {key: value for key, value in request.to_dict().items() if key not in _NEUTRAL}
    key = hashlib.sha256(json.dumps([__version__, decisive], sort_keys=True).encode()).hexdigest()[:16]
    if request.journal is not None:
        return f"{normalised(request.journal, '--journal')}/backfill-{key}"
    for write in work.writes:
        folder, _, name = write.target.place.rpartition("/")
        if _FOLDER.match(write.target.place) and name:
            return f"{folder}/.{name}.chunks-{key}"
    raise BackfillError(
        "chunks are stored until all are done, but no sink is a folder next to which they could be "
        "stored: name a place with --journal URI (a folder that Spark's executors can access)"
    )


def history_of(session: SparkSession, work: Work) -> dict[str, str]:
    """The state of each source that knows it, by table and place."""
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
    """A finished chunk: the folder of its rows, and its counts as plain JSON values."""

    rows: str
    counts: Mapping[str, Any]


class ChunkJournal:
    """The finished chunks of one request, by number."""

    def __init__(self, session: SparkSession, place: str) -> None:
        self.session = session
        self.place = place
        self._files = FileSystem(session, place)

    def begin(self, history: Mapping[str, str]) -> tuple[str, ...]:
        """Discard finished chunks of a history in another state; return the changes, if any."""
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
        """A new folder for a chunk's rows; leftovers of an earlier try are ignored."""
        return f"{self.place}/rows-{number:06d}-{uuid.uuid4().hex[:8]}"

    def finish(self, number: int, chunk: FinishedChunk) -> None:
        """Record a chunk whose rows are all written."""
        self._note(self._entry(number), {"rows": chunk.rows, "counts": chunk.counts})

    def rows(self, chunks: Sequence[FinishedChunk], sink: int, columns: int) -> DataFrame:
        places = [f"{chunk.rows}/sink-{sink}" for chunk in chunks]
        return self.session.read.parquet(*places).select(*(f"c{i}" for i in range(columns)))

    def discard(self) -> None:
        """Remove the journal after all is published; if interrupted, it leaves nothing to resume."""
        self._files.delete(self._history)
        self._files.delete(self.place)

    @property
    def _history(self) -> str:
        return f"{self.place}/history.json"

    def _entry(self, number: int) -> str:
        return f"{self.place}/chunk-{number:06d}.json"

    def _read(self, entry: str) -> Any:
        """Content of an entry; None without one."""
        content = self._files.read(entry)
        return None if content is None else json.loads(content)

    def _note(self, entry: str, data: Mapping[str, Any]) -> None:
        """Write an entry whole or not at all."""
        draft = f"{entry}.{uuid.uuid4().hex[:8]}"
        self._files.write(draft, json.dumps(data).encode())
        self._files.move(draft, entry)
