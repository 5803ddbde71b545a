"""Options by which a command reaches a target, the target they name, and the plans it compiles."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from airflow_flinkcompat.cli.arguments import bare_install, cli_error
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.plan_comparison import Plans
from airflow_flinkcompat.model import InputError

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.targets import TargetLocation


def target_option(default: str | None, *, show_default: bool | str = True) -> Callable[[Callable[..., Any]], Any]:
    """The option ``--target``; what is installed is known only where a command asks."""
    return click.option(
        "--target",
        metavar="NAME",
        default=default,
        show_default=show_default,
        help="Where jobs run: sql-gateway, jobmanager, or one that another package brings.",
    )


def location(target: str, gateway: str | None, jobmanager: str | None) -> TargetLocation:
    """How the target of this name is opened, credentials being the environment's."""
    from airflow_flinkcompat.deploy.targets import TargetLocation

    given = {"gateway": gateway, "jobmanager": jobmanager}
    return TargetLocation(target, {which: url for which, url in given.items() if url})


def planning(target: str | None) -> str | None:
    """The target of this name where it plans scripts and tries jobs out; None: a SQL Gateway has to do that for it.

    Raises InputError: there is no such target.
    """
    if target is None:
        return None
    try:
        from airflow_flinkcompat.deploy import DeployError
        from airflow_flinkcompat.deploy.target import PlanCompiler
        from airflow_flinkcompat.deploy.targets import target_class
    except ImportError as error:
        raise bare_install("--target", error) from None
    try:
        found: Any = target_class(target)
    except DeployError as error:
        raise InputError(str(error)) from None
    return target if issubclass(found, PlanCompiler) else None


def final_savepoint(job_id: str, target: str | None, gateway: str | None, jobmanager: str | None) -> str:
    """Where the savepoint lies by which a job ended.

    Args:
        job_id: The job.
        target: The name of the target that ran it; None: a JobManager alone.
        gateway: The URL of its SQL Gateway.
        jobmanager: The URL of its JobManager.

    Returns:
        Path or URI of its folder.

    Raises:
        InputError: The job still runs, is not known, or ended without one.
        OutOfReachError: The target does not answer.
    """
    try:
        from airflow_flinkcompat.deploy import DeployError, JobRef
        from airflow_flinkcompat.deploy.target import SavepointStore
    except ImportError as error:
        raise bare_install("--job-id", error) from None
    try:
        with location(target or "jobmanager", gateway if target else None, jobmanager).open() as opened:
            if not isinstance(opened, SavepointStore):
                raise InputError(f"{opened} does not say where savepoints lie: name it with --savepoint")
            job = opened.status(JobRef(job_id))
            if job is None:
                raise InputError(f"{opened} knows no job {job_id}: name the savepoint with --savepoint")
            if not job.terminal:
                raise InputError(f"job {job_id} is {job.state}: stop it first, STOP JOB '{job_id}' WITH SAVEPOINT")
            found = opened.final_savepoint(job.job_id)
            if job.state != "FINISHED" or found is None:  # one that went on after a stop and failed has an older one
                raise InputError(f"job {job_id} ended ({job.state}) without a savepoint: name one with --savepoint")
            return opened.location(found)
    except DeployError as error:
        raise cli_error(error) from None


def compiled_plans(
    what: str,
    old: Side,
    new: Side,
    target: str | None,
    gateway: str | None,
    jobmanager: str | None,
    folder: str | None,
) -> Plans:
    """The compiled plans of both sides, of a SQL Gateway alone where no target is named.

    ``what`` asks for them, in errors. Raises :class:`InputError` where they cannot be had, :class:`OutOfReachError`
    where nobody answers.
    """
    try:
        from airflow_flinkcompat.deploy import DeployError, SqlGatewayPlanner, explain_plans
        from airflow_flinkcompat.deploy.flink.access import endpoint_from_environment
        from airflow_flinkcompat.deploy.target import PlanCompiler, Target
        from airflow_flinkcompat.local_flink import local_gateway
    except ImportError as error:
        raise bare_install(what, error, "local-flink") from None
    for each in (old, new):
        each.require_query()
    try:
        with ExitStack() as stack:
            planner: PlanCompiler | Target
            if target is None:
                where = endpoint_from_environment(gateway) if gateway else stack.enter_context(local_gateway())
                planner = stack.enter_context(SqlGatewayPlanner(where))
            else:  # no plan depends on what a placeholder stands for: it stands for itself
                planner = stack.enter_context(location(target, gateway, jobmanager).open(str))
            return explain_plans(old, new, planner, folder=folder)
    except DeployError as error:
        raise cli_error(error, what) from None
