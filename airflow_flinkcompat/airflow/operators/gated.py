"""The gated redeploy of one deployment as a group of tasks, and a DAG for each deployment of a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from datetime import datetime, timedelta
from typing import Any, Literal

from airflow.sdk import DAG, Asset, BaseOperator, Label, TaskGroup, get_parsing_context

from airflow_flinkcompat.airflow.operators.approval import MIGRATE, RESUME, FlinkSqlApprovalOperator, restart_option
from airflow_flinkcompat.airflow.operators.backfill import FlinkBackfillOperator
from airflow_flinkcompat.airflow.operators.compatibility import FlinkSqlCompatibilityOperator
from airflow_flinkcompat.airflow.operators.deploy import FlinkSqlDeployOperator
from airflow_flinkcompat.airflow.operators.deployments import Deployment, DeploymentsError, read_deployments
from airflow_flinkcompat.airflow.operators.migration import FlinkStateMigrationOperator, FlinkWarmRestartOperator
from airflow_flinkcompat.airflow.operators.rehearsal import FlinkRestoreRehearsalOperator
from airflow_flinkcompat.airflow.operators.shadow import FlinkShadowRunOperator
from airflow_flinkcompat.airflow.operators.watching import check_schedule, script_asset
from airflow_flinkcompat.airflow.sensors import FlinkSqlChangeSensor
from airflow_flinkcompat.model import PROGRAM_SUFFIXES, Outcome, Policy, StartModeName

_JOINED = {"trigger_rule": "none_failed_min_one_success"}  # for a task that runs after either of two branches
_FIRST = "nothing deployed yet"
_SENT = "windows already emitted"
_EQUAL, _DIFFERENT = " with equal rows", " or different rows"
"""Conditions after a shadow run, which follow the outcomes of the check."""
_OF_HISTORY = ("plan_dir", "rehearse", "spark_master", "history", "sample")
"""Keys of the table ``migrate`` that also apply to a warm restart."""
_PLACES = ("plan_dir", "savepoint_directory")
"""Options of a migration or a check that also apply to the tasks before a start."""
# A run may request a redeploy without a change: `airflow dags trigger --conf '{"redeploy_unchanged": true}'`.
_ON_PURPOSE = "{{ params.get('redeploy_unchanged', False) }}"
_BEGINNING = datetime(2026, 1, 1)
# If nobody intervenes, a DAG must not start runs for ever that all fail.
_MOST_FAILED_RUNS = 5


def gated_redeploy(
    deployment: Deployment,
    *,
    group_id: str | None = None,
    watch: bool | Literal["asset"] = True,
    deploy: Callable[..., BaseOperator] | None = None,
) -> TaskGroup:
    """Create the tasks of one gated redeploy in the current DAG or task group.

    ``changed`` → ``check`` → ``deploy_first`` | ``resume`` | ``restart`` → ``backfill`` | ``approve`` (→ ``resume`` or
    ``restart``). With a boundary, ``hand_over`` runs before ``restart``, even on the first start. With ``rehearse``, a
    rehearsal runs before ``resume``. With ``start_mode="shadow"``, ``shadow`` runs between ``check`` and all branches
    that keep state, and leads to ``approve`` if the rows differ. With ``migrate``, check and approval can also lead to
    a task ``migrate``. With ``backfill_sent``, a backfill of the windows that were already emitted follows ``migrate``.
    A change that does not affect the running job ends the run, unless the run has the conf ``{"redeploy_unchanged":
    true}``. An incompatible change needs a person's decision, but if a backfill follows the restart, the job restarts
    without a question.

    Args:
        deployment: The Flink job and the arguments of its tasks.
        group_id: The id of a new task group for the tasks; None adds the tasks to the current DAG or task group.
        watch: False omits ``changed``, for a DAG that a person or another system triggers. ``"asset"`` also omits
            ``changed``, for a DAG that follows the script's asset (``schedule=[script_asset(deployment)]``), so that no
            run waits.
        deploy: Function that creates the tasks that start the job, in place of FlinkSqlDeployOperator. The function is
            called with ``task_id``, ``start_mode`` (``savepoint`` or ``stateless``), ``trigger_rule`` if several
            branches lead to the task, and ``hand_over`` if the backfill has a boundary. Required for a Table API
            program, because targets run only SQL scripts.

    Returns:
        The task group that contains the tasks.

    Raises:
        ValueError: The DAG allows two runs at the same time (set ``max_active_runs=1``), does not follow the asset that
            ``watch`` requires, or an operator does not accept an argument.
    """
    with TaskGroup(group_id) if group_id else nullcontext():
        tasks = _Tasks(deployment, deploy)
        check = tasks.hand_over_gate() if deployment.hands_over else tasks.gate()
        if watch is True:
            FlinkSqlChangeSensor(task_id="changed", **tasks.watched()) >> check
    if check.dag.max_active_runs != 1:
        raise ValueError(
            f"DAG {check.dag.dag_id!r} redeploys {deployment.name!r} and may run {check.dag.max_active_runs} "
            "times at the same time: set max_active_runs=1, so that a second run waits for the first"
        )
    if watch == "asset":
        check_schedule(deployment, check.dag)
    elif not isinstance(watch, bool):
        raise ValueError(f'watch is {watch!r}: write True, False or "asset"')
    group: TaskGroup = check.task_group
    return group


def redeploy_dag(
    deployment: Deployment, *, prefix: str = "redeploy_", watch: Literal["sensor", "asset"] = "sensor", **dag: Any
) -> DAG:
    """Create the DAG ``redeploy_<name>`` for one deployment.

    Assign the DAG to a global variable of the DAG file, so that Airflow finds the DAG.

    Args:
        deployment: The Flink job and the arguments of its tasks.
        prefix: Beginning of the DAG id, before the deployment's name.
        watch: ``"sensor"``: one run always waits for a change or handles a change. ``"asset"``: the triggerer watches
            the script, and a run starts when the script changes. The script is searched for in ``template_searchpath``.
        **dag: Additional arguments of the DAG, which override these defaults: ``schedule="@continuous"``, or the
            script's asset; ``max_consecutive_failed_dag_runs=5``, after which Airflow pauses the DAG;
            ``disable_bundle_versioning=True``, because a run that waits for weeks must read the present script, not the
            script at the start of the run.

    Returns:
        The DAG.

    Raises:
        ValueError: An operator refuses the value of an argument.
        TypeError: An operator does not accept an argument.
    """
    if watch not in ("sensor", "asset"):
        raise ValueError(f'watch is {watch!r}: write "sensor" or "asset"')
    by_asset = watch == "asset"
    arguments = {
        "schedule": [_script_asset(deployment, dag)] if by_asset else "@continuous",
        "start_date": _BEGINNING,
        "tags": ["flink", *deployment.tags],
        "doc_md": f"Redeploys the Flink job **{deployment.name}** when `{deployment.script}` changes.",
        # Airflow must not find a half-built DAG: its deploys would not wait for a check.
        "auto_register": False,
        "max_consecutive_failed_dag_runs": _MOST_FAILED_RUNS,
        "disable_bundle_versioning": True,
        **dag,
    }
    with DAG(f"{prefix}{deployment.name}", max_active_runs=1, **arguments) as whole:
        gated_redeploy(deployment, watch="asset" if by_asset else True)
    return whole


def _script_asset(deployment: Deployment, dag: Mapping[str, Any]) -> Asset:
    if "schedule" in dag:
        raise ValueError('schedule cannot be set with watch="asset", because the schedule is the asset of the script')
    return script_asset(deployment, folders=dag.get("template_searchpath") or ())


def redeploy_dags(
    path: str | os.PathLike[str],
    *,
    prefix: str = "redeploy_",
    watch: Literal["sensor", "asset"] = "sensor",
    **dag: Any,
) -> dict[str, DAG]:
    """A DAG for each deployment of a file: ``globals().update(redeploy_dags("deployments.toml"))``.

    Paths of scripts are relative to the folder of the file. If some deployments are unusable, the other deployments
    still get DAGs, and Airflow shows one import error that names all unusable deployments. In a worker, only the DAG of
    the running task is created.

    Args:
        path: The file of deployments.
        prefix: Beginning of each DAG id, before the deployment's name.
        watch: As for :func:`redeploy_dag`.
        **dag: Additional arguments of every DAG, as for :func:`redeploy_dag`.

    Returns:
        The DAGs by DAG id.

    Raises:
        DeploymentsError: The file cannot be read.
    """
    found = read_deployments(path)
    problems = list(found.problems)
    wanted = get_parsing_context().dag_id
    dags: dict[str, DAG] = {}
    for deployment in found.deployments:
        dag_id = f"{prefix}{deployment.name}"
        if wanted not in (None, dag_id):
            continue
        try:
            arguments = {"template_searchpath": [str(found.path.absolute().parent)], **dag}
            dags[dag_id] = redeploy_dag(deployment, prefix=prefix, watch=watch, **arguments)
        except (ValueError, TypeError) as error:  # an operator rejects its arguments
            problems.append(found.problem(deployment, error))
    if problems and wanted is None:
        dags[f"{prefix}.problems"] = _Broken(problems)
    return dags


class _Broken(DAG):
    """DAG whose validation fails, so that Airflow shows an import error next to the usable DAGs."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("problems", schedule=None)
        self.problems = problems

    def validate(self) -> None:
        lines = "\n".join(self.problems)
        raise DeploymentsError(f"these deployments have no DAG until the file is corrected:\n{lines}")


class _Tasks:
    """Builder of a deployment's tasks, from the ends of the branches back to the check."""

    def __init__(self, deployment: Deployment, deploy: Callable[..., BaseOperator] | None = None) -> None:
        if deploy is None and deployment.script.endswith(PROGRAM_SUFFIXES):
            raise ValueError(
                f"{deployment.script} is a program, but targets run SQL scripts only: pass gated_redeploy a deploy "
                f"function, which creates the task that starts the program (`flink run -py …`)"
            )
        if deploy is not None and deployment.plan_only:
            raise ValueError(
                "plan_only applies to FlinkSqlDeployOperator, but deploy creates other tasks: omit one of them"
            )
        self.one = deployment
        self.deploy = deploy
        self.policy = Policy.of(deployment.check.get("policy"), backfill=deployment.has_backfill)

    def gate(self) -> Any:
        first = self._deploy("deploy_first", "stateless")
        restart = self._warm_restart() if self.one.warm_restart else self._deploy("restart", "stateless", **_JOINED)
        if self.one.has_backfill:
            restart >> self._backfill("backfill")
        check = self._check(first=first, restart=restart)
        check >> Label(_FIRST) >> first
        self._link(check, restart, self._outcomes("restart"))
        return check

    def hand_over_gate(self) -> Any:
        hand_over = self._backfill("hand_over", dry_run=True, **_JOINED)
        record = f"{{{{ ti.xcom_pull('{hand_over.task_id}')['hand_over'] | tojson }}}}"
        restart = self._deploy("restart", "stateless", hand_over=record)
        # The backfill fails until history has passed the boundary, so it is retried.
        backfill = self._backfill("backfill", retries=12, retry_delay=timedelta(minutes=10))
        hand_over >> restart >> backfill
        check = self._check(first=hand_over, restart=hand_over)
        self._link(check, hand_over, " or ".join(filter(None, [self._outcomes("restart"), _FIRST])))
        return check

    def _check(self, *, first: Any, restart: Any) -> Any:
        """The check and the approval, linked to each other and to all branches but ``first`` and ``restart``."""
        resume = self._rehearsed_resume()
        branches = {"resume": resume.task_id, "restart": restart.task_id}
        if (migrate := self._migrate()) is not None:
            branches["migrate"] = migrate.task_id
        users = [approver.model_dump() for approver in self.one.approvers]
        asks = {"backfill": self.one.has_backfill, **self._notified("notifiers", "decision_notifiers")}
        approve = FlinkSqlApprovalOperator(
            task_id="approve",
            branches=branches,
            assigned_users=users or None,
            **self._shared({**asks, **self.one.approve}),
        )
        of_check = {"first": first.task_id, "approve": approve.task_id, **branches}
        shadow = self._shadow({key: of_check[key] for key in ("resume", "approve", "migrate") if key in of_check})
        if shadow is not None:
            of_check |= dict.fromkeys(shadow.branches, shadow.task_id)
        check = FlinkSqlCompatibilityOperator(
            task_id="check",
            branches=of_check,
            **{
                **self.scripted({**self._places, **self.one.check}, redeploy_unchanged=_ON_PURPOSE, team=self.one.team),
                "policy": self.policy,
            },
        )
        upper = shadow or check
        if shadow is not None:
            # Without the second edge, restart would also run after a resume: check leaves restart to approve.
            check >> shadow >> restart
        self._link(upper, resume, self._outcomes("resume") + _EQUAL * bool(shadow))
        label = self._outcomes("approve")
        if migrate is not None and Outcome.INCOMPATIBLE not in label.split(" or "):
            label = " or ".join(filter(None, (label, self._migratable("approve"))))
        self._link(upper, approve, label + _DIFFERENT * bool(shadow))
        approve >> Label(RESUME) >> resume
        if migrate is not None:
            self._link(upper, migrate, self._migratable("migrate"))
            approve >> Label(MIGRATE) >> migrate
        approve >> Label(restart_option(approve.backfill)) >> restart
        return check

    @property
    def _places(self) -> dict[str, Any]:
        """Folders of migration and check, which also apply to the check and to the shadow run."""
        migration = {} if self.one.migrate is None else {**self.one.deploy, **self.one.migrate}
        found = {**migration, **self.one.check}
        return {key: found[key] for key in _PLACES if key in found}

    def _shadow(self, branches: Mapping[str, str]) -> Any:
        """The shadow run before these branches of the check; None if the deployment makes none."""
        if self.one.start_mode != "shadow":
            return None
        arguments = self.scripted({**self._places, **self.one.shadow})
        return FlinkShadowRunOperator(task_id="shadow", branches=branches, **arguments)

    def _rehearsed_resume(self) -> Any:
        """First task of a resume: the deploy, or the rehearsal that must pass before it."""
        if self.one.rehearse is None:
            return self._deploy("resume", "savepoint", **_JOINED)
        arguments = self.scripted(self.one.rehearse, fail_on=("refused",), **_JOINED)
        rehearse = FlinkRestoreRehearsalOperator(task_id="rehearse", **arguments)
        rehearse >> self._deploy("resume", "savepoint")
        return rehearse

    def _migrate(self) -> Any:
        """The migration task; None if the deployment has none."""
        if self.one.migrate is None:
            return None
        shared = {key: value for key, value in self.one.deploy.items() if key not in ("source_offsets", "allow_ended")}
        catch_up = {"catch_up": self.one.start_mode == "shadow"}
        arguments = {**self._notified("rollback_notifiers"), **shared, **catch_up, **self.one.migrate}
        migrate = FlinkStateMigrationOperator(task_id="migrate", **self.scripted(arguments, **_JOINED))
        if self.one.backfill_sent:
            table = {key: value for key, value in (self.one.backfill or {}).items() if key not in ("to", "boundary")}
            sent = FlinkBackfillOperator(
                task_id="backfill_sent", sent_before=migrate.task_id, **self.scripted(table, trigger_rule="all_success")
            )
            migrate >> Label(_SENT) >> sent
        return migrate

    def _warm_restart(self) -> Any:
        """The task that starts the job with state from history, if history supplies all of the state."""
        migrate = {key: value for key, value in (self.one.migrate or {}).items() if key in _OF_HISTORY}
        arguments = {**self._notified("rollback_notifiers"), **self.one.deploy, **migrate}
        return FlinkWarmRestartOperator(task_id="restart", **self.scripted(arguments, **_JOINED))

    def _outcomes(self, branch: str) -> str:
        return " or ".join(outcome for outcome in Outcome if self.policy.branch_for(outcome) == branch)

    def _migratable(self, branch: str) -> str:
        extents = {"all": "whole", "some": "partial"}
        found = [words for words, how in extents.items() if self.policy.branch_for(Outcome.INCOMPATIBLE, how) == branch]
        return f"incompatible, {' or '.join(found)} of the state can be kept" if found else ""

    def _link(self, upper: Any, lower: Any, label: str) -> None:
        # Link tasks even without a label, because a task without an upstream task would run immediately.
        if label:
            upper >> Label(label) >> lower
        else:
            upper >> lower

    def _deploy(self, task_id: str, start_mode: StartModeName, **more: Any) -> Any:
        if self.deploy is not None:
            return self.deploy(task_id=task_id, start_mode=start_mode, **more)
        table = {**self._notified("rollback_notifiers"), **self.one.deploy}
        if self.one.plan_only:
            more = {**more, "plan_only": True, "plan_to": self.one.plan_to}
        offsets = table.get("source_offsets")
        # A savepoint contains the sources' offsets; before the first start of a job, no offsets are stored.
        if start_mode == "savepoint" or (task_id == "deploy_first" and "as-stored" in str(offsets)):
            table.pop("source_offsets", None)
        return FlinkSqlDeployOperator(task_id=task_id, start_mode=start_mode, **self.scripted(table, **more))

    def _backfill(self, task_id: str, **more: Any) -> Any:
        """Create a backfill that fails if it reads no row, because the job has started without state."""
        table = {"allow_empty": False, **(self.one.backfill or {})}
        return FlinkBackfillOperator(task_id=task_id, **self.scripted(table, **more))

    def _notified(self, *events: str) -> dict[str, Any]:
        """Arguments of a task that pass the deployment's notifiers; ``events`` are the names of the arguments."""
        found = self.one.notifiers
        every = [*found] if isinstance(found, list | tuple) else [] if found is None else [found]
        return dict.fromkeys(events, every) if every else {}

    def watched(self) -> dict[str, Any]:
        """Arguments of the sensor, which needs no cluster if neither check nor start uses this connection."""
        asks = self.deploy is None or self.one.check.get("engine", "auto") == "auto"
        return self.scripted(self.one.changed, **({} if asks else {"require_cluster": False}))

    def scripted(self, table: Mapping[str, Any], **more: Any) -> dict[str, Any]:
        """Arguments of a task about the script: shared arguments, overridden by ``more`` and by ``table``."""
        one = self.one
        names = ("script", "settings", "functions", "catalog", "variables")
        return self._shared({**{name: getattr(one, name) for name in names}, **more, **table})

    def _shared(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        one = self.one
        about = {name: getattr(one, name) for name in ("flink_conn_id", "target", "ledger", "owner")}
        tries = {"retries": 1, "retry_delay": timedelta(seconds=20)}
        missing = {name: value for name, value in tries.items() if name not in one.default_args}
        return {"deployment": one.name, **about, **missing, "default_args": dict(one.default_args), **arguments}
