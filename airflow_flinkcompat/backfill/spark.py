"""Spark session, its file systems, and values that are filled in or pinned on the driver."""

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

# Settings that translations depend on (spark_sql/translations.py), and that keep column names and malformed lines
# exact.
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
    # The rule AQEPropagateEmptyRelation would remove row counts if a part of the plan is empty.
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOGGING = Path(__file__).with_name("log4j2.properties")
# Settings for a backfill in a single process, which starts quickly, listens only on loopback, and prints each error as
# one line.
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    _JAVA_OPTIONS: f"-XX:+UseSerialGC -Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    "spark.log.level": "FATAL",
}
# If there are few rows, an interpreted query ends before compiled Java code would start.
_TINY = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
# Use only the JVM's first compiler. The first compiler produces code quickly, but the code is too slow for much data.
_BRIEF = "-XX:+IgnoreUnrecognizedVMOptions -XX:TieredStopAtLevel=1"


# Folder in which Spark's resolver caches downloaded packages.
_IVY = ".ivy2.5.2"


class Effort(IntEnum):
    """Expected work of Spark's own operators, for which local sessions are tuned."""

    TINY = 0  # The work takes less time than compiling the query.
    LITTLE = 1  # The work is too little for the JVM's second compiler.
    MUCH = 2


_MOST_BYTES = {Effort.TINY: 1 << 20, Effort.LITTLE: 16 << 20}


def effort(places: Iterable[str]) -> Effort:
    """Effort of reading some locations, by their total size if all are local."""
    known = list(places)
    return next((effort for effort, most in _MOST_BYTES.items() if _within(known, most)), Effort.MUCH)


def _within(places: Iterable[str], most: int) -> bool:
    """True if all locations are local and contain at most ``most`` bytes."""
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
    """Values of ``spark-submit --conf`` for a master, which must be set before the driver's JVM starts."""
    return dict(_LOCAL) if is_local(master) else {}


def is_local(master: str) -> bool:
    """True if Spark runs in a single process on this machine."""
    return master == "local" or master.startswith("local[")


def needs_configuration(needs: Needs) -> dict[str, str]:
    """Session settings that connectors require."""
    return {**dict(needs.conf), **({"spark.jars.packages": ",".join(needs.packages)} if needs.packages else {})}


@contextmanager
def spark_session(
    master: str | None = None,
    needs: Needs = Needs(),  # noqa: B008
    effort: Effort = Effort.MUCH,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[SparkSession]:
    """Spark session for a backfill: the active session, or a new one that is stopped at the end.

    ``needs``: Requirements of connectors for a new session. An active session must have been started with these
    requirements. ``effort``: Expected work of Spark's own operators, for a local session. ``say``: Receives a line if
    Spark starts on this machine for the first time.

    The settings of an active session are restored at the end.
    """
    try:
        from pyspark import SparkConf
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise BackfillError(f"PySpark cannot be imported ({error}): {install_command('spark')}") from None
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
    """True if PySpark's byte code exists, or will never exist."""
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None or sys.dont_write_bytecode:
        return True
    return "pyspark" in sys.modules or Path(cache_from_source(spark.origin)).exists()


_COMPILED = _is_compiled()  # Evaluated before this process imports PySpark.


def first_start(needs: Needs) -> str:
    """Describe what Spark's first start on this machine prepares; "" if there is nothing to prepare."""
    prepared = [] if _COMPILED else ["PySpark is being compiled to byte code"]
    jars = Path(dict(needs.conf).get("spark.jars.ivy") or Path.home() / _IVY) / "jars"
    if missing := [
        each
        for each in needs.packages
        if not (jars / f"{'_'.join(each.split(':')[:2])}-{each.split(':')[2]}.jar").exists()
    ]:
        prepared.append(f"{', '.join(missing)} and dependencies are being downloaded from Maven Central")
    return (
        (f"first start of Spark on this machine: {' and '.join(prepared)}, which happens only once") if prepared else ""
    )


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
            f"Spark did not start with master {master}: {str(error).splitlines()[0]}. Spark requires Java 17 or "
            "21 (JAVA_HOME) and, for a cluster, a reachable master"
        ) from None


@contextmanager
def configured(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Context in which a session has different settings."""
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
    """File system of a location, through Hadoop's interface.

    Hadoop supports local disks and all stores that Spark supports.
    """

    def __init__(self, session: SparkSession, place: str) -> None:
        self._path = session._jvm.org.apache.hadoop.fs.Path  # type: ignore[union-attr]
        system = self._path(place).getFileSystem(session._jsc.hadoopConfiguration())
        # The local file system would otherwise add a checksum file for every file.
        self._system: Any = system.getRawFileSystem() if system.getScheme() == "file" else system

    def exists(self, place: str) -> bool:
        return bool(self._system.exists(self._path(place)))

    def is_bare(self, place: str) -> bool:
        """True if an existing location contains no file at any depth. Listing stops at the first file."""
        return not self._system.listFiles(self._path(place), True).hasNext()

    def is_file(self, place: str) -> bool:
        return bool(self._system.exists(self._path(place)) and self._system.getFileStatus(self._path(place)).isFile())

    def entries(self, place: str) -> list[tuple[str, bool, int]]:
        """Entries of a folder in order of name: (name, True for a folder, size in bytes)."""
        found = self._system.listStatus(self._path(place))
        return sorted(
            (status.getPath().getName(), bool(status.isDirectory()), int(status.getLen())) for status in found
        )

    def files(self, place: str, depth: int) -> list[tuple[str, int]]:
        """Names and sizes of files in folders at the given depth. Names begin with their folders."""
        found = []
        for name, folder, size in self.entries(place):
            if folder and depth and not name.startswith((".", "_")):
                found += [(f"{name}/{inner}", bytes) for inner, bytes in self.files(f"{place}/{name}", depth - 1)]
            elif not folder and not depth:
                found.append((name, size))
        return found

    def read(self, place: str) -> bytes | None:
        """Content of a file; None if it does not exist."""
        if not self.exists(place):
            return None
        stream = self._system.open(self._path(place))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, place: str, content: bytes = b"") -> None:
        """Write a file; replace an existing file."""
        stream = self._system.create(self._path(place), True)
        try:
            stream.write(content)
        finally:
            stream.close()

    def touch(self, place: str) -> None:
        """Write an empty file to update its modification time, without creating folders."""
        self._system.createNonRecursive(self._path(place), True, 1024, 1, 1 << 20, None).close()

    def changed(self, place: str) -> int | None:
        """Modification time of a file, as reported by its file system; None if the file does not exist."""
        from py4j.protocol import Py4JJavaError

        try:
            return int(self._system.getFileStatus(self._path(place)).getModificationTime())
        except Py4JJavaError:
            return None

    def make_folder(self, place: str) -> None:
        self._system.mkdirs(self._path(place))

    def move(self, place: str, target: str) -> None:
        if not self._system.rename(self._path(place), self._path(target)):
            raise BackfillError(f"{place} could not be moved to {target}. Check that the target is writable")

    def delete(self, place: str) -> None:
        self._system.delete(self._path(place), True)


def counted(seen: Observation, name: str) -> int:
    """A count after its action has run; 0 if Spark found in advance that there was nothing to do."""
    from py4j.protocol import Py4JJavaError

    try:
        return int(seen.get[name])
    except Py4JJavaError:
        return 0


def fill_in(value: str, environment: Mapping[str, str]) -> str:
    """Fill in the placeholders in an option's value."""
    try:
        return resolve_value(value, environment_lookup(environment)).text
    except (PlaceholderError, LookupError) as error:
        raise BackfillError(str(error.args[0])) from None


@contextmanager
def pinned_snapshots(session: SparkSession) -> Iterator[None]:
    """Context of one run, in which :func:`pin` stores values. At the end, pinned rows are deleted."""
    from py4j.protocol import Py4JError

    _PINS[session] = {}
    try:
        yield
    finally:
        for found in _PINS.pop(session).values():
            if hasattr(found, "unpersist"):
                with suppress(Py4JError):
                    found.unpersist()


def is_pinned(session: SparkSession) -> bool:
    """True within :func:`pinned_snapshots`."""
    return session in _PINS


def pin(session: SparkSession, key: Hashable, ask: Callable[[], T]) -> T:
    """Return the value that the first call in this run found. Outside a run, each call runs ``ask``."""
    found = _PINS.get(session)
    if found is None:
        return ask()
    if key not in found:
        found[key] = ask()
    value: T = found[key]
    return value
