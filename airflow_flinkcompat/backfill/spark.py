"""Spark's session, its file systems, and values that are filled in and pinned where the driver runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from airflow_flinkcompat.backfill.protocols import Needs
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.model import install_command
from airflow_flinkcompat.secrets.placeholders import PlaceholderError, environment_lookup, resolve_value

if TYPE_CHECKING:
    from pyspark.sql import Observation, SparkSession

T = TypeVar("T")
_PINS: WeakKeyDictionary[SparkSession, dict[Hashable, Any]] = WeakKeyDictionary()

# What the translations rely on (spark_sql/translations.py) and what keeps column names and malformed lines exact.
SEMANTICS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.icu.caseMappings.enabled": "false",
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    "spark.sql.json.enablePartialResults": "false",
    "spark.sql.variable.substitute": "false",
    # The rule would remove row counts with an empty part of a plan.
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOGGING = Path(__file__).with_name("log4j2.properties")
# A backfill in one process: quick to start, nothing listens beyond loopback, errors are shown in a line of our own.
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    _JAVA_OPTIONS: f"-XX:+UseSerialGC -Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    "spark.log.level": "FATAL",
}
# For few rows, an interpreted query that is planned once ends before its Java is compiled.
_TINY = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
# The JVM's first compiler only: it has code at once, which never gets as fast as much data needs.
_BRIEF = "-XX:+IgnoreUnrecognizedVMOptions -XX:TieredStopAtLevel=1"


# Where Spark's resolver keeps the packages that it has fetched.
_IVY = ".ivy2.5.2"


class Effort(IntEnum):
    """Expected work of Spark's own operators; local sessions are tuned for it."""

    TINY = 0  # takes less time than compiling the query
    LITTLE = 1  # too little for the JVM's second compiler
    MUCH = 2


_MOST_BYTES = {Effort.TINY: 1 << 20, Effort.LITTLE: 16 << 20}


def effort(places: Iterable[str]) -> Effort:
    """The effort to read these places, by their bytes if all of them are local."""
    known = list(places)
    return next((effort for effort, most in _MOST_BYTES.items() if _within(known, most)), Effort.MUCH)


def _within(places: Iterable[str], most: int) -> bool:
    """True if all places are local and contain at most so many bytes."""
    for place in places:
        address = urlsplit(place)
        if address.scheme != "file":
            return False
        path = Path(unquote(address.path))
        for file in path.rglob("*") if path.is_dir() else [path]:
            with suppress(OSError):
                most -= file.stat().st_size
            if most < 0:
                return False
    return True


def submit_configuration(master: str) -> dict[str, str]:
    """Values of ``spark-submit --conf`` for a master, needed before the driver's JVM starts."""
    return dict(_LOCAL) if is_local(master) else {}


def is_local(master: str) -> bool:
    """True if Spark runs in one process of this machine."""
    return master == "local" or master.startswith("local[")


def needs_configuration(needs: Needs) -> dict[str, str]:
    """Settings of a session that meet the connectors' needs."""
    return {**dict(needs.conf), **({"spark.jars.packages": ",".join(needs.packages)} if needs.packages else {})}


@contextmanager
def spark_session(
    master: str | None = None,
    needs: Needs = Needs(),  # noqa: B008
    effort: Effort = Effort.MUCH,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[SparkSession]:
    """A session set up for a backfill: the active one, or a new one that is stopped at the end.

    ``needs`` are the connectors' requirements of a new session; an active one must have been started with them.
    ``effort`` is the expected work of Spark's own operators, for a local session. ``say`` gets a line if this is
    the first start of Spark on this machine.

    An active session gets its own settings back.
    """
    try:
        from pyspark import SparkConf
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise BackfillError(f"Spark is missing ({error}): {install_command('spark')}") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        with configured(active, SEMANTICS):
            yield active
        return
    if line := first_start(needs):
        say(line)
    master = master or SparkConf().get("spark.master") or "local[*]"
    session = _new_session(master, needs, _tuning(effort) if is_local(master) else {})
    try:
        yield session
    finally:
        session.stop()


def _is_compiled() -> bool:
    """True if PySpark's byte code exists, or can never exist."""
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None or sys.dont_write_bytecode:
        return True
    return "pyspark" in sys.modules or Path(cache_from_source(spark.origin)).exists()


_COMPILED = _is_compiled()  # before this process imports it


def first_start(needs: Needs) -> str:
    """Line about the preparation of Spark's first start on this machine; "" if none is needed."""
    prepared = [] if _COMPILED else ["PySpark is compiled to byte code"]
    jars = Path(dict(needs.conf).get("spark.jars.ivy") or Path.home() / _IVY) / "jars"
    if missing := [
        each
        for each in needs.packages
        if not (jars / f"{'_'.join(each.split(':')[:2])}-{each.split(':')[2]}.jar").exists()
    ]:
        prepared.append(f"{', '.join(missing)} and their dependencies are fetched from Maven Central")
    return f"first start of Spark on this machine: {' and '.join(prepared)}, once" if prepared else ""


def _tuning(effort: Effort) -> dict[str, str]:
    options = {_JAVA_OPTIONS: f"{_LOCAL[_JAVA_OPTIONS]} {_BRIEF}"} if effort < Effort.MUCH else {}
    return {**options, **(_TINY if effort is Effort.TINY else {})}


def _new_session(master: str, needs: Needs, tuning: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("flinkcompat backfill")
    settings = {**submit_configuration(master), **SEMANTICS, **needs_configuration(needs), **tuning}
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        raise BackfillError(
            f"Spark did not start with master {master}: {str(error).splitlines()[0]}; it needs Java "
            "17 or 21 (JAVA_HOME) and, for a cluster, a reachable master"
        ) from None


@contextmanager
def configured(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """A session with other settings during the block."""
    before = {key: session.conf.get(key, None) for key in settings}
    for key, value in settings.items():
        session.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                session.conf.unset(key)
            else:
                session.conf.set(key, old)


class FileSystem:
    """The file system of one place, by Hadoop's interface: local disks and all others that Spark supports."""

    def __init__(self, session: SparkSession, place: str) -> None:
        self._path = session._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
        system = self._path(place).getFileSystem(session._jsc.hadoopConfiguration())
        # The local file system would keep a checksum file next to every file.
        self._system: Any = system.getRawFileSystem() if system.getScheme() == "file" else system

    def exists(self, place: str) -> bool:
        return bool(self._system.exists(self._path(place)))

    def is_bare(self, place: str) -> bool:
        """True if an existing place holds no file at any depth; stops at the first file."""
        return not self._system.listFiles(self._path(place), True).hasNext()

    def is_file(self, place: str) -> bool:
        return bool(self._system.exists(self._path(place)) and self._system.getFileStatus(self._path(place)).isFile())

    def entries(self, place: str) -> list[tuple[str, bool, int]]:
        """(name, is a folder, bytes) of the entries of a folder, by name."""
        found = self._system.listStatus(self._path(place))
        return sorted(
            (status.getPath().getName(), bool(status.isDirectory()), int(status.getLen())) for status in found
        )

    def files(self, place: str, depth: int) -> list[tuple[str, int]]:
        """(name, bytes) of files ``depth`` visible folders down, by name, which begins with those folders."""
        found = []
        for name, folder, size in self.entries(place):
            if folder and depth and not name.startswith((".", "_")):
                found += [(f"{name}/{inner}", bytes) for inner, bytes in self.files(f"{place}/{name}", depth - 1)]
            elif not folder and not depth:
                found.append((name, size))
        return found

    def read(self, place: str) -> bytes | None:
        """Content of a file, None if there is none."""
        if not self.exists(place):
            return None
        stream = self._system.open(self._path(place))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, place: str, content: bytes = b"") -> None:
        """Write a file, replacing an existing one."""
        stream = self._system.create(self._path(place), True)
        try:
            stream.write(content)
        finally:
            stream.close()

    def touch(self, place: str) -> None:
        """Write a file that is there only for its time, without making a folder."""
        self._system.createNonRecursive(self._path(place), True, 1024, 1, 1 << 20, None).close()

    def changed(self, place: str) -> int | None:
        """Modification time of a file from its file system; None if there is none."""
        from py4j.protocol import Py4JJavaError

        try:
            return int(self._system.getFileStatus(self._path(place)).getModificationTime())
        except Py4JJavaError:
            return None

    def make_folder(self, place: str) -> None:
        self._system.mkdirs(self._path(place))

    def move(self, place: str, target: str) -> None:
        if not self._system.rename(self._path(place), self._path(target)):
            raise BackfillError(f"{place} could not be moved to {target}; check that the place is writable")

    def delete(self, place: str) -> None:
        self._system.delete(self._path(place), True)


def counted(seen: Observation, name: str) -> int:
    """A count once its action has run; 0 if Spark saw beforehand that there is nothing to do."""
    from py4j.protocol import Py4JJavaError

    try:
        return int(seen.get[name])
    except Py4JJavaError:
        return 0


def fill_in(value: str, environment: Mapping[str, str]) -> str:
    """An option's value with its placeholders filled in."""
    try:
        return resolve_value(value, environment_lookup(environment)).text
    except (PlaceholderError, LookupError) as error:
        raise BackfillError(str(error.args[0])) from None


@contextmanager
def pinned_snapshots(session: SparkSession) -> Iterator[None]:
    """Context of one run, in which :func:`pin` keeps the values that it found in a session."""
    _PINS[session] = {}
    try:
        yield
    finally:
        del _PINS[session]


def pin(session: SparkSession, key: Hashable, ask: Callable[[], T]) -> T:
    """The first value found in this run; outside of a run it is requested each time."""
    found = _PINS.get(session)
    if found is None:
        return ask()
    if key not in found:
        found[key] = ask()
    value: T = found[key]
    return value
