"""Facts about JDBC (restores on Flink 2.3, connector 4.0), HBase, MongoDB and Redis (no restores)."""

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
    TableUse,
    facts,
)

_HBASE = "HBase connector page"
_HBASE_SCAN = "AbstractHBaseDynamicTableSource: an InputFormatProvider"
_HBASE_TABLE = ("table-name", "zookeeper.quorum", "zookeeper.znode.parent")
_HBASE_SINK = SinkFacts(
    state=SinkState.WRITER,
    operators=1,
    upserts=Known.YES,
    options=(
        *facts(OptionEffect.TARGET, _HBASE, *_HBASE_TABLE),
        *facts(OptionEffect.TUNES, _HBASE, "sink.buffer-flush.*"),
    ),
    document="HBaseSinkFunction (4.0) stores nothing; its successor HBaseSink is an "
    "AsyncSinkBase, whose writer stores buffered requests",
)
_HBASE_SOURCE = SourceFacts(
    positions=SourceState.ENDED,
    projection=Known.YES,
    filters=Known.NO,
    watermark=Known.NO,
    metadata=Known.NO,
    options=facts(OptionEffect.READ, _HBASE_SCAN, *_HBASE_TABLE, note=READ_ONCE),
    document=_HBASE_SCAN,
)
_MONGODB = "MongoDB connector page"
_REDIS = "pages of flink-connector-redis (1.4) and of Bahir's Redis connector"
_ASKED = facts(
    OptionEffect.TUNES, "Flink's LookupOptions", "lookup.cache*", "lookup.partial-cache.*", "lookup.max-retries",
    "lookup.retry.interval",
)  # fmt: skip
_HBASE_ASKED = (
    *_ASKED,
    *facts(OptionEffect.READ, _HBASE, *_HBASE_TABLE),
    *facts(OptionEffect.STATE, _HBASE, "lookup.async"),
)
_MONGODB_ASKED = (*_ASKED, *facts(OptionEffect.READ, _MONGODB, "uri", "database", "collection"))
_REDIS_TARGET = ("host", "port", "cluster-nodes", "database", "redis-mode", "master.name", "sentinels.info", "command")
_REDIS_TUNING = ("timeout", "max.retries", "sink.max-retries", "ttl", "ttl.*", "io.pool.size", "event.pool.size")
_CACHE = ("sk-stateless-lookup-cache", "sk-group-lookup-cache")
_RETRIES = ("sk-stateless-lookup-retries", "sk-group-lookup-retries")
_SINK_RETRIES = ("sk-stateless-jdbc-retries", "sk-group-jdbc-retries")
_SCAN = "JdbcDynamicTableSource (4.0): an InputFormatProvider, which adds the bounds to its query as a condition"
_PAGE = "JDBC connector page"

_HBASE_RELEASES = (
    "HBase connector page: 4.0.0 is for Flink 1.18 and 1.19; its source and its lookup load on Flink 2.3, but its sink "
    "does not"
)

CONNECTORS = (
    ConnectorFacts(
        ("hbase-1.4",),
        _HBASE_SOURCE,
        _HBASE_SINK,
        lookup=LookupFacts(LookupSupport.SYNCHRONOUS, _HBASE_ASKED, "HBase connector page: lookups are synchronous"),
        not_on_flink_2=(TableUse.SINK,),
        releases=_HBASE_RELEASES,
    ),
    ConnectorFacts(
        ("hbase-2.2",),
        _HBASE_SOURCE,
        _HBASE_SINK,
        lookup=LookupFacts(
            LookupSupport.BY_OPTION,
            _HBASE_ASKED,
            document="HBase connector page: lookup.async is false by default; a hint has no effect",
        ),
        not_on_flink_2=(TableUse.SINK,),
        releases=_HBASE_RELEASES,
    ),
    ConnectorFacts(
        ("mongodb",),
        sink=SinkFacts(
            state=SinkState.NONE,
            operators=1,
            upserts=Known.YES,
            updates=Known.NO,
            options=(
                *facts(OptionEffect.TARGET, _MONGODB, "uri", "database", "collection"),
                *facts(OptionEffect.TUNES, _MONGODB, "sink.buffer-flush.*", "sink.max-retries", "sink.retry.interval"),
                *facts(OptionEffect.DELIVERY_GUARANTEE, _MONGODB, "sink.delivery-guarantee"),
            ),
            document="MongoSink: a Sink without SupportsWriterState; a checkpoint flushes the buffer",
        ),
        lookup=LookupFacts(
            LookupSupport.SYNCHRONOUS, _MONGODB_ASKED, "MongoDB connector page: lookups are synchronous"
        ),
    ),
    ConnectorFacts(
        ("redis",),
        sink=SinkFacts(
            state=SinkState.NONE,
            operators=1,
            upserts=Known.YES,
            options=(
                *facts(OptionEffect.TARGET, _REDIS, *_REDIS_TARGET),
                *facts(OptionEffect.CREDENTIALS, _REDIS, "password", "sentinels.password"),
                *facts(OptionEffect.TUNES, _REDIS, *_REDIS_TUNING),
            ),
            document="RedisSinkFunction: a RichSinkFunction that writes each row immediately",
        ),
        lookup=LookupFacts(document="some connectors with this name are asynchronous, and others are synchronous"),
    ),
    ConnectorFacts(
        ("jdbc",),
        SourceFacts(
            positions=SourceState.ENDED,
            projection=Known.YES,
            filters=Known.YES,
            watermark=Known.NO,
            metadata=Known.NO,
            options=(
                *facts(OptionEffect.READ, _SCAN, "table-name", "url", "scan.partition.lower-bound", note=READ_ONCE),
                *facts(OptionEffect.READ, _SCAN, "scan.partition.upper-bound", "scan.partition.column", note=READ_ONCE),
                *facts(OptionEffect.TUNES, _SCAN, "scan.partition.num", "scan.fetch-size", "driver"),
                *facts(OptionEffect.CREDENTIALS, _SCAN, "username", "password"),
                *facts(OptionEffect.TUNES, _PAGE, "scan.auto-commit", "connection.max-retry-timeout"),
            ),
            startup=Startup(
                choices={EARLIEST: {}}, itself="with all rows of the table, including rows that were read before"
            ),
            document="JdbcDynamicTableSource (4.0): supports projections and filters, and reads with an input format",
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
            document="GenericJdbcSinkFunction (4.0): a checkpoint flushes the buffer, and nothing is stored",
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
        releases="flink-connector-jdbc-core 4.0.0-2.0",
    ),
)
