"""Answers of the plugin's API; entries have the keys of ``flinkcompat ledger show --format json``.

All texts are plain text with every secret masked; nothing is HTML, so the reader must escape them. Times are ISO 8601
in UTC. Values that depend on the time of day, such as the age of a savepoint, are left to the reader.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaskOfRun(_Answer):
    """The task of a DAG run that wrote an entry; Airflow's page: ``/dags/{dag_id}/runs/{run_id}``."""

    dag_id: str
    run_id: str
    task_id: str


class EntrySummary(_Answer):
    """A ledger entry for a list, without its texts; fields that its kind lacks are null or empty."""

    number: int = Field(description="Its place in the ledger, from 1.")
    kind: str = Field(description="As docs/ledger.md lists them: deployed, checked, stopping, approved, …")
    at: str = Field(description="When it was written.")
    job_id: str | None = Field(description="The job, as its target names it.")
    savepoint: str | None
    start_mode: str | None = Field(description="savepoint, checkpoint, stateless, …")
    outcome: str | None = Field(
        description="Of the check that let the version run, or of this one: compatible, partial, unknown, incompatible."
    )
    engine: str
    engine_version: str | None
    language: str = Field(description="sql, python or table: of the script, of entries that hold one.")
    approved_by: str | None
    owner: str = Field(
        description="Who wrote it: airflow:<dag>/<run>/<task>, or user@host:pid on a command line. "
        "Empty where that is a DAG that the user may not read."
    )
    message: str
    sha256: str = Field(description="Names the version that the entry is about.")
    report_path: str | None
    reason: str | None = Field(description="What whoever decided gave as the reason.")
    branch: str | None = Field(description="The way that a check took: first, unchanged, resume, approve, …")
    commit: str | None
    author: str | None = Field(description="Of that commit: name <address>.")
    team: str | None
    owned_by: str | None = Field(description="Who answers for the deployment.")
    claim_seconds: float | None
    run: TaskOfRun | None = Field(description="The task that wrote it, where the user may read that DAG.")


class LastSavepoint(_Answer):
    """The last savepoint that a stop left."""

    path: str
    bytes: int | None
    taken_at: str
    number: int = Field(description="The entry that says so.")


class DeploymentItem(_Answer):
    """One deployment as the list shows it."""

    ledger: str = Field(description="Id of its ledger, as in the paths of this API.")
    deployment: str
    entry: EntrySummary | None = Field(description="What is in force: kind deployed, rolled-back or adopted.")
    unfinished: EntrySummary | None = Field(description="The last step of a redeploy that has not come to its end.")
    unfinished_state: Literal["in flight", "interrupted"] | None = Field(
        description="Of that redeploy: its run may still be at work; or it has been silent for longer than it said."
    )
    pending: EntrySummary | None = Field(description="The check that asked a person, who has not decided yet.")
    checked: EntrySummary | None = Field(description="The last check: outcome, branch, commit and author.")
    savepoint: LastSavepoint | None = Field(
        description="Null where no stop left one, where it was deleted, and where the user may read neither the entry "
        "of the stop nor one of what started from it."
    )
    failed: EntrySummary | None = Field(
        description="The last redeploy, or version, that failed, until a redeploy begins anew. "
        "Where entry.kind is rolled-back: what led to it."
    )
    error: str | None = Field(description="Why the ledger cannot be read; everything else is null then.")
    team: str | None
    owned_by: str | None
    dags: list[str] = Field(description="The DAGs that write this ledger, of those that are in this Airflow.")
    job_url: str | None = Field(
        description="The job in Flink's UI, or the platform's console, where one connection alone names the ledger."
    )


class LedgerItem(_Answer):
    """A ledger whose deployments are shown."""

    id: str
    uri: str | None = Field(description="Null for users who may not read the connections that name it.")
    connections: list[str] = Field(description="Ids of those that name it and that the user may read.")
    error: str | None = Field(description="Why it cannot be listed.")


class AttentionCounts(_Answer):
    """Number of visible deployments, in total and by kind, independent of filters."""

    all: int
    pending: int
    in_flight: int
    interrupted: int
    failed: int
    unreadable: int


class DeploymentList(_Answer):
    """A page of the deployments that the user may see, in order of name."""

    deployments: list[DeploymentItem]
    total: int = Field(description="How many the filters leave, on all pages.")
    counts: AttentionCounts
    teams: list[str] = Field(description="All teams, for the filter.")
    ledgers: list[LedgerItem]
    problems: list[str] = Field(description="What is wrong with the settings, for users who may read connections.")


class HistoryEntry(EntrySummary):
    """An entry with all its fields, except for the texts of its version (see VersionTexts)."""

    policy: str | None = Field(description="Of a check: the branch that the policy alone says.")
    rolls_back_to: int | None = Field(description="Of a failed redeploy: the entry whose script is started again.")
    offsets: list[dict[str, Any]] = Field(description="Where the sources begin: path, choice, options, words.")
    evidence: list[str] = Field(description="What was seen of the job, a line each.")
    savepoint_bytes: int | None
    savepoint_at: str | None
    migrated_from: str | None = Field(description="The savepoint that the one it starts from was rewritten from.")
    migrated_to: str | None
    migration: dict[str, Any] = Field(description="What a rewritten savepoint keeps: as `migration` of a report.")
    rehearsal: dict[str, Any] = Field(description="As flinkcompat-rehearsal/1.")
    range_from: str | None = Field(description="Of a backfill; null: from the beginning.")
    range_to: str | None
    sinks: dict[str, str] = Field(description="Of a backfill: where it wrote, by sink.")
    counts: dict[str, int] = Field(description="Of a backfill: rows and windows.")


class VersionTexts(_Answer):
    """A version of a job with its texts, as `flinkcompat ledger show --format json` has them."""

    number: int | None = Field(description="The entry that holds it; null: it is kept beside the report of a check.")
    sha256: str
    language: str
    script: str
    settings: dict[str, str]
    variables: dict[str, str]
    functions: list[dict[str, Any]]
    catalog: str
    files: dict[str, str]
    engine: str
    engine_version: str | None


class RedeployStep(_Answer):
    """One step of a redeploy."""

    number: int
    kind: str
    at: str


class Redeploy(_Answer):
    """The steps of a complete or failed replacement of one job by another.

    They include a claim that another run took over.
    """

    first: int
    last: int
    end: Literal["deployed", "adopted", "rolled-back", "failed", "planned", "unfinished"]
    steps: list[RedeployStep]
    began_at: str
    ended_at: str
    stopped_at: str | None = Field(description="When the former job was seen to have ended.")
    started_at: str | None = Field(description="When the new job was accepted, or the former script ran again.")
    downtime_seconds: float | None = Field(description="From stopped_at to started_at.")
    start_mode: str | None
    outcome: str | None
    approved_by: str | None
    reason: str | None
    sha256: str
    job_id: str | None
    message: str = Field(description="Of its last step.")
    run: TaskOfRun | None


class SavepointStart(_Answer):
    """A start from a savepoint."""

    number: int = Field(description="The entry of what was in force then.")
    at: str
    kind: str
    job_id: str | None
    migrated: bool = Field(description="Whether it started from the rewritten savepoint.")


class Savepoint(_Answer):
    """A savepoint, or checkpoint, that a stop left, and what started from it."""

    path: str
    bytes: int | None
    taken_at: str
    stopped: int = Field(description="The entry of the stop that left it.")
    left_by: int | None = Field(description="The entry that was in force: whose job left it.")
    migrated_to: str | None
    starts: list[SavepointStart]
    disposed: int | None = Field(description="The entry that says that it was deleted; null: it is kept.")
    way_back: bool = Field(description="Whether it is the way back from what is in force.")


class DeploymentPage(_Answer):
    """A deployment with its whole history."""

    summary: DeploymentItem
    last: int = Field(description="The number of the last entry.")
    running: VersionTexts | None = Field(description="The version in force.")
    history: list[HistoryEntry] = Field(description="Every entry, oldest first.")
    redeploys: list[Redeploy] = Field(description="Oldest first.")
    savepoints: list[Savepoint] = Field(description="Oldest first.")


class Decision(_Answer):
    """The decision about a change."""

    state: Literal["waiting", "approved", "rejected", "not asked", "not decided"] = Field(
        description="not asked: the policy decided. not decided: it was asked, and the question is settled otherwise: "
        "another version came, or this one failed by itself."
    )
    number: int | None = Field(description="The entry of the decision.")
    by: str | None
    at: str | None
    reason: str | None
    message: str = Field(description="The decision in words, with the option that was chosen.")
    run: TaskOfRun | None = Field(description="Where it waits, or was decided.")


class NextStep(_Answer):
    """One thing to do."""

    text: str
    commands: list[str]
    language: str = Field(description="Of the commands: sql or sh.")


class AnswerItem(_Answer):
    """Consequence of one answer."""

    branch: str = Field(description="resume, migrate, restart or reject.")
    text: str


class ChangePage(_Answer):
    """A version that was proposed: what it is compared with, the verdict, and what became of it."""

    ledger: str
    deployment: str
    number: int = Field(description="The entry of the check; of a version without one, its first entry.")
    sha256: str
    checked: HistoryEntry | None
    old_number: int | None = Field(description="The entry of what was in force; null before the first deployment.")
    old: VersionTexts | None = Field(
        description="What was in force; null before the first deployment, and where the user may not read that entry."
    )
    new: VersionTexts | None = Field(
        description="The proposed version; null where an earlier release kept none. "
        "Columns of a report's spans may be off in lines in which a secret is masked."
    )
    report: dict[str, Any] | None = Field(
        description="As flinkcompat-report/1: findings with spans, fate of keys, windows and metrics by operator, "
        "what a migration keeps. Null where none was kept, as of a first start."
    )
    report_error: str | None = Field(description="Why the report cannot be read.")
    next_steps: list[NextStep]
    answers: list[AnswerItem] = Field(description="What comes of each answer, whether it is offered or not.")
    if_resumed: list[str] = Field(description="How open-source Flink would end if it were resumed all the same.")
    decision: Decision
    entries: list[HistoryEntry] = Field(description="All entries about this version since the check, oldest first.")


class RunChanges(_Answer):
    """The changes that a DAG run is about; none if it writes no ledger that is shown."""

    dag_id: str
    run_id: str
    changes: list[ChangePage]


class ErrorDetail(_Answer):
    """Reason for a missing answer (as FastAPI words it)."""

    detail: str
