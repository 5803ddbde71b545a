"""Start of a new script with state computed from history instead of empty state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.compat.plan_comparison import migrations
from airflow_flinkcompat.deploy.errors import DeployRefused
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.savepoint_writing import HistoryWorkers, SavepointWriting, unreadable_history
from airflow_flinkcompat.deploy.target import CANNOT_TELL, JobRef, SavepointStore
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan
from airflow_flinkcompat.exec_graph.migration import Migration
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.migration.computed import StateComputer
from airflow_flinkcompat.migration.workers import Workers
from airflow_flinkcompat.model import InputError


class WarmStarted(Protocol):
    """Initial state of a job, computed from history."""

    @property
    def state(self) -> Migration:
        """The migration: its effect on each state of the job."""

    @property
    def reasons(self) -> Mapping[str, str]:
        """Reasons why the computed state would be incomplete, by name of the source or operator."""

    @property
    def report(self) -> MigrationReport:
        """The computed state, and the reasons for incomplete state, as a report."""

    def ready(self) -> AbstractContextManager[None]:
        """Context in which the rows from history can be read."""

    def computing(
        self, template: str, say: Callable[[str], None]
    ) -> AbstractContextManager[tuple[str, HistoryWorkers]]:
        """Context in which workers can compute the state, with the savepoint to be replaced."""


class WarmRestart(SavepointWriting):
    """Computation of all state of a new script from history, so that a restart does not begin empty.

    The new job resumes after all rows that exist when the former job has stopped. A backfill produces the output for
    earlier rows. The former job's savepoint is not read. ``begin`` returns the initial state of a job. The arguments of
    ``begin`` are a migration of the script to itself, the script and Flink's plan. ``hold`` is a function that keeps
    a passed context open until the new job runs. :class:`SavepointWriting` describes the other arguments.
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
        """True if history supplies all state. Otherwise the log contains the reason."""
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
        """Do the base class's preparation, and check that history can be read."""
        super().prepare()
        try:
            self._hold(self._start.ready())
        except Exception as error:  # Spark and store libraries can raise any error
            raise unreadable_history(error) from None
        return None

    @cached_property
    def _start(self) -> WarmStarted:
        """State that history supplies for the start. Raises DeployRefused and DeployError."""
        self._log(f"{self._trials.target} compiles the script to find the state that history determines")
        plans, (_, side) = self._plans, self._sides
        if [len(each) for each in plans] != [1, 1]:
            raise DeployRefused(
                "state can be computed for a single job, but the script defines several jobs. Split the script"
            )
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
