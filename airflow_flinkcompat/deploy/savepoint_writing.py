"""Writing of the savepoint from which a new script resumes."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.compat.plan_comparison import Plans, stand_ins
from airflow_flinkcompat.deploy.errors import CannotRehearse, DeployError, DeployRefused
from airflow_flinkcompat.deploy.plans import explain_plans, planning_options
from airflow_flinkcompat.deploy.rehearsal.place import (
    Cluster,
    RestoreTestTarget,
    Watcher,
    missing_slots,
    slots_of,
)
from airflow_flinkcompat.deploy.rehearsal.report import read_snapshot, require_restored
from airflow_flinkcompat.deploy.rehearsal.restoring import (
    Inconclusive,
    RestoreRefused,
    RestoreRunner,
    Timeouts,
    check_side,
)
from airflow_flinkcompat.deploy.rehearsal.template import kept_template, options_of
from airflow_flinkcompat.deploy.rehearsal.waiting import Journal
from airflow_flinkcompat.deploy.stored_numbers import with_numbers
from airflow_flinkcompat.deploy.target import (
    JobDescriptions,
    JobRef,
    SavepointStore,
    Snapshot,
)
from airflow_flinkcompat.exec_graph.migration import Migration
from airflow_flinkcompat.exec_graph.stand_ins import IdsByStandIns, StandIns
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.migration import MigrationVerificationFailed, NotMigratable, migrate_savepoint
from airflow_flinkcompat.migration.computed import StateComputer
from airflow_flinkcompat.migration.workers import Workers
from airflow_flinkcompat.migration.writing import (
    require_predicted_template,
)
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable


class HistoryWorkers(StateComputer, Protocol):
    """Computation of state from history, with the workers that rewrite all other state."""

    @property
    def workers(self) -> Workers:
        """Workers that rewrite state."""


class SavepointWriting(ABC):
    """Writer of savepoints for a new script, based on compiled plans and a template.

    ``plan_dir`` is the path or URI of a folder that this process and the planner share. If ``plan_dir`` is None, this
    process and the planner run on one machine. If ``rehearsed`` is True, the new job is restored with stand-in sinks
    before its start. ``planner`` is a function for targets that cannot plan. It opens a SQL Gateway and a JobManager
    of the same version, and is called at most once.
    """

    writes = "migrated"
    _done = "rewritten, read back and found equal"

    def __init__(
        self,
        old: Side,
        new: Side,
        cluster: Cluster,
        live: JobRef | None,
        *,
        plan_dir: str | None,
        rehearsed: bool,
        log: Callable[[str], None],
        planner: Callable[[], Cluster] | None = None,
    ) -> None:
        self._old, self._new, self._cluster, self._live = old, new, cluster, live
        self._plan_dir, self._rehearsed, self._log, self._planner = plan_dir, rehearsed, log, planner

    def prepare(self) -> str | None:
        """Plan the migration, as in :meth:`plan`."""
        self.plan()
        return None

    def plan(self) -> None:
        """Check that enough state is kept, and log the plan.

        Take the template savepoint if task slots are free next to the live job.
        """
        for line in self._report.lines():
            self._log(line)
        if missing := self._missing_slots():
            self._log(f"the template is taken after the job has stopped: {missing}")
        else:
            self._compare(require_predicted_template, str(self._template()))

    def _compare(self, require: Callable[[Migration, str], None], savepoint: str) -> None:
        """Raise DeployRefused if the savepoint differs from the plan's prediction, or cannot be read."""
        try:
            require(self._migration, savepoint)
        except (NotMigratable, SavepointUnreadable) as error:
            raise DeployRefused(f"the job keeps running, because its state cannot be read: {error}") from None

    @property
    @abstractmethod
    def _migration(self) -> Migration:
        """The migration: its effect on each state of both jobs.  Raises DeployRefused and DeployError."""

    @cached_property
    def _plans(self) -> Plans:
        """The compiled plans of both scripts. Raises DeployError."""
        return explain_plans(*self._sides, self._trials.target, folder=self._plan_dir)

    @cached_property
    def _stand_ins(self) -> IdsByStandIns:
        """The operator ids of the new script with stand-ins for its sinks. Raises DeployError."""
        try:
            return stand_ins(*self._sides, self._plans)[1]
        except InputError as error:
            raise DeployRefused(str(error)) from None

    @property
    def _report(self) -> MigrationReport:
        return MigrationReport.of(self._migration)

    @abstractmethod
    def _computing(
        self, savepoint: str, template: str, prepared: str | None
    ) -> AbstractContextManager[tuple[str, Workers | None, StateComputer | None]]:
        """The savepoint to rewrite, the workers that rewrite it, and the computation from history."""

    def _sent_until(self, savepoint: str) -> datetime | None:
        return None

    def _missing_slots(self) -> str:
        """Reason why the template cannot be taken yet. A separate planner cluster needs no slot of the job."""
        target = self._cluster.target
        if self._trials is not self._cluster:
            return ""
        described = target.describe(self._live) if self._live and isinstance(target, JobDescriptions) else None
        return missing_slots(self._cluster.restore_test_target, slots_of(described))

    def write(self, savepoint: str, folder: str, prepared: str | None) -> Mapping[str, Any]:
        """Write the new job's savepoint and read it back."""
        try:
            template = str(self._template())
            sent = self._sent_until(savepoint)
            with self._computing(savepoint, template, prepared) as (source, workers, computer):
                written = migrate_savepoint(
                    source, template, folder, self._migration, int(time.time() * 1000), workers, computer
                )
        except InputError as error:
            raise DeployError(str(error)) from None
        except (NotMigratable, MigrationVerificationFailed, SavepointUnreadable) as error:
            raise DeployError(str(error)) from None
        except DeployError:
            raise
        except Exception as error:  # each kind of store raises errors of its own library
            raise DeployError(f"{folder} cannot be written from here ({type(error).__name__}: {error})") from None
        named = [(f"{each.made.new.name} {each.made.new.id}", each) for each in written if each.made.new]
        entries = {name: dict(each.entries) for name, each in named if each.entries}
        sums = {name: dict(each.sums) for name, each in named if each.sums}
        self._log(f"{sum(sum(each.values()) for each in entries.values())} entries {self._done}")
        more = {} if sent is None else {"sent_until": sent.isoformat(timespec="milliseconds")}
        return {**with_numbers(self._report, savepoint).to_dict(), "entries": entries, "sums": sums, **more}

    def rehearse(self, savepoint: Snapshot) -> str:
        """Restore the new job with stand-ins from the written savepoint. Raises DeployError if refused."""
        if not self._rehearsed:
            return "not rehearsed"
        name = f"flinkcompat-migration-{uuid4().hex}"
        target, timeouts = self._trials.restore_test_target, Timeouts()
        runner = RestoreRunner(target, timeouts, Journal())
        try:
            checked = replace(check_side(target, self._sides[1], name), ids=self._stand_ins[StandIns.DISCARDING])
        except CannotRehearse as error:
            self._log(f"not rehearsed: {error}")
            return f"not rehearsed: {error}"
        self._log(f"rehearsing {self._new.source} from {savepoint}, without writing to its sinks")
        watcher, store = Watcher(self._trials.location), self._cluster.target
        assert isinstance(store, SavepointStore)  # otherwise no savepoint was written
        place = store.location(savepoint)
        try:
            # Ignore the state of sinks, because stand-ins replace the sinks.
            job = runner.restore(watcher, checked, name, target.savepoint_at(place), None).job_id
            stored = [each for each in read_snapshot(place) if each.id in checked.ids.ids]
            require_restored(runner, checked, job, stored)
            found = "rehearsed: a job of the new script was restored from the savepoint"
        except RestoreRefused as error:
            raise DeployError(f"Flink refused the written savepoint in a rehearsal: {error}") from None
        except (Inconclusive, SavepointUnreadable) as error:
            found = f"the rehearsal had no result: {error}"
        finally:
            for left in watcher.end(target, timeouts.clean_up):
                self._log(f"not deleted yet: {left}")
        self._log(found)
        return found

    @cached_property
    def _trials(self) -> Cluster:
        """The cluster that plans scripts and runs trial jobs outside the deployment. Raises DeployError."""
        if self._planner is None or isinstance(self._cluster.target, RestoreTestTarget):
            return self._cluster
        return self._planner()

    @cached_property
    def _sides(self) -> tuple[Side, Side]:
        """The two scripts to plan. If a separate planner plans them, they have the job cluster's settings."""
        if self._trials is self._cluster:
            return self._old, self._new
        options = planning_options(self._cluster.target, self._live)
        old, new = (replace(side, settings={**options, **side.settings}) for side in (self._old, self._new))
        return old, new

    def _template(self) -> Path:
        """The template of the new job. Raises DeployError."""
        cluster = self._trials
        # Omit a temporary cluster from the template's cache key. Temporary clusters differ only in ports and folders.
        where, options = (None, {}) if cluster.temporary else (cluster.location, options_of(cluster))
        return kept_template(self._sides[1], where, options, self._stand_ins[StandIns.IDLE], lambda: cluster, self._log)


def unreadable_history(error: Exception) -> DeployRefused:
    """The error to raise if state cannot be computed from history while the former job still runs."""
    known = isinstance(error, (InputError, NotMigratable))
    why = f": {error}" if known else f" ({type(error).__name__}: {error})"
    return DeployRefused(f"the job keeps running, because its state cannot be computed from history{why}")
