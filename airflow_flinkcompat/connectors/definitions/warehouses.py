"""Analytical databases: Doris, StarRocks and ClickHouse (sources of their connectors; no restore was run)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import ConnectorFacts, Known, OptionEffect, SinkFacts, SinkState, facts

_STARROCKS = "StarRocks' page on its connector for Flink (1.2)"
_TUNING = ("sink.buffer-flush.*", "sink.max-retries", "sink.connect.timeout-ms", "sink.retry.interval-ms",
           "sink.scan-frequency.ms", "sink.io.thread-count", "sink.chunk-limit")  # fmt: skip

CONNECTORS = (
    ConnectorFacts(
        ("doris",),
        sink=SinkFacts(
            state=SinkState.TRANSACTIONS,
            operators=2,
            upserts=Known.NO,
            updates=Known.YES,
            document="DorisSink: SupportsWriterState and SupportsCommitter, with labels; DorisDynamicTableSink takes "
            "every change, without the row before an update where sink.ignore.update-before is true",
        ),
    ),
    ConnectorFacts(
        ("starrocks",),
        sink=SinkFacts(
            state=SinkState.TRANSACTIONS,
            stateful_options=(("sink.semantic", "exactly-once"), ("sink.use.new-sink-api", "true")),
            upserts=Known.NO,
            upserts_appended=Known.NO,
            updates=Known.YES,
            row_before=Known.YES,
            options=(
                *facts(OptionEffect.TARGET, _STARROCKS, "jdbc-url", "load-url", "database-name", "table-name"),
                *facts(OptionEffect.CREDENTIALS, _STARROCKS, "username", "password"),
                *facts(OptionEffect.TUNES, _STARROCKS, *_TUNING),
                *facts(OptionEffect.DELIVERY_GUARANTEE, _STARROCKS, "sink.semantic"),
                *facts(OptionEffect.DECODING, _STARROCKS, "sink.properties.*"),
            ),
            document="StarRocksDynamicSinkFunction, …FunctionV2 (1.2): transactions, labels and rows under "
            "exactly-once, nothing otherwise; StarRocksSink, the only one in a build for Flink 2, has a writer with "
            "state and a committer; it takes every kind of change",
        ),
    ),
    ConnectorFacts(
        ("clickhouse",),
        sink=SinkFacts(
            document="two connectors have this name: one flushes and stores nothing, the other stores buffered requests"
        ),
    ),
)
