"""Catch-up of a changed script with the live job, which ends shortly after the live job has stopped.

A job of the new script, with stand-ins for its sinks, starts from migrated state and reads the rows up to a savepoint
of the live job. Its own savepoint then has the new state at exactly that position. After the stop, only the rows since
the last round are left to read. The result has the sources' positions and the sinks' uncommitted rows of the stop.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from uuid import uuid4

from airflow_flinkcompat.deploy.errors import CannotRehearse
from airflow_flinkcompat.deploy.rehearsal.place import Cluster, Watcher, remove_folder
from airflow_flinkcompat.deploy.rehearsal.report import read_snapshot, require_restored
from airflow_flinkcompat.deploy.rehearsal.restoring import (
    Checked,
    Inconclusive,
    RestoreRunner,
    RunnableSide,
    Timeouts,
    cancel_leftovers,
    job_of,
    trial_prefix,
)
from airflow_flinkcompat.deploy.rehearsal.waiting import Journal
from airflow_flinkcompat.deploy.target import CatchUpRun
from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.migration import Migration
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind
from airflow_flinkcompat.exec_graph.stand_ins import IdsByStandIns, StandIns
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.savepoint.replay import write_replay, write_resumable
from airflow_flinkcompat.savepoint.store import METADATA, place, read_metadata

PAUSE_SECONDS = 2.6
"""Seconds that a catch-up adds to the pause of a plain resume (``make bench-switch``, 2026-11-30)."""
_SHORT_SECONDS = 10.0
_MOST_ROUNDS = 5
"""Limits of the rounds. A round that took more than half of the former one is also the last one."""


@dataclass(frozen=True)
class CatchUp:
    """Job of a changed script that catches up with a live job.

    Attributes:
        cluster: Cluster that runs the job.
        live: The live job.
        new: The changed script.
        migration: The state of both scripts. All source positions must be kept.
        stand_ins: The operator ids of the changed script with stand-ins for its sinks.
        log: Function that receives lines about the progress.
        seconds: Longest time of a round.
    """

    cluster: Cluster
    live: str
    new: RunnableSide
    migration: Migration
    stand_ins: IdsByStandIns
    log: Callable[[str], None]
    seconds: float = 3600.0

    def rounds(self, base: str, savepoint: Callable[[], str]) -> None:
        """Catch up in rounds, until the rows of a round are read in a short time.

        Args:
            base: Path or URI of a folder. Its folder ``0`` is the migrated savepoint. Each later number is a round.
            savepoint: Function that takes a savepoint of the live job, and returns its path or URI.

        Raises:
            DeployError: A round failed.
            SavepointUnreadable: A savepoint cannot be read or written.
        """
        former, replaced = self.seconds, [f"{base}/0"]
        for number in range(1, _MOST_ROUNDS + 1):
            begin = time.monotonic()
            last = savepoint()
            self.advance(f"{base}/{number - 1}", last, f"{base}/{number}", self.seconds)
            for folder in replaced:
                remove_folder(folder)
            replaced = [f"{base}/{number}", last]
            seconds = time.monotonic() - begin
            self.log(f"caught up with the live job, round {number}: {seconds:.1f} s")
            if seconds < _SHORT_SECONDS or seconds > former / 2:
                return
            former = seconds

    def check(self) -> None:
        """Check that the script can catch up exactly. Cancel a job that a crashed machine left.

        Raises:
            DeployError: A table has watermarks, or cannot be read up to a position, or an operator may emit rows that
                follow no input row, or the target lacks a capability.
        """
        cancel_leftovers(self.cluster.shadow_target, self.live, "catch-up", self.log)
        if self._run.watermarks:
            raise Inconclusive(
                "a source has watermarks. At the same position, they may differ from those of the stopped job, so rows "
                "of windows and timers could be lost or written twice"
            )
        if late := self._emitting_later:
            raise Inconclusive(
                f"{', '.join(late)} can emit rows by processing time or wait for answers, so a stand-in could receive "
                "rows that the stopped job did not write"
            )

    def advance(self, state: str, last: str, folder: str, seconds: float) -> None:
        """Write the state of the new script at the position of a savepoint of the live job.

        Args:
            state: Path or URI of an earlier savepoint of the new script.
            last: Path or URI of a later savepoint of the live job.
            folder: Path or URI of the savepoint to write.
            seconds: Longest time in which the script must read the rows.

        Raises:
            DeployError: The job could not run, or did not restore all of its state.
            SavepointUnreadable: A savepoint cannot be read or written.
        """
        target, replay = self.cluster.shadow_target, f"{folder}/rows"
        checked = Checked(self.new, self._run, self.stand_ins[StandIns.DISCARDING])
        sources, sinks = (self._ids(last, kind) for kind in (StateKind.POSITIONS, StateKind.SINK))
        runner = RestoreRunner(target, Timeouts(), Journal())
        watcher = Watcher(self.cluster.location)
        watcher.announce_folder(replay)
        try:
            write_replay(state, last, replay, ends=False, ids=sources)
            stored = [each for each in read_snapshot(replay) if each.id not in sinks]
            name = f"{trial_prefix(self.live, 'catch-up', seconds + Timeouts().longest)} new {uuid4().hex}"
            job, own = runner.read_to_end(target, watcher, checked, name, replay, folder, seconds)
            require_restored(runner, checked, job, stored)
        finally:
            watcher.end(target, Timeouts().clean_up)
        write_resumable(own, last, folder, {**sources, **sinks})

    @property
    def _emitting_later(self) -> Sequence[str]:
        """The operators of both jobs that may emit rows at other times than the stopped job."""
        specs = (spec for line in self.migration.operators for spec in (line.old, line.new) if spec is not None)
        names = {each.name for each in specs if each.kind is StateKind.OPERATOR}
        return sorted(name for name in names if Trait.EMITS_AT_ONCE not in ExecKind(name).traits)

    @cached_property
    def _run(self) -> CatchUpRun:
        """The job with stand-ins, planned once before the stop. Raises DeployError."""
        try:
            return self.cluster.shadow_target.catch_up_run(job_of(self.new), f"flinkcompat-shadow-{uuid4().hex}")
        except CannotRehearse as error:
            raise Inconclusive(str(error)) from None

    def _ids(self, savepoint: str, kind: StateKind) -> Mapping[str, str]:
        """The operator id of the live job, by the id in the new script. Raises Inconclusive."""
        found = {}
        for line in self.migration.of_savepoint({each.id for each in read_metadata(savepoint).operators}):
            spec = line.new or line.old
            if spec is None or spec.kind is not kind:
                continue
            if line.old is None or line.new is None or line.effect not in (RestoreEffect.RIGHT, RestoreEffect.MOVED):
                if spec.kind is StateKind.POSITIONS:
                    raise Inconclusive(f"{spec.name} does not resume at its stored position ({line.effect})")
                continue
            found[line.new.id] = line.old.id
        return found


def folder_of_rounds(parent: str, live: str) -> str:
    """Name a folder for a new catch-up, and delete those that a killed process left for the same job.

    Args:
        parent: Path or URI of the folder that contains it.
        live: The live job.

    Returns:
        Path or URI of a folder that does not exist yet.
    """
    prefix = f"caught-up-{re.sub('[^A-Za-z0-9]+', '-', live)}-"
    for each in place(parent).iterdir():
        if each.name.startswith(prefix):
            remove_folder(f"{parent}/{each.name}")
    return f"{parent}/{prefix}{uuid4().hex}"


def latest_round(base: str) -> str | None:
    """The folder of the last complete round, or None without one.

    Args:
        base: Path or URI of the folder of :meth:`CatchUp.rounds`.

    Returns:
        Path or URI of a savepoint.
    """
    root = place(base)
    if not root.exists():
        return None
    found = [int(each.name) for each in root.iterdir() if each.name.isdigit() and (each / METADATA).exists()]
    return f"{base}/{max(found)}" if found and max(found) > 0 else None
