"""DuckDB inside Spark's tasks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.duckdb.file_schema import filled_in, path_of
from airflow_flinkcompat.backfill.duckdb.queries import Partials

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MEMORY = "1GB"  # of one task's DuckDB; beyond that it works on disk
_FAILED = "native partials failed: "
_REASON = re.compile(f"{_FAILED}(.*)")


def pieces(session: SparkSession, partials: Partials) -> DataFrame:
    """The partials as Spark's rows: one task for each share of the files. Code of ours runs there, as a value."""
    slots = session.sparkContext.defaultParallelism
    shares = _shares(partials.held.files, slots)
    queries = [filled_in(partials.query, share) for share in shares]
    paths = [[path_of(file) for file in share] for share in shares]
    forbidden, failed = partials.held.forbidden, _FAILED
    config: dict[str, str | bool | int | float | list[str]] = {
        "threads": max(1, slots // len(shares)),
        "memory_limit": MEMORY,
        "preserve_insertion_order": "false",
    }

    # Untyped, because the task would import the types.
    def check(path):  # type: ignore[no-untyped-def]
        import mmap

        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as held:  # noqa: PTH123
            for each in forbidden:
                if held.find(each) >= 0:
                    raise ValueError(f"there is {each!r} in {path}")

    def computed(batches):  # type: ignore[no-untyped-def]
        import tempfile

        try:
            import duckdb

            for batch in batches:
                for number in batch.column(0).to_pylist():
                    for path in paths[number] if forbidden else ():
                        check(path)
                    with (
                        tempfile.TemporaryDirectory() as folder,
                        duckdb.connect(config={**config, "temp_directory": folder}) as connection,
                    ):
                        yield from connection.sql(queries[number]).to_arrow_reader(65_536)
        except Exception as error:
            what = (str(error).splitlines() or [""])[0]
            raise RuntimeError(f"{failed}{type(error).__name__}: {what}") from None

    return session.range(0, len(shares), 1, len(shares)).mapInArrow(computed, partials.schema)


def reason(error: Exception) -> str:
    """Why a task failed, in a line; that of a process that ended is Spark's."""
    found = _REASON.search(str(error))
    return found[1].strip() if found else next(iter(str(error).splitlines()), type(error).__name__)


def _shares(files: tuple[str, ...], slots: int) -> list[list[str]]:
    """The files in shares of about the same size, a few for each slot so that none waits long for another."""
    count = max(1, min(len(files), 2 * slots))
    sized = sorted(((Path(path_of(file)).stat().st_size, file) for file in files), reverse=True)
    shares: list[tuple[int, list[str]]] = [(0, []) for _ in range(count)]
    for size, file in sized:
        smallest = min(range(count), key=lambda i: shares[i][0])
        total, members = shares[smallest]
        shares[smallest] = (total + size, [*members, file])
    return [members for _, members in shares]
