"""FlinkSqlApprovalOperator, which asks a person with Airflow's human-in-the-loop operators."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from airflow.providers.common.compat.sdk import BranchMixIn
from airflow.providers.standard.operators.hitl import HITLOperator
from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict

from airflow_flinkcompat.airflow.links import FlinkChangeLink
from airflow_flinkcompat.airflow.operators import summary as summaries
from airflow_flinkcompat.airflow.operators.asking import (
    REASON,
    REJECT,
    Answer,
    AskedQuestion,
    AskingAgain,
    is_time_up,
    reason_of,
    reasons_of,
)
from airflow_flinkcompat.airflow.tasks import telemetry
from airflow_flinkcompat.airflow.tasks.base import (
    DeploymentOperator,
    TaskRole,
    UnmappedMixin,
    readable_errors,
    run_name,
    task_ids,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.airflow.operators.summary import Summary
    from airflow_flinkcompat.deploy import Ledger

RESUME = "Resume from savepoint"
MIGRATE = "Migrate the state"
RESTART = "Restart without state"
RESTART_WITH_BACKFILL = "Restart with backfill"
_CHOICES: Mapping[str, str] = {
    RESUME: "resume",
    MIGRATE: "migrate",
    RESTART: "restart",
    RESTART_WITH_BACKFILL: "restart",
    REJECT: "reject",
}
_BRANCHES = tuple(dict.fromkeys(_CHOICES.values()))
# Default number of retries. A retry asks again if Airflow lost an answer.
_RETRIES = 2
# A longer text of a question slows Airflow's page down and does not help the decision.
_LONGEST_BODY = 20_000
NOBODY = "nobody (time-out)"


class FlinkSqlApprovalOperator(UnmappedMixin, DeploymentOperator, AskingAgain, BranchMixIn):
    """Show the reports on a change, and let a person choose to resume, migrate, restart or reject.

    The answer is recorded in the ledger (person, choice, time, and the reason from the form) and pushed to XCom (key
    ``decision``) before branching. ``FlinkSqlChangeSensor`` does not offer a rejected version again. Without an answer,
    the job is never resumed. Like the gate, this operator cannot be mapped.

    Args:
        deployment: Name of the Flink job. (templated)
        branches: ``resume`` and ``restart`` → task id, task group id or a list of them. ``migrate`` is optional, and is
            offered if a migration keeps some of the state. ``reject`` is optional; without this branch, all downstream
            tasks are skipped.
        check_task_id: The FlinkSqlCompatibilityOperator whose report is shown; by default, the only one upstream.
        subject: The title of the question; the default names the deployment. (templated)
        body: Text that precedes the report. (templated, Markdown)
        backfill: True if history is recomputed after a restart; the option is then "Restart with backfill". Default:
            True if a FlinkBackfillOperator of the deployment is downstream.
        retries: At least 1, because Airflow 3.3 can lose an answer that arrives while the task is suspended; the retry
            asks again. A lower value in ``default_args`` is raised to 1, with a warning.
        retry_delay: The pause before a retry.
        defaults: None (the task fails if there is no answer within ``response_timeout``) or "Reject".
        params: Additional fields of the form. The form always has the field ``reason``, which is recorded in the
            ledger. The field may be empty, because Airflow cannot require it for some answers only.
        approvers_needed: With 2, the question is asked again until two users have chosen the same answer. A single
            "Reject" rejects the change. This argument and all later arguments require Airflow 3.3.
        author_may_approve: True if the author of the change may approve the change. The ledger records the author as
            part of the version's origin. Default: True with one approver, False with two. If False, an approval by the
            author is refused, and the question is asked again.
        authors: Address or name of a Git author → id or name of the Airflow user, or a list of them. A Git author
            without an entry is the user with the same name or address. If the user is unknown, the ledger records this
            doubt.
        escalate_to: Additional users (ids, or tables of id and name) who may answer after ``escalate_after``. Answers
            of these users before that time are refused. ``assigned_users`` may answer immediately.
        escalate_after: Period in which only ``assigned_users`` may answer; a timedelta or seconds.
        notifiers: Called when the question is asked, when it is asked again, and when it escalates.
        decision_notifiers: Called after the decision, even if the time-out decided. If a notifier fails, a warning is
            logged.
    """

    role = TaskRole.APPROVAL
    template_fields: Sequence[str] = (*DeploymentOperator.template_fields, "subject", "body")
    operator_extra_links = (FlinkChangeLink(),)
    inherits_from_skipmixin = True
    ui_color = "#fef7e0"

    def __init__(
        self,
        *,
        deployment: str,
        branches: Mapping[str, str | Sequence[str]],
        check_task_id: str | None = None,
        subject: str | None = None,
        body: str = "",
        defaults: str | Sequence[str] | None = None,
        backfill: bool | None = None,
        retry_delay: timedelta = timedelta(seconds=10),
        params: Mapping[str, Any] | None = None,
        approvers_needed: Literal[1, 2] = 1,
        author_may_approve: bool | None = None,
        authors: Mapping[str, str | Sequence[str]] | None = None,
        escalate_to: str | Mapping[str, str] | Sequence[str | Mapping[str, str]] = (),
        escalate_after: timedelta | float | None = None,
        decision_notifiers: Any = (),
        **kwargs: Any,
    ) -> None:
        for name in ("options", "multiple"):
            if name in kwargs:
                raise ValueError(f"{name} cannot be chosen: the options are {', '.join(_options(backfill))}")
        defaults = task_ids(defaults)
        if defaults not in ([], [REJECT]):
            raise ValueError(f"defaults must be None or {REJECT!r}: a missing answer never means resume or restart")
        self.branches = _checked_branches(branches)
        super().__init__(
            deployment=deployment,
            subject=subject or f"Flink: a change to {deployment} needs a decision",
            body=body,
            options=_options(backfill),
            defaults=defaults or None,
            multiple=False,
            params=_form(params),
            retry_delay=retry_delay,
            **{**kwargs, "retries": _retries(kwargs)},
        )
        self.backfill = backfill
        self.check_task_id = check_task_id
        self._set_who(approvers_needed, author_may_approve, authors, escalate_to, escalate_after)
        self.decision_notifiers = telemetry.each("decision_notifiers", decision_notifiers)

    def execute(self, context: Context) -> Any:
        """Ask the question, and suspend the task until a person answers."""
        with readable_errors():
            summary = self._summary(context)
            self.options = self._effective_options(summary)
            self.body = self._question(summary)
        context["flinkcompat"] = self._facts("asked", summary)  # type: ignore[typeddict-unknown-key]
        return self._ask(context)

    def execute_complete(self, context: Context, event: dict[str, Any], asked: Mapping[str, Any] | None = None) -> Any:
        """Record the decision and choose the branch, or ask again if more answers are needed."""
        with readable_errors():
            summary = self._summary(context)
            self.options = self._effective_options(summary)
        standing = AskedQuestion.from_dict(asked) if asked else None
        if standing is not None and standing.escalates_at is not None and is_time_up(event):
            self._escalate(context, summary, standing, event)
        answer = HITLOperator.execute_complete(self, context, event)
        option = answer["chosen_options"][0]
        agreed: tuple[Answer, ...] = ()
        if standing is not None and self._asks_again and answer.get("responded_by_user"):
            agreed = self._agreed(context, summary, standing, answer)
        choice = _CHOICES[option]
        with readable_errors():
            decision = self._record(context, choice, answer, agreed)
        context["ti"].xcom_push(key=summaries.DECISION, value=decision)
        reason = f", because: {decision['reason']}" if decision["reason"] else ""
        self.log.info("%s decided: %s%s", decision["by"], decision["choice"], reason)
        telemetry.count(f"decision.{choice}", self.deployment)
        if standing is not None and hasattr(answer["responded_at"], "timestamp"):
            took = timedelta(seconds=answer["responded_at"].timestamp() - standing.at)
            telemetry.duration("decision.duration", took, self.deployment)
        facts = self._facts("decided", summary, **{key: decision[key] for key in ("choice", "by", "reason")})
        telemetry.notify(self, context, self.decision_notifiers, facts)
        return self.do_branch(context, self.branches.get(choice) or None)

    def _summary(self, context: Context) -> Summary:
        summary = summaries.pull(context, self, self.check_task_id)
        self.link_change(summary.checked_entry)
        return summary

    def _effective_options(self, summary: Summary) -> list[str]:
        backfill = summaries.has_backfill(self) if self.backfill is None else self.backfill
        migrates = "migrate" in self.branches and summary.migration in ("whole", "partial")
        return _options(backfill, migrates)

    def _question(self, summary: Summary) -> str:
        from airflow_flinkcompat.secrets import mask_secrets

        ledger = self.open_ledger()
        markdown = ledger.read_report(summary.report)[1] if summary.report else _without_report(summary)
        above = (self.body, _authorship(summary), self._who(summary), _from_zero(summary), _shadow_run(ledger, summary))
        text = mask_secrets("\n\n".join(filter(None, [*above, markdown])))
        if len(text) <= _LONGEST_BODY:
            return text
        cut = text[:_LONGEST_BODY].rsplit("\n", 1)[0]
        fence = "\n```" if cut.count("\n```") % 2 else ""
        return f"{cut}{fence}\n\n*(shortened; the full report is {summary.report})*"

    def _record(
        self, context: Context, choice: str, answer: Mapping[str, Any], agreed: Sequence[Answer] = ()
    ) -> dict[str, Any]:
        from airflow_flinkcompat.deploy.ledger.entries import ApprovedEntry, JobVersion, RejectedEntry, Review

        summary = summaries.pull(context, self, self.check_task_id)
        at = answer["responded_at"]
        who = " and ".join(each.by.name for each in agreed) or _name(answer.get("responded_by_user"))
        reason = reasons_of(agreed) if len(agreed) > 1 else reason_of(answer.get("params_input"))
        doubts = "".join(f"; {each.doubt}" for each in agreed if each.doubt)
        rejected = choice == "reject"
        zero = [*summary.from_zero] if choice == "resume" else []
        entry = self.open_ledger().append(
            (RejectedEntry if rejected else ApprovedEntry)(
                version=JobVersion(summary.engine, summary.engine_version, summary.new_sha256),
                review=Review(
                    summary.outcome, summary.report, None if rejected else who, reason, tuple(summary.waivers)
                ),
                message=f"{who} chose {answer['chosen_options'][0]!r}"
                + (f"; from zero start {', '.join(zero)}" if zero else "")
                + doubts,
                owner=run_name(context),
                at=at.isoformat() if hasattr(at, "isoformat") else str(at or ""),
            )
        )
        words = {"choice": choice, "by": who, "at": entry.at, "from_zero": zero, "reason": reason}
        return {**words, "new_sha256": summary.new_sha256, "ledger_entry": entry.number}


def restart_option(backfill: bool | None) -> str:
    return RESTART_WITH_BACKFILL if backfill else RESTART


def _form(params: Mapping[str, Any] | None) -> ParamsDict:
    """The fields of the form: the task's own fields, and ``reason`` unless the task defines it."""
    reason = Param(
        None,
        title="Reason",
        description="Reason, stored in the ledger with the decision. Write one if you reject.",
        type=["null", "string"],
        format="multiline",
    )
    fields = params if isinstance(params, ParamsDict) else ParamsDict(dict(params or {}))
    # Airflow adds the DAG's parameters, which must not be fields of this form.
    own = {name: param for name, param in fields.items() if getattr(param, "source", None) != "dag"}
    return ParamsDict({REASON: reason, **own})


def _options(backfill: bool | None, migrates: bool = False) -> list[str]:
    return [RESUME, *([MIGRATE] if migrates else []), restart_option(backfill), REJECT]


def _retries(arguments: Mapping[str, Any]) -> int:
    """The number of retries, at least 1. Raises ValueError if the task itself sets a lower number."""
    why = "Airflow 3.3 can lose an answer; the next try asks again"
    if (retries := arguments.get("retries")) is not None:
        if retries < 1:
            raise ValueError(f"retries must be at least 1: {why}")
        return int(retries)
    shared = (arguments.get("default_args") or {}).get("retries")
    if shared is not None and shared < 1:
        warnings.warn(
            f"retries = {shared} of default_args is raised to 1 for task {arguments.get('task_id')!r}: {why}",
            UserWarning,
            stacklevel=4,
        )
        return 1
    return _RETRIES if shared is None else int(shared)


def _checked_branches(branches: Mapping[str, Any]) -> dict[str, list[str]]:
    if unknown := [key for key in branches if key not in _BRANCHES]:
        raise ValueError(f"branches: unknown {', '.join(map(repr, unknown))}; choose from {', '.join(_BRANCHES)}")
    if missing := [key for key in ("resume", "restart") if not task_ids(branches.get(key))]:
        raise ValueError(f"branches: {', '.join(map(repr, missing))} missing; each needs a task id or a list of them")
    return {key: task_ids(value) for key, value in branches.items()}


def _name(user: Any) -> str:
    """Name of a user ``{"id", "name"}``, or ``NOBODY`` if the time-out decided."""
    if not user:
        return NOBODY
    row = user if isinstance(user, Mapping) else vars(user)
    return str(row.get("name") or row.get("id") or NOBODY)


def _authorship(summary: Summary) -> str:
    from airflow_flinkcompat.compat.reports.markdown import code_span

    author, commit = summary.origin.get("author"), summary.origin.get("commit")
    facts = [f"made by {code_span(author)}" if author else "", f"commit {code_span(commit)}" if commit else ""]
    return f"This change: {', '.join(filter(None, facts))}." if any(facts) else ""


def _from_zero(summary: Summary) -> str:
    """List of the metrics that a resume starts from zero. It precedes the report, which may be shortened."""
    if not summary.from_zero:
        return ""
    from airflow_flinkcompat.compat.reports.markdown import code_span

    names = "".join(f"\n* {code_span(name)}" for name in summary.from_zero)
    return f"If you choose *{RESUME}*, these metrics start from zero:\n{names}"


def _shadow_run(ledger: Ledger, summary: Summary) -> str:
    """The shadow run after this check, or "" without one."""
    from airflow_flinkcompat.deploy.shadow.question import last_shadow_run, render_question

    later = [each for each in ledger.in_force() if each.number > summary.checked_entry]
    entry = last_shadow_run(later, summary.new_sha256)
    return render_question(entry) if entry else ""


def _without_report(summary: Summary) -> str:
    return f"The check of **{summary.deployment}** stored no report; its outcome is **{summary.outcome or 'unknown'}**."
