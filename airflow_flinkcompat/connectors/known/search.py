"""Search engines: Elasticsearch and OpenSearch."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import ConnectorFacts, Known, SinkFacts

CONNECTORS = (
    ConnectorFacts(
        ("elasticsearch-6", "elasticsearch-7", "opensearch"),
        sink=SinkFacts(upserts=Known.YES, updates=Known.NO, document="Elasticsearch connector page"),
    ),
)
