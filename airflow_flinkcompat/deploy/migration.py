"""Rewriting of the former job's savepoint, so that state survives an incompatible change."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from typing import Any, Literal, Protocol
from uuid import uuid4

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.compat.plan_comparison import migrations
from airflow_flinkcompat.deploy.catching_up import PAUSE_SECONDS, CatchUp, folder_of_rounds, latest_round
from airflow_flinkcompat.deploy.errors import DeployError, DeployRefused, StateNotKept
from airflow_flinkcompat.deploy.ledger.ledger import LedgerConflict
from airflow_flinkcompat.deploy.plans import downtime_by_checkpoint
from airflow_flinkcompat.deploy.redeploy.run import Waiting
from airflow_flinkcompat.deploy.rehearsal.place import Cluster, LiveTarget, Watcher, remove_folder
from airflow_flinkcompat.deploy.rehearsal.restoring import Inconclusive, Timeouts
from airflow_flinkcompat.deploy.rehearsal.waiting import Journal, SavepointTaker
from airflow_flinkcompat.deploy.savepoint_writing import HistoryWorkers, SavepointWriting, unreadable_history
from airflow_flinkcompat.deploy.target import JobRef, Snapshot
from airflow_flinkcompat.exec_graph.migration import Accept, Migration, MigrationExtent
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.migration.computed import StateComputer
from airflow_flinkcompat.migration.downtime import Downtime, expected_downtime
from airflow_flinkcompat.migration.workers import Workers
from airflow_flinkcompat.migration.writing import (
    require_predicted_state,
    require_rewritable,
)
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable

_LAST_ROUND_SECONDS = 120.0
"""Longest time in which the new script must read the last rows, while no job runs."""
_END_SECONDS = 10.0
"""Longest time in which a savepoint of the live job is deleted. After that, a child process continues."""
_ORDER = (MigrationExtent.NONE, MigrationExtent.PARTIAL, MigrationExtent.WHOLE)


class History(Protocol):
    """The rows that a job has read, used to compute state that would otherwise begin empty."""

    def extend(self, found: Migration, new: Side, old: Side) -> tuple[Migration, Mapping[str, str]]:
        """Add state from history to a migration. Also return reasons for operators that history cannot supply."""

    def computing(
        self, old: Side, new: Side, savepoint: str, migration: Migration, say: Callable[[str], None]
    ) -> AbstractContextManager[HistoryWorkers]:
        """Context in which workers can compute the state that a migration takes from history."""

    def sent_until(self, new: Side, savepoint: str, migration: Migration) -> datetime | None:
        """Time up to which the former job already emitted windows, but without the computed state."""

    def preparing(
        self,
        old: Side,
        new: Side,
        savepoint: str,
        migration: Migration,
        folder: str,
        say: Callable[[str], None],
        keeps: Callable[[Exception], bool],
    ) -> AbstractContextManager[None]:
        """Compute most state while the old job still runs, and compare history with the job's state."""

    def deleting_prepared(
        self, old: Side, new: Side, keeps: Callable[[Exception], bool]
    ) -> AbstractContextManager[None]:
        """Context that deletes the prepared results on exit, unless ``keeps`` is True for the raised error."""

    def resumed_from(self, folder: str) -> History:
        """The same history, but resumed from the prepared rows in ``folder`` if they still exist."""


class SavepointMigration(SavepointWriting):
    """Rewriter of a job's savepoints. :class:`SavepointWriting` describes the other arguments.

    ``at_least`` is the extent of kept state that a person or the policy decided on (whole, partial, none). A
    migration with a smaller extent is refused. ``workers`` returns the workers that rewrite the savepoint at a path
    or URI. If ``workers`` returns None, this process rewrites the savepoint. ``history`` provides the rows that the
    job has read. Without ``history``, state that cannot be kept begins empty.

    ``savepoint_directory`` is the folder of the savepoint up to which history is prepared. If ``savepoint_directory``
    is None, the cluster's default folder is used. ``hold`` is a function that keeps a passed context open until the
    new job runs. Without ``hold``, history is not prepared but read completely after the job has stopped.

    With ``catch_up``, a savepoint of the running job is migrated. Next to that job, a job with stand-in sinks reads the
    rows up to the stop (``deploy/catching_up``). If that fails after the stop, the savepoint of the stop is
    migrated. If ``catch_up`` is True, this is done only if a migration after the stop would take longer.
    """

    def __init__(
        self,
        old: Side,
        new: Side,
        cluster: Cluster,
        live: JobRef | None,
        *,
        at_least: MigrationExtent,
        plan_dir: str | None,
        rehearsed: bool,
        log: Callable[[str], None],
        accepted: Collection[Accept] = (),
        workers: Callable[[str], AbstractContextManager[Workers | None]] = lambda _: nullcontext(),
        history: History | None = None,
        savepoint_directory: str | None = None,
        hold: Callable[[AbstractContextManager[None]], None] | None = None,
        planner: Callable[[], Cluster] | None = None,
        catch_up: bool | Literal["always"] = False,
    ) -> None:
        super().__init__(old, new, cluster, live, plan_dir=plan_dir, rehearsed=rehearsed, log=log, planner=planner)
        self._catch_up, self._caught_up = catch_up, False
        self._at_least, self._accepted, self._workers, self._history = at_least, accepted, workers, history
        self._savepoint_directory, self._hold = savepoint_directory, hold
        self._prepared: str | None = None
        self._expected: Downtime | None = None
        self._observed = Timeouts().settle if rehearsed else None

    def prepare(self) -> str | None:
        """Do the base class's preparation, compare the old plan with a live savepoint, and prepare history."""
        super().prepare()
        with self.compared() as place:
            if place is not None and self._hold is not None:
                if self._catch_up == "always" or (self._catch_up and self._pays_off()):
                    self._prepared = self._prepare_catch_up(self._hold, place)
                if self._prepared is None and self._history is not None and self._computes:
                    self._prepared = self._prepare_history(self._history, self._hold, place)
        return self._prepared

    def write(self, savepoint: str, folder: str, prepared: str | None) -> Mapping[str, Any]:
        """Write the new job's savepoint: catch up from the prepared state, or migrate the whole savepoint."""
        state = latest_round(prepared) if self._catch_up and prepared else None
        if state is None or prepared is None or self._hold is None:
            return super().write(savepoint, folder, prepared)
        if prepared != self._prepared:  # another process prepared the state
            self._hold(_removed(prepared))
        begin = time.monotonic()
        try:
            self._catching_up.advance(state, savepoint, folder, _LAST_ROUND_SECONDS)
        except Exception as error:  # each kind of store raises errors of its own library
            self._log(f"the whole savepoint of the stop is migrated, because the new script did not catch up: {error}")
            remove_folder(folder)
            return super().write(savepoint, folder, None)
        self._caught_up = True
        seconds, sent = time.monotonic() - begin, self._sent_until(savepoint)
        self._log(f"caught up with the stopped job in {seconds:.1f} s")
        more = {} if sent is None else {"sent_until": sent.isoformat(timespec="milliseconds")}
        return {**self._report.to_dict(), "caught_up_seconds": round(seconds, 1), **more}

    def rehearse(self, savepoint: Snapshot) -> str:
        """Restore the new job with stand-ins, unless it has already caught up with stand-ins."""
        if self._caught_up:
            return "a job of the new script restored this state, and read all rows up to the stop"
        return super().rehearse(savepoint)

    def _pays_off(self) -> bool:
        """True if a catch-up causes a shorter pause than the steps after the stop that it replaces."""
        if self._computes or self._expected is None:  # the time to compute state from history is unknown
            return True
        saved = self._expected.rewrite + self._expected.rehearse
        if saved <= PAUSE_SECONDS:
            self._log(
                f"the savepoint of the stop is migrated, because this takes about {saved:.1f} s, and a catch-up "
                f"{PAUSE_SECONDS} s"
            )
        return saved > PAUSE_SECONDS

    def _prepare_catch_up(self, hold: Callable[[AbstractContextManager[None]], None], place: str) -> str | None:
        """Migrate a savepoint of the running job, and catch up. None if the script cannot catch up."""
        assert self._live is not None
        try:
            if missing := self._missing_slots():
                raise Inconclusive(missing)
            self._catching_up.check()
            base = folder_of_rounds(place.rstrip("/").rpartition("/")[0], self._live)
            self._catch_up_in(base, place)
        except Exception as error:  # each kind of store raises errors of its own library
            self._log(f"the savepoint of the stop is migrated, because the new script cannot catch up: {error}")
            return None
        hold(_removed(base))
        return base

    def _catch_up_in(self, base: str, place: str) -> None:
        """Migrate a savepoint into a folder, and catch up there. Any error deletes the folder."""
        target = self._cluster.target
        assert isinstance(target, LiveTarget)  # otherwise there is no savepoint to migrate
        guard = Watcher(self._cluster.location, own=True)
        guard.announce_folder(base)
        try:
            super().write(place, f"{base}/0", None)
            self._catching_up.rounds(base, lambda: self._live_savepoint(guard, target, base))
        except BaseException:
            guard.end(target, _END_SECONDS)
            raise
        guard.dismiss()

    @cached_property
    def _catching_up(self) -> CatchUp:
        try:
            _ = self._cluster.shadow_target
        except DeployRefused:  # a separate planner cluster may run the job
            return CatchUp(self._trials, str(self._live), self._sides[1], self._migration, self._stand_ins, self._log)
        return CatchUp(self._cluster, str(self._live), self._new, self._migration, self._stand_ins, self._log)

    @contextmanager
    def compared(self) -> Iterator[str | None]:
        """Take a savepoint of the live job and compare its headers with the prediction of the old plan."""
        target = self._cluster.target
        if self._live is None or not isinstance(target, LiveTarget):
            self._compare_later(f"{target} cannot take savepoints of running jobs")
            yield None
            return
        watcher, begin, place = Watcher(self._cluster.location, own=True), time.monotonic(), None
        try:
            try:
                place = self._live_savepoint(watcher, target, self._savepoint_directory)
            except DeployError as error:
                self._compare_later(str(error))
            else:
                seconds = time.monotonic() - begin
                self._compare(require_predicted_state, place)
                self._log(f"the savepoint of job {self._live} contains the state that its plan predicts")
                self._expected = expected_downtime(self._migration, place, stop=seconds, rehearsed=self._observed)
                self._log(str(self._expected))
            yield place
        finally:
            watcher.end(target, _END_SECONDS)

    def _compare_later(self, why: str) -> None:
        self._log(f"the plan is compared later, with the savepoint of the stop: {why}")
        with suppress(DeployError):
            if self._live and (
                found := downtime_by_checkpoint(self._cluster.target, self._live, rehearsed=self._observed)
            ):
                self._log(str(found))

    def _prepare_history(
        self, history: History, hold: Callable[[AbstractContextManager[None]], None], place: str
    ) -> str | None:
        """Prepare history up to the savepoint at ``place`` and return its folder. Raises DeployRefused."""
        folder = f"{place.rstrip('/').rpartition('/')[0]}/prepared-{uuid4().hex}"
        try:
            hold(history.preparing(*self._sides, place, self._migration, folder, self._log, _is_taken_up))
        except (DeployError, SavepointUnreadable) as error:
            self._log(f"history is not prepared, so all rows are read after the job has stopped: {error}")
            return None
        except Exception as error:  # Spark and store libraries can raise any error
            raise unreadable_history(error) from None
        return folder

    def _live_savepoint(self, watcher: Watcher, target: LiveTarget, directory: str | None) -> str:
        """Path or URI of a new savepoint of the live job. Raises DeployError."""
        assert self._live is not None
        taker = SavepointTaker(target, Timeouts().savepoint, Journal())
        return target.location(taker.savepoint(watcher, self._live, directory, self._log))

    @property
    def _computes(self) -> bool:
        return any(line.from_history for line in self._migration.operators)

    def _sent_until(self, savepoint: str) -> datetime | None:
        if self._history is None or not self._computes:
            return None
        return self._history.sent_until(self._sides[1], savepoint, self._migration)

    @contextmanager
    def _computing(
        self, savepoint: str, template: str, prepared: str | None
    ) -> Iterator[tuple[str, Workers | None, StateComputer | None]]:
        if self._history is None or not self._computes:
            with self._workers(savepoint) as workers:
                yield savepoint, workers, None
            return
        history = self._history
        if prepared is not None and self._hold is not None:
            history = history.resumed_from(prepared)
            if prepared != self._prepared:  # another process prepared the history
                self._hold(history.deleting_prepared(*self._sides, _is_taken_up))
        with history.computing(*self._sides, savepoint, self._migration, self._log) as computer:
            yield savepoint, computer.workers, computer

    @cached_property
    def _migration(self) -> Migration:
        """The migration of the job. Raises DeployRefused and DeployError."""
        self._log(f"{self._trials.target} compiles both scripts to find the state that can be kept")
        plans = self._plans
        for side, each in zip(self._sides, plans, strict=True):
            if other := next((plan.version for plan in each if plan.version != side.version), ""):
                raise DeployRefused(
                    f"{side.source} is for Flink {side.version}, but was planned for Flink {other}, so its state is "
                    "unknown. To migrate state to another version, use the SQL Gateways of both (former_conn_id)"
                )
        if [len(each) for each in plans] != [1, 1]:
            raise DeployRefused(
                "a migration rewrites the savepoint of a single job, but one of the scripts defines several jobs. "
                "Split the script"
            )
        try:
            (made,) = migrations(*self._sides, plans, accepted=self._accepted)
            require_rewritable(made)
        except InputError as error:
            raise DeployRefused(str(error)) from None
        except NotMigratable as error:
            raise StateNotKept(str(error)) from None
        if self._history is not None:
            made, reasons = self._history.extend(made, self._sides[1], self._sides[0])
            for operator, reason in reasons.items():
                self._log(f"{operator} cannot be computed from history: {reason}")
        if _ORDER.index(made.kept) < _ORDER.index(self._at_least) or made.kept is MigrationExtent.NONE:
            why = "; ".join(
                f"{each.operator}: {each.state}"
                for each in MigrationReport.of(made).operators
                if each.loses or each.begins
            )
            raise StateNotKept(
                f"a migration keeps less state than was decided ({made.kept}, not {self._at_least}): {why}. Check the "
                "change with explain_plan, then decide again"
            )
        return made


@contextmanager
def _removed(folder: str) -> Iterator[None]:
    """Context that deletes a folder on exit, unless a later call resumes the run."""
    try:
        yield
    except Exception as error:
        if not _is_taken_up(error):
            remove_folder(folder)
        raise
    remove_folder(folder)


def _is_taken_up(error: Exception) -> bool:
    """True if a later call resumes the run, so that the prepared history must be kept."""
    return isinstance(error, (Waiting, LedgerConflict)) or (isinstance(error, DeployError) and error.unanswered)
