"""JDBC: ``jdbc`` (restores on Flink 2.3 with flink-connector-jdbc 4.0.0-2.0)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    EARLIEST,
    READ_ONCE,
    ConnectorFacts,
    KeyDemand,
    Known,
    LookupFacts,
    LookupSupport,
    OptionEffect,
    OptionFact,
    SinkFacts,
    SinkState,
    SourceFacts,
    SourceState,
    Startup,
    facts,
)

_CACHE = ("sk-stateless-lookup-cache", "sk-group-lookup-cache")
_RETRIES = ("sk-stateless-lookup-retries", "sk-group-lookup-retries")
_SINK_RETRIES = ("sk-stateless-jdbc-retries", "sk-group-jdbc-retries")
_SCAN = "JdbcDynamicTableSource (4.0): an InputFormatProvider, whose bounds are a condition of its query"
_PAGE = "JDBC connector page"

CONNECTORS = (
    ConnectorFacts(
        ("jdbc",),
        SourceFacts(
            positions=SourceState.ENDED,
            projection=Known.YES,
            filters=Known.YES,
            watermark=Known.NO,
            metadata=Known.NO,
            options=(
                *facts(OptionEffect.READ, _SCAN, "table-name", "url", "scan.partition.lower-bound", says=READ_ONCE),
                *facts(OptionEffect.READ, _SCAN, "scan.partition.upper-bound", "scan.partition.column", says=READ_ONCE),
                *facts(OptionEffect.TUNES, _SCAN, "scan.partition.num", "scan.fetch-size", "driver"),
                *facts(OptionEffect.CREDENTIALS, _SCAN, "username", "password"),
                *facts(OptionEffect.TUNES, _PAGE, "scan.auto-commit", "connection.max-retry-timeout"),
            ),
            startup=Startup(choices={EARLIEST: {}}, itself="with all rows of its table, those read before included"),
            document="JdbcDynamicTableSource (4.0): takes projections and filters, reads with an input format",
        ),
        SinkFacts(
            state=SinkState.NONE,
            operators=1,
            upserts=Known.YES,
            upserts_appended=Known.YES,
            updates=Known.NO,
            primary_key=KeyDemand.FOR_UPDATES,
            options=(
                OptionFact("url", OptionEffect.TARGET, ("sk-group-jdbc-url",)),
                OptionFact("table-name", OptionEffect.TARGET, ("sk-stateless-jdbc-table", "sk-group-jdbc-table")),
                OptionFact("username", OptionEffect.CREDENTIALS, document=_PAGE),
                OptionFact("password", OptionEffect.CREDENTIALS, ("sk-stateless-jdbc-password",)),
                OptionFact("sink.buffer-flush.*", OptionEffect.TUNES, ("sk-stateless-jdbc-buffer",)),
                OptionFact("sink.max-retries", OptionEffect.TUNES, _SINK_RETRIES),
                OptionFact("connection.max-retry-timeout", OptionEffect.TUNES, _SINK_RETRIES),
                OptionFact("driver", OptionEffect.TUNES, ("jdbc-sink-stateless-driver", "jdbc-sink-group-driver")),
                OptionFact("compatible-mode", OptionEffect.TUNES, document=_PAGE),
                OptionFact("sink.parallelism", OptionEffect.TUNES, ("sk-group-jdbc-parallelism-2",)),
            ),
            ids=("sk-stateless-jdbc-unchanged",),
            document="GenericJdbcSinkFunction (4.0): a checkpoint flushes what is buffered, nothing is stored",
        ),
        LookupFacts(
            support=LookupSupport.SYNCHRONOUS,
            options=(
                OptionFact("lookup.cache*", OptionEffect.TUNES, _CACHE),
                OptionFact("lookup.partial-cache.*", OptionEffect.TUNES, _CACHE),
                OptionFact("lookup.max-retries", OptionEffect.TUNES, _RETRIES),
                OptionFact("connection.max-retry-timeout", OptionEffect.TUNES, document=_PAGE),
                OptionFact("table-name", OptionEffect.READ, ("sk-stateless-lookup-table",)),
                OptionFact("url", OptionEffect.READ, document=_PAGE),
                OptionFact("username", OptionEffect.CREDENTIALS, document=_PAGE),
                OptionFact("password", OptionEffect.CREDENTIALS, document=_PAGE),
                OptionFact("driver", OptionEffect.TUNES, ("jdbc-lookup-stateless-driver", "jdbc-lookup-group-driver")),
            ),
            document=f"{_PAGE}: lookups are synchronous",
        ),
    ),
)
