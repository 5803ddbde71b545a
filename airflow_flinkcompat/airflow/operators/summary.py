"""Result of a check for downstream tasks: a small summary in XCom, which points to the full report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_flinkcompat.airflow.tasks.base import DeploymentOperator, ScriptOperator, TaskRole

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.compat import Side

SUMMARY = "summary"
REPORT = "report"
DECISION = "decision"
QUESTION = "question"
"""XCom key for the state of a repeated question."""
RETURN_VALUE = "return_value"
SCHEMA = "flinkcompat-summary/1"
_MOST_FINDINGS = 20


@dataclass(frozen=True)
class Summary:
    """Summary of one verdict.

    ``old_sha256`` is None if nothing was deployed. ``report`` is the result of ``Ledger.store_report``. ``engine`` and
    ``engine_version`` are those of the proposed side, as hashed in ``new_sha256``. ``branch`` is the key of the chosen
    branch (first, unchanged, resume, migrate, restart, approve, reject). ``findings`` are the first 20 findings.
    ``migration`` is the extent of the state that a migration keeps (whole, partial, none; None if unknown).
    ``accepted`` are the effects that the migration allows on request. ``history`` contains the tables with known
    history, and the locations of their rows. ``from_zero`` are the metrics that start from zero if the job resumes
    although only a part of its state fits. ``policy`` is the branch that the policy alone would choose. ``origin`` has
    the keys of the ledger's ``Origin``. ``waivers`` are the waivers that apply to findings of this change.
    ``checked_entry`` is the number of the check's ledger entry (0 if unknown). ``ground`` is the basis of the verdict
    ("" if Flink's planner was not asked).
    """

    deployment: str
    branch: str
    new_sha256: str
    engine: str
    engine_version: str | None
    old_sha256: str | None = None
    old_entry: int = 0
    outcome: str | None = None
    report: str | None = None
    findings: Sequence[Mapping[str, str]] = ()
    findings_total: int = 0
    migration: str | None = None
    accepted: Sequence[str] = ()
    from_zero: Sequence[str] = ()
    policy: str | None = None
    origin: Mapping[str, str | None] = field(default_factory=dict)
    waivers: Sequence[Mapping[str, Any]] = ()
    history: Mapping[str, str] = field(default_factory=dict)
    checked_entry: int = 0
    ground: str = ""
    schema: str = SCHEMA

    def to_dict(self) -> dict[str, Any]:
        lists = {"accepted": [*self.accepted], "from_zero": [*self.from_zero], "waivers": [*map(dict, self.waivers)]}
        return {**asdict(self), "findings": [dict(row) for row in self.findings], **lists}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Summary:
        return cls(**{f.name: row[f.name] for f in fields(cls) if f.name in row})


def brief(findings: Sequence[Any]) -> tuple[Mapping[str, str], ...]:
    """Rule, outcome and masked message of the first findings."""
    from airflow_flinkcompat.secrets import mask_secrets

    rows = ((str(f.rule), str(f.outcome), mask_secrets(str(f.message))) for f in findings[:_MOST_FINDINGS])
    return tuple({"rule": rule, "outcome": outcome, "message": message} for rule, outcome, message in rows)


def push(context: Context, summary: Summary) -> None:
    """Push a summary before branching, because a task that skips downstream tasks pushes no return value."""
    ti = context["ti"]
    ti.xcom_push(key=SUMMARY, value=summary.to_dict())
    ti.xcom_push(key=REPORT, value=summary.report)
    ti.xcom_push(key=RETURN_VALUE, value=summary.to_dict())


def pull(context: Context, task: Any, named: str | None = None) -> Summary:
    """The summary of the task ``named``, or else of the only check upstream. Raises AirflowFailException."""
    candidates = [named] if named else upstream(task, TaskRole.CHECK)
    found = {task_id: summary for task_id in candidates if (summary := _summary_of(context, task_id))}
    own = {task_id: summary for task_id, summary in found.items() if summary.deployment == task.deployment}
    if len(own) == 1:
        return next(iter(own.values()))
    if len(own) > 1:
        seen = f"there are several ({', '.join(own)}): choose one with check_task_id"
    elif found:
        others = ", ".join(f"{task_id} ({summary.deployment})" for task_id, summary in found.items())
        seen = f"there is none, only others: {others}"
    else:
        seen = f"task {named!r} left none" if named else "no FlinkSqlCompatibilityOperator upstream left one"
    raise AirflowFailException(
        f"only a version that this run checked can be deployed. Verdicts on {task.deployment}: {seen}"
    )


def checked_side(task: ScriptOperator, summary: Summary) -> Side:
    """The side that ``task`` proposes. Raises AirflowFailException if a different side was checked."""
    side = task.proposed_side(summary.engine, summary.engine_version)
    if side.sha256 != summary.new_sha256:
        raise AirflowFailException(
            f"the version to deploy ({side.sha256[:12]}) differs from the checked one "
            f"({summary.new_sha256[:12]}): the script, settings, functions or catalog changed in between. "
            "Run the check again"
        )
    return side


def upstream(task: Any, role: TaskRole) -> list[str]:
    """Sorted ids of the tasks with a role that are upstream of ``task``."""
    return sorted(other.task_id for other in task.get_flat_relatives(upstream=True) if _has(other, role))


def downstream(task: Any, role: TaskRole) -> list[str]:
    """Sorted ids of the tasks with a role and the same deployment that are downstream of ``task``."""
    deployment = task.dag.get_task(task.task_id).deployment  # unrendered, like the names of the other tasks
    found = (other for other in task.get_flat_relatives(upstream=False) if _has(other, role))
    return sorted(other.task_id for other in found if other.deployment == deployment)


def has_backfill(task: Any) -> bool:
    """True if a FlinkBackfillOperator of the deployment is downstream of ``task``."""
    return bool(downstream(task, TaskRole.BACKFILL))


def _has(task: Any, role: TaskRole) -> bool:
    return isinstance(task, DeploymentOperator) and task.role is role


def _summary_of(context: Context, task_id: str) -> Summary | None:
    row = context["ti"].xcom_pull(task_ids=task_id, key=SUMMARY)
    return Summary.from_dict(row) if isinstance(row, Mapping) and row.get("schema") == SCHEMA else None
