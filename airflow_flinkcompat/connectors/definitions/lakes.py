"""Facts about lake tables: Iceberg, Paimon, Hudi (restores on Flink 1.20, source code) and Delta."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    ConnectorFacts,
    Known,
    LookupFacts,
    OptionEffect,
    OptionFact,
    SinkFacts,
    SinkState,
    SourceFacts,
    SourceState,
    facts,
)

_ICEBERG = "Iceberg's Flink pages: configuration, FlinkWriteOptions and FlinkReadOptions (1.10)"
_PAIMON = "Paimon's configuration page, FlinkConnectorOptions (1.3)"
_HUDI = "Hudi's configuration page, FlinkOptions (1.0)"
_DELTA = "Delta's connectors/flink: DeltaTableConnectorOptions (3.3)"
_PENDING = "the savepoint may contain uncommitted files of the old table, which would be committed into the new table"
_VERSION_OF_OLD = "the savepoint stores a version of the old table, which has no meaning in a different table"
_RESUMES = "only a start without state uses this option; a restored source resumes from its stored version"
_BEGINNING = "this option is the starting position without state; a restored source resumes from its stored version"

_PLANNED = "this option decides which operators Flink plans for the sink, or the parallelism of those operators"
_OF_THE_TABLE = "a property of the table, which is set when the table is created"
_HUDI_TUNING = (
    "compaction.delta_commits", "compaction.delta_seconds", "compaction.trigger.strategy", "compaction.max_memory",
    "compaction.target_io", "compaction.timeout.seconds", "write.batch.size", "write.task.max.size",
    "write.rate.limit", "write.log_block.size", "write.log.max.size", "write.merge.max_memory", "write.parquet.*",
    "write.retry.*", "write.commit.ack.timeout", "clean.policy", "clean.retain_*", "archive.*", "hive_sync.*",
    "write.sort.memory", "metadata.compaction.delta_commits",
)  # fmt: skip
_HUDI_PLANNED = (
    "write.tasks", "write.bucket_assign.tasks", "compaction.tasks", "compaction.async.enabled",
    "compaction.schedule.enabled", "clean.async.enabled", "clustering.*", "index.*", "table.type", "write.operation",
    "changelog.enabled",
)  # fmt: skip
_PAIMON_TUNING = (
    "snapshot.time-retained", "snapshot.num-retained.*", "snapshot.expire.*", "write-buffer-size",
    "write-buffer-spillable", "num-sorted-run.*", "target-file-size", "compaction.*", "page-size",
    "sort-spill-threshold", "file.compression*", "manifest.merge-min-count", "manifest.target-file-size",
    "manifest.full-compaction-threshold-size", "manifest.compression", "commit.max-retries", "commit.*-retry-wait",
    "commit.timeout", "cache-page-size", "file-operation.thread-num", "local-sort.max-num-file-handles",
    "sort-spill-buffer-size", "spill-compression*", "write-buffer-spill.max-disk-size", "write-max-writers-to-spill",
    "write.batch-size", "write.batch-memory", "changelog.num-retained.*", "changelog.time-retained",
    "lookup.cache-max-*", "lookup.cache.*",
)  # fmt: skip

_ICEBERG_SPLITS = (
    "monitor-interval", "max-planning-snapshot-count", "max-allowed-planning-failures", "split-size", "split-lookback",
    "split-file-open-cost",
)  # fmt: skip
_PAIMON_SPLITS = (
    "continuous.discovery-interval", "scan.max-splits-per-task", "scan.split-enumerator.batch-size",
    "source.split.*", "read.batch-size", "scan.manifest.parallelism", "file-reader-async-threshold",
)  # fmt: skip
_ICEBERG_TABLE = (
    "catalog-name", "catalog-type", "catalog-impl", "catalog-database", "catalog-table", "uri", "warehouse",
)  # fmt: skip

CONNECTORS = (
    ConnectorFacts(
        ("iceberg",),
        SourceFacts(
            positions=SourceState.TABLE_VERSION,
            projection=Known.YES,
            filters=Known.YES,
            watermark=Known.NO,
            metadata=Known.NO,
            appends=Known.YES,
            options=(
                *facts(OptionEffect.READ, _ICEBERG, *_ICEBERG_TABLE, "branch", note=_VERSION_OF_OLD),
                OptionFact(
                    "starting-strategy", OptionEffect.STARTUP, ("iceberg-source-group-startup-latest",), note=_RESUMES
                ),
                *facts(
                    OptionEffect.STARTUP,
                    _ICEBERG,
                    "start-snapshot-id",
                    "start-snapshot-timestamp",
                    "start-tag",
                    note=_BEGINNING,
                ),
                *facts(OptionEffect.TUNES, _ICEBERG, *_ICEBERG_SPLITS),
            ),
            table_name_option="catalog-table",
            document="IcebergTableSource (1.10): supports projections, filters and limits; the "
            "enumerator stores the last planned snapshot and the unread splits",
        ),
        SinkFacts(
            state=SinkState.TRANSACTIONS,
            upserts=Known.NO,
            upserts_appended=Known.NO,
            updates=Known.YES,
            row_before=Known.YES,
            options=(
                *facts(OptionEffect.TARGET, _ICEBERG, *_ICEBERG_TABLE, "branch", note=_PENDING),
                *facts(
                    OptionEffect.TUNES, _ICEBERG, "target-file-size-bytes", "compression-*", "table-refresh-interval"
                ),
                *facts(OptionEffect.TUNES, _ICEBERG, "write.target-file-size-bytes", "commit.*", note=_OF_THE_TABLE),
                *facts(OptionEffect.TUNES, _ICEBERG, "write.metadata.*", "history.expire.*", note=_OF_THE_TABLE),
                *facts(
                    OptionEffect.TUNES, _ICEBERG, "write.parquet.*", "write.orc.*", "write.avro.*", note=_OF_THE_TABLE
                ),
                OptionFact(
                    "write-parallelism",
                    OptionEffect.STATE,
                    ("iceberg-sink-stateless-write-parallelism",),
                    note="writers with a separate parallelism are not chained",
                ),
                *facts(OptionEffect.STATE, _ICEBERG, "distribution-mode", note=_PLANNED),
                *facts(OptionEffect.STATE, _ICEBERG, "write.distribution-mode", note=_PLANNED),
            ),
            ids=("iceberg-sink-stateless-unchanged", "iceberg-sink-stateless-file-size"),
            document="IcebergFilesCommitter, IcebergSink (1.10): manifests of uncommitted "
            "files; IcebergTableSink accepts every kind of change",
        ),
    ),
    ConnectorFacts(
        ("paimon",),
        SourceFacts(
            positions=SourceState.TABLE_VERSION,
            projection=Known.YES,
            filters=Known.YES,
            watermark=Known.YES,
            options=(
                *facts(OptionEffect.READ, _PAIMON, "path", "branch", note=_VERSION_OF_OLD),
                OptionFact("scan.mode", OptionEffect.STARTUP, ("paimon-source-group-startup-latest",), note=_RESUMES),
                *facts(
                    OptionEffect.STARTUP,
                    _PAIMON,
                    "scan.snapshot-id",
                    "scan.timestamp",
                    "scan.timestamp-millis",
                    "scan.tag-name",
                    note=_BEGINNING,
                ),
                *facts(OptionEffect.TUNES, _PAIMON, *_PAIMON_SPLITS),
            ),
            document="FlinkTableSource, BaseDataTableSource (1.3): supports projections, "
            "filters, limits and watermarks; the enumerator stores the next snapshot "
            "and the unread splits",
        ),
        SinkFacts(
            state=SinkState.TRANSACTIONS,
            options=(
                OptionFact(
                    "path",
                    OptionEffect.STATE,
                    ("paimon-sink-group-elsewhere",),
                    note="the stored commits are committed again into the new table, and the job fails",
                ),
                *facts(OptionEffect.TARGET, _PAIMON, "branch", note=_PENDING),
                *facts(OptionEffect.TUNES, _PAIMON, *_PAIMON_TUNING),
                *facts(OptionEffect.STATE, _PAIMON, "bucket", "bucket-key", "write-only", "changelog-producer*"),
                OptionFact(
                    "sink.parallelism",
                    OptionEffect.STATE,
                    ("paimon-sink-group-parallelism-2",),
                    note="a writer with a separate parallelism is not chained",
                ),
            ),
            ids=("paimon-sink-group-unchanged", "paimon-sink-group-snapshots-retained"),
            document="FlinkSink (1.3): a writer that stores the user of the commit, and a "
            "committer that stores manifests",
        ),
        LookupFacts(document="lookup.async may be set in the schema that Paimon stores, which no script shows"),
    ),
    ConnectorFacts(
        ("hudi",),
        SourceFacts(
            positions=SourceState.TABLE_VERSION,
            projection=Known.YES,
            filters=Known.YES,
            watermark=Known.NO,
            options=(
                *facts(OptionEffect.READ, _HUDI, "path", note=_VERSION_OF_OLD),
                *facts(
                    OptionEffect.STARTUP, _HUDI, "read.start-commit", "read.streaming.start-commit", note=_BEGINNING
                ),
                *facts(OptionEffect.TUNES, _HUDI, "read.streaming.check-interval", "read.data.skipping.enabled"),
                *facts(OptionEffect.BOUNDED_END, _HUDI, "read.end-commit"),
            ),
            document="HoodieTableSource, StreamReadMonitoringFunction (1.0): the last instant that was read",
        ),
        SinkFacts(
            state=SinkState.TRANSACTIONS,
            upserts=Known.YES,
            ids_use_table_name=True,
            options=(
                OptionFact(
                    "path",
                    OptionEffect.STATE,
                    ("hudi-sink-group-elsewhere",),
                    note="the savepoint stores names of files that the new table does not contain: the job fails",
                ),
                *facts(OptionEffect.TUNES, _HUDI, *_HUDI_TUNING),
                *facts(OptionEffect.STATE, _HUDI, *_HUDI_PLANNED, note=_PLANNED),
                *facts(OptionEffect.KEY, _HUDI, "hoodie.datasource.write.recordkey.field"),
            ),
            ids=("hudi-sink-group-unchanged", "hudi-sink-group-batch-size"),
            document="HoodieTableSink, Pipelines (0.10 to 1.0): writers with uncommitted data, "
            "and operators whose ids contain the name of the table (opUID)",
        ),
    ),
    ConnectorFacts(
        ("delta",),
        SourceFacts(
            positions=SourceState.TABLE_VERSION,
            options=(
                *facts(OptionEffect.READ, _DELTA, "table-path", note=_VERSION_OF_OLD),
                *facts(OptionEffect.STARTUP, _DELTA, "startingVersion", "startingTimestamp", note=_BEGINNING),
                *facts(OptionEffect.TUNES, _DELTA, "updateCheckIntervalMillis"),
            ),
            document="DeltaSource (3.3): the enumerator stores the version of the table and the unread files",
        ),
        SinkFacts(
            state=SinkState.TRANSACTIONS,
            options=facts(OptionEffect.TARGET, _DELTA, "table-path", note=_PENDING),
            document="DeltaSink (3.3): a writer with files in progress, a committer and a global committer",
        ),
    ),
)
