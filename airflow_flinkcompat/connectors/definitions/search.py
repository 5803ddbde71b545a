"""Search engines: Elasticsearch and OpenSearch (sources of their connectors; no restore was run)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import ConnectorFacts, Known, OptionEffect, SinkFacts, SinkState, facts

_PAGE = "Elasticsearch connector page"
_OPTIONS = (
    *facts(OptionEffect.TARGET, _PAGE, "hosts", "index", "document-type"),
    *facts(
        OptionEffect.KEY,
        _PAGE,
        "document-id.key-delimiter",
        says="documents get other ids: those of before stay where they are, and are never replaced or deleted",
    ),
    *facts(OptionEffect.CREDENTIALS, _PAGE, "username", "password"),
    *facts(OptionEffect.TUNES, _PAGE, "sink.bulk-flush.*", "connection.*", "socket.timeout"),
    *facts(
        OptionEffect.DELIVERY_GUARANTEE, _PAGE, "sink.delivery-guarantee", "sink.flush-on-checkpoint", "failure-handler"
    ),
    *facts(OptionEffect.DECODING, _PAGE, "format"),
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
