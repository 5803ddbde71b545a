"""Shadow run next to the live job, before the branch that the check chose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import AirflowFailException, BranchMixIn

from airflow_flinkcompat.airflow.links import FlinkChangeLink
from airflow_flinkcompat.airflow.operators import summary as summaries
from airflow_flinkcompat.airflow.tasks.base import (
    ScriptOperator,
    TaskRole,
    UnmappedMixin,
    readable_errors,
    run_name,
    side_of,
    task_ids,
)
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.model.shadow import SHADOWED_OUTCOMES, OnExpected, ShadowPolicy

if TYPE_CHECKING:
    from airflow.sdk import Context
    from typing_extensions import Unpack

    from airflow_flinkcompat.airflow.operators.summary import Summary
    from airflow_flinkcompat.airflow.tasks.arguments import ScriptArguments
    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.deploy.ledger.entries import HeadEntry, ShadowedEntry
    from airflow_flinkcompat.deploy.migration import SavepointMigration
    from airflow_flinkcompat.deploy.rehearsal.place import Cluster

_REQUIRED_BRANCHES = ("resume", "approve")
_BRANCHES = (*_REQUIRED_BRANCHES, "migrate")


class FlinkShadowRunOperator(UnmappedMixin, ScriptOperator, BranchMixIn):
    """Compare the rows of the deployed and the checked script next to the job, and branch by the result.

    The running job takes two savepoints, ``duration`` apart, and is not changed in any other way. From the first
    savepoint, the deployed script and then the checked script read the rows up to the second savepoint, with stand-in
    sinks. If the rows are equal, the task follows the branch that the check chose. Otherwise a person decides: if the
    rows differ, if Flink refuses the script, and if the run has no result. The ledger records the result as an entry
    ``shadowed``, and the task pushes it to XCom (``return_value``).

    All jobs, savepoints and files of the run are removed, even if this task is killed. A retry makes a new run. The
    worker waits until the run has ended.

    Args:
        branches: Branch → task id, task group id or a list of them, as in the check: ``resume``, ``approve``, and
            ``migrate`` if the check has this branch. Before a migration, the checked script starts from a migrated
            savepoint.
        duration: Time whose rows both scripts read, such as ``30s``, ``10min`` or ``1h``.
        timeout: Longest time in which each script must read these rows, such as ``30min``.
        expect: Columns in which the rows may differ, as ``column`` or ``sink.column``. ``changed`` stands for all
            columns that the change names.
        savepoint_directory: Folder that the cluster and this worker share, as path or URI; default: the savepoint
            folder of the cluster. (templated)
        plan_dir: Path or URI of a folder for compiled plans, by which the report names the columns that the change
            defines differently. Required if a SQL Gateway on a different machine compiles the plans. (templated)
        until_rows: Number of rows of all sources after which ``duration`` ends early. None: it never ends early.
        from_earliest: Compare the stored state, too: both scripts also read all rows of their sources, without state.
        when: Outcomes of the check that are followed by a shadow run: by default, ``compatible``, ``partial`` and
            ``unknown``. After other outcomes, the task follows the branch of the check. Add ``incompatible`` to show
            the rows to a person who may resume such a change.
        on_expected: Reaction to rows that differ only in the columns of ``expect``: ``ask`` a person, or ``switch`` to
            the branch that the check chose.
        check_task_id: The check whose version runs; by default, the only check upstream for the same deployment.
    """

    role = TaskRole.SHADOW
    template_fields: Sequence[str] = (*ScriptOperator.template_fields, "savepoint_directory", "plan_dir")
    operator_extra_links = (FlinkChangeLink(),)
    takes_programs = False
    inherits_from_skipmixin = True
    ui_color = "#e2f0ee"

    def __init__(
        self,
        *,
        branches: Mapping[str, str | Sequence[str]],
        duration: str = "5min",
        timeout: str = "30min",
        expect: Sequence[str] = (),
        savepoint_directory: str | None = None,
        plan_dir: str | None = None,
        until_rows: int | None = None,
        from_earliest: bool = False,
        when: Sequence[str] = SHADOWED_OUTCOMES,
        on_expected: OnExpected = "ask",
        check_task_id: str | None = None,
        **kwargs: Unpack[ScriptArguments],
    ) -> None:
        super().__init__(**kwargs)
        if unknown := [key for key in branches if key not in _BRANCHES]:
            raise ValueError(f"branches: unknown {unknown[0]!r}; choose from {', '.join(_BRANCHES)}")
        if missing := [key for key in _REQUIRED_BRANCHES if not task_ids(branches.get(key))]:
            raise ValueError(f"branches: {missing[0]!r} missing; it needs a task id or a list of them")
        self.branches = {key: task_ids(value) for key, value in branches.items()}
        self.duration = duration
        self.timeout = timeout
        self.expect = expect
        self.savepoint_directory = savepoint_directory
        self.plan_dir = plan_dir
        self.until_rows = until_rows
        self.from_earliest = from_earliest
        self.when = when
        self.on_expected = on_expected
        self.check_task_id = check_task_id
        self._policy()

    def _policy(self) -> ShadowPolicy:
        folders = {name: getattr(self, name) or None for name in ("savepoint_directory", "plan_dir")}
        return ShadowPolicy.of({**vars(self), **folders})

    def execute(self, context: Context) -> None:
        """Make the shadow run, and branch. Raises AirflowFailException for a target without shadow runs."""
        with readable_errors():
            summary = summaries.pull(context, self, self.check_task_id)
            side = summaries.checked_side(self, summary)
            self.link_change(summary.checked_entry)
            if not self._migrates(summary) and (why := self._policy().why_not(summary.outcome, summary.branch)):
                self.log.info("No shadow run: %s → %s", why, summary.branch)
                branch = summary.branch
            else:
                entry = self._run(context, summary, side)
                branch = str(entry.branch)
                result = {**entry.shadow, "branch": branch, "deployment": self.deployment, "new_sha256": side.sha256}
                context["ti"].xcom_push(key=summaries.RETURN_VALUE, value=result)
        # A return value would replace the result if no downstream task is skipped.
        self.do_branch(context, self.branches.get(branch) or None)

    def _migrates(self, summary: Summary) -> bool:
        """True if only a migration keeps the state, so the checked script starts from a migrated savepoint."""
        incompatible = summary.branch == "approve" and summary.outcome == Outcome.INCOMPATIBLE
        return (
            "migrate" in self.branches
            and (summary.branch == "migrate" or incompatible)
            and summary.migration not in (None, "none")
        )

    def _migration(
        self, cluster: Cluster, head: HeadEntry, side: Side, summary: Summary, opened: ExitStack
    ) -> SavepointMigration:
        from airflow_flinkcompat.deploy.migration import SavepointMigration
        from airflow_flinkcompat.exec_graph.migration import Accept, MigrationExtent
        from airflow_flinkcompat.history.known_history import KnownHistory
        from airflow_flinkcompat.spark_migration import migration_workers

        accepted = tuple(map(Accept, summary.accepted))
        return SavepointMigration(
            side_of(head),
            side,
            cluster,
            head.job_id,
            at_least=MigrationExtent(str(summary.migration)),
            plan_dir=self.plan_dir or None,
            rehearsed=False,
            accepted=accepted,
            workers=lambda savepoint: migration_workers(savepoint, None, None, self.log_lines),
            history=KnownHistory(summary.history, None, accepted) if summary.history else None,
            planner=lambda: opened.enter_context(self.hook.planner()),
            log=self.log_lines,
        )

    def _run(self, context: Context, summary: Summary, side: Side) -> ShadowedEntry:
        from airflow_flinkcompat.deploy.ledger.entries import CheckedEntry, HeadEntry
        from airflow_flinkcompat.deploy.shadow.gating import run_for_gate
        from airflow_flinkcompat.deploy.shadow.report import render_text
        from airflow_flinkcompat.planner.judgement import compile_plans

        ledger = self.open_ledger()
        head, *later = ledger.in_force()
        checked = next((each for each in later if each.number == summary.checked_entry), None)
        if not (isinstance(head, HeadEntry) and isinstance(checked, CheckedEntry)):
            raise AirflowFailException(
                f"the check (entry {summary.checked_entry} of the ledger) is not about the deployed version, because "
                "another version was deployed since. Run the check again"
            )
        with self.hook.rehearsal_cluster() as cluster, ExitStack() as opened:
            entry, report = run_for_gate(
                cluster,
                ledger,
                head,
                checked,
                side,
                self._policy(),
                plan=compile_plans,
                migration=self._migration(cluster, head, side, summary, opened) if self._migrates(summary) else None,
                owner=run_name(context),
                log=self.log_lines,
            )
        self.log.info("Shadow run: %s → %s", report.finding, entry.branch)
        self.log_lines(render_text(report))
        return entry

    def on_kill(self) -> None:
        """Log that the started jobs are being ended, by the run or by a separate process."""
        self.log.warning("Killed: the jobs next to %s are being ended; the live job keeps running", self.deployment)
