"""Facts about analytical databases and search engines; only Doris was restored (1.20, stand-in)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    ConnectorFacts,
    Known,
    OptionEffect,
    OptionFact,
    SinkFacts,
    SinkState,
    TableUse,
    facts,
)

_STARROCKS = "StarRocks' page about its Flink connector (1.2)"
_TUNING = ("sink.buffer-flush.*", "sink.max-retries", "sink.connect.timeout-ms", "sink.retry.interval-ms",
           "sink.scan-frequency.ms", "sink.io.thread-count", "sink.chunk-limit", "sink.socket.timeout-ms",
           "sink.wait-for-continue.timeout-ms", "sink.metric.histogram-window-size")  # fmt: skip
_DORIS = "Doris' page about its Flink connector (25.0)"
_DORIS_TUNING = ("sink.max-retries", "sink.buffer-count", "sink.buffer-size", "sink.buffer-flush.*",
                 "sink.check-interval", "sink.flush.queue-size", "doris.request.connect.timeout",
                 "doris.request.read.timeout", "doris.request.retries")  # fmt: skip
_PAGE = "Elasticsearch connector page"
_ELASTIC = "Flink's list of connectors: Elasticsearch 4.0.0 is for Flink 2.0"
_OPTIONS = (
    *facts(OptionEffect.TARGET, _PAGE, "hosts", "index", "document-type"),
    *facts(
        OptionEffect.KEY,
        _PAGE,
        "document-id.key-delimiter",
        note="documents get different ids: earlier documents remain, and are never replaced or deleted",
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
        ("doris",),
        sink=SinkFacts(
            state=SinkState.TRANSACTIONS,
            operators=2,
            upserts=Known.NO,
            updates=Known.YES,
            options=(
                OptionFact(
                    "table.identifier",
                    OptionEffect.STATE,
                    ("doris-sink-stateless-elsewhere",),
                    note="the sink stores the name of its table, and a restored sink continues to write to that table",
                ),
                OptionFact(
                    "sink.parallelism",
                    OptionEffect.STATE,
                    ("doris-sink-stateless-parallelism-2",),
                    note="the writer has state, and a writer with a separate parallelism is not chained",
                ),
                *facts(OptionEffect.TARGET, _DORIS, "fenodes", "benodes"),
                *facts(OptionEffect.CREDENTIALS, _DORIS, "username", "password"),
                *facts(OptionEffect.TUNES, _DORIS, *_DORIS_TUNING),
                *facts(OptionEffect.DELIVERY_GUARANTEE, _DORIS, "sink.enable-2pc"),
                *facts(OptionEffect.DECODING, _DORIS, "sink.properties.*"),
            ),
            ids=("doris-sink-stateless-unchanged", "doris-sink-stateless-buffer-size"),
            document="DorisSink: SupportsWriterState and SupportsCommitter, with labels; "
            "DorisDynamicTableSink accepts every kind of change, except the row before "
            "an update if sink.ignore.update-before is true",
        ),
        releases="Doris' page about its Flink connector: 26.0.0 is for Flink 1.15 to 2.2",
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
            document="StarRocksDynamicSinkFunction, …FunctionV2 (1.2): transactions, labels and "
            "rows under exactly-once, otherwise nothing; StarRocksSink, the only sink "
            "in builds for Flink 2, has a stateful writer and a committer, and accepts "
            "every kind of change",
        ),
        not_on_flink_2=tuple(TableUse),
        releases="StarRocks' list of releases: 1.2.16 of 2026-09-24 is for Flink 1.16 to 1.20; 1.2.10 does not load on "
        "Flink 2.3",
    ),
    ConnectorFacts(
        ("clickhouse",),
        sink=SinkFacts(
            document="two connectors have this name: one stores nothing, and the other stores buffered requests"
        ),
    ),
    *(
        ConnectorFacts(
            (name,),
            sink=SinkFacts(
                state=SinkState.NONE,
                operators=1,
                upserts=Known.YES,
                updates=Known.NO,
                options=_OPTIONS,
                document="ElasticsearchSink, OpensearchSink: a Sink without SupportsWriterState; a "
                "checkpoint flushes the buffer",
            ),
            releases=releases,
        )
        for name, releases in (("elasticsearch-6", _ELASTIC), ("elasticsearch-7", _ELASTIC), ("opensearch", ""))
    ),
    ConnectorFacts(
        ("elasticsearch-8",),
        sink=SinkFacts(
            state=SinkState.WRITER,
            operators=1,
            upserts=Known.YES,
            updates=Known.NO,
            document="Elasticsearch8AsyncSink: an AsyncSinkBase, whose writer stores buffered requests",
        ),
        releases=_ELASTIC,
    ),
)
