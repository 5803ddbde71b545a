"""The one place that configures Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import IntEnum
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.protocols import Needs
from airflow_flinkcompat.model import install_command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    # It would take the row counts away with the part of a plan that turns out to be empty.
    "spark.sql.adaptive.optimizer.excludedRules": "org.apache.spark.sql.execution.adaptive.AQEPropagateEmptyRelation",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOGGING = Path(__file__).with_name("log4j2.properties")
# A backfill in one process: quick to start, nothing listens beyond loopback, errors are told in a line of our own.
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    _JAVA_OPTIONS: f"-XX:+UseSerialGC -Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    "spark.log.level": "FATAL",
}
# To interpret a query and plan it once is done before its Java is compiled, where there are hardly any rows.
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
    """The effort of reading these places: by their bytes where all of them are local."""
    known = list(places)
    return next((effort for effort, most in _MOST_BYTES.items() if _within(known, most)), Effort.MUCH)


def _within(places: Iterable[str], most: int) -> bool:
    """Return whether all places are local and hold at most so many bytes."""
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
    ``effort`` is the expected work of Spark's own operators, for a local session. ``say`` gets a line if this is the
    first start of Spark on this machine.

    An active session gets its own settings back. Raises :class:`BackfillError` without PySpark or Java.
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
    """Return whether PySpark's byte code is there, or never will be."""
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None or sys.dont_write_bytecode:
        return True
    return "pyspark" in sys.modules or Path(cache_from_source(spark.origin)).exists()


_COMPILED = _is_compiled()  # before this process imports it


def first_start(needs: Needs) -> str:
    """Line about the preparation of Spark's first start on this machine, "" if all is there."""
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
    """A session with other settings for as long as the block lasts."""
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
