"""The one place that configures Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.protocols import Needs
from airflow_flinkcompat.backfill.spark.startup import Effort, fast_start, makes_archive, warm

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
_LOGGING = Path(__file__).with_name("log4j2.properties")
# A backfill in one process: quick to start, nothing listens beyond loopback, errors are told in a line of our own.
_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC -Dlog4j2.configurationFile={_LOGGING.as_uri()}",
    "spark.log.level": "FATAL",
}
# To interpret a query and plan it once is done before its Java is compiled, where there are hardly any rows.
_TINY = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}


def submit_configuration(master: str) -> dict[str, str]:
    """What ``spark-submit --conf`` should be given for a master, because it counts before the driver's JVM starts."""
    return dict(_LOCAL) if is_local(master) else {}


def is_local(master: str) -> bool:
    """Whether Spark runs in one process of this machine."""
    return master == "local" or master.startswith("local[")


def needs_configuration(needs: Needs) -> dict[str, str]:
    """The settings that bring a session what the connectors need."""
    return {**dict(needs.conf), **({"spark.jars.packages": ",".join(needs.packages)} if needs.packages else {})}


@contextmanager
def spark_session(
    master: str | None = None,
    needs: Needs = Needs(),  # noqa: B008
    effort: Effort = Effort.MUCH,
) -> Iterator[SparkSession]:
    """A session set up for a backfill: the one that is active, or a new one, stopped at the end.

    ``needs`` is what the connectors want of a new session; an active one must have been started with it. ``effort``
    says how much Spark's own operators will have to do where it is local.

    An active session gets its own settings back. Raises :class:`BackfillError` without PySpark or Java.
    """
    try:
        from pyspark import SparkConf
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise BackfillError(f"Spark is missing ({error}); pip install 'airflow-flinkcompat[spark]'") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        with configured(active, SEMANTICS):
            yield active
        return
    master = master or SparkConf().get("spark.master") or "local[*]"
    start: AbstractContextManager[dict[str, str]] = fast_start(effort) if is_local(master) else nullcontext({})
    with start as fast:
        local = _TINY if is_local(master) and effort is Effort.TINY else {}
        session = _new_session(master, needs, local, fast)
        try:
            yield session
            if makes_archive(fast):
                warm(session)
        finally:
            session.stop()


def _new_session(master: str, needs: Needs, own: Mapping[str, str], fast: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("flinkcompat backfill")
    settings = {**submit_configuration(master), **SEMANTICS, **needs_configuration(needs), **own}
    settings |= {key: f"{settings.get(key, '')} {value}".strip() for key, value in fast.items()}
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, RuntimeError, OSError) as error:
        raise BackfillError(
            f"Spark did not start with master {master}: {str(error).splitlines()[0]}; it needs Java 17 or 21 "
            "(JAVA_HOME) and, for a cluster, a master that answers"
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
