"""Deployment of the checked script with the rewritten state of the former job."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow.providers.common.compat.sdk import AirflowFailException

from airflow_flinkcompat.airflow.operators.deploy import FlinkSqlDeployOperator
from airflow_flinkcompat.airflow.tasks.base import known_tables, side_of
from airflow_flinkcompat.model import StartMode

if TYPE_CHECKING:
    from airflow_flinkcompat.airflow.operators.summary import Summary
    from airflow_flinkcompat.compat import Side
    from airflow_flinkcompat.deploy import Ledger, Target
    from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry
    from airflow_flinkcompat.deploy.redeploy.run import StateMigration
    from airflow_flinkcompat.exec_graph.migration import Accept
    from airflow_flinkcompat.history.known_history import KnownHistory


class FlinkStateMigrationOperator(FlinkSqlDeployOperator):
    """Stop the running job with a savepoint, rewrite the savepoint, and start the checked script from it.

    The result has the keys of FlinkSqlDeployOperator's result, and the key ``sent_until``: the end of the windows that
    were emitted without state computed from history, or None without such windows.

    The operator is for incompatible changes on open-source Flink whose state a migration can keep. Before the running
    job is stopped, Flink compiles both scripts, and a template savepoint of the new job is taken. If the migration
    keeps less state than the check or the approver expected, the migration is refused. If the target cannot compile
    scripts or take templates, a planner does both: the SQL Gateway of the connection's ``planner_conn_id``, or else a
    local Flink. Effects that the check accepted are accepted here, too. The rewritten savepoint is verified, and
    rehearsed with stand-in sinks. Then the job is started from the rewritten savepoint, and verified as after any other
    start. If a step fails, the former script resumes from its own savepoint. A retry after a kill resumes after the
    last step that the ledger records.

    Args:
        plan_dir: Path or URI of a folder to which the SQL Gateway writes plans, and which this worker can read.
            Required unless the Gateway and the worker run on the same machine. (templated)
        rehearse: Rehearse the rewritten savepoint before the start.
        spark: Rewrite the savepoint with Spark. None: use Spark if the state is 2 GB or more and PySpark is installed.
        spark_master: The Spark master. None: a local master with all cores of this worker. (templated)
        history: Tables with known history, each with the location of the rows that the job has read; "" means the
            location in the script. From these rows, Spark computes the state that would otherwise start empty. None:
            the tables in the ``history`` of the check. (templated)
        sample: Number of keys that are recomputed in plain Python before the start, for each operator computed from
            history. None: 20.
        catch_up: Migrate a savepoint of the running job, and let a job with stand-in sinks read the rows up to the
            stop. The downtime then does not depend on the time of the migration. Every source position must be kept.
            True: only if a migration after the stop would take longer than a catch-up. ``always``: for any size of the
            state.
        check_task_id: As for FlinkSqlDeployOperator. All other arguments of FlinkSqlDeployOperator are accepted, except
            for ``start_mode``, ``hand_over``, ``source_offsets``, ``allow_ended``, ``plan_only`` and ``plan_to``.
    """

    template_fields: Sequence[str] = (*FlinkSqlDeployOperator.template_fields, "plan_dir", "spark_master", "history")
    ui_color = "#e0f2f1"
    start_modes: ClassVar[tuple[StartMode, ...]] = (StartMode.MIGRATED,)
    decided: ClassVar[frozenset[str]] = frozenset(
        ("start_mode", "hand_over", "source_offsets", "allow_ended", "plan_only", "plan_to")
    )

    def __init__(
        self,
        *,
        plan_dir: str | None = None,
        rehearse: bool = True,
        spark: bool | None = None,
        spark_master: str | None = None,
        history: Mapping[str, str] | None = None,
        sample: int | None = None,
        catch_up: bool | Literal["always"] = False,
        **kwargs: Any,
    ) -> None:
        for name in kwargs:
            if name in self.decided:
                raise ValueError(f"{name} cannot be set, because the written state decides where the job resumes")
        if spark_master and spark is False:
            raise ValueError("spark_master needs Spark, and spark is False: omit one of them")
        if sample is not None and sample < 0:
            raise ValueError(f"sample: {sample!r} is not a number of keys: write 0 or more")
        if catch_up not in (True, False, "always"):
            raise ValueError(f"catch_up: {catch_up!r} is unknown: write true, false or always")
        super().__init__(start_mode=self.start_modes[0].value, **kwargs)
        self.plan_dir = plan_dir
        self.rehearse = rehearse
        self.spark = spark
        self.spark_master = spark_master
        self.history = known_tables(history)
        self.sample = sample
        self.catch_up = catch_up

    def _migration(
        self, target: Target, ledger: Ledger, side: Side, summary: Summary, opened: ExitStack
    ) -> StateMigration | None:
        from airflow_flinkcompat.deploy.migration import SavepointMigration
        from airflow_flinkcompat.deploy.rehearsal.place import Cluster
        from airflow_flinkcompat.exec_graph.migration import Accept, MigrationExtent
        from airflow_flinkcompat.spark_migration import migration_workers

        accepted, head = tuple(map(Accept, summary.accepted)), ledger.head()
        known = self._known(summary, accepted)
        if head is None or summary.migration is None:
            raise AirflowFailException(
                f"the report of the check does not contain the state of {self.deployment} that a migration "
                "keeps, so nobody decided on it: check with explain_plan=True, on engine flink"
            )
        return SavepointMigration(
            side_of(head),
            side,
            Cluster(target, self.hook.location()),
            head.job_id,
            at_least=MigrationExtent(summary.migration),
            plan_dir=self.plan_dir or None,
            rehearsed=self.rehearse,
            accepted=accepted,
            workers=lambda savepoint: migration_workers(savepoint, self.spark, self.spark_master or None, self._note),
            history=known if known.tables else None,
            savepoint_directory=self.savepoint_directory,
            hold=opened.enter_context,
            planner=lambda: opened.enter_context(self.hook.planner()),
            log=self._note,
            catch_up=self.catch_up,
        )

    def _known(self, summary: Summary, accepted: Collection[Accept] = ()) -> KnownHistory:
        from airflow_flinkcompat.history.known_history import KnownHistory

        known = KnownHistory(self.history or summary.history, self.spark_master or None, accepted)
        return known if self.sample is None else replace(known, sample=self.sample)

    def _more(self, entry: DeployedEntry) -> dict[str, Any]:
        from airflow_flinkcompat.deploy.ledger.entries import MigratedEntry

        done = (each for each in reversed(self.open_ledger().entries()) if isinstance(each, MigratedEntry))
        written = next((each for each in done if each.migrated_to == entry.start.savepoint), None)
        return {"sent_until": None if written is None else written.migration.get("sent_until")}


class FlinkWarmRestartOperator(FlinkStateMigrationOperator):
    """Stop the running job, compute the checked script's state from history, and start the script with it.

    The operator replaces a restart without state, before a backfill. The job resumes after all rows that existed when
    the former job had stopped. The log lists the windows, or rows, that are treated as emitted and are left to the
    backfill. If any state cannot be computed, or nothing was deployed, the job starts without state, as with
    FlinkSqlDeployOperator, and the log shows the reason. If a step fails, the former script resumes from its own
    savepoint.

    Args:
        history: As for FlinkStateMigrationOperator. Every table that the script reads must be listed. (templated)
        check_task_id: As for FlinkStateMigrationOperator. All other arguments of FlinkStateMigrationOperator except
            ``spark`` are accepted. ``source_offsets`` and ``allow_ended`` are accepted, too. ``source_offsets`` applies
            only if the job starts without state. With ``allow_ended``, the job starts without state if the former job
            has ended.
    """

    start_modes: ClassVar[tuple[StartMode, ...]] = (StartMode.STATELESS,)
    decided: ClassVar[frozenset[str]] = frozenset(("start_mode", "hand_over", "plan_only", "plan_to", "spark"))

    def _migration(
        self, target: Target, ledger: Ledger, side: Side, summary: Summary, opened: ExitStack
    ) -> StateMigration | None:
        from airflow_flinkcompat.deploy.ledger.status import Progress, begun_mode
        from airflow_flinkcompat.deploy.rehearsal.place import Cluster
        from airflow_flinkcompat.deploy.warm_restart import WarmRestart
        from airflow_flinkcompat.history.warm_start import WarmStart

        progress = Progress.of(ledger.entries())
        head, begun, history = progress.head, begun_mode(progress, side.digest()), self._known(summary)
        if head is None or begun == StartMode.STATELESS:
            return None
        status = target.status(head.start.job_ref) if self.allow_ended and begun is None else None
        if status is not None and status.terminal:
            self._note(f"no warm start: job {head.job_id} has ended ({status.state}), and leaves no savepoint")
            return None
        restart = WarmRestart(
            side,
            Cluster(target, self.hook.location()),
            head.job_id,
            lambda own, made, plan: WarmStart.of(own, made, plan, history, {}),
            plan_dir=self.plan_dir or None,
            rehearsed=self.rehearse,
            hold=opened.enter_context,
            planner=lambda: opened.enter_context(self.hook.planner()),
            log=self._note,
        )
        # A run that has begun a warm restart continues it, even if the conditions are no longer met.
        return restart if begun is not None or restart.is_possible() else None
