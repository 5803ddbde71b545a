"""The DAG of an upgrade, each run of which moves the jobs of one wave.

The audit decides which jobs a wave contains, because their sizes and risks are unknown when Airflow parses the DAG.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.providers.standard.utils.skipmixin import SkipMixin
from airflow.sdk import DAG, BaseOperator, TaskGroup

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators.compatibility import FlinkSqlCompatibilityOperator
from airflow_flinkcompat.airflow.operators.deployments import Deployment, DeploymentsError, deployments_of
from airflow_flinkcompat.airflow.operators.gated import gated_redeploy
from airflow_flinkcompat.airflow.tasks.base import readable_errors, run_name
from airflow_flinkcompat.airflow.tasks.files import masked
from airflow_flinkcompat.airflow.triggers.health import FlinkHealthTrigger
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.model.engine import is_of_line
from airflow_flinkcompat.project.file import read_tables
from airflow_flinkcompat.project.upgrade import REST, FleetUpgrade, Risk, upgrade_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.deploy import Ledger
    from airflow_flinkcompat.deploy.ledger.entries import HeadEntry
    from airflow_flinkcompat.fleet.audit.values import AuditRow
    from airflow_flinkcompat.project.settings import ProjectFile

MOVES, WAITS, MOVED, HELD = "moves", "waits", "moved", "held"
"""Decisions of the audit; a job waits for a later wave, and is held back in all waves."""
_LEAST_SECONDS, _MOST_SECONDS, _LOOKS = 1.0, 60.0, 20
_BEGINNING = datetime(2026, 1, 1)
_UNLESS_FAILED: Mapping[str, Any] = {"trigger_rule": "none_failed"}
"""For a task that follows jobs that may be skipped, but must not follow a failure."""


def upgrade_dag(path: str | os.PathLike[str], *, dag_id: str = "flink_upgrade", **dag: Any) -> DAG:
    """Create the DAG that moves the jobs of a project file to another Flink version, in waves.

    Assign the DAG to a global variable of the DAG file: ``upgrade = upgrade_dag("flinkcompat.toml")``. Each run moves
    one wave: the jobs of the first wave of which the audit finds a compatible job. They move one after another. Before
    that, all moved jobs must be healthy for ``hold``. Afterwards, the run triggers the run of the next wave. The first
    failure stops all later moves.

    Args:
        path: The project file, with a table ``[upgrade]``.
        dag_id: The id of the DAG.
        **dag: Additional arguments of the DAG. The default schedule is None: a person triggers the first run.

    Returns:
        The DAG.

    Raises:
        DeploymentsError: The file cannot be read, or a value of ``[upgrade]`` is wrong.
    """
    try:
        tables = read_tables(path)
        upgrade = upgrade_of(tables)
    except InputError as error:
        raise DeploymentsError(str(error)) from None
    found = deployments_of(tables)
    usable = {each.name for each in found.deployments}
    broken = [name for name in (*tables.deployments, *tables.broken) if name not in usable]
    left = dict.fromkeys(broken, "its table in the project file is unusable") | dict(
        _without_tasks(found.deployments, upgrade)
    )
    moved = [_on_new_line(each, upgrade) for each in found.deployments if each.name not in left]
    arguments = {
        "schedule": None,
        "start_date": _BEGINNING,
        "tags": ["flink", "upgrade"],
        "template_searchpath": [str(found.path.absolute().parent)],
        "doc_md": f"Moves Flink jobs from {upgrade.old} to {upgrade.new}, as `[upgrade]` in `{path}` configures.",
        "params": {"move": [], "back": []},
        "default_args": {"retries": 1, "retry_delay": timedelta(seconds=20)},
        "auto_register": False,  # Airflow must not find a half-built DAG
        **dag,
    }
    with DAG(dag_id, max_active_runs=1, **arguments) as whole:
        FlinkUpgradeBackOperator(task_id="back", deployments=moved)
        healthy = FlinkUpgradeHealthOperator(task_id="healthy", deployments=moved, upgrade=upgrade)
        audit = FlinkUpgradeAuditOperator(
            task_id="audit",
            project=str(found.path),
            upgrade=upgrade,
            deployments=moved,
            left=left,
            **_UNLESS_FAILED,
        )
        earlier: list[Any] = [healthy >> audit]
        with TaskGroup("jobs"):
            for each in moved:
                earlier = _move(each, audit, earlier)
        following = FlinkUpgradeNextOperator(task_id="next_wave", deployments=moved, upgrade=upgrade, **_UNLESS_FAILED)
        for task in earlier:
            task >> following
    return whole


def _move(deployment: Deployment, audit: Any, earlier: Sequence[Any]) -> list[Any]:
    """Create the tasks that move one job, and return the nodes that the next job follows.

    The audit skips a job before the turn of the job. So the next turn also follows the turn of this job, which follows
    all earlier jobs. The scheduler runs a turn without a worker.
    """
    with TaskGroup(deployment.name.replace(".", "__")) as group:
        turn = EmptyOperator(task_id="turn", **_UNLESS_FAILED)
        gated_redeploy(deployment, watch=False)
    check = group.children[f"{group.group_id}.check"]
    for task in earlier:
        task >> turn
    [turn, audit] >> check  # the audit can skip only tasks that follow it directly
    return [turn, group]


def _on_new_line(deployment: Deployment, upgrade: FleetUpgrade) -> Deployment:
    """The deployment with the new line's connection and version, whose check may follow skipped jobs."""
    connection = upgrade.connection_of(deployment.flink_conn_id)
    check = {**deployment.check, "engine_version": upgrade.new, **_UNLESS_FAILED}
    # A shadow run needs the live job, which still runs on the former line.
    update = {"flink_conn_id": connection, "check": check, "start_mode": "savepoint"}
    return deployment.model_copy(update=update)


def _without_tasks(deployments: Sequence[Deployment], upgrade: FleetUpgrade) -> Iterator[tuple[str, str]]:
    """Name and reason of each deployment that the DAG does not move."""
    for each in deployments:
        if upgrade.connection_of(each.flink_conn_id) is None:
            yield each.name, f"upgrade.flink_conn_id names no connection of the new line for {each.flink_conn_id!r}"
        elif each.ledger and masked(each.ledger) != each.ledger:
            yield (
                each.name,
                "its ledger contains a secret, which a trigger would store: set it in the connection",
            )
        elif each.plan_only:
            yield each.name, "plan_only: its platform is configured by a repository, so move it there"
        elif not each.script.endswith(".sql"):
            yield each.name, f"{each.script} is a program, and targets run only SQL scripts"


@dataclass(frozen=True)
class MoveDecision:
    """The audit's decision on one deployment."""

    deployment: str
    decision: str
    reason: str
    wave: str = ""


class FlinkUpgradeAuditOperator(BaseOperator, SkipMixin):
    """Judge all deployed jobs on the next Flink line, and skip the jobs that do not move in this run.

    The task compares the deployed version of each job, on the present line, with its script on the next line. A job
    may move if it is compatible, if waivers cover all other findings, or if it has ``migrate`` and a migration keeps
    all of its state. The return value contains a decision for each deployment: ``moves``, ``waits`` (for a later
    wave), ``moved`` (the next line already runs the job), or ``held``. A run with the conf ``{"move": ["orders"]}``
    does not hold back ``orders``; the job's own check and approval then decide. A run that moves jobs back
    (``{"back": ["orders"]}``) holds all jobs.

    Args:
        project: Path of the project file.
        upgrade: The table ``[upgrade]`` of the project file.
        deployments: The deployments of all waves, each with the connection of the new line.
        left: The reason why a deployment has no tasks, by name.
    """

    inherits_from_skipmixin = True
    ui_color = "#e8f0fe"

    def __init__(
        self,
        *,
        project: str,
        upgrade: FleetUpgrade,
        deployments: Sequence[Deployment],
        left: Mapping[str, str],
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.project = project
        self.upgrade = upgrade
        self.deployments = tuple(deployments)
        self.left = dict(left)

    def execute(self, context: Context) -> dict[str, dict[str, str]]:
        """Judge all jobs, and return the decisions by deployment. Raises AirflowFailException."""
        from airflow_flinkcompat.project.settings import load_project

        with readable_errors():
            project = load_project(self.project)
            self._check_connections()
            params = context["params"]
            if params.get("back"):
                why = "this run only moves jobs back"
                found = [MoveDecision(each.name, HELD, why) for each in self.deployments]
            else:
                found = [self._decided(each, project, params.get("move", ())) for each in self.deployments]
        found += [MoveDecision(name, HELD, why) for name, why in self.left.items()]
        found = [replace(each, reason=masked(each.reason)) for each in self._of_one_wave(found)]
        decisions = {each.deployment: asdict(each) for each in found}
        # A task that skips tasks pushes no return value.
        context["ti"].xcom_push(key="return_value", value=decisions)
        checks = (each for each in self.downstream_list if isinstance(each, FlinkSqlCompatibilityOperator))
        self.skip(context["ti"], [each for each in checks if decisions[each.deployment]["decision"] != MOVES])
        return decisions

    def _of_one_wave(self, found: Sequence[MoveDecision]) -> list[MoveDecision]:
        """The decisions, of which only those of the first wave remain ``moves``; log all."""
        waves = [str(each) for each in self.upgrade.waves]
        now = min((waves.index(each.wave) for each in found if each.decision == MOVES), default=0)
        found = [
            replace(each, decision=WAITS) if each.decision == MOVES and each.wave != waves[now] else each
            for each in found
        ]
        self.log.info("wave %d of %d: %s", now + 1, len(waves), waves[now])
        for decision in (HELD, MOVES, WAITS, MOVED):
            rows = [each for each in found if each.decision == decision]
            self.log.info("%s: %d of %d jobs", decision, len(rows), len(found))
            for row in rows:
                wave = f" for wave {waves.index(row.wave) + 1} ({row.wave})" if decision == WAITS else ""
                self.log.info("  %s%s: %s", row.deployment, wave, masked(row.reason))
        return found

    def _check_connections(self) -> None:
        """Check that the connections of the new line run it. Raises AirflowFailException."""
        for conn_id, target in dict.fromkeys((each.flink_conn_id, each.target) for each in self.deployments):
            hook = FlinkHook(conn_id, target=target)
            engine, version = hook.engine()
            if not is_of_line(version, self.upgrade.new):
                raise AirflowFailException(
                    f"connection {conn_id!r} runs {engine} {version}, but [upgrade] moves jobs to Flink "
                    f"{self.upgrade.new}: correct flink_conn_id or to in {self.project}"
                )
            if not hook.has_former:
                raise AirflowFailException(
                    f"connection {conn_id!r} does not know from where jobs move: set former_conn_id in its extra to "
                    "the connection of the present cluster, or on Kubernetes former_manifest, on AWS "
                    "former_runtime_environment, on Realtime Compute former_engine_version"
                )

    def _decided(self, deployment: Deployment, project: ProjectFile, asked: Sequence[str]) -> MoveDecision:
        name, new = deployment.name, self.upgrade.new
        head = _ledger(deployment).head()
        if head is None:
            return MoveDecision(name, HELD, "was never deployed: deploy it on the new line with its own DAG")
        version = head.job.engine_version
        if is_of_line(version, new):
            return MoveDecision(name, MOVED, f"Flink {new} already runs job {head.job_id}")
        if not is_of_line(version, self.upgrade.old):
            runs = f"runs {head.job.engine} {version or 'of an unknown version'}"
            return MoveDecision(name, HELD, f"{runs}, not Flink {self.upgrade.old}")
        row, changed = self._judged(deployment, head, project)
        words = "; ".join(each.message for each in row.causes) or str(row.result)
        unknown = any(each.effect == "unknown" for each in row.operators)
        if str(row.result) == "compatible":
            risk = Risk.LOW if changed else Risk.NONE
        elif row.gate == "compatible":
            risk, words = Risk.HIGH, f"{row.result}, but all findings are waived: {words}"
        elif str(row.kept) == "whole" and deployment.migrate is not None and not unknown:
            risk, words = Risk.HIGH, f"{row.result}, but moves with migrated state: {words}"
        elif name in asked:
            risk, words = Risk.HIGH, f"{row.result}, but moves at the request of this run: {words}"
        else:
            return MoveDecision(name, HELD, f"{row.result}: {words}")
        if name not in asked and (why := self._rejected(deployment)):
            return MoveDecision(name, HELD, f'{why}. To ask again, trigger a run with the conf {{"move": ["{name}"]}}')
        size = self._size(deployment, head)
        wave = self.upgrade.wave_of(deployment.tags, size, risk)
        if wave is None:
            return MoveDecision(name, HELD, f"no wave contains it: add one of its tags or {REST!r} to wave")
        return MoveDecision(name, MOVES, words, str(wave))

    def _rejected(self, deployment: Deployment) -> str:
        """The rejection of the move since the last start, if any."""
        from airflow_flinkcompat.deploy.ledger.entries import RejectedEntry

        for entry in reversed(_ledger(deployment).entries()):
            if entry.is_head:
                break
            if isinstance(entry, RejectedEntry) and is_of_line(entry.version.engine_version, self.upgrade.new):
                return f"rejected at {entry.at}: {entry.message}".rstrip(".")
        return ""

    def _size(self, deployment: Deployment, head: HeadEntry) -> int | None:
        """Bytes of the job's state, if a wave depends on the size and the size is known."""
        from airflow_flinkcompat.deploy.target import CheckpointStatistics

        if not any(wave.size for wave in self.upgrade.waves):
            return None
        with _hook(deployment).get_conn() as target:
            found = None
            if isinstance(target, CheckpointStatistics):
                found = target.snapshot_stats(head.start.job_ref, "completed")
        return head.start.savepoint_bytes if found is None else found.bytes

    def _judged(self, deployment: Deployment, head: HeadEntry, project: ProjectFile) -> tuple[AuditRow, bool]:
        """The audit's row for the deployed version and the present script, and True if the script changed."""
        from airflow_flinkcompat.compat.gate import ChangeIdentity
        from airflow_flinkcompat.fleet.audit.judging import audit_pair, failed_row
        from airflow_flinkcompat.fleet.audit.sources import plain_job
        from airflow_flinkcompat.fleet.audit.values import AuditPair
        from airflow_flinkcompat.fleet.sides import side_of_deployment, waivers_of
        from airflow_flinkcompat.project.settings import TEMPLATE
        from airflow_flinkcompat.sql import ScriptError

        name = deployment.name
        own = next((each for each in project.deployments if each.name == name), None)
        if own is None:
            return failed_row(
                name, "cannot-be-read", "; ".join(project.broken.get(name, ("is not in the project file",)))
            ), True
        try:
            side = side_of_deployment(own, project.folder, project.folder)
            waivers = waivers_of(project.folder / own.script, project.folder)
        except (ScriptError, InputError) as error:
            return failed_row(name, "cannot-be-read", str(error)), True
        if side is None:
            return failed_row(name, "cannot-be-read", f"{own.script}: there is no such file"), True
        # Only a task renders templates. A script with templates is judged in its deployed version.
        proposed = head.job if any(mark in side.script for mark in TEMPLATE) else plain_job(side)
        new = replace(proposed, engine=head.job.engine, engine_version=self.upgrade.new)
        pair = AuditPair(
            name, head.job, new, planner=own.options.planner or "auto", jars=own.options.jars, waivers=waivers
        )
        change = ChangeIdentity.of(head.job, new)
        return audit_pair(pair), change.deployed != change.proposed


class FlinkUpgradeNextOperator(TriggerDagRunOperator):
    """Trigger the run of the next wave, if a job of this run has moved.

    Args:
        deployments: The deployments of all waves, each with the connection of the new line.
        upgrade: The table ``[upgrade]`` of the project file.
    """

    def __init__(self, *, deployments: Sequence[Deployment], upgrade: FleetUpgrade, **kwargs: Any) -> None:
        super().__init__(
            trigger_dag_id="{{ dag.dag_id }}",
            trigger_run_id="{{ run_id }}__next",
            skip_when_already_exists=True,  # a repeated task triggers no second run
            **kwargs,
        )
        self.deployments = tuple(deployments)
        self.upgrade = upgrade

    def execute(self, context: Context) -> None:
        """Trigger the run, with the requests for later waves; raises AirflowSkipException if no job has moved."""
        found = context["ti"].xcom_pull(task_ids="audit")
        of_this_run = [each for each in self.deployments if found[each.name]["decision"] == MOVES]
        with readable_errors():
            if not any(_has_moved(each, self.upgrade) for each in of_this_run):
                raise AirflowSkipException("no job has moved: trigger a new run to continue with later waves")
        asked = {each.name for each in of_this_run}
        self.conf = {"move": [name for name in context["params"].get("move", ()) if name not in asked]}
        super().execute(context)


class FlinkUpgradeBackOperator(BaseOperator):
    """Move jobs back to the former line, if the run's conf names them: ``{"back": ["orders"]}``.

    Args:
        deployments: The deployments of all waves, each with the connection of the new line.
    """

    ui_color = "#fce8e6"

    def __init__(self, *, deployments: Sequence[Deployment], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.deployments = {each.name: each for each in deployments}

    def execute(self, context: Context) -> list[str]:
        """Move the named jobs back; return their names. Raises AirflowException if a job cannot move back."""
        names = [*dict.fromkeys(context["params"].get("back", ()))]
        if not names:
            raise AirflowSkipException("this run moves no job back")
        if unknown := [name for name in names if name not in self.deployments]:
            raise AirflowFailException(f"back: {unknown[0]!r} is not one of {', '.join(self.deployments)}")
        for name in names:
            with readable_errors():
                self._move_back(self.deployments[name], run_name(context))
        return names

    def _move_back(self, deployment: Deployment, owner: str) -> None:
        from airflow_flinkcompat.deploy.redeploy.way_back import move_back

        hook = _hook(deployment)
        ledger = _ledger(deployment)
        with hook.get_conn() as target:
            entry = move_back(target, ledger, owner=owner, log=lambda words: self.log.info("%s", masked(words)))
        self.log.info("%s: %s", deployment.name, masked(entry.message))


class FlinkUpgradeHealthOperator(BaseOperator):
    """Wait until the moved jobs were healthy for a time; fail if a job ends or stays unhealthy.

    A job is healthy while all of its tasks run, it does not fail, and its metrics stay within their limits. After the
    last start, the jobs may take ``hold`` seconds to become healthy. The task waits in the triggerer.

    Args:
        deployments: The deployments of this wave and of earlier waves, each with the connection of the new line.
        upgrade: The table ``[upgrade]`` of the project file.
    """

    ui_color = "#e6f4ea"

    def __init__(self, *, deployments: Sequence[Deployment], upgrade: FleetUpgrade, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.deployments = tuple(deployments)
        self.upgrade = upgrade

    def execute(self, context: Context) -> None:
        """Observe the jobs, or defer; raises AirflowFailException, which stops the fleet."""
        if context["params"].get("back"):
            raise AirflowSkipException("this run only moves jobs back")
        keys = ("name", "flink_conn_id", "target", "ledger")
        jobs = [{key: getattr(each, key) for key in keys} for each in self.deployments]
        upgrade = self.upgrade
        every = max(_LEAST_SECONDS, min(_MOST_SECONDS, upgrade.hold / _LOOKS))
        trigger = FlinkHealthTrigger(jobs, upgrade.new, upgrade.hold, upgrade.lag, every)
        with readable_errors():
            health = trigger.observe()
        for one in health.jobs:
            if one.words:
                self.log.warning("%s: %s", one.name, masked(one.words))
        for metric in health.unreported:
            self.log.warning("lag: no moved job reports the metric %s, so it limits no job: check its name", metric)
        if health.failed:
            words = "\n".join(f"  {one.name}: {masked(one.words)}" for one in health.failed)
            raise AirflowFailException(
                f"the fleet stops here, and later waves do not move, because jobs are not healthy on Flink "
                f"{upgrade.new}:\n{words}\nCorrect the cause, then clear this task, or move these jobs back: trigger a "
                'run with the conf {"back": ["NAME"]}'
            )
        if (left := health.left(time.time())) > 0:
            self.log.info("%d moved jobs must be healthy for %.0f more seconds", len(health.jobs), left)
            self.defer(trigger=trigger, method_name="execute_complete")
        self.log.info("%d moved jobs were healthy for %.0f seconds", len(health.jobs), upgrade.hold)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> None:
        """Observe the jobs again after a wait in the triggerer.

        Args:
            context: Airflow's context of the task.
            event: Event of the trigger, without content.
        """
        self.execute(context)


def _has_moved(deployment: Deployment, upgrade: FleetUpgrade) -> bool:
    head = _ledger(deployment).head()
    return head is not None and is_of_line(head.job.engine_version, upgrade.new)


def _ledger(deployment: Deployment) -> Ledger:
    return _hook(deployment).ledger(deployment.name, deployment.ledger)


def _hook(deployment: Deployment) -> FlinkHook:
    return FlinkHook(deployment.flink_conn_id, target=deployment.target)
