"""Files: ``filesystem`` (measured on Flink 2.3 and 1.20)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    EARLIEST,
    ConnectorFacts,
    Known,
    OptionEffect,
    OptionFact,
    SinkFacts,
    SinkState,
    SourceFacts,
    SourceState,
    Startup,
)

_MORE_OPERATORS = "it decides which operators are planned for the sink"

CONNECTORS = (
    ConnectorFacts(
        ("filesystem",),
        SourceFacts(
            positions=SourceState.FILES,
            projection=Known.YES,
            filters=Known.YES,
            watermark=Known.NO,
            metadata=Known.YES,
            appends=Known.YES,
            options=(
                OptionFact("source.monitor-interval", OptionEffect.TUNES, ("declarations-monitor-interval",)),
                OptionFact(
                    "csv.ignore-parse-errors",
                    OptionEffect.DECODING,
                    ("files-stateless-tolerance", "files-tumble-tolerance", "files-group-tolerance"),
                ),
                OptionFact("path", OptionEffect.READ, document="FileSystem connector page; no restore was run"),
            ),
            startup=Startup(choices={EARLIEST: {}}, itself="with all its files, those read before included"),
            document="FileSystemTableSource: takes projections, filters and metadata, no watermarks",
        ),
        SinkFacts(
            state=SinkState.WRITER,
            state_survives_columns=True,
            operators=2,
            upserts=Known.NO,
            updates=Known.NO,
            options=(
                OptionFact("path", OptionEffect.TARGET, ("sk-stateless-filesystem-path", "sk-tumble-filesystem-path")),
                OptionFact("sink.rolling-policy.*", OptionEffect.TUNES, ("sk-stateless-filesystem-rolling",)),
                OptionFact(
                    "sink.partition-commit.delay",
                    OptionEffect.TUNES,
                    document="PartitionTimeCommitTrigger, ProcTimeCommitTrigger: they store pending partitions alone",
                ),
                OptionFact("auto-compaction", OptionEffect.STATE, document="FileSystemTableSink", says=_MORE_OPERATORS),
                OptionFact(
                    "sink.partition-commit.policy.kind",
                    OptionEffect.STATE,
                    document="FileSystemTableSink, StreamingSink",
                    says=_MORE_OPERATORS,
                ),
                OptionFact(
                    "sink.parallelism",
                    OptionEffect.STATE,
                    document="FileSystemTableSink",
                    says="its writer keeps state, and is chained to nothing once its parallelism is its own",
                ),
            ),
            ids=("sk-stateless-filesystem-unchanged", "sk-tumble-filesystem-unchanged"),
            document="StreamingSink: a writer of files in progress, and what ends the stream or commits partitions",
        ),
        formats=("format",),
    ),
)
