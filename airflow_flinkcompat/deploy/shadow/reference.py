"""Comparison of stored state with the state that a script would have if it had always run.

The script runs without state over all rows that its sources still contain, up to the first savepoint. From the state
that results, it reads the rows between both savepoints again. If these rows differ from those that the script wrote
from the stored state, then the stored state is wrong for this script. The same runs of the old script are a control.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.rehearsal.place import ShadowTarget, Watcher
from airflow_flinkcompat.deploy.rehearsal.report import read_snapshot, require_restored
from airflow_flinkcompat.deploy.rehearsal.restoring import (
    Checked,
    Inconclusive,
    RestoreRunner,
)
from airflow_flinkcompat.deploy.shadow.report import StateComparison
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding, SinkDifference, WrittenSink, compare_rows, worst
from airflow_flinkcompat.deploy.shadow.sources import source_ids
from airflow_flinkcompat.deploy.target import SourceTable
from airflow_flinkcompat.exec_graph.stand_ins import IdsByStandIns, StandIns
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.replay import (
    partitions_by_reader,
    write_beginning,
    write_replay,
    write_resumable,
)
from airflow_flinkcompat.savepoint.store import read_metadata

_OUT_OF_RANGE = "OffsetOutOfRangeException"
_DELETED = "a topic no longer contains its first rows"
_LABELS = ("stored state", "all rows")


@dataclass(frozen=True)
class FromStoredState:
    """A job, with its rows from the stored state; ``ids``: its operator ids with stand-ins."""

    job: JobSpec
    written: Sequence[WrittenSink]
    ids: IdsByStandIns


_Pair = tuple[WrittenSink, WrittenSink]
"""A sink of one script, with its rows from the stored state and from all rows."""


def _pairs(script: FromStoredState, reference: Sequence[WrittenSink]) -> list[_Pair]:
    return list(zip(script.written, reference, strict=True))


def _difference(pair: _Pair, expected: Collection[str]) -> SinkDifference:
    """The difference between the rows of one sink. Raises Inconclusive."""
    (found,) = compare_rows(pair[:1], pair[1:], expected=expected, labels=_LABELS)
    if found.finding is ShadowFinding.INCONCLUSIVE:
        raise Inconclusive(f"the rows of {found.sink} cannot be compared")
    return found


def _unstable_columns(pair: _Pair, expected: Collection[str]) -> Collection[str]:
    """The smallest part of the expected columns that explains why the old script's rows differ.

    These columns depend on the clock or on chance, so they may differ in the new script's rows, too.
    """
    found = _difference(pair, expected)
    if found.finding is ShadowFinding.EQUAL:
        return ()
    if found.finding is not ShadowFinding.EXPECTED:
        raise Inconclusive(
            "even the old script writes other rows after it has read all rows again. Either the sources no longer "
            "contain all rows (retention, compaction, deleted files), or rows depend on the clock or on the order of "
            "reading, or a different script has written a part of the state"
        )
    needed = {*found.expected}
    for column in found.expected:
        if _difference(pair, needed - {column}).finding is not ShadowFinding.DIFFERS:
            needed.remove(column)
    return needed


@dataclass(frozen=True)
class ReferenceRuns:
    """Runs from the earliest rows; ``first`` and ``last`` are the savepoints of the live job.

    ``name`` is the beginning of the names of all jobs, and ``token`` their end. ``seconds`` limits each run.
    """

    target: ShadowTarget
    runner: RestoreRunner
    watcher: Watcher
    first: str
    last: str
    folder: str
    name: str
    token: str
    seconds: float
    log: Callable[[str], None]

    def compare(
        self,
        old: FromStoredState,
        new: FromStoredState,
        sources: tuple[Mapping[str, SourceTable], Mapping[str, SourceTable]],
        expected: Collection[str],
    ) -> StateComparison:
        """Compare the rows from the stored state with those from all rows.

        Args:
            old: The script of the live job.
            new: The script to compare.
            sources: The sources of both scripts, by operator id.
            expected: Columns that may differ in the control, as ``column`` or ``sink.column``.

        Returns:
            The differences by sink, or the reason why there is no result.
        """
        begin = time.monotonic()
        try:
            stored = [each.id for each in read_metadata(self.first).operators if each.coordinator is not None]
            ids = source_ids(*sources, stored)
            kept = {each: each for each in stored}
            pairs = _pairs(old, self._rows(old, "old", kept))
            unstable = {pair[0][0].path: _unstable_columns(pair, expected) for pair in pairs}
            pairs = _pairs(new, self._rows(new, "new", ids))
            sinks = tuple(_difference(pair, unstable.get(pair[0][0].path, ())) for pair in pairs)
            if not any(sum(each.compared) for each in sinks):
                raise Inconclusive(f"{new.job.source} wrote no row. Choose a longer time, in which it writes rows")
        except (DeployError, SavepointUnreadable) as error:
            why = f"{_DELETED}: " if _OUT_OF_RANGE in str(error) else ""
            return StateComparison(ShadowFinding.INCONCLUSIVE, f"{why}{error}")
        return StateComparison(worst(sinks), sinks=sinks, seconds=time.monotonic() - begin)

    def _rows(self, script: FromStoredState, role: str, ids: Mapping[str, str]) -> list[WrittenSink]:
        """The rows of a script from the state that it would have if it had always run.

        ``ids``: the id of each source in the savepoints of the live job, by its id in the script.
        """
        job = script.job
        self.log(f"{job.source} reads all rows up to the first savepoint")
        beginning, computed, state, replay, rows = (
            f"{self.folder}/{part}-{role}" for part in ("beginning", "computed", "state", "replay", "reference")
        )
        write_beginning(self.first, beginning, ids)
        private = f"{self.token}-{role}"
        catch_up = self.target.catch_up_run(job, f"flinkcompat-shadow-{private}-earliest")
        checked = Checked(job, catch_up, script.ids[StandIns.DISCARDING])
        name = f"{self.name} {role}earliest {self.token}"
        _, own = self.runner.read_to_end(self.target, self.watcher, checked, name, beginning, computed, self.seconds)
        if catch_up.watermarks and partitions_by_reader(beginning, own) > 1:
            raise Inconclusive(
                f"a subtask of {job.source} read several partitions of a topic with watermarks, so its last watermark "
                "may differ from that of the live job. Use a parallelism of at least the number of partitions"
            )
        write_resumable(own, self.first, state, ids)
        write_replay(state, self.last, replay, ids=ids)
        run = self.target.shadow_run(job, f"flinkcompat-shadow-{private}-reference", rows)
        self.log(f"{job.source} reads the rows between the savepoints from this state")
        checked = Checked(job, run, script.ids[StandIns.STORING])
        name = f"{self.name} {role}reference {self.token}"
        started = self.runner.run_to_end(self.watcher, checked, name, replay, self.seconds)
        require_restored(self.runner, checked, started, read_snapshot(own))
        return [(sink, f"{rows}/{number}") for number, sink in enumerate(run.sinks)]
