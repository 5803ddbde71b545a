"""Options that select a target or planner, and use of the target for plans, savepoints and templates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import reduce, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from airflow_flinkcompat.cli.arguments import command_errors, print_progress
from airflow_flinkcompat.cli.project import Given
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.plan_comparison import Plans
from airflow_flinkcompat.model import Extra, InputError, PlannerMode
from airflow_flinkcompat.planner.judgement import DeployedJob, compile_plans
from airflow_flinkcompat.project.job_options import JobOptions

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.rehearsal.place import Cluster
    from airflow_flinkcompat.deploy.targets import TargetLocation
    from airflow_flinkcompat.exec_graph.stand_ins import StandInIds


def target_option(default: str | None, *, show_default: bool | str = True) -> Callable[[Callable[..., Any]], Any]:
    """Add the option ``--target``. Installed targets are loaded only if a command needs them."""
    return click.option(
        "--target",
        metavar="NAME",
        default=default,
        show_default=show_default,
        help="The target that runs the jobs: sql-gateway, jobmanager, or a target of another package.",
    )


def location(target: str, gateway: str | None, jobmanager: str | None) -> TargetLocation:
    """Location of a target, whose credentials come from the environment."""
    from airflow_flinkcompat.deploy.targets import TargetLocation

    given = {"gateway": gateway, "jobmanager": jobmanager}
    return TargetLocation(target, {which: url for which, url in given.items() if url})


@dataclass(frozen=True)
class Planner:
    """Options that select the Flink that plans scripts and takes templates.

    Attributes:
        target: The name of a target; None if only a SQL Gateway is used.
        gateway: The URL of a SQL Gateway. Without a gateway and a target, Flink's planner on this machine plans, and a
            local Flink takes the template.
        plan_dir: The folder that the Gateway writes plans to.
        mode: Use of Flink's planner on this machine: ``always``, ``never``, or only if no other planner is selected.
    """

    target: str | None = None
    gateway: str | None = None
    jobmanager: str | None = None
    plan_dir: str | None = None
    jars: tuple[Path, ...] = ()
    mode: PlannerMode | None = None

    @property
    def is_local(self) -> bool:
        """True if Flink's planner on this machine plans the scripts."""
        return self.mode == "always" or not (self.target or self.gateway)

    @property
    def extra(self) -> Extra:
        """The pip extra of this package that the planner needs."""
        return "local-flink" if self.is_local else "deploy"

    def compiling(self, options: JobOptions) -> Planner:
        """Apply the planner mode and jars of a job, and drop a target that cannot plan scripts."""
        target = self.target if self.target is not None and _compiles_plans(self.target) else None
        found = replace(self, target=target, mode=options.planner)
        return replace(found, jars=options.jars if found.is_local else ())


def _compiles_plans(target: str) -> bool:
    """True if a target can plan scripts. Raises InputError if no target has this name."""
    with command_errors("--target", "deploy"):
        from airflow_flinkcompat.deploy.target import PlanCompiler
        from airflow_flinkcompat.deploy.targets import target_class

        found: Any = target_class(target)
    return issubclass(found, PlanCompiler)


def planner_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add options that select a planner, which the command receives as one argument ``planner``."""

    @wraps(command)
    def called(
        *arguments: Any,
        given: Given,
        target: str | None,
        gateway: str | None,
        jobmanager: str | None,
        plan_dir: str | None,
        **others: Any,
    ) -> Any:
        jars = given.options.jars
        planner = Planner(target, gateway, jobmanager, plan_dir, jars, given.options.planner)
        if jars and not planner.is_local:
            elsewhere = "--target" if target else "--gateway"
            raise InputError(
                f"--jar is for a Flink on this machine: leave out {elsewhere}; or leave out --jar, and put the jar "
                f"into the lib folder of the Flink at {elsewhere}"
            )
        return command(*arguments, given=given, planner=planner, **others)

    options = (
        target_option(None, show_default="a SQL Gateway alone"),
        click.option(
            "--gateway",
            metavar="URL",
            help="SQL Gateway that plans the scripts (default: Flink's planner on this machine).",
        ),
        click.option("--jobmanager", metavar="URL", help="JobManager, for a target that needs one."),
        click.option(
            "--plan-dir",
            metavar="URI",
            help="Folder to which the Gateway writes plans, and which this machine can read.",
        ),
    )
    return reduce(lambda made, option: option(made), reversed(options), called)


def final_savepoint(job_id: str, target: str | None, gateway: str | None, jobmanager: str | None) -> str:
    """Path of a stopped job's final savepoint. Raises InputError without such a savepoint."""
    with command_errors("--job-id", "deploy"):
        from airflow_flinkcompat.deploy import JobRef
        from airflow_flinkcompat.deploy.target import SavepointStore

        with location(target or "jobmanager", gateway if target else None, jobmanager).open() as opened:
            if not isinstance(opened, SavepointStore):
                raise InputError(f"{opened} does not show the location of savepoints: name one with --savepoint")
            job = opened.status(JobRef(job_id))
            if job is None:
                raise InputError(f"{opened} knows no job {job_id}: name the savepoint with --savepoint")
            if not job.terminal:
                raise InputError(f"job {job_id} is {job.state}: stop it first, STOP JOB '{job_id}' WITH SAVEPOINT")
            found = opened.final_savepoint(job.job_id)
            # a job that failed after an unsuccessful stop has only an older savepoint
            if job.state != "FINISHED" or found is None:
                raise InputError(f"job {job_id} ended ({job.state}) without a savepoint: name one with --savepoint")
            return opened.location(found)


def deployed_job(what: str, planner: Planner, savepoint: str | None) -> DeployedJob:
    """Read facts about the deployed job from its cluster and its savepoint."""
    options: Mapping[str, str] = {}
    with command_errors(what, "deploy", prefix=f"{what}: "):
        from airflow_flinkcompat.deploy.plans import planning_options
        from airflow_flinkcompat.exec_graph.from_savepoint import read_job
        from airflow_flinkcompat.savepoint.binary import SavepointUnreadable

        if planner.target or planner.jobmanager:
            gateway = planner.gateway if planner.target else None
            with location(planner.target or "jobmanager", gateway, planner.jobmanager).open() as opened:
                options = planning_options(opened, None)
        try:
            stored = read_job(savepoint) if savepoint else None
        except SavepointUnreadable as error:
            raise InputError(str(error)) from None
    return DeployedJob(options, stored.stateful if stored else (), stored)


def compiled_plans(what: str, old: Side, new: Side, planner: Planner, savepoint: str | None, *others: Extra) -> Plans:
    """The compiled plans of both sides."""
    for each in (old, new):
        each.require_query()
    if planner.is_local:
        if planner.mode == "never":
            raise InputError(
                f"{what} needs compiled plans: pass a SQL Gateway with --gateway URL, or add --planner auto"
            )
        job = DeployedJob() if savepoint is None else deployed_job(what, Planner(), savepoint)
        return compile_plans(old, new, planner.jars, job)
    if old.version != new.version:
        raise InputError(
            f"{what}: a cluster plans scripts for its own version only. Add --planner always, so that this machine "
            "plans each side for its version (flinkcompat planner install VERSION)"
        )
    with command_errors(what, planner.extra, *others, prefix=f"{what}: "), ExitStack() as stack:
        from airflow_flinkcompat.deploy import explain_plans
        from airflow_flinkcompat.deploy.flink.access import endpoint_from_environment
        from airflow_flinkcompat.deploy.target import PlanCompiler, Target
        from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayPlanner

        asked: PlanCompiler | Target
        # plans do not depend on the values of placeholders, so each placeholder is its own value
        if planner.target is not None:
            asked = stack.enter_context(location(planner.target, planner.gateway, planner.jobmanager).open(str))
        else:
            asked = stack.enter_context(SqlGatewayPlanner(endpoint_from_environment(planner.gateway or "")))
        return explain_plans(old, new, asked, folder=planner.plan_dir)


_REMEDY = "or take a template manually, and pass it with --template"
_MAX_PARALLELISM = "pipeline.max-parallelism"
_TARGET = "sql-gateway"


def place_of(planner: Planner) -> TargetLocation | None:
    """The target that takes templates; None if neither a target nor a gateway is selected."""
    if planner.target is None and planner.gateway is None:
        return None
    if planner.target is None and planner.jobmanager is None:
        raise InputError(f"add --jobmanager for the cluster that takes the template, {_REMEDY}")
    return location(planner.target or _TARGET, planner.gateway, planner.jobmanager)


def template_of(
    new: Side, savepoint: str | None, place: TargetLocation | None, ids: StandInIds, jars: Sequence[Path] = ()
) -> str:
    """Template of the new script, from the cache if possible; ``ids``: its operator ids with stand-ins."""
    from airflow_flinkcompat.deploy import DeployError
    from airflow_flinkcompat.deploy.rehearsal.template import kept_template, options_of

    side = replace(
        new, script=f"{new.catalog.strip().rstrip(';')};\n{new.script}" if new.catalog.strip() else new.script
    )
    if place is None and savepoint is not None:
        side = replace(side, settings={**_limit(savepoint), **side.settings})
    try:
        with ExitStack() as stack:
            cluster = None if place is None else stack.enter_context(_opened(place))
            folder = kept_template(
                side,
                place,
                {f"jar {jar.name}": str(jar.stat().st_size) for jar in jars}
                if cluster is None
                else options_of(cluster),
                ids,
                lambda: cluster or stack.enter_context(local_flink(side.version, jars)),
                print_progress,
            )
            return str(folder)
    except DeployError as error:
        raise InputError(f"no template could be taken: {error}; {_REMEDY}") from None


@contextmanager
def _opened(place: TargetLocation) -> Iterator[Cluster]:
    from airflow_flinkcompat.deploy.rehearsal.place import Cluster

    with place.open() as opened:
        yield Cluster(opened, place)


def local_flink(version: str, jars: Sequence[Path]) -> AbstractContextManager[Cluster]:
    """A Flink of this version on this machine. Raises LocalFlinkError."""
    from airflow_flinkcompat.local_flink import local_cluster
    from airflow_flinkcompat.planner.installation import find

    return local_cluster(extra_jars=jars, home=find(version).home)


def _limit(savepoint: str) -> Mapping[str, str]:
    """Setting with the maximum parallelism of a savepoint; empty if operators differ in it."""
    from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
    from airflow_flinkcompat.savepoint.store import read_metadata

    try:
        found = {each.max_parallelism for each in read_metadata(savepoint).operators if each.has_state}
    except SavepointUnreadable as error:
        raise InputError(str(error)) from None
    return {_MAX_PARALLELISM: str(*found)} if len(found) == 1 else {}
