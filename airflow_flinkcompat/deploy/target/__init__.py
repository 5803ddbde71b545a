"""What every layer above asks of a place that runs Flink jobs: values, the verbs of a target, and its capabilities.

A target has eight verbs. A start and a stop are two phases that can be asked for again: each goes by a request id that
the caller chose and wrote down before, so that whoever comes later finds out what became of it. Whatever only some
targets can do is a protocol of its own, asked for with ``isinstance``; where a target lacks it, that is said ("cannot
be told on this target"), or refused with the target's name and a remedy, and nothing is assumed in its place.
"""

from airflow_flinkcompat.deploy.target.capabilities import (
    CallerNamesJobs,
    CheckpointStatistics,
    ClusterOptions,
    JobHistories,
    ManualStart,
    MasksSecrets,
    OffsetStatistics,
    ReadsBack,
    RetainedCheckpoints,
    SavepointStore,
    SourceTables,
)
from airflow_flinkcompat.deploy.target.values import (
    CANNOT_TELL,
    TERMINAL,
    Deployed,
    EngineInfo,
    JobHistory,
    JobRef,
    JobStatus,
    Operation,
    Proof,
    Snapshot,
    Sources,
    SourceTable,
    Start,
    Strength,
    TablePath,
    TakenState,
    Verb,
    VertexState,
    same_snapshot,
)
from airflow_flinkcompat.deploy.target.verbs import Target

__all__ = [
    "CANNOT_TELL",
    "TERMINAL",
    "CallerNamesJobs",
    "CheckpointStatistics",
    "ClusterOptions",
    "Deployed",
    "EngineInfo",
    "JobHistories",
    "JobHistory",
    "JobRef",
    "JobStatus",
    "ManualStart",
    "MasksSecrets",
    "OffsetStatistics",
    "Operation",
    "Proof",
    "ReadsBack",
    "RetainedCheckpoints",
    "SavepointStore",
    "Snapshot",
    "SourceTable",
    "SourceTables",
    "Sources",
    "Start",
    "Strength",
    "TablePath",
    "TakenState",
    "Target",
    "Verb",
    "VertexState",
    "same_snapshot",
]
