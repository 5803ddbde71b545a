"""What makes a local JVM start fast: a class-data archive in the user's cache, and only what work so small needs.

The archive holds the classes Spark loads, parsed and verified; the first run makes it when it ends (about 150 MB),
later ones map it into memory. The JVM checks that Java and the jars are those it was made with, and does without it if
not; but it trusts the file to be whole, so its size is part of its name.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from subprocess import TimeoutExpired
from typing import IO, TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# SerialGC: two cores have nothing to give to a parallel collector. The log would complain of classes not archived.
_ALWAYS = "-XX:+IgnoreUnrecognizedVMOptions -XX:+UseSerialGC -Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
# The first compiler only: code is there at once, but never becomes as fast as Spark's own operators need on much data.
_BRIEF = "-XX:TieredStopAtLevel=1"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_DUMP_SECONDS = 120
_MAKING = "making-"
_LAUNCHER = "SPARK_LAUNCHER_OPTS"  # options of the small JVM with which spark-submit works out its command line


class Effort(IntEnum):
    """How much Spark's own operators will have to do, by which a local session is set up; a matter of speed only."""

    TINY = 0  # less than it costs to compile a query to Java and that to machine code
    LITTLE = 1  # too little for the JVM's second compiler
    MUCH = 2


_MOST = {Effort.TINY: 1 << 20, Effort.LITTLE: 16 << 20}  # bytes


def effort(places: Iterable[str]) -> Effort:
    """That of reading these places: as many bytes as they hold where all are local."""
    known = list(places)
    return next((effort for effort, most in _MOST.items() if _within(known, most)), Effort.MUCH)


def _within(places: Iterable[str], most: int) -> bool:
    """Whether all places are local and hold no more bytes."""
    left = most
    for place in places:
        address = urlsplit(place)
        if address.scheme != "file":
            return False
        path = Path(unquote(address.path))
        for file in path.rglob("*") if path.is_dir() else [path]:
            with suppress(OSError):
                left -= file.stat().st_size
            if left < 0:
                return False
    return True


@dataclass(frozen=True)
class Archive:
    """The archives of this Java and this Spark: one that is whole, or none yet."""

    folder: Path
    name: str

    @classmethod
    def here(cls) -> Archive | None:
        """None where there is no Java, or no folder for it."""
        try:
            from pyspark import __version__
            from pyspark.find_spark_home import _find_spark_home

            from airflow_flinkcompat.caching import cache_directory

            home = os.environ.get("JAVA_HOME")
            java = shutil.which("java", path=str(Path(home, "bin")) if home else None)
            if java is None:
                return None
            runtime, jars = Path(java).resolve().parents[1], Path(_find_spark_home(), "jars")
            parts = (str(runtime), (runtime / "release").read_text("utf-8"), str(jars), jars.stat().st_mtime_ns)
            folder = cache_directory() / "spark-classes"
            folder.mkdir(parents=True, exist_ok=True)
            return cls(folder, f"{__version__}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:16]}")
        except (ImportError, OSError, RuntimeError):
            return None

    def whole(self) -> Path | None:
        """The archive, if it is there and of its size."""
        for path in self.folder.glob(f"{self.name}-*.jsa"):
            with suppress(OSError):
                if path.stem == f"{self.name}-{path.stat().st_size}":
                    return path
        return None

    def clear(self) -> None:
        """Removes what runs that were killed had begun to make."""
        for left in self.folder.glob(f"{_MAKING}*"):
            if (lock := _locked(left)) is not None:
                with lock:
                    shutil.rmtree(left, ignore_errors=True)

    @contextmanager
    def making(self) -> Iterator[Path]:
        """Where a new archive may be made; what is there at the end goes."""
        folder = Path(tempfile.mkdtemp(prefix=_MAKING, dir=self.folder))
        with _locked(folder) or nullcontext():
            try:
                yield folder / "classes.jsa"
            finally:
                shutil.rmtree(folder, ignore_errors=True)

    def keep(self, made: Path) -> None:
        """Takes in an archive that is complete, in place of any other: runs that overlap each bring one."""
        with suppress(OSError):
            others = list(self.folder.glob(f"{self.name}-*.jsa"))
            made.replace(kept := self.folder / f"{self.name}-{made.stat().st_size}.jsa")
            for path in others:
                if path != kept:
                    path.unlink(missing_ok=True)


def _locked(folder: Path) -> IO[str] | None:
    """A lock on a folder that ends with this process; None where another one has it, or there are no locks."""
    with suppress(OSError):
        file = (folder / "lock").open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
        else:
            return file
    return None


@contextmanager
def fast_start(effort: Effort) -> Iterator[dict[str, str]]:
    """The settings for a local session that is started inside, by a process whose JVM does not run yet.

    At the end the archive is made where there was none, which ends the JVM as well.
    """
    from pyspark import SparkContext

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        yield {}
        return
    options, unmade = [_ALWAYS, *([_BRIEF] if effort < Effort.MUCH else [])], None
    archive = Archive.here()
    with ExitStack() as stack:
        if archive is not None:
            archive.clear()
            if (whole := archive.whole()) is not None:
                options.append(f"-XX:SharedArchiveFile={whole}")
            elif _writable(archive.folder):
                unmade = stack.enter_context(archive.making())
                options.append(f"-XX:ArchiveClassesAtExit={unmade}")
        with _launched_with(f"{_ALWAYS} {_BRIEF}"), _without_numpy():
            yield {JAVA_OPTIONS: " ".join(options)}
        if unmade is not None and archive is not None and _jvm_ended():
            archive.keep(unmade)


def warm(session: SparkSession) -> None:
    """Has the JVM load what backfills use, so that it is in the archive that this run makes."""
    with tempfile.TemporaryDirectory() as folder:
        rows = session.range(4).selectExpr("id", "id % 2 AS k", "timestamp_micros(id) AS ts")
        rows.write.parquet(f"{folder}/parquet")
        again = session.read.parquet(f"{folder}/parquet").where("ts >= TIMESTAMP_NTZ '1970-01-01'")
        again.groupBy("k").agg({"id": "sum"}).write.csv(f"{folder}/csv")
        session.read.csv(f"{folder}/csv").collect()


def makes_archive(settings: Mapping[str, str]) -> bool:
    """Whether a session started with these settings leaves an archive behind."""
    return "-XX:ArchiveClassesAtExit=" in settings.get(JAVA_OPTIONS, "")


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 1 << 30


@contextmanager
def _launched_with(options: str) -> Iterator[None]:
    if _LAUNCHER in os.environ:
        yield
        return
    os.environ[_LAUNCHER] = options
    try:
        yield
    finally:
        del os.environ[_LAUNCHER]


@contextmanager
def _without_numpy() -> Iterator[None]:
    """No value of a backfill is one of numpy's; asking that of each imports pandas and PySpark's own tests (4.1)."""
    import pyspark.sql.types  # noqa: F401  # registers the converters
    from py4j import protocol

    converters: list[object] = protocol.INPUT_CONVERTER
    kept = list(converters)
    converters[:] = [each for each in kept if not type(each).__name__.startswith("Numpy")]
    try:
        yield
    finally:
        converters[:] = kept


def _jvm_ended() -> bool:
    """Ends the JVM that Spark's session ran in, and awaits that; the next session starts one of its own."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return False
    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    process.stdin.close()
    try:
        return process.wait(_DUMP_SECONDS) == 0
    except TimeoutExpired:
        process.kill()
        return False
