"""What a rehearsal concludes from what Flink did, for every way its parts can turn out; Flink itself is pretended."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from airflow_flinkcompat.deploy import DeployRefused, JobStatus, ScriptRefused
from airflow_flinkcompat.deploy.errors import CannotRehearse
from airflow_flinkcompat.deploy.flink.jobmanager import JobManagerError
from airflow_flinkcompat.deploy.rehearsal import place, sequence
from airflow_flinkcompat.deploy.rehearsal.place import Cluster, Started, Watcher
from airflow_flinkcompat.deploy.rehearsal.report import Rehearsal, StoredOperator
from airflow_flinkcompat.deploy.rehearsal.restoring import (
    Inconclusive,
    Restored,
    RestoreRefused,
    RestoreRunner,
)
from airflow_flinkcompat.deploy.rehearsal.sequence import rehearse
from airflow_flinkcompat.deploy.target import (
    JobDescription,
    JobHistory,
    JobRef,
    JobVertex,
    Operation,
    Slots,
    Snapshot,
    Verb,
)
from airflow_flinkcompat.deploy.targets.jar_run import JobManagerTarget
from airflow_flinkcompat.model import RehearsalFinding
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.testing.fake_target import FakeTarget
from dev.benchmarks.rehearsal import Script

LIVE, CONTROL, NEW = "0" * 32, "1" * 32, "2" * 32
SCRIPT = "CREATE TABLE s (x INT); CREATE TABLE k (x INT); INSERT INTO k SELECT x FROM s;"
OLD_SIDE, NEW_SIDE = Script(SCRIPT, {}, "old.sql"), Script(SCRIPT, {}, "new.sql")


def operator(letter: str, name: str, has_state: bool = True) -> StoredOperator:
    return StoredOperator(letter * 32, name, has_state)


SOURCE, AGGREGATE, WRITER = (
    operator("a", "Source: s[1]"),
    operator("b", "GroupAggregate[3]"),
    operator("c", "k[5]: Writer"),
)
CALC, OTHER = operator("d", "Calc[4]", has_state=False), operator("e", "Rank[3]")
SAVED = (SOURCE, AGGREGATE, WRITER, CALC)
QUERY = ":TableSourceScan(s)", ":GroupAggregate(a)", ":Calc(x)"


@dataclass
class PlannedRestoreTest:
    """A cluster and a stage in one. ``control`` and ``new`` are the operators left aside, or what was raised."""

    control: frozenset[StoredOperator] | Exception = frozenset({WRITER})
    new: frozenset[StoredOperator] | Exception = frozenset({WRITER})
    strict: Exception | None = None
    check: Exception | None = None
    unsaved: Exception | None = None
    log: bool = True
    stored: Mapping[str, tuple[StoredOperator, ...] | None] = field(default_factory=dict)
    queries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    state: str = "RUNNING"
    left: tuple[str, ...] = ()
    left_over: float | None = None
    done: list[Any] = field(default_factory=list)

    # -- the target
    def __str__(self) -> str:
        return "pretended"

    def status(self, job_id: str) -> JobStatus | None:
        return JobStatus(job_id, "live", self.state, tasks_running=True) if job_id == LIVE else None

    def job_history(self, _job: str) -> JobHistory:
        return JobHistory()

    def ever_ran(self, _job: str) -> bool:
        return True

    def jobs(self) -> tuple[JobStatus, ...]:
        name = f"live rehearsal 4000s new {'f' * 32}"
        left = [] if self.left_over is None else [JobStatus("left", name, "RUNNING", seconds=self.left_over)]
        others = [
            JobStatus("x", "live rehearsal of mine", "RUNNING", seconds=9e9),
            JobStatus("y", f"other {name}", "RUNNING", seconds=9e9),
        ]
        return (*left, *others)

    def cancel(self, job_id: str) -> None:
        self.done.append(("cancelled", job_id))

    def slots(self) -> Slots:
        return Slots(1, 8)

    def query(self, job: str) -> Counter[str]:
        return Counter(self.queries.get(job, QUERY))

    def describe(self, _job: str) -> JobDescription:
        vertices = (("a", "Source: s[1] -> Watermark[2]"), ("b", "GroupAggregate[3] -> Calc[4]"))
        return JobDescription(tuple(JobVertex(letter * 32, name, 1) for letter, name in vertices))

    def left_aside(self, job: str) -> frozenset[str] | None:
        aside = {CONTROL: self.control, NEW: self.new}[job]
        return frozenset(each.id for each in aside) if self.log and isinstance(aside, frozenset) else None

    def savepoint(self, job: str, request_id: str, directory: str | None) -> Operation:
        assert (job, directory) == (LIVE, None)
        return Operation(Verb.SAVEPOINT, request_id, JobRef(job))

    def poll(self, operation: Operation) -> Operation:
        assert (operation.verb, operation.job) == (Verb.SAVEPOINT, LIVE)
        if self.unsaved:
            raise self.unsaved
        return replace(operation, snapshot=Snapshot("saved"))

    def location(self, snapshot: str) -> str:
        return f"at {snapshot}"

    def _never(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("the stage is pretended")

    engine = validate = start = stop = running = restored_from = restore_test = failed_at_restore = _never
    savepoint_root = final_savepoint = savepoint_at = dispose = _never

    # -- the stage
    def restore(self, _watcher: Any, checked: Script, name: str, savepoint: str, _directory: str | None) -> Restored:
        control = name.startswith("live rehearsal 905s control ")
        assert (checked, savepoint) == (OLD_SIDE if control else NEW_SIDE, "saved")
        aside = self.control if control else self.new
        if isinstance(aside, Exception):
            raise aside
        return Restored(CONTROL if control else NEW, "control" if control else "new")

    def submit_only(self, _watcher: Any, checked: Script, name: str, savepoint: str) -> None:
        assert (checked, savepoint) == (NEW_SIDE, "control"), "sink state is not in the control's savepoint"
        self.done.append("strict")
        if self.strict:
            raise self.strict

    def check_side(self, _target: Any, side: Script, _private: str) -> Script:
        if self.check:
            raise self.check
        return side


class Watched:
    """The owner's end of a watcher that is none."""

    def __init__(self, world: PlannedRestoreTest) -> None:
        self.world, self.started = world, Started()

    def announce(self, operation: Operation) -> None:
        self.started.take(operation)

    end = Watcher.end

    def dismiss(self) -> None:
        self.world.done.append("dismissed")

    def leave(self) -> None:
        self.world.done.append("left to the watcher")


def found(world: PlannedRestoreTest, monkeypatch: pytest.MonkeyPatch) -> Rehearsal:
    class Staged(RestoreRunner):
        restore = staticmethod(world.restore)  # type: ignore[assignment]
        submit_only = staticmethod(world.submit_only)  # type: ignore[assignment]

    def read(location: str) -> tuple[StoredOperator, ...]:
        path = location.removeprefix("at ")
        operators = {"saved": SAVED, "control": (SOURCE, AGGREGATE, CALC), "new": (SOURCE, AGGREGATE, CALC)}[path]
        operators = world.stored.get(path, operators)
        if operators is None:
            raise SavepointUnreadable("no permission")
        return operators

    def clean(_target: Any, started: Started, **_: float) -> list[str]:
        world.done.append(("cleaned", sorted(each.snapshot for each in started.operations.values() if each.snapshot)))
        return list(world.left)

    monkeypatch.setattr(sequence, "RestoreRunner", Staged)
    monkeypatch.setattr(sequence, "check_side", world.check_side)
    monkeypatch.setattr(sequence, "Watcher", lambda *_: Watched(world))
    monkeypatch.setattr(sequence, "read_snapshot", read)
    monkeypatch.setattr(place, "clean_up", clean)
    return rehearse(Cluster(world), LIVE, OLD_SIDE, NEW_SIDE)  # type: ignore[arg-type]


def test_all_but_the_sinks_state_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = PlannedRestoreTest(stored={"new": (SOURCE, AGGREGATE, OTHER)})
    result = found(world, monkeypatch)
    assert (result.finding, result.claimed, result.dropped) == (RehearsalFinding.RESTORED, (SOURCE, AGGREGATE), ())
    assert (result.unclaimed, result.begun) == ((WRITER,), (OTHER,))
    assert result.live == "RUNNING, no restart meanwhile"
    assert world.done == [("cleaned", ["saved"]), "dismissed"]


@pytest.mark.parametrize("log", [True, False])
def test_dropped_state_is_a_refusal_in_flinks_words(log: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = RestoreRefused("Cannot map", "submit")
    stored = {"new": (SOURCE, CALC)}
    world = PlannedRestoreTest(new=frozenset({WRITER, AGGREGATE}), strict=refusal, log=log, stored=stored)
    result = found(world, monkeypatch)
    assert (result.finding, result.at, result.reason) == (RehearsalFinding.REFUSED, "submit", "Cannot map")
    assert result.dropped == (AGGREGATE,)
    assert result.basis[0].startswith("operators in the cluster's log" if log else "operators in the metadata")


def test_operators_without_state_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    world = PlannedRestoreTest(new=frozenset({WRITER, CALC}))
    assert found(world, monkeypatch).finding is RehearsalFinding.RESTORED
    assert world.done[0] == "strict", "it was Flink who said so"


@pytest.mark.parametrize("at", ["submit", "restore", "run"])
def test_a_refused_restore_is_told_with_its_place(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = found(PlannedRestoreTest(new=RestoreRefused("StateMigrationException", at)), monkeypatch)
    assert (result.finding, result.at, result.reason) == (RehearsalFinding.REFUSED, at, "StateMigrationException")


INCONCLUSIVE = {
    "live job failed": (PlannedRestoreTest(state="FAILED"), "is FAILED"),
    "source": (PlannedRestoreTest(check=CannotRehearse("s (mysql-cdc) cannot be read")), "mysql-cdc"),
    "not planned": (
        PlannedRestoreTest(check=JobManagerError("no such column")),
        "old.sql cannot be planned: no such column",
    ),
    "no savepoint": (PlannedRestoreTest(unsaved=JobManagerError("disk full")), "disk full"),
    "control refused": (
        PlannedRestoreTest(control=RestoreRefused("Cannot map", "submit")),
        "Make sure that job",
    ),
    "control drops": (
        PlannedRestoreTest(control=frozenset({WRITER, AGGREGATE})),
        r"does not restore all .*GroupAggregate\[3\]",
    ),
    "control began empty": (
        PlannedRestoreTest(stored={"control": (SOURCE, OTHER)}),
        r"does not restore all .*Rank\[3\]",
    ),
    "control is another query": (
        PlannedRestoreTest(queries={CONTROL: (":TableSourceScan(t)",)}),
        "is the job's script",
    ),
    "metadata unreadable": (PlannedRestoreTest(stored={"saved": None}), "savepoint directory readable"),
    "neither log nor metadata": (PlannedRestoreTest(log=False, stored={"control": None}), "restored state is unknown"),
    "new timed out": (PlannedRestoreTest(new=Inconclusive("the job did not come up")), "did not come up"),
    "strict failed": (PlannedRestoreTest(new=frozenset({WRITER, CALC}), strict=Inconclusive("planner")), "planner"),
}


@pytest.mark.parametrize("name", INCONCLUSIVE)
def test_what_is_not_known_is_not_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world, words = INCONCLUSIVE[name]
    result = found(world, monkeypatch)
    assert result.finding is RehearsalFinding.INCONCLUSIVE
    assert re.search(words, result.reason), result.reason


def test_without_metadata_it_goes_as_far_as_flink_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where sinks keep no state, the log is enough; which operators hold state is not known then."""
    nothing: frozenset[StoredOperator] = frozenset()
    unreadable = {"saved": None, "control": None, "new": None}
    result = found(PlannedRestoreTest(control=nothing, new=nothing, stored=unreadable), monkeypatch)
    assert (result.finding, result.claimed, result.begun) == (RehearsalFinding.RESTORED, None, None)
    assert "no permission" in " ".join(result.basis)


def test_first_operators_are_named_by_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the savepoint stores no names, as with Flink 1.20."""
    nameless = tuple(replace(each, name="") for each in SAVED)
    result = found(PlannedRestoreTest(stored={"saved": nameless}), monkeypatch)
    assert [each.name for each in result.claimed or ()] == ["Source: s[1]", "GroupAggregate[3]"]
    dropped = PlannedRestoreTest(stored={"saved": nameless}, control=frozenset({AGGREGATE, WRITER}))
    assert "GroupAggregate[3]" in found(dropped, monkeypatch).reason


def test_what_stays_behind_is_left_to_the_watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    world = PlannedRestoreTest(new=Inconclusive("the Gateway did not answer"), left=("job x may still start",))
    result = found(world, monkeypatch)
    assert (result.finding, result.left) == (RehearsalFinding.INCONCLUSIVE, ("job x may still start",))
    assert world.done == [("cleaned", ["saved"]), "left to the watcher"]


def test_interrupted_it_cleans_up_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    world = PlannedRestoreTest(new=KeyboardInterrupt())  # type: ignore[arg-type]
    monkeypatch.setattr(world, "restore", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        found(world, monkeypatch)
    assert world.done == [("cleaned", ["saved"]), "dismissed"]


@pytest.mark.parametrize(("seconds", "cancelled"), [(4001.0, [("cancelled", "left")]), (3999.0, [])])
def test_only_leftovers_of_this_job_are_cancelled(
    monkeypatch: pytest.MonkeyPatch, seconds: float, cancelled: list[tuple[str, str]]
) -> None:
    """A job that does not exceed its own limit may belong to a rehearsal in progress."""
    world = PlannedRestoreTest(left_over=seconds)
    found(world, monkeypatch)
    assert [each for each in world.done if each[0] == "cancelled"] == cancelled


def test_wrong_input_is_refused_before_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeployRefused, match="has no job"):
        rehearse(Cluster(PlannedRestoreTest()), "9" * 32, OLD_SIDE, NEW_SIDE)  # type: ignore[arg-type]
    with pytest.raises(ScriptRefused, match="defines no job"):
        rehearse(Cluster(PlannedRestoreTest()), LIVE, OLD_SIDE, Script("SET 'a' = 'b';", {}, "new.sql"))  # type: ignore[arg-type]


def test_a_target_on_which_nothing_can_be_rehearsed_is_named_with_what_it_lacks() -> None:
    """And where to rehearse instead."""
    with (
        JobManagerTarget("http://jobs.test:8081") as target,
        pytest.raises(
            DeployRefused,
            match=(
                r"^rehearsals are not possible on the JobManager at http://jobs\.test:8081, because it cannot replace "
                r"the tables that a job would share with the live job\. If the same cluster has a SQL Gateway"
            ),
        ),
    ):
        rehearse(Cluster(target), LIVE, OLD_SIDE, NEW_SIDE)
    with pytest.raises(
        DeployRefused,
        match=r"on the fake target, because it does not show which state .*; does not show the plans",
    ):
        rehearse(Cluster(FakeTarget()), LIVE, OLD_SIDE, NEW_SIDE)
