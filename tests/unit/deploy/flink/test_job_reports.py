"""How a job went, by what a JobManager answers."""

from __future__ import annotations

from typing import Any, cast

import pytest

from airflow_flinkcompat.deploy.flink.job_reports import (
    failed_at_restore,
    job_history,
    query_of,
    skipped_by_log,
)
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager

JOB = "c0ffee"


class Answers:
    """The two answers that a history is made of."""

    def __init__(self, restored: str) -> None:
        self.restored = restored

    def get(self, path: str) -> dict[str, Any]:
        assert path == f"jobs/{JOB}/exceptions"
        return {"exceptionHistory": {"entries": [{"timestamp": 9000}, {"timestamp": 5000}], "truncated": False}}

    def checkpoints(self, job_id: str) -> dict[str, Any]:
        restored = {"external_path": self.restored, "restore_timestamp": 6000, "id": 7}
        completed = {"id": 8, "status": "COMPLETED", "latest_ack_timestamp": 4000}
        counts = {"restored": 2, "completed": 5, "total": 6}
        return {"counts": counts, "latest": {"restored": restored, "completed": completed}}


@pytest.mark.parametrize(
    ("restored", "own"),
    [
        (f"file:/chk/{JOB}/chk-7", True),
        (f"file:/chk/{JOB}/chk-7/", True),
        ("file:/chk/another/chk-7", False),
        (f"file:/sp/savepoint-{JOB}-1", False),
    ],
)
def test_what_a_job_was_restored_from_last_is_its_own_checkpoint_or_not(restored: str, own: bool) -> None:
    seen = job_history(cast("JobManager", Answers(restored)), JOB)
    assert (seen.restored, seen.restored_own, seen.restored_number, seen.restored_at) == (restored, own, 7, 6.0)
    assert (seen.failures, seen.checkpoint, seen.newest) == ((5.0, 9.0), 4.0, 8)
    assert (seen.restores, seen.completed, seen.triggered) == (2, 5, 6)


GIVEN, OTHER = "a" * 32, "b" * 32
FIRST, SECOND = "1" * 32, "2" * 32


def starting(job: str) -> str:
    return f"INFO CheckpointCoordinator [] - Starting job {job} from savepoint file:/s/1 (allowing non restored state)"


def skipping(operator: str) -> str:
    return f"INFO Checkpoints [] - Skipping savepoint state for operator {operator}."


def restored(job: str) -> str:
    return f"INFO CheckpointCoordinator [] - Reset the checkpoint ID of job {job} to 13."


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([starting(GIVEN), skipping(FIRST), "other", skipping(SECOND), restored(GIVEN)], {FIRST, SECOND}),
        ([starting(OTHER), skipping(FIRST), restored(OTHER), starting(GIVEN), restored(GIVEN)], set()),
        ([starting(GIVEN), skipping(FIRST), restored(GIVEN), starting(OTHER), skipping(SECOND)], {FIRST}),
        (
            [starting(GIVEN), restored(GIVEN), "Skipping empty savepoint state for operator " + FIRST],
            set(),
        ),
        ([], None),  # rolled over, or of a higher level
        ([starting(GIVEN), skipping(FIRST)], None),  # not restored yet, or refused
        ([restored(GIVEN)], None),  # its beginning is in an older file
        # Two restores at once: nothing tells whose state was skipped.
        ([starting(GIVEN), starting(OTHER), skipping(FIRST), restored(GIVEN)], None),
        ([starting(OTHER), starting(GIVEN), skipping(FIRST), restored(OTHER), restored(GIVEN)], None),
    ],
)
def test_the_log_says_what_was_skipped(lines: list[str], expected: set[str] | None) -> None:
    assert skipped_by_log(lines, GIVEN) == expected


def test_queries_are_told_from_sinks() -> None:
    def plan(sink: str, number: int, keys: str = "a") -> dict[str, Any]:
        text = (
            f"[{number}]:GroupAggregate(groupBy=[{keys}])<br/>+- [{number + 1}]:Calc(select=[a])<br/>   +- {sink}<br/>"
        )
        return {"plan": {"nodes": [{"description": f"[{number - 1}]:TableSourceScan(x)<br/>"}, {"description": text}]}}

    live = query_of(plan("StreamingFileWriter<br/>      +- end: Writer", 3))
    assert sum(live.values()) == 3
    assert live == query_of(plan("[15]:Sink(table=[blackhole])", 13))
    assert live != query_of(plan("[15]:Sink(table=[blackhole])", 13, keys="b"))
    assert live == query_of(plan("[15]:StreamRecordTimestampInserter(rowtime field: 2)<br/> +- [16]:Sink(…)", 13))
    named, renamed, cast = (
        query_of(
            {"plan": {"nodes": [{"description": f"[4]:Calc(select=[UPPER(a){first}, CAST(b AS {kind}){second}])"}]}}
        )
        for first, kind, second in ((" AS x", "INT", ""), ("", "INT", " AS y"), (" AS x", "BIGINT", ""))
    )
    assert named == renamed != cast


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ("org.apache.flink.util.StateMigrationException: The new key serializer must be compatible", True),
        ("java.lang.Exception\n at org.apache.flink.streaming.runtime.tasks.StreamTask.restoreInternal(…)", True),
        ("java.lang.ArithmeticException: / by zero\n at StreamExecCalc$1.processElement(…)", False),
    ],
)
def test_a_failure_at_the_restore_is_told_from_one_of_a_row(trace: str, expected: bool) -> None:
    assert failed_at_restore({"exceptionHistory": {"entries": [{"stacktrace": trace}]}}) is expected
    assert not failed_at_restore({"exceptionHistory": {"entries": []}})
