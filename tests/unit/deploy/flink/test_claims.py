"""What a restore skipped by the JobManager's log, and whether two jobs run one query."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_flinkcompat.deploy.flink.claims import failed_at_restore, is_of_the_query, query_of, skipped_by_log

JOB, OTHER = "a" * 32, "b" * 32
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
        ([starting(JOB), skipping(FIRST), "other", skipping(SECOND), restored(JOB)], {FIRST, SECOND}),
        ([starting(OTHER), skipping(FIRST), restored(OTHER), starting(JOB), restored(JOB)], set()),
        ([starting(JOB), skipping(FIRST), restored(JOB), starting(OTHER), skipping(SECOND)], {FIRST}),
        ([starting(JOB), restored(JOB), "Skipping empty savepoint state for operator " + FIRST], set()),
        ([], None),  # rolled over, or of a higher level
        ([starting(JOB), skipping(FIRST)], None),  # not restored yet, or refused
        ([restored(JOB)], None),  # its beginning is in an older file
        # Two restores at once: nothing tells whose state was skipped.
        ([starting(JOB), starting(OTHER), skipping(FIRST), restored(JOB)], None),
        ([starting(OTHER), starting(JOB), skipping(FIRST), restored(OTHER), restored(JOB)], None),
    ],
)
def test_the_log_says_what_was_skipped(lines: list[str], expected: set[str] | None) -> None:
    assert skipped_by_log(lines, JOB) == expected


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
    assert all(map(is_of_the_query, ("Source: orders[8]", "GroupAggregate[3]")))
    assert not any(map(is_of_the_query, ("totals[9]: Writer", "Sink: totals[9]", "end: Writer", "StreamingFileWriter")))


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
