"""Streams of cloud services: Kinesis."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import ConnectorFacts, Known, SourceFacts, StoredPositions

CONNECTORS = (
    ConnectorFacts(
        ("kinesis",),
        source=SourceFacts(
            positions=StoredPositions.SHARDS,
            appends=Known.YES,
            document="Kinesis connector page: sequence numbers of shards",
        ),
        formats=("format",),
    ),
)
