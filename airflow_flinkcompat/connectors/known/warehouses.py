"""Analytical databases: Doris and StarRocks (sources of their connectors; no restore was run)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import ConnectorFacts, SinkFacts, SinkState

CONNECTORS = (
    ConnectorFacts(
        ("doris",),
        sink=SinkFacts(
            state=SinkState.TRANSACTIONS, document="DorisSink: SupportsWriterState and SupportsCommitter, with labels"
        ),
    ),
    ConnectorFacts(
        ("starrocks",),
        sink=SinkFacts(
            state=SinkState.TRANSACTIONS,
            document="StarRocksDynamicSinkFunctionV2: transactions and labels under exactly-once, nothing otherwise",
        ),
    ),
)
