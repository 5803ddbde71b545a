"""Audits on Spark's workers, in batches that limit memory use."""

from __future__ import annotations

import pickle
import sys
import zipfile
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.fleet.audit.changed_tables import ReplacementTable
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditRow
from airflow_flinkcompat.model import InputError, install_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHIPPED = ("airflow_flinkcompat", "sqlglot")
"""Packages that a worker needs: this package and its parser, both in pure Python."""
_BATCH_BYTES = 32 << 20
_BATCH_PAIRS = 10_000
_PARTS_EACH = 8
"""Spark tasks per slot in a batch. Small tasks balance the load if scripts differ in size."""


def audit_on_spark(pairs: Iterable[AuditPair], tables: tuple[ReplacementTable, ...], master: str) -> Iterator[AuditRow]:
    """Send this package to Spark's workers, and judge pairs there."""
    if missing := [name for name in ("pyspark", "pyarrow") if find_spec(name) is None]:
        raise InputError(
            f"--spark lacks packages ({' and '.join(missing)} missing): {install_command('native')}, on the workers too"
        )
    from airflow_flinkcompat.backfill.spark import is_local, spark_session

    try:
        with TemporaryDirectory(prefix="flinkcompat-") as work, spark_session(master) as session:
            context = session.sparkContext
            if is_local(context.master or ""):
                context.pythonExec = sys.executable
                place = str(Path(__file__).parents[3])
            else:
                place = ""
                context.addArchive(f"{_package(Path(work))}#flinkcompat_package")
            yield from _rows(session, pairs, tables, place)
    except BackfillError as error:
        raise InputError(str(error)) from None


def _rows(
    session: SparkSession, pairs: Iterable[AuditPair], tables: tuple[ReplacementTable, ...], place: str
) -> Iterator[AuditRow]:
    """Yield the rows of each batch. While Spark works, the next batch is read."""
    with ThreadPoolExecutor(1) as ahead:
        pending: Future[list[bytes]] | None = None
        for batch in chain(_batches(pairs), (None,)):
            following = None if batch is None else ahead.submit(_judged, session, batch, tables, place)
            if pending is not None:
                yield from (row for part in pending.result() for row in pickle.loads(part))
            pending = following


def _batches(pairs: Iterable[AuditPair]) -> Iterator[list[bytes]]:
    batch: list[bytes] = []
    size = 0
    for pair in pairs:
        batch.append(pickle.dumps(pair))
        size += len(batch[-1])
        if size >= _BATCH_BYTES or len(batch) >= _BATCH_PAIRS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _judged(session: SparkSession, batch: list[bytes], tables: tuple[ReplacementTable, ...], place: str) -> list[bytes]:
    """Judge a batch. Returns pickled lists of rows, in order."""
    import pyarrow as pa
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    changed = pickle.dumps(tables)
    parts = min(len(batch), session.sparkContext.defaultParallelism * _PARTS_EACH)
    size = -(-len(batch) // parts)
    # Each row of the table contains all pairs of a task, which saves splitting and joining them.
    shares = [pickle.dumps(batch[begin : begin + size]) for begin in range(0, len(batch), size)]
    sent = pa.table({"number": pa.array(range(len(shares)), pa.int64()), "pairs": pa.array(shares, pa.binary())})

    # Untyped, and without imports of this package: Spark sends the function before the worker has the package.
    def judge(batches):  # type: ignore[no-untyped-def]
        import os
        import pickle
        import sys

        import pyarrow
        from pyspark import SparkFiles

        folder = place or SparkFiles.get("flinkcompat_package")
        if not os.path.isdir(folder):  # noqa: PTH112  # a different copy of the package may judge differently
            raise RuntimeError(f"the worker did not receive the package in {folder}")
        if folder not in sys.path:
            sys.path.insert(0, folder)
        from airflow_flinkcompat.fleet.audit.judging import audit_pair

        asked = pickle.loads(changed)
        for part in batches:
            for number, pairs in zip(part.column(0).to_pylist(), part.column(1).to_pylist(), strict=True):
                rows = pickle.dumps([audit_pair(pickle.loads(each), asked) for each in pickle.loads(pairs)])
                yield pyarrow.RecordBatch.from_pydict({"number": [number], "rows": [rows]})

    frame = session.createDataFrame(sent, "number long, pairs binary")
    try:
        done = frame.repartitionByRange(len(shares), "number").mapInArrow(judge, "number long, rows binary").collect()
    except (PySparkException, Py4JError) as error:
        raise InputError(
            f"Spark's workers could not judge: {_reason(error)}; they need the Python version of this "
            f"process, {sys.version_info.major}.{sys.version_info.minor}, and PyArrow"
        ) from None
    return [bytes(rows) for _, rows in sorted(done)]


def _reason(error: Exception) -> str:
    """The worker's error message, without Spark's stack traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = (line for line in lines if "Error" in line.partition(":")[0] and not line.startswith(("at ", "org.")))
    return next(named, lines[0] if lines else type(error).__name__)


def _package(folder: Path) -> Path:
    """Make an archive of this package and its parser for the workers, without compiled files."""
    target = folder / "flinkcompat_package.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in _SHIPPED:
            found = find_spec(name)
            assert found is not None
            assert found.origin is not None
            root = Path(found.origin).parent
            for path in sorted(root.rglob("*")):
                if path.is_file() and path.suffix not in (".pyc", ".so"):
                    archive.write(path, path.relative_to(root.parent))
    return target
