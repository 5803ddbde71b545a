"""Responses of the plugin's API; entries have the keys of ``flinkcompat ledger show --format json``.

All texts are plain text with masked secrets, so a client must escape them for HTML. Times are ISO 8601 in UTC. The
client computes values that depend on the present time, such as the age of a savepoint.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TaskOfRun(_Answer):
    """The task that wrote an entry; Airflow's page of the run is ``/dags/{dag_id}/runs/{run_id}``."""

    dag_id: str
    run_id: str
    task_id: str


class EntrySummary(_Answer):
    """A ledger entry in a list, without its texts; fields that the kind lacks are null or empty."""

    number: int = Field(description="Number of the entry in its ledger, from 1.")
    kind: str = Field(
        description="Kind of the entry, as listed in docs/ledger.md: deployed, checked, stopping, approved, …"
    )
    at: str = Field(description="Time at which the entry was written.")
    job_id: str | None = Field(description="The job's id on its target.")
    savepoint: str | None
    start_mode: str | None = Field(description="Start mode: savepoint, checkpoint, stateless, …")
    outcome: str | None = Field(
        description=(
            "Outcome of this check, or of the check that allowed the version: compatible, partial, unknown, "
            "incompatible."
        )
    )
    engine: str
    engine_version: str | None
    language: str = Field(description="Language of the entry's script, if it has one: sql, python or table.")
    approved_by: str | None
    owner: str = Field(
        description="The entry's author: airflow:<dag>/<run>/<task>, or user@host:pid for a command line. Empty if the "
        "user may not read that DAG."
    )
    message: str
    sha256: str = Field(description="Digest that identifies the version of the entry.")
    report_path: str | None
    reason: str | None = Field(description="Reason of the decision, in the words of the person who decided.")
    branch: str | None = Field(description="Branch that the check chose: first, unchanged, resume, approve, …")
    commit: str | None
    author: str | None = Field(description="Author of the commit: name <address>.")
    team: str | None
    owned_by: str | None = Field(description="Owner of the deployment.")
    claim_seconds: float | None
    run: TaskOfRun | None = Field(description="The task that wrote the entry, if the user may read its DAG.")


class LastSavepoint(_Answer):
    """The last savepoint that a stop left."""

    path: str
    bytes: int | None
    taken_at: str
    number: int = Field(description="Number of the entry that records it.")


class DeploymentItem(_Answer):
    """One deployment in the list."""

    ledger: str = Field(description="Id of the ledger in the paths of this API.")
    deployment: str
    entry: EntrySummary | None = Field(description="Entry in force: kind deployed, rolled-back or adopted.")
    unfinished: EntrySummary | None = Field(description="Last step of a redeploy that has not ended.")
    unfinished_state: Literal["in flight", "interrupted"] | None = Field(
        description="State of that redeploy: in flight if its run may still be working, interrupted if its claim has "
        "expired."
    )
    pending: EntrySummary | None = Field(description="Check that waits for a person's decision.")
    checked: EntrySummary | None = Field(description="Last check: outcome, branch, commit and author.")
    savepoint: LastSavepoint | None = Field(
        description="Null if no stop left a savepoint, if the savepoint was deleted, or if the user may read neither "
        "the stop's entry nor the entry of a start from the savepoint."
    )
    failed: EntrySummary | None = Field(
        description="Last failure of a redeploy or version, until the next redeploy begins. If entry.kind is "
        "rolled-back: the failure that caused the rollback."
    )
    error: str | None = Field(description="Error if the ledger cannot be read; all other values are then null.")
    team: str | None
    owned_by: str | None
    dags: list[str] = Field(description="DAGs of this Airflow that write to this ledger.")
    job_url: str | None = Field(
        description="Address of the job in Flink's UI or the platform's console, if exactly one connection has the "
        "ledger."
    )


class LedgerItem(_Answer):
    """A ledger whose deployments are shown."""

    id: str
    uri: str | None = Field(description="Null for users who may not read any connection with this ledger.")
    connections: list[str] = Field(description="Ids of the connections with this ledger that the user may read.")
    error: str | None = Field(description="Error if the ledger cannot be listed.")


class AttentionCounts(_Answer):
    """Number of visible deployments, in total and by attention, regardless of filters."""

    all: int
    pending: int
    in_flight: int
    interrupted: int
    failed: int
    unreadable: int


class LineCount(_Answer):
    """Number of deployments on one line of an engine."""

    engine: str
    line: str = Field(description="First two numbers of the engine version, or an empty text if unknown.")
    deployments: int
    pending: int = Field(description="Number of these deployments that wait for a decision.")
    failed: int = Field(description="Number of these deployments whose last redeploy failed.")


class DeploymentList(_Answer):
    """A page of the deployments that the user may see, sorted by name."""

    deployments: list[DeploymentItem]
    total: int = Field(description="Number of deployments that match the filters, on all pages.")
    counts: AttentionCounts
    lines: list[LineCount] = Field(description="All deployments by engine line, without filters, sorted by line.")
    teams: list[str] = Field(description="All teams, for the filter.")
    ledgers: list[LedgerItem]
    problems: list[str] = Field(description="Errors in the settings, for users who may read connections.")


class HistoryEntry(EntrySummary):
    """An entry with all fields except for the texts of its version (see VersionTexts)."""

    policy: str | None = Field(description="For a check: the branch that the policy alone chooses.")
    rolls_back_to: int | None = Field(
        description="For a failed redeploy: number of the entry whose script is started again."
    )
    offsets: list[dict[str, Any]] = Field(description="Start offsets of the sources: path, choice, options, words.")
    evidence: list[str] = Field(description="Observations of the job, one line each.")
    savepoint_bytes: int | None
    savepoint_at: str | None
    migrated_from: str | None = Field(description="The savepoint that was rewritten for the start of the job.")
    migrated_to: str | None
    migration: dict[str, Any] = Field(
        description="State that a rewritten savepoint keeps, in the form of `migration` in a report."
    )
    rehearsal: dict[str, Any] = Field(description="Result of a rehearsal, in the form flinkcompat-rehearsal/1.")
    range_from: str | None = Field(description="For a backfill: start of its range; null for the beginning.")
    range_to: str | None
    sinks: dict[str, str] = Field(description="For a backfill: place of the output of each sink.")
    counts: dict[str, int] = Field(description="For a backfill: numbers of rows and windows.")


class VersionTexts(_Answer):
    """A version of a job with its texts, with the keys of `flinkcompat ledger show --format json`."""

    number: int | None = Field(
        description="Number of the entry that contains the version; null if the version is stored with the report of "
        "a check."
    )
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

    They include a claim that a different run took over.
    """

    first: int
    last: int
    end: Literal["deployed", "adopted", "rolled-back", "failed", "planned", "unfinished"]
    steps: list[RedeployStep]
    began_at: str
    ended_at: str
    stopped_at: str | None = Field(description="Time at which the former job had ended.")
    started_at: str | None = Field(
        description="Time at which the new job was accepted, or the former script ran again."
    )
    downtime_seconds: float | None = Field(description="Seconds from stopped_at to started_at.")
    start_mode: str | None
    outcome: str | None
    approved_by: str | None
    reason: str | None
    sha256: str
    job_id: str | None
    message: str = Field(description="Message of the last step.")
    run: TaskOfRun | None


class SavepointStart(_Answer):
    """A start from a savepoint."""

    number: int = Field(description="Number of the entry that was then in force.")
    at: str
    kind: str
    job_id: str | None
    migrated: bool = Field(description="True if the job started from the rewritten savepoint.")


class Savepoint(_Answer):
    """A savepoint or checkpoint that a stop left, and the starts from it."""

    path: str
    bytes: int | None
    taken_at: str
    stopped: int = Field(description="Number of the stop's entry.")
    left_by: int | None = Field(description="Number of the entry whose job was stopped.")
    migrated_to: str | None
    starts: list[SavepointStart]
    disposed: int | None = Field(
        description="Number of the entry that records the deletion; null if the savepoint still exists."
    )
    way_back: bool = Field(description="True if a rollback of the version in force would start from it.")


class DeploymentPage(_Answer):
    """A deployment with its whole history."""

    summary: DeploymentItem
    last: int = Field(description="Number of the last entry.")
    running: VersionTexts | None = Field(description="Version in force.")
    history: list[HistoryEntry] = Field(description="All entries, oldest first.")
    redeploys: list[Redeploy] = Field(description="Oldest first.")
    savepoints: list[Savepoint] = Field(description="Oldest first.")


class Decision(_Answer):
    """The decision about a change."""

    state: Literal["waiting", "approved", "rejected", "not asked", "not decided"] = Field(
        description="not asked: the policy decided. not decided: a person was asked, but the question became "
        "obsolete, because a different version was proposed or this version failed."
    )
    number: int | None = Field(description="Number of the entry of the decision.")
    by: str | None
    at: str | None
    reason: str | None
    message: str = Field(description="Description of the decision, with the chosen option.")
    run: TaskOfRun | None = Field(description="Task that waits for the decision, or received it.")


class NextStep(_Answer):
    """One thing to do."""

    text: str
    commands: list[str]
    language: str = Field(description="Language of the commands: sql or sh.")


class AnswerItem(_Answer):
    """Consequence of one answer."""

    branch: str = Field(description="Branch: resume, migrate, restart or reject.")
    text: str


class ShadowedVersion(_Answer):
    """A shadow run of a proposed version."""

    number: int = Field(description="Number of its entry.")
    at: str = Field(description="Time at which the run had ended.")
    headline: str = Field(description="Finding and its meaning in one line.")
    finding: str = Field(description="Finding on which a person decides, of the rows or of the state.")
    meaning: str = Field(description="Proof of the finding, and its limit. Names are in backticks.")
    result: dict[str, Any] = Field(
        description="Result in the form flinkcompat-shadow/1, with the first differing rows of each sink."
    )


class ChangePage(_Answer):
    """A proposed version, the version it is compared with, the verdict, and the result."""

    ledger: str
    deployment: str
    number: int = Field(
        description="Number of the entry of the check, or of the first entry of a version without a check."
    )
    sha256: str
    checked: HistoryEntry | None
    old_number: int | None = Field(
        description="Number of the entry that was then in force; null before the first deployment."
    )
    old: VersionTexts | None = Field(
        description="Version that was then in force; null before the first deployment, or if the user may not read "
        "its entry."
    )
    new: VersionTexts | None = Field(
        description="Proposed version; null if an earlier release stored none. Columns of a report's spans may be "
        "wrong "
        "in lines with a masked secret."
    )
    report: dict[str, Any] | None = Field(
        description="Report in the form flinkcompat-report/1: findings with spans, effects on keys, windows and "
        "metrics "
        "by operator, and state that a migration keeps. Null if none was stored, for example for a first "
        "start."
    )
    report_error: str | None = Field(description="Error if the report cannot be read.")
    shadow: ShadowedVersion | None = Field(description="Last shadow run of this version since the check.")
    next_steps: list[NextStep]
    answers: list[AnswerItem] = Field(description="Consequence of each answer, including answers that are not offered.")
    if_resumed: list[str] = Field(description="Results on open-source Flink if the job were resumed anyway.")
    decision: Decision
    entries: list[HistoryEntry] = Field(description="All entries of this version since the check, oldest first.")


class RunChanges(_Answer):
    """The changes that a DAG run is about; empty if the run writes no visible ledger."""

    dag_id: str
    run_id: str
    changes: list[ChangePage]


class ErrorDetail(_Answer):
    """Reason for an error response, in FastAPI's form."""

    detail: str
