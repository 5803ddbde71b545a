"""Starting a new script with state that is computed from history, instead of an empty one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.compat.plan_comparison import migrations
from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.migration import HistoryWorkers, SavepointWriting, unreadable_history
from airflow_flinkcompat.deploy.plans import explain_plans
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.target import CANNOT_TELL, JobRef, SavepointStore
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan
from airflow_flinkcompat.exec_graph.migration import Migration
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.migration.computed import StateComputer
from airflow_flinkcompat.migration.workers import Workers
from airflow_flinkcompat.model import InputError


class WarmStarted(Protocol):
    """Initial state of a job that history supplies completely."""

    @property
    def state(self) -> Migration:
        """The fate of each state."""

    @property
    def reasons(self) -> Mapping[str, str]:
        """Reasons why a source or operator, by name, would begin with incomplete state."""

    @property
    def report(self) -> MigrationReport:
        """The state and the reasons as a report."""

    def ready(self) -> AbstractContextManager[None]:
        """Context in which the rows are available."""

    def computing(
        self, template: str, say: Callable[[str], None]
    ) -> AbstractContextManager[tuple[str, HistoryWorkers]]:
        """Context that computes the state, with the savepoint that it replaces."""


class WarmRestart(SavepointWriting):
    """Computation of all state of a new script from history, so that a restart does not begin empty.

    The job resumes after all rows that exist once the former one has stopped; output for earlier rows is left to a
    backfill. Nothing of the former job's savepoint is read. ``begin`` returns the initial state of a job, from its
    state after a migration to itself, its script and Flink's plan. ``hold`` keeps resources open until
    the new job runs; :class:`SavepointWriting` describes the other arguments.
    """

    writes = "computed"
    _done = "computed"

    def __init__(
        self,
        new: Side,
        cluster: Cluster,
        live: JobRef | None,
        begin: Callable[[Migration, Side, CompiledPlan], WarmStarted],
        *,
        plan_dir: str | None,
        rehearsed: bool,
        log: Callable[[str], None],
        hold: Callable[[AbstractContextManager[None]], None],
        planner: Callable[[], Cluster] | None = None,
    ) -> None:
        super().__init__(new, new, cluster, live, plan_dir=plan_dir, rehearsed=rehearsed, log=log, planner=planner)
        self._begin, self._hold = begin, hold

    def is_possible(self) -> bool:
        """True if history supplies all of the state; otherwise the log states the reason."""
        if not isinstance(self._cluster.target, SavepointStore):
            self._log(f"no warm start: the path of a savepoint {CANNOT_TELL} ({self._cluster.target})")
            return False
        try:
            reasons = self._start.reasons
        except DeployRefused as error:
            self._log(f"no warm start: {error}")
            return False
        for name, reason in reasons.items():
            self._log(f"no warm start, because of {name}: {reason}")
        return not reasons

    def prepare(self) -> str | None:
        """Prepare as the base class does, and check that history can be read."""
        super().prepare()
        try:
            self._hold(self._start.ready())
        except Exception as error:  # the libraries of Spark and stores can raise anything
            raise unreadable_history(error) from None
        return None

    @cached_property
    def _start(self) -> WarmStarted:
        """State that history supplies for the start; raises DeployRefused and DeployError."""
        self._log(f"{self._trials.target} compiles the script, to find the state that history determines")
        _, side = self._sides
        plans = explain_plans(side, side, self._trials.target, folder=self._plan_dir)
        if [len(each) for each in plans] != [1, 1]:
            raise DeployRefused("state is computed for the savepoint of one job, and the script makes several jobs")
        try:
            (own,), ((plan,), _) = migrations(side, side, plans), plans
            return self._begin(own, side, plan)
        except InputError as error:
            raise DeployRefused(str(error)) from None

    @property
    def _migration(self) -> Migration:
        return self._start.state

    @property
    def _report(self) -> MigrationReport:
        return self._start.report

    @contextmanager
    def _computing(
        self, savepoint: str, template: str, prepared: str | None
    ) -> Iterator[tuple[str, Workers | None, StateComputer | None]]:
        with self._start.computing(template, self._log) as (origin, computer):
            yield origin, computer.workers, computer
