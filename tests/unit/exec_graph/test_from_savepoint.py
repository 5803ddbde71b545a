"""A job as its savepoint states it, in place of the job that Flink plans for the deployed script."""

from __future__ import annotations

import shutil
from base64 import b64decode, b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_flinkcompat.exec_graph.from_planner import PlannedOperator, PlannedScript, SubmittedJob
from airflow_flinkcompat.exec_graph.from_savepoint import StoredJob, read_job, stored_states
from airflow_flinkcompat.exec_graph.prediction import predicted
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.keyed_state import read_header
from airflow_flinkcompat.savepoint.metadata import Inline, KeyGroups, SavepointMetadata, parse_metadata
from airflow_flinkcompat.savepoint.store import StoredContent, read_metadata
from tests.support.savepoint.savepoints import FOLDER, TAKEN, keyed

GROUP = "c27dcf7b54ef6bfd6cff02ca8870b681"


def stored(name: str) -> StoredJob:
    return read_job(str(FOLDER / name))


def planned(name: str, flink: str = "2.3.0") -> PlannedScript:
    """The plan of a script whose operators register the state of its savepoint."""
    job = stored(name)
    operators = tuple(
        PlannedOperator(
            each.id, each.name.partition("[")[0], "K", "yes" if each.id in job.stateful else "no", "opened", "", -1,
            "", stored_states(each) or None,
        )
        for each in job.operators
    )  # fmt: skip
    savepoint = SavepointMetadata(job.format, 1, (), job.operators, b"").to_bytes()
    return PlannedScript(flink, (SubmittedJob(operators, savepoint=b64encode(savepoint).decode()),))


def restored(script: PlannedScript) -> SavepointMetadata:
    return parse_metadata(b64decode(script.jobs[0].savepoint))


@pytest.mark.parametrize("name", TAKEN)
def test_of_each_operator_the_headers_alone_are_kept(name: str) -> None:
    job = stored(name)
    assert job.stateful == {each.id for each in read_metadata(str(FOLDER / name)).operators if each.has_state}
    headers = {operator.id: header for operator, _, header, _ in keyed(name)}
    kept = {each.id: each.subtasks[0].keyed for each in job.operators if each.subtasks and each.subtasks[0].keyed}
    assert kept.keys() == headers.keys()
    for id, state in kept.items():
        assert isinstance(state, KeyGroups)
        assert isinstance(state.handle, Inline)
        assert (read_header(state.handle.content).states, state.begins) == (headers[id].states, ())
    assert job.contradictions(planned(name)) == ()
    assert predicted(job.over(planned(name)), planned(name)).restore.differences == ()


def test_no_row_is_read_however_large_the_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "savepoint"
    shutil.copytree(FOLDER / "2.3/group-in-files", place)
    ranges: list[tuple[str, int, int]] = []
    read = StoredContent.read

    def noted(self: StoredContent, begin: int, end: int) -> bytes:
        ranges.append((Path(self.name).name, begin, end))
        return read(self, begin, end)

    first = {
        Path(state.handle.path).name: min(begin for begin in state.begins if begin)  # type: ignore[union-attr]
        for _, state, _, _ in keyed("2.3/group-in-files")
    }
    monkeypatch.setattr(StoredContent, "read", noted)
    assert read_job(str(place)).stateful
    files = [each for each in ranges if each[0] in first]
    assert files
    assert all(begin == 0 and end == first[name] for name, begin, end in files)


def test_the_stored_state_takes_the_place_of_the_planned_one() -> None:
    job, script = stored("2.3/group-max-parallelism"), planned("2.3/group")
    (deployed,) = job.over(script).jobs
    assert {each.max_parallelism for each in deployed.operators if each.stateful} == {360}
    (group,) = [each for each in restored(job.over(script)).operators if each.id == GROUP]
    assert group.subtasks == next(each.subtasks for each in job.operators if each.id == GROUP)
    refusal = predicted(job.over(script), _limited(planned("2.3/group"), 128)).refusal
    assert refusal is not None
    assert refusal.message == "the maximum parallelism of GroupAggregate changes from 360 to 128"


def _limited(script: PlannedScript, limit: int) -> PlannedScript:
    (job,) = script.jobs
    return replace(
        script, jobs=(replace(job, operators=tuple(replace(o, max_parallelism=limit) for o in job.operators)),)
    )


@pytest.mark.parametrize(
    ("name", "deployed", "said"),
    [
        ("2.3/group-numbers", "2.3/group", ["GroupAggregate c27d"]),
        ("2.3/group-ttl", "2.3/group-rocksdb", ["with a time to live", "different settings (--old-set)"]),
        ("2.3/top-1", "2.3/deduplicated", ["predicts deduplicate-state", "contains Top1-Rank-State"]),
        ("1.20/group", "2.3/group", ["plans the deployed script (2.3.0)", "--old-engine-version"]),
        ("2.3/inner-join", "2.3/group", ["the savepoint contains state of ", "Source: orders (e3df", "Join (29c6"]),
        (
            "1.20/tumble",
            "2.3/group",
            ["an operator that stores watermark, window-aggs", "not written by the version of Flink"],
        ),
    ],
)
def test_a_savepoint_of_another_job_is_named_by_its_operators(name: str, deployed: str, said: list[str]) -> None:
    found = "\n".join(stored(name).contradictions(planned(deployed)))
    assert [words for words in said if words not in found] == []
    assert predicted(planned(deployed), planned(deployed), (found,)).is_uncertain


def test_state_that_only_the_savepoint_shows_must_be_found_again() -> None:
    job, script = stored("2.3/inner-join"), planned("2.3/group")
    assert not job.fits(script)
    deployed = job.over(script)
    assert {each.id for each in restored(deployed).operators} >= job.stateful
    refusal = predicted(deployed, script).refusal
    assert refusal is not None
    assert "the new job has no operator with the id of " in refusal.message
    assert predicted(deployed, planned("2.3/inner-join")).refusal is None


def test_stand_ins_for_jars_contradict_no_savepoint() -> None:
    """Their operators may be others than those of the connector."""
    script = replace(planned("2.3/group"), stand_ins={"orders": "kafka"})
    assert stored("2.3/inner-join").contradictions(script) == ()


def test_one_job_of_several_is_the_one_with_the_operators() -> None:
    one, other = planned("2.3/group"), planned("2.3/inner-join")
    both = replace(one, jobs=(*one.jobs, *other.jobs))
    job = stored("2.3/inner-join")
    assert job.over(both).jobs[0] == one.jobs[0]
    assert job.contradictions(both) == ()
    strangers = stored("2.3/temporal-join")
    assert (strangers.over(both), len(strangers.contradictions(both))) == (both, 1)


def test_the_headers_of_an_incremental_checkpoint_are_read_and_its_rows_are_not() -> None:
    place = str(FOLDER.parent / "checkpoints" / "2.3" / "rocksdb-incremental")  # of a real Flink 2.3, by its metadata
    job = read_job(place)
    (group,) = [each for each in job.operators if each.id == GROUP]
    assert list(stored_states(group)) == [
        "distinctAcc_0", "distinctAcc_0_null_state", "accState",
        "_timer_state/processing_user-timers", "_timer_state/event_user-timers",
    ]  # fmt: skip
    (found,) = job.contradictions(planned("2.3/group-rocksdb"))
    assert "the savepoint contains" in found
    assert "distinctAcc_0 MAP of value (VARCHAR(2147483647))" in found
    with pytest.raises(SavepointUnreadable, match=r"consists of files of RocksDB or ForSt.*: only a canonical"):
        read_metadata(place)
