"""Facts about Flink CDC, by restores of ``postgres-cdc`` 3.5.0 on Flink 1.20 and by the code of 3.5."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    BY_OFFSET,
    ConnectorFacts,
    Known,
    OptionEffect,
    OptionFact,
    SourceFacts,
    SourceState,
    Startup,
    facts,
)

_PAGE = "Flink CDC 3.5, connector page"
_CAPTURES_NONE = f"{_PAGE}: scan newly added tables; without this option a restored reader captures no added table"
_CHUNKS = ("cdc-stateless-chunk", "cdc-group-chunk")
_CHUNKING = (
    "chunk-key.even-distribution.factor.*", "chunk-meta.group.size",
    "scan.incremental.snapshot.unbounded-chunk-first.enabled",
)  # fmt: skip
_ENGINE = ("cdc-stateless-renamed-heartbeat",)
_ELSEWHERE = (
    "a restored source resumes from the stored position: it reads only changes of the new table "
    "since the savepoint, and no earlier rows"
)
_POSTGRES = (
    OptionFact(
        "table-name",
        OptionEffect.READ,
        ("cdc-stateless-table", "cdc-stateless-table-added"),
        note=_ELSEWHERE,
        unless=("scan.newly-added-table.enabled", "true"),
    ),
    OptionFact(
        "schema-name",
        OptionEffect.READ,
        document=_CAPTURES_NONE,
        note=_ELSEWHERE,
        unless=("scan.newly-added-table.enabled", "true"),
        expression=True,
    ),
    OptionFact(
        "slot.name",
        OptionEffect.READ,
        ("cdc-stateless-slot", "cdc-group-slot"),
        note="a new slot starts at the restore, so every change between the savepoint and the restore is lost",
        default="flink",  # the default until release 2.3; required since 2.4
    ),
    OptionFact(
        "scan.incremental.snapshot.enabled",
        OptionEffect.READ,
        ("cdc-stateless-incremental-off", "cdc-stateless-incremental-on", "cdc-group-incremental-off"),
        note="the stored position is ignored, and the whole table is read again",
        default="false",
    ),
    OptionFact("hostname", OptionEffect.ADDRESS, ("cdc-stateless-host",)),
    OptionFact("port", OptionEffect.ADDRESS, document=_PAGE),
    OptionFact("username", OptionEffect.CREDENTIALS, document=_PAGE),
    OptionFact("password", OptionEffect.CREDENTIALS, document=_PAGE),
    OptionFact("scan.startup.mode", OptionEffect.STARTUP, ("cdc-group-startup-latest",)),
    OptionFact("scan.incremental.snapshot.chunk.size", OptionEffect.TUNES, _CHUNKS),
    OptionFact("scan.snapshot.fetch.size", OptionEffect.TUNES, _CHUNKS),
    OptionFact("heartbeat.interval.ms", OptionEffect.TUNES, _ENGINE),
    OptionFact("connect.timeout", OptionEffect.TUNES, _ENGINE),
    OptionFact("debezium.poll.interval.ms", OptionEffect.TUNES, _ENGINE),
    *facts(OptionEffect.TUNES, _PAGE, *_CHUNKING, "connect.max-retries", "connection.pool.size"),
)
_NOT_CAPTURED = (
    "according to the documentation, a restored source reads earlier rows of a new table only "
    "with scan.newly-added-table.enabled; neither this behaviour nor the effect on the former "
    "tables was measured"
)
_TABLES = ("table-name", "database-name", "schema-name", "collection", "database")
_TUNING = (
    *_CHUNKING,
    "scan.snapshot.fetch.size", "scan.incremental.snapshot.chunk.size", "scan.incremental.snapshot.chunk.size.mb",
    "scan.incremental.snapshot.chunk.samples", "connect.timeout", "connect.max-retries", "connection.pool.size",
    "heartbeat.interval", "heartbeat.interval.ms", "poll.*", "batch.size", "initial.snapshotting.queue.size",
    "initial.snapshotting.max.threads", "scan.cursor.no-timeout",
)  # fmt: skip
_OTHERS = (
    *facts(OptionEffect.READ, _PAGE, *_TABLES, note=_NOT_CAPTURED),
    *facts(OptionEffect.ADDRESS, _PAGE, "hostname", "hosts", "port"),
    *facts(OptionEffect.CREDENTIALS, _PAGE, "username", "password", "server-id"),
    *facts(OptionEffect.CREDENTIALS, _PAGE, "jdbc.properties.useSSL", "jdbc.properties.requireSSL"),
    *facts(OptionEffect.CREDENTIALS, _PAGE, "jdbc.properties.sslMode", "jdbc.properties.*CertificateKeyStore*"),
    # After a restore, MySQL's reader still drops events that are older than its startup timestamp.
    OptionFact(
        "scan.startup.*",
        OptionEffect.STARTUP,
        document="BinlogSplitReader: the startup timestamp also filters events after a restore",
    ),
    *facts(OptionEffect.TUNES, _PAGE, *_TUNING),
)
_USER = facts(OptionEffect.CREDENTIALS, "MongoDB CDC page before release 2.1: username was called user", "user")
_OTHER_READER = "the reader with this option and the reader without it store different kinds of positions"


_MYSQL_STARTUP = OptionFact(
    "scan.startup.mode",
    OptionEffect.STARTUP,
    document="MySqlSource: a restored reader resumes from its stored position",
    default="initial",
    values=("initial", "earliest-offset", "latest-offset"),
)


def _incremental(default: str) -> tuple[OptionFact, ...]:
    """Options of a connector that can read tables in chunks before it reads their changes."""
    return (
        *(
            OptionFact(
                key,
                OptionEffect.READ,
                document=_CAPTURES_NONE,
                note=_NOT_CAPTURED,
                unless=("scan.newly-added-table.enabled", "true"),
                expression=True,
            )
            for key in _TABLES
        ),
        OptionFact(
            "scan.incremental.snapshot.enabled",
            OptionEffect.STATE,
            document=f"{_PAGE}; {_OTHER_READER}",
            note=_OTHER_READER,
            default=default,
        ),
        *_OTHERS,
    )


def _source(options: tuple[OptionFact, ...], document: str, startup: Startup | None = None) -> SourceFacts:
    return SourceFacts(
        positions=SourceState.LOG,
        projection=Known.NO,
        filters=Known.NO,
        watermark=Known.NO,
        metadata=Known.YES,
        appends=Known.NO,
        options=options,
        startup=startup,
        document=document,
    )


_RELEASES = "Flink CDC's page about its sources: 3.6 is for Flink 1.20 and 2.2"
_READS_OLDER = (
    "PendingSplitsStateSerializer and SourceSplitSerializer (3.6) read all versions since 1, and "
    "scan.incremental.snapshot.enabled has the same default in 3.1 to 3.6"
)

CONNECTORS = (
    ConnectorFacts(
        ("postgres-cdc",),
        _source(_POSTGRES, "PostgreSQLTableSource (3.5): only SupportsReadingMetadata"),
        releases=_RELEASES,
        reads_older_state=_READS_OLDER,
    ),
    ConnectorFacts(
        ("mysql-cdc",),
        _source(
            (*_incremental("true"), _MYSQL_STARTUP),
            "MySqlTableSource (3.5): only SupportsReadingMetadata",
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
        releases=_RELEASES,
        reads_older_state="PendingSplitsStateSerializer (3.6) reads versions 1 to 5, and MySqlSplitSerializer 1 to 4",
    ),
    *(
        ConnectorFacts(
            (name,),
            _source(options, f"{source} (3.5): only SupportsReadingMetadata"),
            releases=_RELEASES if incremental else "",
            reads_older_state=_READS_OLDER if incremental else "",
        )
        for name, source, options, incremental in (
            ("oracle-cdc", "OracleTableSource", _incremental("true"), True),
            ("sqlserver-cdc", "SqlServerTableSource", _incremental("true"), True),
            ("mongodb-cdc", "MongoDBTableSource", (*_incremental("false"), *_USER), True),
            ("db2-cdc", "Db2TableSource", _incremental("true"), True),
            ("tidb-cdc", "TiDBTableSource", _OTHERS, False),
            ("oceanbase-cdc", "OceanBaseTableSource", _OTHERS, False),
        )
    ),
)
