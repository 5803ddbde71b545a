"""Search engines: Elasticsearch and OpenSearch (sources of their connectors; no restore was run)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import ConnectorFacts, Effect, Known, OptionFact, SinkFacts, SinkState

_PAGE = "Elasticsearch connector page"
_OPTIONS = (
    OptionFact("hosts", Effect.TARGET, document=_PAGE),
    OptionFact("index", Effect.TARGET, document=_PAGE),
    OptionFact("document-type", Effect.TARGET, document=_PAGE),
    OptionFact("document-id.key-delimiter", Effect.TARGET, document=_PAGE),
    OptionFact("username", Effect.CREDENTIALS, document=_PAGE),
    OptionFact("password", Effect.CREDENTIALS, document=_PAGE),
    OptionFact("sink.bulk-flush.*", Effect.TUNES, document=_PAGE),
    OptionFact("sink.delivery-guarantee", Effect.GUARANTEE, document=_PAGE),
    OptionFact("connection.*", Effect.TUNES, document=_PAGE),
    OptionFact("socket.timeout", Effect.TUNES, document=_PAGE),
)

CONNECTORS = (
    ConnectorFacts(
        ("elasticsearch-6", "elasticsearch-7", "opensearch"),
        sink=SinkFacts(
            state=SinkState.NONE,
            operators=1,
            upserts=Known.YES,
            updates=Known.NO,
            options=_OPTIONS,
            document="ElasticsearchSink, OpensearchSink: a Sink without SupportsWriterState; a checkpoint flushes",
        ),
    ),
    ConnectorFacts(
        ("elasticsearch-8",),
        sink=SinkFacts(
            state=SinkState.WRITER,
            upserts=Known.YES,
            updates=Known.NO,
            document="Elasticsearch8AsyncSink: an AsyncSinkBase, whose writer stores the requests it has buffered",
        ),
    ),
)
