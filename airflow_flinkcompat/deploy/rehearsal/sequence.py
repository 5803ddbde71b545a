"""The rehearsal: restore the old script as a control, then the new script, from one savepoint.

A different process can take over a long wait. The exception ``Paused`` contains the progress, from which ``rehearse``
resumes.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_flinkcompat.deploy.errors import CannotRehearse, DeployError, DeployRefused
from airflow_flinkcompat.deploy.flink.statements import prepare
from airflow_flinkcompat.deploy.redeploy.run import Waiting
from airflow_flinkcompat.deploy.rehearsal.place import (
    Cluster,
    Started,
    Watcher,
    clean_up,
    missing_slots,
    slots_of,
)
from airflow_flinkcompat.deploy.rehearsal.report import (
    Rehearsal,
    StoredOperator,
    read_snapshot,
    with_names,
    with_states,
)
from airflow_flinkcompat.deploy.rehearsal.restoring import (
    Checked,
    Inconclusive,
    Restored,
    RestoreRefused,
    RestoreRunner,
    RunnableSide,
    Timeouts,
    cancel_leftovers,
    check_side,
    require_running,
    trial_prefix,
)
from airflow_flinkcompat.deploy.rehearsal.rows import compare_state_rows
from airflow_flinkcompat.deploy.rehearsal.waiting import Journal, Paused
from airflow_flinkcompat.deploy.target import JobRef, Snapshot
from airflow_flinkcompat.model import RehearsalFinding
from airflow_flinkcompat.model.engine import line_of
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.operator_parts import OperatorPart

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RehearsalOptions:
    """Options of a rehearsal. If ``savepoint_directory`` is None, the cluster's default folder is used."""

    savepoint_directory: str | None = None
    timeouts: Timeouts = field(default_factory=Timeouts)


def rehearse(
    cluster: Cluster,
    job_id: str,
    old: RunnableSide,
    new: RunnableSide,
    options: RehearsalOptions | None = None,
    log: Callable[[str], None] = _log.info,
    resumed: Mapping[str, Any] | None = None,
) -> Rehearsal:
    """Rehearse the restore of a new script from the state of a running job.

    The rehearsal takes a savepoint of the live job, and does not change the live job otherwise. The jobs that the
    rehearsal started are always cancelled, and its savepoints are deleted. If this process is killed, its child
    process cancels the jobs and deletes the savepoints. If the target stops answering during the rehearsal, the
    result is ``could not tell``, and no error is raised.

    ``resumed`` is the ``state`` of a :class:`Paused` that an earlier call raised because a wait exceeded
    ``Timeouts.here``. To end the jobs of a paused rehearsal without another call, use :func:`abandon`. Raises
    DeployRefused, ScriptRefused, DeployError, Paused.
    """
    options = options or RehearsalOptions()
    if resumed is not None:
        journal = Journal(dict(resumed["done"]), options.timeouts.here)
        run = _Run(cluster, job_id, old, new, options, log, journal)
        return run.rehearse(Started.of(resumed), run.sides)
    for version in (old, new):
        prepare(version.script, version.source)
    target = cluster.restore_test_target
    live = target.status(JobRef(job_id))
    if live is None:
        known = ", ".join(f"{job.job_id} ({job.name})" for job in target.jobs() if not job.terminal) or "none"
        raise DeployRefused(f"{target} has no job {job_id}. Jobs that have not ended: {known}")
    begun = {"name": live.name, "token": uuid.uuid4().hex, "basis": []}
    run = _Run(cluster, job_id, old, new, options, log, Journal(begun, options.timeouts.here))
    try:
        sides = run.check()
    except (Inconclusive, CannotRehearse) as error:
        return Rehearsal(RehearsalFinding.INCONCLUSIVE, str(error), job_id=job_id, live="not touched")
    return run.rehearse(Started(), lambda: sides)


def abandon(cluster: Cluster, state: Mapping[str, Any], *, timeout: float) -> list[str]:
    """End the jobs of a paused rehearsal. Return the remaining jobs, which a child process tries to end."""
    started = Started.of(state)
    left = clean_up(cluster.restore_test_target, started, timeout=timeout, coming=0)
    if left:
        Watcher(cluster.location, started).leave()
    return left


class _Run:
    def __init__(
        self,
        cluster: Cluster,
        job_id: str,
        old: RunnableSide,
        new: RunnableSide,
        options: RehearsalOptions,
        log: Callable[[str], None],
        journal: Journal,
    ) -> None:
        self.cluster, self.target = cluster, cluster.restore_test_target
        self.job_id, self.old, self.new = JobRef(job_id), old, new
        self.options, self.log = options, log
        self.journal, self.once = journal, journal.once
        self.name, self.token = str(journal.done["name"]), str(journal.done["token"])
        self.basis: list[str] = journal.done["basis"]
        self.runner = RestoreRunner(self.target, options.timeouts, journal)

    # ---------------------------------------------------------------------------------- before anything is started
    def check(self) -> tuple[Checked, Checked]:
        """Check that both versions can run next to the live job. Raises Inconclusive and CannotRehearse."""
        require_running(self.target, self.job_id)
        self.once("restores", self._restores)
        sides = self.sides()
        cancel_leftovers(self.target, self.name, "rehearsal", self.log)
        if missing := missing_slots(self.target, slots_of(self.target.describe(self.job_id))):
            raise Inconclusive(f"no task slots for a second job: {missing}")
        return sides

    def sides(self) -> tuple[Checked, Checked]:
        """The old and the new version, both planned by Flink. Raises Inconclusive and CannotRehearse."""
        return self._check_version(self.old), self._check_version(self.new)

    def _check_version(self, version: RunnableSide) -> Checked:
        self.log(f"checking the sources and sinks of {version.source}")
        try:
            return check_side(self.target, version, f"flinkcompat-rehearsal-{self.token}")
        except CannotRehearse:
            raise
        except DeployError as error:
            raise Inconclusive(f"{version.source} cannot be planned: {error}") from None

    # ------------------------------------------------------------------------------------------------ the sequence
    def rehearse(self, started: Started, sides: Callable[[], tuple[Checked, Checked]]) -> Rehearsal:
        """Run the sequence; ``started``: operations that an earlier process announced. Raises Paused."""
        try:
            watcher = Watcher(self.cluster.location, started)
        except OSError as error:
            why = f"nothing was started, because the watcher process, which cleans up, cannot run: {error}"
            left = clean_up(self.target, started, timeout=self.options.timeouts.clean_up, coming=0)
            return Rehearsal(
                RehearsalFinding.INCONCLUSIVE, why, job_id=self.job_id, live="not touched", left=tuple(left)
            )
        paused, left = False, []
        try:
            found = self._find(watcher, *sides())
        except DeployError as error:
            found = Rehearsal(RehearsalFinding.INCONCLUSIVE, str(error))
        except Waiting as waiting:
            paused = True
            raise Paused(str(waiting), waiting.wait, self.journal.state(watcher.started)) from None
        finally:
            if paused:
                watcher.dismiss()
            else:
                self.log("cleaning up")
                left = watcher.end(self.target, self.options.timeouts.clean_up)
        return replace(found, job_id=self.job_id, live=self._live(), basis=tuple(self.basis), left=tuple(left))

    def _find(self, watcher: Watcher, old: Checked, proposed: Checked) -> Rehearsal:
        savepoint = self.runner.savepoint(watcher, self.job_id, self.options.savepoint_directory, self.log)
        saved = self._stored_operators(savepoint, self.job_id)
        self._say(f"control: {self.old.source} from {savepoint}")
        try:
            control = self._restore(watcher, old, "control", savepoint)
        except RestoreRefused as refused:
            raise Inconclusive(
                f"the control (the old script) was refused at {refused.at}. Make sure that job {self.job_id} runs "
                f"this script with the same settings. {refused}"
            ) from None
        left_by_control = self._skipped(control, saved)
        self.once("control checked", lambda: self._check_control(control, saved, left_by_control))
        self._say(f"rehearsing {self.new.source}")
        try:
            new = self._restore(watcher, proposed, "new", savepoint)
        except RestoreRefused as refused:
            return Rehearsal(RehearsalFinding.REFUSED, str(refused), at=refused.at)
        left_by_new = self._skipped(new, saved)
        dropped = left_by_new - left_by_control
        if dropped and control.savepoint:
            # Stateless operators are also skipped. Only Flink can show if a skipped operator had state.
            self.log("checking with Flink if state was dropped")
            try:
                self.runner.submit_only(watcher, proposed, self._name("strict"), control.savepoint)
            except RestoreRefused as refused:
                found = Rehearsal(RehearsalFinding.REFUSED, str(refused), at=refused.at)
                return with_states(found, saved, left_by_control, left_by_new, None)
        elif dropped:
            raise Inconclusive("the control ended before Flink could check the state that the new script dropped")
        own = self._stored_operators(new.savepoint, new.job_id)
        found = Rehearsal(RehearsalFinding.RESTORED)
        if difference := self._different_rows(control.savepoint, new.savepoint):
            found = Rehearsal(RehearsalFinding.REFUSED, difference, at="rows")
        return with_states(found, saved, left_by_control, left_by_new, own)

    def _different_rows(self, control: Snapshot | None, new: Snapshot | None) -> str:
        """The first different row of the state, if two lines run the same script; "" if no row differs."""
        lines = [line_of(each.engine_version) for each in (self.old, self.new)]
        same = self.old.script.strip() == self.new.script.strip()
        if lines[0] == lines[1] or not same or control is None or new is None:
            return ""
        places = self.target.location(control), self.target.location(new)
        difference, basis = self.once("rows compared", lambda: list(compare_state_rows(self.new.script, *places)))
        self._add_basis(basis)
        return difference

    def _say(self, line: str) -> None:
        self.once(f"said: {line}", lambda: self.log(line))

    def _restore(self, watcher: Watcher, checked: Checked, role: str, savepoint: Snapshot) -> Restored:
        def restored() -> list[str | None]:
            directory = self.options.savepoint_directory
            found = self.runner.restore(watcher, checked, self._name(role), savepoint, directory)
            return [found.job_id, found.savepoint]

        job_id, own = self.once(f"{role} restored", restored)
        return Restored(JobRef(str(job_id)), None if own is None else Snapshot(own))

    def _name(self, role: str) -> str:
        return f"{trial_prefix(self.name, 'rehearsal', self.options.timeouts.longest)} {role} {self.token}"

    # ------------------------------------------------------------------------------------operators with restored
    # state
    def _stored_operators(self, savepoint: Snapshot | None, job_id: JobRef) -> tuple[StoredOperator, ...] | None:
        """The operators in a savepoint of the job, or None if there is no readable savepoint."""
        if savepoint is None:
            return None
        rows = self.once(f"stored in {savepoint}", lambda: self._read(savepoint, job_id))
        return None if rows is None else tuple(StoredOperator(*row[:3], *map(OperatorPart, row[3:])) for row in rows)

    def _read(self, savepoint: Snapshot, job_id: JobRef) -> list[tuple[Any, ...]] | None:
        try:
            stored = read_snapshot(self.target.location(savepoint))
        except SavepointUnreadable as error:
            self._add_basis(f"the savepoint's metadata cannot be read: {error}")
            return None
        named = with_names(stored, self.target.describe(job_id))
        return [(each.id, each.name, each.has_state, str(each.by_state)) for each in named]

    def _add_basis(self, basis: str) -> None:
        if basis not in self.basis:
            self.basis.append(basis)

    def _skipped(self, restored: Restored, saved: Iterable[StoredOperator] | None) -> frozenset[str]:
        """Ids of the savepoint's operators that the job did not restore. Raises Inconclusive."""
        return frozenset(
            self.once(f"skipped by {restored.job_id}", lambda: sorted(self._find_skipped(restored, saved)))
        )

    def _find_skipped(self, restored: Restored, saved: Iterable[StoredOperator] | None) -> frozenset[str]:
        found = self.target.left_aside(restored.job_id)
        if found is not None:
            self._add_basis("operators in the cluster's log")
            return found
        own = self._stored_operators(restored.savepoint, restored.job_id)
        if saved is None or own is None:
            raise Inconclusive(
                "the restored state is unknown: the cluster's log does not show it, and this machine cannot read the "
                "savepoints' metadata"
            )
        self._add_basis("operators in the metadata of both savepoints")
        return frozenset(each.id for each in saved) - frozenset(each.id for each in own)

    def _check_control(
        self,
        control: Restored,
        saved: tuple[StoredOperator, ...] | None,
        skipped: frozenset[str],
    ) -> None:
        """Check that the control job has the live job's query, and skipped only the state of sinks.

        Raises Inconclusive.
        """
        live, same = (Counter(self.target.query(job)) for job in (self.job_id, control.job_id))
        if differing := [*(live - same), *(same - live)]:
            raise Inconclusive(
                f"the control differs from job {self.job_id}. Make sure that {self.old.source} is the job's script, "
                f"with the settings of its start. First difference: {min(differing)}"
            )
        if not skipped:
            return
        own = self._stored_operators(control.savepoint, control.job_id)
        if saved is None or own is None:
            raise Inconclusive(
                "the control skipped operators of the savepoint, and only the savepoints' metadata shows if all of "
                "them belong to sinks. Make the savepoint directory readable from this machine"
            )
        own_state = [each for each in saved if each.has_state and each.part is OperatorPart.QUERY]
        strange = [each.name or each.id for each in own_state if each.id in skipped]
        known = {each.id for each in saved}
        strange += [each.name or each.id for each in own if each.has_state and each.id not in known]
        if strange:
            raise Inconclusive(
                "with stand-ins for the sinks, even the old script does not restore all state of the query "
                f"({', '.join(strange)}), because the stand-ins change its topology"
            )

    def _restores(self) -> int:
        return self.target.job_history(self.job_id).restores

    def _live(self) -> str:
        try:
            status = self.target.status(self.job_id)
            restarts = self._restores() - int(self.journal.done["restores"])
        except DeployError as error:
            return f"its status cannot be read: {error}"
        if status is None:
            return "the cluster no longer lists it"
        return f"{status.state}, {'no restart' if not restarts else f'{restarts} restarts'} meanwhile"
