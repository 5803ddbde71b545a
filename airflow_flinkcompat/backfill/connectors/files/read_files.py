"""Rows of a folder that a job had read from its files when it took a savepoint."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import reduce
from urllib.parse import unquote

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.files.spec import FileSource
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.savepoint.source_positions import FileSplit, FilesRead

_NUMBER = "flinkcompat_number"
_LOCAL = re.compile("^file:/+")


def rows_read(rows: DataFrame, read: FilesRead, source: FileSource) -> DataFrame:
    """The rows that had been read."""
    # Spark writes a file's name with and without an empty place.
    files = {normal(file): _LOCAL.sub("file:/", file) for file in rows.inputFiles()}
    stream = F.regexp_replace("stream", _LOCAL.pattern, "file:/")
    waiting, in_progress = _whole(read.waiting, source), _whole(read.in_progress, source)
    seen = {normal(path) for path in read.seen}
    if gone := sorted(seen - files.keys()):
        raise BackfillError(
            f"table {source.table}: cannot read {gone[0]}"
            + (f" and {len(gone) - 1} more files" if len(gone) > 1 else "")
            + f", which {source.place} no longer holds"
        )
    done = [files[path] for path in seen - waiting.keys() - in_progress.keys()]
    parts = [rows.where(stream.isin(done))]
    for path, split in in_progress.items():
        if path not in files:
            raise BackfillError(f"table {source.table}: the job was reading {path}, which has been deleted")
        order = Window.orderBy("part", "place")
        numbered = rows.where(stream == files[path]).withColumn(_NUMBER, F.row_number().over(order))
        parts.append(numbered.where(F.col(_NUMBER) <= split.records_read).drop(_NUMBER))
    return reduce(DataFrame.union, parts)


def normal(path: str) -> str:
    """A file as both Flink and Spark name it, whatever each writes of the same URI."""
    return _LOCAL.sub("file:/", unquote(path))


def _whole(splits: tuple[FileSplit, ...], source: FileSource) -> dict[str, FileSplit]:
    """Whole files by name. Raises BackfillError for a part of a file, whose rows have no known start."""
    found = defaultdict(list)
    for split in splits:
        found[normal(split.path)].append(split)
        if split.offset or split.length < split.file_size or split.position is not None:
            raise BackfillError(
                f"table {source.table}: the job was reading {split.path} in parts, and their number "
                "does not show which rows were read. Take another savepoint when no file is being "
                "read"
            )
    return {path: splits[0] for path, splits in found.items()}
