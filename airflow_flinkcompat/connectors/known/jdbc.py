"""JDBC: ``jdbc`` (restores on Flink 2.3 with flink-connector-jdbc 4.0.0-2.0)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    READ_ONCE,
    ConnectorFacts,
    Effect,
    KeyDemand,
    Known,
    LookupFacts,
    LookupSupport,
    OptionFact,
    SinkFacts,
    SinkState,
    SourceFacts,
    StoredPositions,
    facts,
)
from airflow_flinkcompat.connectors.startup import EARLIEST, Startup

_CACHE = ("sk-stateless-lookup-cache", "sk-group-lookup-cache")
_RETRIES = ("sk-stateless-lookup-retries", "sk-group-lookup-retries")
_SINK_RETRIES = ("sk-stateless-jdbc-retries", "sk-group-jdbc-retries")
_SCAN = "JdbcDynamicTableSource (4.0): an InputFormatProvider, whose bounds are a condition of its query"
_PAGE = "JDBC connector page"

CONNECTORS = (
    ConnectorFacts(
        ("jdbc",),
        SourceFacts(
            positions=StoredPositions.ENDED,
            projection=Known.YES,
            filters=Known.YES,
            watermark=Known.NO,
            metadata=Known.NO,
            options=(
                *facts(Effect.READ, _SCAN, "table-name", "url", "scan.partition.lower-bound", says=READ_ONCE),
                *facts(Effect.READ, _SCAN, "scan.partition.upper-bound", "scan.partition.column", says=READ_ONCE),
                *facts(Effect.TUNES, _SCAN, "scan.partition.num", "scan.fetch-size", "driver"),
                *facts(Effect.CREDENTIALS, _SCAN, "username", "password"),
            ),
            startup=Startup(choices={EARLIEST: {}}, itself="with all rows of its table, those read before included"),
            document="JdbcDynamicTableSource (4.0): takes projections and filters, reads with an input format",
        ),
        SinkFacts(
            state=SinkState.NONE,
            operators=1,
            upserts=Known.YES,
            updates=Known.NO,
            primary_key=KeyDemand.FOR_UPDATES,
            options=(
                OptionFact("url", Effect.TARGET, ("sk-group-jdbc-url",)),
                OptionFact("table-name", Effect.TARGET, ("sk-stateless-jdbc-table", "sk-group-jdbc-table")),
                OptionFact("username", Effect.CREDENTIALS, document=_PAGE),
                OptionFact("password", Effect.CREDENTIALS, ("sk-stateless-jdbc-password",)),
                OptionFact("sink.buffer-flush.*", Effect.TUNES, ("sk-stateless-jdbc-buffer",)),
                OptionFact("sink.max-retries", Effect.TUNES, _SINK_RETRIES),
                OptionFact("connection.max-retry-timeout", Effect.TUNES, _SINK_RETRIES),
                OptionFact("driver", Effect.TUNES, ("jdbc-sink-stateless-driver", "jdbc-sink-group-driver")),
                OptionFact("compatible-mode", Effect.TUNES, document=_PAGE),
                OptionFact("sink.parallelism", Effect.TUNES, ("sk-group-jdbc-parallelism-2",)),
            ),
            ids=("sk-stateless-jdbc-unchanged",),
            document="GenericJdbcSinkFunction (4.0): a checkpoint flushes what is buffered, nothing is stored",
        ),
        LookupFacts(
            support=LookupSupport.SYNCHRONOUS,
            options=(
                OptionFact("lookup.cache*", Effect.TUNES, _CACHE),
                OptionFact("lookup.partial-cache.*", Effect.TUNES, _CACHE),
                OptionFact("lookup.max-retries", Effect.TUNES, _RETRIES),
                OptionFact("connection.max-retry-timeout", Effect.TUNES, document=_PAGE),
                OptionFact("table-name", Effect.READ, ("sk-stateless-lookup-table",)),
                OptionFact("url", Effect.READ, document=_PAGE),
                OptionFact("username", Effect.CREDENTIALS, document=_PAGE),
                OptionFact("password", Effect.CREDENTIALS, document=_PAGE),
                OptionFact("driver", Effect.TUNES, ("jdbc-lookup-stateless-driver", "jdbc-lookup-group-driver")),
            ),
            document=f"{_PAGE}: lookups are synchronous",
        ),
    ),
)
