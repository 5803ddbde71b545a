"""Stores of keys and documents that are looked up: HBase, MongoDB and Redis (no restore was run)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    READ_ONCE,
    ConnectorFacts,
    Known,
    LookupFacts,
    LookupSupport,
    OptionEffect,
    SinkFacts,
    SinkState,
    SourceFacts,
    SourceState,
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
    document="HBaseSinkFunction (4.0) stores nothing; HBaseSink, which follows it, is an AsyncSinkBase: its writer "
    "stores what is buffered",
)
_HBASE_SOURCE = SourceFacts(
    positions=SourceState.ENDED,
    projection=Known.YES,
    filters=Known.NO,
    watermark=Known.NO,
    metadata=Known.NO,
    options=facts(OptionEffect.READ, _HBASE_SCAN, *_HBASE_TABLE, says=READ_ONCE),
    document=_HBASE_SCAN,
)
_MONGODB = "MongoDB connector page"
_REDIS = "pages of flink-connector-redis (1.4) and Bahir's Redis connector"
_ASKED = facts(
    OptionEffect.TUNES, "Flink's LookupOptions", "lookup.cache*", "lookup.partial-cache.*", "lookup.max-retries",
    "lookup.retry.interval",
)  # fmt: skip
_HBASE_ASKED = (
    *_ASKED,
    *facts(OptionEffect.READ, _HBASE, *_HBASE_TABLE),
    *facts(OptionEffect.STATE, _HBASE, "lookup.async"),
)
_MONGODB_ASKED = (
    *_ASKED,
    *facts(OptionEffect.READ, _MONGODB, "uri", "database", "collection"),
)
_REDIS_TARGET = ("host", "port", "cluster-nodes", "database", "redis-mode", "master.name", "sentinels.info", "command")
_REDIS_TUNING = ("timeout", "max.retries", "sink.max-retries", "ttl", "ttl.*", "io.pool.size", "event.pool.size")

CONNECTORS = (
    ConnectorFacts(
        ("hbase-1.4",),
        _HBASE_SOURCE,
        _HBASE_SINK,
        lookup=LookupFacts(LookupSupport.SYNCHRONOUS, _HBASE_ASKED, "HBase connector page: lookups are synchronous"),
    ),
    ConnectorFacts(
        ("hbase-2.2",),
        _HBASE_SOURCE,
        _HBASE_SINK,
        lookup=LookupFacts(
            LookupSupport.BY_OPTION,
            _HBASE_ASKED,
            document="HBase connector page: lookup.async, false by default; a hint says nothing",
        ),
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
            document="MongoSink: a Sink without SupportsWriterState; a checkpoint flushes",
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
            document="RedisSinkFunction: a RichSinkFunction, each row is written as it comes",
        ),
        lookup=LookupFacts(document="asynchronous in some connectors of this name, synchronous in others"),
    ),
)
