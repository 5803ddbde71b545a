"""Migration workers that run in Spark. Each task writes the state file for one range of key groups."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from airflow_flinkcompat.migration import MigrationVerificationFailed, NotMigratable
from airflow_flinkcompat.migration.workers import Scattered, Spill, Workers
from airflow_flinkcompat.model import InputError, install_command
from airflow_flinkcompat.model.text import size_text
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.compiled import interpreted_hint
from airflow_flinkcompat.savepoint.store import read_metadata

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import SparkSession

T = TypeVar("T")
R = TypeVar("R")

SPARK_FROM = 2 << 30
"""Size of the keyed state in bytes from which a migration uses Spark by default."""
_PART = 64 << 20
_ERRORS = (MigrationVerificationFailed, NotMigratable, SavepointUnreadable)


@contextmanager
def migration_workers(
    savepoint: str, wanted: bool | None, master: str | None, say: Callable[[str], None]
) -> Iterator[Workers | None]:
    """Workers that migrate a savepoint: Spark if requested, or if the state is large and Spark installed."""
    size = read_metadata(savepoint).keyed_size
    if hint := interpreted_hint(size):
        say(hint)
    large = size >= SPARK_FROM
    if wanted is None and large and find_spec("pyspark") is None:
        say(
            f"migrating {size_text(size)} of state in this process only; Spark shares the work: "
            f"{install_command('spark')}"
        )
        large = False
    if wanted is False or (wanted is None and not large):
        yield None
        return
    # Import the backfill modules late, because a migration without Spark does not need them.
    from airflow_flinkcompat.backfill.result import BackfillError
    from airflow_flinkcompat.backfill.spark import spark_session

    try:
        with spark_session(master, say=say) as session:
            workers = SparkWorkers(session)
            say(f"migrating {size_text(size)} of state on Spark ({session.sparkContext.master})")
            yield workers
    except BackfillError as error:
        raise InputError(str(error)) from None


class SparkWorkers:
    """Migration workers that run in Spark tasks; ``part`` is the approximate input of a task in bytes."""

    def __init__(self, session: SparkSession, part: int = _PART) -> None:
        from airflow_flinkcompat.backfill.spark import is_local

        self._context = session.sparkContext
        self._part = part
        if is_local(self._context.master or ""):
            self._context.pythonExec = sys.executable

    def parts(self, size: int, groups: int) -> int:
        """Number of parts: at least the number of Spark's slots, and more for a large state."""
        return min(max(self._context.defaultParallelism, -(-size // self._part)), max(1, groups))

    def each(self, work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
        """Apply a function to each part, one task per part."""
        if not parts:
            return []
        return _results(self._context.parallelize(parts, len(parts)).map(partial(_tried, work)).collect())

    def regroup(
        self,
        scatter: Callable[[T], Scattered],
        parts: Sequence[T],
        gather: Callable[[range, Iterable[tuple[int, bytes]]], R],
        groups: Sequence[range],
        additional: RDD[tuple[int, bytes]] | None = None,
    ) -> list[R]:
        """Scatter the contents of parts by key group, and gather each range of key groups in one task."""
        if not parts and additional is None:
            return [gather(each, ()) for each in groups]
        files = {group: place for place, each in enumerate(groups) for group in each}
        scattered = self._context.parallelize(parts, len(parts) or 1).flatMap(partial(_scattered, scatter))
        if additional is not None:
            scattered = scattered.union(additional)
        shuffled = scattered.partitionBy(len(groups), partial(_file_of, files))
        gathered = shuffled.mapPartitionsWithIndex(partial(_gathered, gather, tuple(groups)))
        return _results(gathered.collect())


def _tried(work: Callable[[T], R], part: T) -> R | Exception:
    """Run work and return an expected error as a value. Spark would retry the task and print a trace."""
    try:
        return work(part)
    except _ERRORS as error:
        return error


def _results(results: Sequence[R | Exception]) -> list[R]:
    done = []
    for result in results:
        if isinstance(result, Exception):
            raise result
        done.append(result)
    return done


def _scattered(scatter: Callable[[T], Scattered], part: T) -> Iterator[tuple[int, bytes | Exception]]:
    try:
        yield from scatter(part)
    except _ERRORS as error:
        yield -1, error


def _file_of(files: dict[int, int], group: int) -> int:
    return files.get(group, 0)


def _gathered(
    gather: Callable[[range, Iterable[tuple[int, bytes]]], R],
    groups: Sequence[range],
    place: int,
    scattered: Iterable[tuple[int, bytes | Exception]],
) -> Iterator[R | Exception]:
    with Spill(groups[place]) as spill:
        for group, content in scattered:
            if isinstance(content, Exception):
                yield content
                return
            spill.add(group, content)
        yield _tried(partial(gather, groups[place]), spill.groups(groups[place]))
