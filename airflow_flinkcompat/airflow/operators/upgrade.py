"""The DAG of an upgrade: an audit, waves of moving jobs, and the health of the moved jobs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException
from airflow.sdk import DAG, BaseOperator, TaskGroup

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators.deployments import Deployment, DeploymentsError, deployments_of
from airflow_flinkcompat.airflow.operators.gated import gated_redeploy
from airflow_flinkcompat.airflow.tasks.base import readable_errors, run_name
from airflow_flinkcompat.airflow.tasks.files import masked
from airflow_flinkcompat.airflow.triggers.health import FlinkHealthTrigger
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.file import read_tables
from airflow_flinkcompat.project.upgrade import REST, FleetUpgrade, is_of_line, upgrade_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.deploy.ledger.entries import HeadEntry
    from airflow_flinkcompat.fleet.audit.values import AuditRow
    from airflow_flinkcompat.project.settings import ProjectFile

AUDIT = "audit"
MOVES, MOVED, HELD = "moves", "moved", "held"
"""Decisions of the audit: the job moves, has already moved, or is held back."""
_LEAST_SECONDS, _MOST_SECONDS, _LOOKS = 1.0, 60.0, 20
_BEGINNING = datetime(2026, 1, 1)
_UNLESS_FAILED = {"trigger_rule": "none_failed"}
"""For a task that follows jobs that may be skipped, but must not follow a failure."""


def upgrade_dag(path: str | os.PathLike[str], *, dag_id: str = "flink_upgrade", **dag: Any) -> DAG:
    """Create the DAG that moves the jobs of a project file to another Flink line, in waves.

    Assign the DAG to a global variable of the DAG file: ``upgrade = upgrade_dag("flinkcompat.toml")``. A run audits
    all jobs, then moves the compatible jobs one after another, wave by wave. After each wave, all moved jobs must be
    healthy for ``hold``. The first failure stops all later moves. A later run skips jobs that have moved.

    Args:
        path: The project file, with a table ``[upgrade]``.
        dag_id: The id of the DAG.
        **dag: Additional arguments of the DAG. The default schedule is None: a person triggers each run.

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
        audit = FlinkUpgradeAuditOperator(
            task_id=AUDIT, project=str(found.path), upgrade=upgrade, deployments=moved, left=left
        )
        audit >> FlinkUpgradeBackOperator(task_id="back", deployments=moved)
        last: Any = audit
        begun: list[Deployment] = []
        for wave in upgrade.waves:
            jobs = [each for each in moved if upgrade.wave_of(each.tags) == wave]
            begun += jobs
            with TaskGroup("rest" if wave == REST else wave):
                for each in jobs:
                    last = _move(each, last)
                healthy = FlinkUpgradeHealthOperator(
                    task_id="healthy", deployments=begun, upgrade=upgrade, **_UNLESS_FAILED
                )
            last >> healthy
            last = healthy
    return whole


def _move(deployment: Deployment, after: Any) -> TaskGroup:
    """Create the tasks that move one job after other jobs."""
    with TaskGroup(deployment.name.replace(".", "__")) as group:
        turn = FlinkUpgradeTurnOperator(task_id="turn", deployment=deployment.name, **_UNLESS_FAILED)
        gated_redeploy(deployment, watch=False)
    after >> turn >> group.children[f"{group.group_id}.check"]
    return group


def _on_new_line(deployment: Deployment, upgrade: FleetUpgrade) -> Deployment:
    """The deployment with the new line's connection and version."""
    connection = upgrade.connection_of(deployment.flink_conn_id)
    check = {**deployment.check, "engine_version": upgrade.new}
    return deployment.model_copy(update={"flink_conn_id": connection, "check": check})


def _without_tasks(deployments: Sequence[Deployment], upgrade: FleetUpgrade) -> Iterator[tuple[str, str]]:
    """Name and reason of each deployment that the DAG does not move."""
    for each in deployments:
        if upgrade.wave_of(each.tags) is None:
            yield each.name, f"no wave contains it: add one of its tags or {REST!r} to wave"
        elif upgrade.connection_of(each.flink_conn_id) is None:
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


class FlinkUpgradeAuditOperator(BaseOperator):
    """Judge all deployed jobs on the next Flink line, and let only compatible jobs move.

    The task compares the deployed version of each job, on the present line, with its script on the next line. The
    return value contains a decision for each deployment: ``moves``, ``moved`` (the next line already runs the job), or
    ``held``. A run with the conf ``{"move": ["orders"]}`` does not hold back ``orders``; the job's own check and
    approval then decide. A run that moves jobs back (``{"back": ["orders"]}``) holds all jobs.

    Args:
        project: Path of the project file.
        upgrade: The table ``[upgrade]`` of the project file.
        deployments: The deployments of all waves, each with the connection of the new line.
        left: The reason why a deployment has no tasks, by name.
    """

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
        for decision in (MOVES, MOVED, HELD):
            rows = [each for each in found if each.decision == decision]
            self.log.info("%s: %d of %d jobs", decision, len(rows), len(found))
            for row in rows:
                self.log.info("  %s: %s", row.deployment, masked(row.reason))
        return {each.deployment: asdict(replace(each, reason=masked(each.reason))) for each in found}

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
                    "the connection of the present cluster (on Kubernetes, former_manifest to the present manifest)"
                )

    def _decided(self, deployment: Deployment, project: ProjectFile, asked: Sequence[str]) -> MoveDecision:
        name, new = deployment.name, self.upgrade.new
        head = _head(deployment)
        if head is None:
            return MoveDecision(name, HELD, "was never deployed: deploy it on the new line with its own DAG")
        version = head.job.engine_version
        if is_of_line(version, new):
            return MoveDecision(name, MOVED, f"Flink {new} already runs job {head.job_id}")
        if not is_of_line(version, self.upgrade.old):
            runs = f"runs {head.job.engine} {version or 'of an unknown version'}"
            return MoveDecision(name, HELD, f"{runs}, not Flink {self.upgrade.old}")
        row = self._judged(deployment, head, project)
        words = "; ".join(each.message for each in row.causes) or str(row.result)
        if str(row.result) == "compatible":
            return MoveDecision(name, MOVES, words)
        if name in asked:
            return MoveDecision(name, MOVES, f"{row.result}, but moves at the request of this run: {words}")
        return MoveDecision(name, HELD, f"{row.result}: {words}")

    def _judged(self, deployment: Deployment, head: HeadEntry, project: ProjectFile) -> AuditRow:
        """The audit's row for the deployed version and the script of the project on the next line."""
        from airflow_flinkcompat.fleet.audit.judging import audit_pair, failed_row
        from airflow_flinkcompat.fleet.audit.sources import plain_job
        from airflow_flinkcompat.fleet.audit.values import AuditPair
        from airflow_flinkcompat.fleet.sides import side_of_deployment
        from airflow_flinkcompat.project.settings import TEMPLATE
        from airflow_flinkcompat.sql import ScriptError

        name = deployment.name
        own = next((each for each in project.deployments if each.name == name), None)
        if own is None:
            return failed_row(
                name, "cannot-be-read", "; ".join(project.broken.get(name, ("is not in the project file",)))
            )
        try:
            side = side_of_deployment(own, project.folder, project.folder)
        except ScriptError as error:
            return failed_row(name, "cannot-be-read", str(error))
        if side is None:
            return failed_row(name, "cannot-be-read", f"{own.script}: there is no such file")
        # Only a task renders templates. A script with templates is judged in its deployed version.
        proposed = head.job if any(mark in side.script for mark in TEMPLATE) else plain_job(side)
        new = replace(proposed, engine=head.job.engine, engine_version=self.upgrade.new)
        planner = own.options.planner or "auto"
        return audit_pair(AuditPair(name, head.job, new, planner=planner, jars=own.options.jars))


class FlinkUpgradeTurnOperator(BaseOperator):
    """Begin the move of one job, or skip the job if the audit does not let it move.

    Args:
        deployment: Name of the Flink job.
    """

    ui_color = "#e8f0fe"

    def __init__(self, *, deployment: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.deployment = deployment

    def execute(self, context: Context) -> str:
        """Return the audit's reason; raises AirflowSkipException if the job does not move."""
        row = (context["ti"].xcom_pull(task_ids=AUDIT) or {}).get(self.deployment)
        if row is None:
            raise AirflowFailException(f"the audit of this run has no decision on {self.deployment}: clear the audit")
        if row["decision"] != MOVES:
            raise AirflowSkipException(f"{self.deployment}: {row['decision']}: {row['reason']}")
        return str(row["reason"])


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
        ledger = hook.ledger(deployment.name, deployment.ledger)
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


def _head(deployment: Deployment) -> HeadEntry | None:
    return _hook(deployment).ledger(deployment.name, deployment.ledger).head()


def _hook(deployment: Deployment) -> FlinkHook:
    return FlinkHook(deployment.flink_conn_id, target=deployment.target)
