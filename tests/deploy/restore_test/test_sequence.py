"""What a rehearsal concludes from what Flink did, for every way its parts can turn out; Flink itself is pretended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from airflow_flinkcompat.deploy import ApiError, DeployRefused, JobManagerError, JobStatus, ScriptRefused
from airflow_flinkcompat.deploy.flink.snapshot import SnapshotUnreadable, StoredOperator
from airflow_flinkcompat.deploy.restore_test import Cluster, Rehearsal, rehearse, sequence
from airflow_flinkcompat.deploy.restore_test.restoring import Inconclusive, Restored, RestoreRefused, Unanswered
from airflow_flinkcompat.deploy.restore_test.started import Started
from airflow_flinkcompat.deploy.restore_test.substitutes import CannotRehearse
from airflow_flinkcompat.model import RehearsalFinding
from tests.deploy.restore_tests import Script

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
QUERY = "[1]:TableSourceScan(s)<br/>", "[3]:GroupAggregate(a)<br/>+- [4]:Calc(x)<br/>   +- k[5]: Writer<br/>"


@dataclass
class Pretended:
    """A cluster and a stage in one. ``control`` and ``new`` are the operators left aside, or what was raised."""

    control: frozenset[StoredOperator] | Exception = frozenset({WRITER})
    new: frozenset[StoredOperator] | Exception = frozenset({WRITER})
    strict: Exception | None = None
    check: Exception | None = None
    savepoint: Exception | None = None
    log: bool = True
    stored: Mapping[str, tuple[StoredOperator, ...] | None] = field(default_factory=dict)
    queries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    state: str = "RUNNING"
    left: tuple[str, ...] = ()
    left_over: bool = False
    done: list[Any] = field(default_factory=list)

    # -- the JobManager
    def status(self, job_id: str) -> JobStatus | None:
        return JobStatus(job_id, "live", self.state, tasks_running=True) if job_id == LIVE else None

    def checkpoints(self, _job_id: str) -> dict[str, Any]:
        return {"counts": {"restored": 0}}

    def jobs(self) -> dict[str, JobStatus]:
        left = [JobStatus("left", f"live rehearsal new {'f' * 32}", "RUNNING")] if self.left_over else []
        others = [JobStatus("x", "live rehearsal of mine", "RUNNING"), JobStatus("y", "other rehearsal new", "RUNNING")]
        return {job.job_id: job for job in (*left, *others)}

    def cancel(self, job_id: str) -> None:
        self.done.append(("cancelled", job_id))

    def get(self, path: str) -> Any:
        if path == "overview":
            return {"slots-available": 1, "slots-total": 8}
        if path.endswith("/plan"):
            job_id = path.split("/")[1]
            return {"plan": {"nodes": [{"description": text} for text in self.queries.get(job_id, QUERY)]}}
        vertices = (("a", "Source: s[1] -> Watermark[2]"), ("b", "GroupAggregate[3] -> Calc[4]"))
        return {"vertices": [{"id": letter * 32, "name": name, "parallelism": 1} for letter, name in vertices]}

    def lines(self, path: str) -> Iterator[str]:
        if not self.log:
            raise ApiError("404")
        for job_id, aside in ((CONTROL, self.control), (NEW, self.new)):
            yield f"Starting job {job_id} from savepoint s"
            if isinstance(aside, frozenset):
                yield from (f"Skipping savepoint state for operator {each.id}." for each in aside)
                yield f"Reset the checkpoint ID of job {job_id} to 2."

    # -- the stage
    def restore(self, _watcher: Any, checked: Script, name: str, savepoint: str, _directory: str | None) -> Restored:
        control = name.startswith("live rehearsal control ")
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

    def check_side(self, side: Script) -> Script:
        if self.check:
            raise self.check
        return side


class Watched:
    """The owner's end of a watcher that is none."""

    def __init__(self, world: Pretended) -> None:
        self.world, self.started = world, Started()

    def savepoint(self, *arguments: Any) -> None:
        self.started.savepoints[arguments[0], arguments[1]] = arguments[2] if len(arguments) > 2 else None

    def dismiss(self) -> None:
        self.world.done.append("dismissed")

    def leave(self) -> None:
        self.world.done.append("left to the watcher")


def found(world: Pretended, monkeypatch: pytest.MonkeyPatch) -> Rehearsal:
    class Runner:
        check = staticmethod(world.check_side)
        restore = staticmethod(world.restore)
        submit_only = staticmethod(world.submit_only)

    def written(*_: Any, **__: Any) -> str:
        if world.savepoint:
            raise world.savepoint
        return "saved"

    def read(path: str) -> tuple[StoredOperator, ...]:
        operators = {"saved": SAVED, "control": (SOURCE, AGGREGATE, CALC), "new": (SOURCE, AGGREGATE, CALC)}[path]
        operators = world.stored.get(path, operators)
        if operators is None:
            raise SnapshotUnreadable("no permission")
        return operators

    def clean(_jobs: Any, started: Started, *, timeout: float, coming: float) -> list[str]:
        world.done.append(("cleaned", coming > 0, sorted(filter(None, started.savepoints.values()))))
        return list(world.left)

    world.endpoint = type("E", (), {"url": "http://j"})  # type: ignore[attr-defined]
    monkeypatch.setattr(sequence, "Runner", lambda *_: Runner)
    monkeypatch.setattr(sequence, "Watcher", lambda *_: Watched(world))
    monkeypatch.setattr(sequence, "read_snapshot", read)
    monkeypatch.setattr(sequence, "clean_up", clean)
    monkeypatch.setattr(sequence.asking, "ask_for_savepoint", lambda *_: None)
    monkeypatch.setattr(sequence.asking, "savepoint_path", written)
    return rehearse(Cluster(None, world), LIVE, OLD_SIDE, NEW_SIDE)  # type: ignore[arg-type]


def test_all_but_the_sinks_state_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Pretended(stored={"new": (SOURCE, AGGREGATE, OTHER)})
    result = found(world, monkeypatch)
    assert (result.finding, result.claimed, result.dropped) == (RehearsalFinding.RESTORED, (SOURCE, AGGREGATE), ())
    assert (result.unclaimed, result.begun) == ((WRITER,), (OTHER,))
    assert result.live == "RUNNING, no restart meanwhile"
    assert world.done == [("cleaned", False, ["saved"]), "dismissed"]


@pytest.mark.parametrize("log", [True, False])
def test_dropped_state_is_a_refusal_in_flinks_words(log: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = RestoreRefused("Cannot map", "submit")
    stored = {"new": (SOURCE, CALC)}
    world = Pretended(new=frozenset({WRITER, AGGREGATE}), strict=refusal, log=log, stored=stored)
    result = found(world, monkeypatch)
    assert (result.finding, result.at, result.reason) == (RehearsalFinding.REFUSED, "submit", "Cannot map")
    assert result.dropped == (AGGREGATE,)
    assert result.basis[0].startswith("operators by the JobManager's log" if log else "operators by the metadata")


def test_operators_without_state_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Pretended(new=frozenset({WRITER, CALC}))
    assert found(world, monkeypatch).finding is RehearsalFinding.RESTORED
    assert world.done[0] == "strict", "it was Flink who said so"


@pytest.mark.parametrize("at", ["submit", "restore", "run"])
def test_a_refused_restore_is_told_with_its_place(at: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = found(Pretended(new=RestoreRefused("StateMigrationException", at)), monkeypatch)
    assert (result.finding, result.at, result.reason) == (RehearsalFinding.REFUSED, at, "StateMigrationException")


INCONCLUSIVE = {
    "live job failed": (Pretended(state="FAILED"), "is FAILED"),
    "source": (Pretended(check=CannotRehearse("s (mysql-cdc) cannot be read")), "mysql-cdc"),
    "not planned": (Pretended(check=JobManagerError("no such column")), "old.sql cannot be planned: no such column"),
    "no savepoint": (Pretended(savepoint=JobManagerError("disk full")), "disk full"),
    "control refused": (Pretended(control=RestoreRefused("Cannot map", "submit")), "is it the script that job"),
    "control drops": (Pretended(control=frozenset({WRITER, AGGREGATE})), r"does not take all .*GroupAggregate\[3\]"),
    "control began empty": (Pretended(stored={"control": (SOURCE, OTHER)}), r"does not take all .*Rank\[3\]"),
    "control is another query": (Pretended(queries={CONTROL: ("[1]:TableSourceScan(t)",)}), "must be its script"),
    "metadata unreadable": (Pretended(stored={"saved": None}), "savepoint directory readable"),
    "neither log nor metadata": (Pretended(log=False, stored={"control": None}), "cannot be told"),
    "new timed out": (Pretended(new=Inconclusive("the job did not come up")), "did not come up"),
    "strict failed": (Pretended(new=frozenset({WRITER, CALC}), strict=Inconclusive("planner")), "planner"),
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
    result = found(Pretended(control=nothing, new=nothing, stored=unreadable), monkeypatch)
    assert (result.finding, result.claimed, result.begun) == (RehearsalFinding.RESTORED, None, None)
    assert "no permission" in " ".join(result.basis)


def test_first_operators_are_named_by_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the savepoint stores no names, as with Flink 1.20."""
    nameless = tuple(replace(each, name="") for each in SAVED)
    result = found(Pretended(stored={"saved": nameless}), monkeypatch)
    assert [each.name for each in result.claimed or ()] == ["Source: s[1]", "GroupAggregate[3]"]
    dropped = Pretended(stored={"saved": nameless}, control=frozenset({AGGREGATE, WRITER}))
    assert "GroupAggregate[3]" in found(dropped, monkeypatch).reason


def test_what_stays_behind_is_left_to_the_watcher(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Pretended(new=Unanswered("the Gateway did not answer"), left=("job x may still come up",))
    result = found(world, monkeypatch)
    assert (result.finding, result.left) == (RehearsalFinding.INCONCLUSIVE, ("job x may still come up",))
    assert world.done == [("cleaned", True, ["saved"]), "left to the watcher"]


def test_interrupted_it_cleans_up_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Pretended(new=KeyboardInterrupt())  # type: ignore[arg-type]
    monkeypatch.setattr(world, "restore", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        found(world, monkeypatch)
    assert world.done == [("cleaned", True, ["saved"]), "dismissed"]


def test_only_leftovers_of_this_job_are_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Pretended(left_over=True)
    found(world, monkeypatch)
    assert [each for each in world.done if each[0] == "cancelled"] == [("cancelled", "left")]


def test_wrong_input_is_refused_before_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DeployRefused, match="knows no job"):
        rehearse(Cluster(None, Pretended()), "9" * 32, OLD_SIDE, NEW_SIDE)  # type: ignore[arg-type]
    with pytest.raises(ScriptRefused, match="makes no job"):
        rehearse(Cluster(None, Pretended()), LIVE, OLD_SIDE, Script("SET 'a' = 'b';", {}, "new.sql"))  # type: ignore[arg-type]
