"""Facts about print, blackhole, datagen, filesystem (by restores on 2.3 and 1.20), faker and values."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    EARLIEST,
    PART_OF_FLINK,
    ConnectorFacts,
    Known,
    LookupFacts,
    LookupSupport,
    OptionEffect,
    OptionFact,
    SinkFacts,
    SinkState,
    SourceFacts,
    SourceState,
    Startup,
    TableUse,
    facts,
)

_MADE = Startup(itself="with the first row, because it generates its rows")
_FAKER = "FlinkFakerTableSource (0.5): a NumberSequenceSource before a function that stores nothing"
_DATAGEN = "RandomGenerator stores nothing; options of a sequence are separate"
_SEQUENCE = "SequenceGenerator, which stores the position of each sequence"
_RANDOM = tuple(f"fields.*.{name}" for name in ("min", "max", "max-past", "length", "var-len", "null-rate"))
_MADE_ANEW = "the savepoint stores at most the number of generated rows, so new rows follow the new options"
_MORE_OPERATORS = "this option decides which operators Flink plans for the sink"

CONNECTORS = (
    ConnectorFacts(
        ("print",),
        sink=SinkFacts(
            state=SinkState.NONE,
            operators=1,
            upserts=Known.NO,
            upserts_appended=Known.NO,
            updates=Known.YES,
            row_before=Known.YES,
            options=(
                OptionFact(
                    "print-identifier",
                    OptionEffect.TUNES,
                    document="PrintTableSinkFactory: the identifier is the prefix of each line",
                ),
                OptionFact("standard-error", OptionEffect.TUNES, ("sinks-print-option",)),
                OptionFact("sink.parallelism", OptionEffect.TUNES, ("sk-stateless-print-parallelism",)),
            ),
            ids=("sinks-unchanged",),
            document="PrintTableSinkFactory: rows are written as they arrive",
        ),
        releases=PART_OF_FLINK,
    ),
    ConnectorFacts(
        ("blackhole",),
        sink=SinkFacts(
            state=SinkState.NONE,
            operators=1,
            upserts=Known.NO,
            upserts_appended=Known.NO,
            updates=Known.YES,
            row_before=Known.NO,
            ids=("sk-stateless-blackhole-print",),
            document="BlackHoleTableSinkFactory: rows are dropped, and the row before an update is not requested",
        ),
        releases=PART_OF_FLINK,
    ),
    ConnectorFacts(
        ("datagen",),
        source=SourceFacts(
            positions=SourceState.COUNTER,
            projection=Known.NO,
            filters=Known.NO,
            watermark=Known.NO,
            metadata=Known.NO,
            appends=Known.YES,
            options=(
                OptionFact("rows-per-second", OptionEffect.TUNES, document=_DATAGEN),
                *facts(OptionEffect.READ, _DATAGEN, *_RANDOM, note=_MADE_ANEW),
                OptionFact(
                    "fields.*.end",
                    OptionEffect.READ,
                    ("generated-stateless-sequence-end", "generated-group-sequence-end"),
                    note="the sequence resumes from its stored value and runs to its new end",
                ),
                *facts(OptionEffect.STATE, _SEQUENCE, "fields.*.kind", "fields.*.start"),
                *facts(OptionEffect.BOUNDED_END, _SEQUENCE, "number-of-rows"),
            ),
            startup=_MADE,
            document="DataGenTableSource: SupportsLimitPushDown",
        ),
        releases=PART_OF_FLINK,
    ),
    ConnectorFacts(
        ("faker",),
        source=SourceFacts(
            positions=SourceState.COUNTER,
            projection=Known.NO,
            filters=Known.NO,
            watermark=Known.NO,
            metadata=Known.NO,
            appends=Known.YES,
            options=(
                OptionFact("rows-per-second", OptionEffect.TUNES, document=_FAKER),
                *facts(OptionEffect.READ, _FAKER, "fields.*", note=_MADE_ANEW),
            ),
            startup=_MADE,
            document="FlinkFakerTableSource (0.5): a NumberSequenceSource, which stores its current number",
        ),
        lookup=LookupFacts(LookupSupport.SYNCHRONOUS, document="FlinkFakerTableSource (0.5): LookupFunctionProvider"),
        not_on_flink_2=tuple(TableUse),
        releases="flink-faker 0.5.3 is the last release; its FlinkFakerGenerator needs "
        "RichFunction.open(Configuration), which Flink 2.0 removed; use the connector datagen",
        reads_older_state="NumberSequenceSource of Flink, whose splits have version 1 on every line",
    ),
    ConnectorFacts(
        ("values",),
        source=SourceFacts(
            positions=SourceState.NOTHING,
            document="TestValuesTableFactory: a connector of Flink's own tests, which no deployed job can load",
        ),
        sink=SinkFacts(
            state=SinkState.NONE,
            document="TestValuesTableFactory: a connector of Flink's own tests, which no deployed job can load",
        ),
        lookup=LookupFacts(document="TestValuesTableFactory: the option async selects the mode"),
        releases=PART_OF_FLINK,
    ),
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
            startup=Startup(choices={EARLIEST: {}}, itself="with all files, including files that were read before"),
            document="FileSystemTableSource: supports projections, filters and metadata, but no watermarks",
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
                    document="PartitionTimeCommitTrigger, ProcTimeCommitTrigger: these classes store "
                    "only pending partitions",
                ),
                OptionFact("auto-compaction", OptionEffect.STATE, document="FileSystemTableSink", note=_MORE_OPERATORS),
                OptionFact(
                    "sink.partition-commit.policy.kind",
                    OptionEffect.STATE,
                    document="FileSystemTableSink, StreamingSink",
                    note=_MORE_OPERATORS,
                ),
                OptionFact(
                    "sink.parallelism",
                    OptionEffect.STATE,
                    document="FileSystemTableSink",
                    note="the writer has state, and a writer with a separate parallelism is not chained",
                ),
            ),
            ids=("sk-stateless-filesystem-unchanged", "sk-tumble-filesystem-unchanged"),
            document="StreamingSink: a writer of files in progress, and an operator that "
            "commits partitions or ends the stream",
        ),
        formats=("format",),
        releases=PART_OF_FLINK,
        reads_older_state="FileSourceSplitSerializer and PendingSplitsCheckpointSerializer of Flink have version 1 on "
        "every line, and BucketStateSerializer reads versions 1 and 2",
    ),
)
