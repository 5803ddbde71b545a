"""Stores of keys and documents that are looked up: HBase and MongoDB."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    ConnectorFacts,
    Effect,
    Known,
    LookupFacts,
    LookupSupport,
    OptionFact,
    SinkFacts,
    SinkState,
)

_HBASE = "HBase connector page"
_HBASE_TABLE = ("table-name", "zookeeper.quorum", "zookeeper.znode.parent")
_HBASE_SINK = SinkFacts(
    state=SinkState.NONE,
    operators=1,
    upserts=Known.YES,
    options=(
        *(OptionFact(key, Effect.TARGET, document=_HBASE) for key in _HBASE_TABLE),
        OptionFact("sink.buffer-flush.*", Effect.TUNES, document=_HBASE),
    ),
    document="HBaseSinkFunction: a checkpoint flushes what is buffered, nothing is stored",
)
_MONGODB = "MongoDB connector page"
_LOOKUPS = "Flink's LookupOptions"
_ASKED = (
    OptionFact("lookup.cache*", Effect.TUNES, document=_LOOKUPS),
    OptionFact("lookup.partial-cache.*", Effect.TUNES, document=_LOOKUPS),
    OptionFact("lookup.max-retries", Effect.TUNES, document=_LOOKUPS),
    OptionFact("lookup.retry.interval", Effect.TUNES, document=_LOOKUPS),
)
_HBASE_ASKED = (*_ASKED, *(OptionFact(key, Effect.READ, document=_HBASE) for key in _HBASE_TABLE))
_MONGODB_ASKED = (
    *_ASKED,
    *(OptionFact(key, Effect.READ, document=_MONGODB) for key in ("uri", "database", "collection")),
)

CONNECTORS = (
    ConnectorFacts(
        ("hbase-1.4",),
        sink=_HBASE_SINK,
        lookup=LookupFacts(LookupSupport.SYNCHRONOUS, _HBASE_ASKED, "HBase connector page: lookups are synchronous"),
    ),
    ConnectorFacts(
        ("hbase-2.2",),
        sink=_HBASE_SINK,
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
                OptionFact("uri", Effect.TARGET, document=_MONGODB),
                OptionFact("database", Effect.TARGET, document=_MONGODB),
                OptionFact("collection", Effect.TARGET, document=_MONGODB),
                OptionFact("sink.buffer-flush.*", Effect.TUNES, document=_MONGODB),
                OptionFact("sink.delivery-guarantee", Effect.GUARANTEE, document=_MONGODB),
                OptionFact("sink.max-retries", Effect.TUNES, document=_MONGODB),
                OptionFact("sink.retry.interval", Effect.TUNES, document=_MONGODB),
            ),
            document="MongoSink: a Sink without SupportsWriterState; a checkpoint flushes",
        ),
        lookup=LookupFacts(
            LookupSupport.SYNCHRONOUS, _MONGODB_ASKED, "MongoDB connector page: lookups are synchronous"
        ),
    ),
)
