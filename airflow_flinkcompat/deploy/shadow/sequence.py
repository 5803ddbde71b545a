"""Shadow run: old and new script read the same rows again, and their output is compared.

The live job takes a savepoint, runs on, and takes another savepoint. From the first savepoint, the old script and then
the new script read the rows up to the second savepoint, and end there. Their sinks write into a folder.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.deploy.errors import CannotRehearse, DeployError, DeployRefused, StateNotKept
from airflow_flinkcompat.deploy.flink.statements import prepare
from airflow_flinkcompat.deploy.rehearsal.place import (
    Cluster,
    ShadowTarget,
    Watcher,
    missing_slots,
    remove_folder,
    slots_of,
)
from airflow_flinkcompat.deploy.rehearsal.report import (
    read_snapshot,
    require_restored,
    with_names,
    with_state_of_the_query,
)
from airflow_flinkcompat.deploy.rehearsal.restoring import (
    Checked,
    Inconclusive,
    RestoreRefused,
    RestoreRunner,
    RunnableSide,
    Timeouts,
    cancel_leftovers,
    job_of,
    require_running,
    trial_prefix,
)
from airflow_flinkcompat.deploy.rehearsal.waiting import Journal
from airflow_flinkcompat.deploy.shadow.changes import NamedColumns, PlanBoth, named_columns
from airflow_flinkcompat.deploy.shadow.live_rows import wait_for_rows
from airflow_flinkcompat.deploy.shadow.reference import FromStoredState, ReferenceRuns
from airflow_flinkcompat.deploy.shadow.report import ShadowReport, StateComparison
from airflow_flinkcompat.deploy.shadow.rows import (
    ShadowFinding,
    WrittenSink,
    compare_rows,
    delete_rows,
    names_of,
    worst,
)
from airflow_flinkcompat.deploy.shadow.sources import moved_files, source_operators
from airflow_flinkcompat.deploy.target import (
    JobRef,
    ShadowRun,
    SinkTable,
    SourceTable,
    SourceTables,
)
from airflow_flinkcompat.exec_graph.stand_ins import UNKNOWN_IDS, IdsByStandIns, StandIns
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.model.shadow import CHANGED
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.replay import write_replay

if TYPE_CHECKING:
    from airflow_flinkcompat.deploy.migration import SavepointMigration

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ShadowOptions:
    """Options of a shadow run.

    Attributes:
        seconds: Time between both savepoints of the live job. The scripts are compared by the rows of this time.
        run_seconds: Longest time in which a script must read these rows.
        expected: Columns that may differ, as ``column`` or ``sink.column``. ``changed`` stands for all columns that
            the change names, unless a column has this name.
        savepoint_directory: Path or URI of a folder that the cluster and this machine share. If None, the cluster's
            folder for savepoints is used.
        store: Local folder for the differing rows.
        plan_dir: Path or URI of a folder for compiled plans, which a SQL Gateway on another machine shares with this
            machine. If None, plans are compiled in a temporary folder of this machine.
        from_earliest: True to compare the stored state, too: both scripts also run without state from the earliest
            rows of their sources.
        until_rows: Number of rows of all sources after which ``seconds`` end early; None: they never end early.
        timeouts: Time limits of single steps.
    """

    seconds: float = 300.0
    run_seconds: float = 1800.0
    expected: Sequence[str] = ()
    savepoint_directory: str | None = None
    store: Path | None = None
    plan_dir: str | None = None
    from_earliest: bool = False
    until_rows: int | None = None
    timeouts: Timeouts = field(default_factory=Timeouts)


def shadow(
    cluster: Cluster,
    job_id: str,
    old: RunnableSide,
    new: RunnableSide,
    options: ShadowOptions | None = None,
    log: Callable[[str], None] = _log.info,
    migration: SavepointMigration | None = None,
    plan: PlanBoth | None = None,
) -> ShadowReport:
    """Compare the output of two scripts for the rows that a running job reads in some time.

    The live job takes two savepoints, and does not change otherwise. All jobs, savepoints and files of the run are
    removed, even if this process is killed.

    Args:
        cluster: The cluster of the live job.
        job_id: The live job.
        old: Script of the live job.
        new: Script to compare.
        options: Duration, folders and time limits.
        log: Function that receives lines about the progress.
        migration: Migration of the state from the old to the new script. The new script then starts from a migrated
            savepoint, and the old script from the savepoint of the live job. If None, both start from the latter.
        plan: Compiler of the plans of both scripts, for a target that cannot compile plans. Without plans, the columns
            that the change names are unknown.

    Returns:
        The differences by sink, or the reason why there is no result.

    Raises:
        DeployRefused: The target cannot run scripts next to the live job, or has no such job.
        ScriptRefused: A script cannot be deployed.
        DeployError: The target does not answer before the run has started.
    """
    options = options or ShadowOptions()
    if options.store is not None:
        delete_rows(options.store)
    for version in (old, new):
        prepare(version.script, version.source)
    target = cluster.shadow_target
    live = target.status(cluster.shared_job(job_id))
    if live is None:
        raise DeployRefused(f"{target} has no job {job_id}")
    root = options.savepoint_directory or target.savepoint_root()
    if root is None:
        raise DeployRefused(
            f"{target} has no folder for savepoints: pass --savepoint-directory, or set execution.checkpointing."
            "savepoint-dir on the cluster"
        )
    run = _ShadowRun(cluster, target, live.job_id, live.name, options, root, log, migration, plan)
    try:
        sides = run.check(old, new)
    except RestoreRefused as refused:
        return ShadowReport(ShadowFinding.REFUSED, str(refused), at=refused.at, job_id=job_id)
    except (Inconclusive, CannotRehearse) as error:
        return ShadowReport(ShadowFinding.INCONCLUSIVE, str(error), job_id=job_id)
    return run.compare(*sides)


@dataclass
class _Version:
    """A version of the script, with the folder of its output and its operator ids with stand-ins."""

    job: JobSpec
    checked: Checked
    sinks: tuple[SinkTable, ...]
    rows_folder: str
    ids: IdsByStandIns = field(default_factory=lambda: UNKNOWN_IDS)
    seconds: float = 0.0

    @property
    def written(self) -> list[WrittenSink]:
        return [(sink, f"{self.rows_folder}/{number}") for number, sink in enumerate(self.sinks)]


@dataclass
class _ShadowRun:
    cluster: Cluster
    target: ShadowTarget
    job_id: JobRef
    name: str
    options: ShadowOptions
    root: str
    log: Callable[[str], None]
    migration: SavepointMigration | None = None
    plan: PlanBoth | None = None
    named: NamedColumns = field(default_factory=NamedColumns)
    waited: float = 0.0
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self.folder = f"{self.root.rstrip('/')}/flinkcompat-shadow-{self.token}"
        self.private = f"flinkcompat-shadow-{self.token}"
        self.prefix = trial_prefix(self.name, "shadow", self.options.run_seconds + self.options.timeouts.longest)
        self.runner = RestoreRunner(self.target, self.options.timeouts, Journal())

    def check(self, old: RunnableSide, new: RunnableSide) -> tuple[_Version, _Version]:
        """Check that both versions can run next to the live job.

        Raises Inconclusive, CannotRehearse and RestoreRefused.
        """
        require_running(self.target, self.job_id)
        sides = self._version(old, "old"), self._version(new, "new")
        sinks = [sink for side in sides for sink in side.sinks]
        columns = {name for sink in sinks for each in sink.columns for name in names_of(sink, each)}
        if unknown := [name for name in self.options.expected if name not in {*columns, CHANGED}]:
            raise Inconclusive(f"no sink of either script has the expected column {', '.join(unknown)}")
        cancel_leftovers(self.target, self.name, "shadow", self.log)
        slots = slots_of(self.target.describe(self.job_id))
        if missing := missing_slots(self.target, slots):
            raise Inconclusive(f"no task slots for a second job: {missing}")
        if self.migration is not None:
            self._plan(self.migration)
        self.named = named_columns(self.target, old, new, self.options.plan_dir, self.plan)
        for side, ids in zip(sides, self.named.stand_ins, strict=True):
            side.ids, side.checked = ids, replace(side.checked, ids=ids[StandIns.STORING])
        self.log(
            f"the live job takes two savepoints, {self.options.seconds:.0f} s apart. Then old and new script read the "
            f"rows of this time again, one after the other, each with {slots} slot{'s' * (slots != 1)} and with "
            "consumer groups of its own"
        )
        return sides

    def _plan(self, migration: SavepointMigration) -> None:
        """Plan the migration before the live job takes a savepoint. Raises Inconclusive and RestoreRefused."""
        try:
            migration.plan()
        except StateNotKept as error:
            raise RestoreRefused(str(error), "migration") from None
        except DeployError as error:
            raise Inconclusive(f"the migration cannot be planned: {error}") from None

    def _version(self, side: RunnableSide, role: str) -> _Version:
        self.log(f"checking the sources and sinks of {side.source}")
        rows = f"{self.folder}/rows-{role}"
        job = job_of(side)
        try:
            run: ShadowRun = self.target.shadow_run(job, f"{self.private}-{role}", rows)
        except CannotRehearse:
            raise
        except DeployError as error:
            raise Inconclusive(f"{side.source} cannot be planned: {error}") from None
        return _Version(job, Checked(side, run), run.sinks, rows)

    def compare(self, old: _Version, new: _Version) -> ShadowReport:
        try:
            watcher = Watcher(self.cluster.location)
        except OSError as error:
            why = f"nothing was started, because the watcher process, which cleans up, cannot run: {error}"
            return ShadowReport(ShadowFinding.INCONCLUSIVE, why, job_id=self.job_id)
        watcher.announce_folder(self.folder)
        try:
            found = self._compare(watcher, old, new)
        except (DeployError, SavepointUnreadable) as error:
            found = ShadowReport(ShadowFinding.INCONCLUSIVE, str(error))
        finally:
            self.log("cleaning up")
            left = watcher.end(self.target, self.options.timeouts.clean_up)
        return replace(found, job_id=self.job_id, seconds=(self.waited, old.seconds, new.seconds), left=tuple(left))

    def _compare(self, watcher: Watcher, old: _Version, new: _Version) -> ShadowReport:
        live, runner = (watcher, self.job_id, self.options.savepoint_directory, self.log), self.runner
        first = runner.savepoint(*live, "first savepoint")
        self.waited = wait_for_rows(self.target, self.job_id, self.options.seconds, self.options.until_rows, self.log)
        last = runner.savepoint(*live, "last savepoint")
        begin, end = (self.target.location(each) for each in (first, last))
        replay = f"{self.folder}/savepoint"
        write_replay(begin, end, replay)
        stored = {each.id: each for each in with_names(read_snapshot(begin), self.target.describe(self.job_id))}
        try:
            control = self._run(watcher, old, "old", replay)
        except RestoreRefused as refused:
            raise Inconclusive(
                f"the old script was refused at {refused.at}. Make sure that job {self.job_id} runs this script with "
                f"the same settings. {refused}"
            ) from None
        hint = f". Make sure that this is the script of job {self.job_id}, with the settings of its start"
        skipped = require_restored(runner, old.checked, control, stored.values(), hint)
        start, migrated = self._migrated(replay)
        try:
            proposed = self._run(watcher, new, "new", start)
            sources = self._sources(old, self.job_id), self._sources(new, proposed)
            if migrated is None and (moved := moved_files(*sources)):
                proposed = self._run_over_moved_files(watcher, new, moved, (begin, end))
        except RestoreRefused as refused:
            return ShadowReport(ShadowFinding.REFUSED, str(refused), at=refused.at, migration=migrated)
        if migrated is not None:
            stored = {each.id: each for each in read_snapshot(start)}
        lost = (stored[key] for key in sorted(runner.left_aside(new.checked, proposed) - skipped) if key in stored)
        if dropped := with_state_of_the_query(lost):
            # The run ignores unclaimed state, because stand-ins replace the sinks. A redeploy does not.
            names = ", ".join(each.name or each.id for each in dropped)
            why = f"no operator of the new script restores the state of {names}, so Flink refuses the savepoint"
            return ShadowReport(ShadowFinding.REFUSED, why, at="submit", dropped=dropped, migration=migrated)
        sinks = compare_rows(
            old.written,
            new.written,
            expected=self.options.expected,
            changed=self.named.of,
            store=self.options.store,
        )
        if not any(sum(each.compared) for each in sinks):
            raise Inconclusive("neither script wrote a row. Choose a longer time, in which rows arrive")
        unknown = [f"{each.sink}: {each.note}" for each in sinks if each.finding is ShadowFinding.INCONCLUSIVE]
        return ShadowReport(
            worst(sinks),
            "; ".join(unknown),
            sinks=sinks,
            unnamed=self.named.unknown,
            migration=migrated,
            state=self._state(watcher, old, new, sources, (begin, end)) if self.options.from_earliest else None,
        )

    def _run_over_moved_files(
        self, watcher: Watcher, new: _Version, moved: Mapping[str, str | None], savepoints: tuple[str, str]
    ) -> JobRef:
        """Run the new script again, with the files that its sources would find in their own folders."""
        self.log(f"{new.checked.version.source} restores positions of other folders, so it also reads older files")
        remove_folder(new.rows_folder)
        replay = f"{self.folder}/moved"
        others = {key: other for key, other in moved.items() if other is not None}
        write_replay(*savepoints, replay, ids=others, without=moved.keys() - others.keys())
        return self._run(watcher, new, "new", replay)

    def _sources(self, version: _Version, job: JobRef) -> dict[str, SourceTable]:
        """The tables that the sources of a job read, by real id; none if the target does not report tables."""
        if not isinstance(self.target, SourceTables):
            return {}
        found = source_operators(self.target.describe(job), self.target.sources(version.job).tables)
        real = version.checked.ids.real
        return found if job == self.job_id else {real(id) or id: table for id, table in found.items()}

    def _state(
        self,
        watcher: Watcher,
        old: _Version,
        new: _Version,
        sources: tuple[Mapping[str, SourceTable], Mapping[str, SourceTable]],
        savepoints: tuple[str, str],
    ) -> StateComparison:
        """Compare the state with that after all rows of the sources."""
        runs = ReferenceRuns(
            self.target, self.runner, watcher, *savepoints, self.folder, self.prefix, self.token,
            self.options.run_seconds, self.log,
        )  # fmt: skip
        before, after = (FromStoredState(each.job, each.written, each.ids) for each in (old, new))
        return runs.compare(before, after, sources, self.options.expected)

    def _migrated(self, replay: str) -> tuple[str, MigrationReport | None]:
        """The savepoint of the new script, with a report if it was migrated. Raises DeployError."""
        if self.migration is None:
            return replay, None
        folder = f"{self.folder}/migrated"
        self.log("migrating the savepoint for the new script")
        return folder, MigrationReport.from_dict(self.migration.write(replay, folder, None))

    def _run(self, watcher: Watcher, version: _Version, role: str, savepoint: str) -> JobRef:
        self.log(f"{version.checked.version.source} reads the rows again")
        begin = time.monotonic()
        name = f"{self.prefix} {role} {self.token}"
        job = self.runner.run_to_end(watcher, version.checked, name, savepoint, self.options.run_seconds)
        version.seconds = time.monotonic() - begin
        return job
