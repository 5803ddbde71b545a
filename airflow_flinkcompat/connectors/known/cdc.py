"""Flink CDC: changes of databases (restores of ``postgres-cdc`` 3.5.0 on Flink 1.20; sources of release 3.5)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    ConnectorFacts,
    Effect,
    Known,
    OptionFact,
    SourceFacts,
    StoredPositions,
    facts,
)
from airflow_flinkcompat.connectors.startup import BY_OFFSET, Startup

_PAGE = "Flink CDC 3.5, connector page"
_CHUNKS = ("cdc-stateless-chunk", "cdc-group-chunk")
_ENGINE = ("cdc-stateless-renamed-heartbeat",)
_ELSEWHERE = (
    "a restored source goes on from the stored position: only changes since the savepoint come from another table, its "
    "rows of before never do"
)
_POSTGRES = (
    OptionFact(
        "table-name",
        Effect.READ,
        ("cdc-stateless-table", "cdc-stateless-table-added"),
        says=_ELSEWHERE,
        unless=("scan.newly-added-table.enabled", "true"),
    ),
    OptionFact(
        "schema-name",
        Effect.READ,
        ("cdc-stateless-table",),
        says=_ELSEWHERE,
        unless=("scan.newly-added-table.enabled", "true"),
    ),
    OptionFact(
        "slot.name",
        Effect.READ,
        ("cdc-stateless-slot", "cdc-group-slot"),
        says="a new slot begins at the restore, every change in between is lost",
    ),
    OptionFact(
        "scan.incremental.snapshot.enabled",
        Effect.READ,
        ("cdc-stateless-incremental-off", "cdc-stateless-incremental-on", "cdc-group-incremental-off"),
        says="the stored position is not read, and the whole table is read once more",
    ),
    OptionFact("hostname", Effect.ADDRESS, ("cdc-stateless-host",)),
    OptionFact("username", Effect.CREDENTIALS, document=_PAGE),
    OptionFact("password", Effect.CREDENTIALS, document=_PAGE),
    OptionFact("scan.startup.mode", Effect.BEGINNING, ("cdc-group-startup-latest",)),
    OptionFact("scan.incremental.snapshot.chunk.size", Effect.TUNES, _CHUNKS),
    OptionFact("scan.snapshot.fetch.size", Effect.TUNES, _CHUNKS),
    OptionFact("heartbeat.interval.ms", Effect.TUNES, _ENGINE),
    OptionFact("connect.timeout", Effect.TUNES, _ENGINE),
    OptionFact("debezium.poll.interval.ms", Effect.TUNES, _ENGINE),
)
_SNAPSHOT_OF_NEW = (
    "without scan.newly-added-table.enabled, a restored source is documented to leave the rows of before of another "
    "table out; what it does with those it read was not measured"
)
_TABLES = ("table-name", "database-name", "schema-name", "collection", "database")
_TUNING = ("scan.snapshot.fetch.size", "connect.timeout", "connect.max-retries", "connection.pool.size",
           "heartbeat.interval", "heartbeat.interval.ms", "poll.*", "batch.size")  # fmt: skip
_OTHERS = (
    *facts(Effect.READ, _PAGE, *_TABLES, says=_SNAPSHOT_OF_NEW),
    *facts(Effect.ADDRESS, _PAGE, "hostname", "hosts"),
    *facts(Effect.CREDENTIALS, _PAGE, "username", "password"),
    # MySQL's reader drops events before the moment of a startup by timestamp after a restore as well.
    OptionFact("scan.startup.*", Effect.BEGINNING, document="BinlogSplitReader: a timestamp filters them too"),
    *facts(Effect.TUNES, _PAGE, *_TUNING),
)


def _source(options: tuple[OptionFact, ...], document: str, startup: Startup | None = None) -> SourceFacts:
    return SourceFacts(
        positions=StoredPositions.LOG,
        projection=Known.NO,
        filters=Known.NO,
        watermark=Known.NO,
        metadata=Known.YES,
        appends=Known.NO,
        options=options,
        startup=startup,
        document=document,
    )


CONNECTORS = (
    ConnectorFacts(("postgres-cdc",), _source(_POSTGRES, "PostgreSQLTableSource (3.5): SupportsReadingMetadata alone")),
    ConnectorFacts(
        ("mysql-cdc",),
        _source(
            _OTHERS,
            "MySqlTableSource (3.5): SupportsReadingMetadata alone",
            Startup(
                choices=BY_OFFSET,
                option="scan.startup.mode",
                default="initial",
                more=(
                    "scan.startup.timestamp-millis",
                    "scan.startup.specific-offset.file",
                    "scan.startup.specific-offset.pos",
                    "scan.startup.specific-offset.gtid-set",
                ),
            ),
        ),
    ),
    *(
        ConnectorFacts((name,), _source(_OTHERS, f"{source} (3.5): SupportsReadingMetadata alone"))
        for name, source in (
            ("oracle-cdc", "OracleTableSource"),
            ("sqlserver-cdc", "SqlServerTableSource"),
            ("mongodb-cdc", "MongoDBTableSource"),
            ("db2-cdc", "Db2TableSource"),
            ("tidb-cdc", "TiDBTableSource"),
            ("oceanbase-cdc", "OceanBaseTableSource"),
        )
    ),
)
