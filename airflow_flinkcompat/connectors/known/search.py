"""Search engines: Elasticsearch and OpenSearch (sources of their connectors; no restore was run)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import ConnectorFacts, Effect, Known, SinkFacts, SinkState, facts

_PAGE = "Elasticsearch connector page"
_OPTIONS = (
    *facts(Effect.TARGET, _PAGE, "hosts", "index", "document-type"),
    *facts(
        Effect.KEY,
        _PAGE,
        "document-id.key-delimiter",
        says="documents get other ids: those of before stay where they are, and are never replaced or deleted",
    ),
    *facts(Effect.CREDENTIALS, _PAGE, "username", "password"),
    *facts(Effect.TUNES, _PAGE, "sink.bulk-flush.*", "connection.*", "socket.timeout"),
    *facts(Effect.GUARANTEE, _PAGE, "sink.delivery-guarantee", "sink.flush-on-checkpoint", "failure-handler"),
    *facts(Effect.DECODING, _PAGE, "format"),
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
            operators=1,
            upserts=Known.YES,
            updates=Known.NO,
            document="Elasticsearch8AsyncSink: an AsyncSinkBase, whose writer stores the requests it has buffered",
        ),
    ),
)
