"""The wait in which the live job reads the rows of a shadow run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from airflow_flinkcompat.deploy import JobRef, JobStatus
from airflow_flinkcompat.deploy.rehearsal.restoring import Inconclusive
from airflow_flinkcompat.deploy.shadow.live_rows import wait_for_rows

JOB = JobRef("j")


@dataclass
class Live:
    """A job with the numbers of rows that its sources report, one after the other."""

    numbers: Iterator[int | None]
    state: str = "RUNNING"

    def status(self, job: JobRef) -> Any:
        return JobStatus(job, "live", self.state, tasks_running=True)

    def source_rows(self, _job: JobRef) -> int | None:
        return next(self.numbers)


def waited(live: Any, rows: int | None, seconds: float = 60.0) -> list[str]:
    said: list[str] = []
    found = wait_for_rows(live, JOB, seconds, rows, said.append)
    assert found < 30, "the wait ended early, or its time was short"
    return said


def test_the_wait_ends_when_the_rows_have_been_read() -> None:
    """Rows before the wait do not count; None means that the metric is not reported yet."""
    said = waited(Live(iter([100, None, 104, 109, 110])), 10)
    assert said == ["waiting until the live job has read 10 rows, at most 60 s", "the live job has read 10 rows"]
    assert waited(Live(iter([None, 104, 109, 114])), 10)[-1] == "the live job has read 10 rows"


def test_a_restart_counts_from_zero() -> None:
    assert waited(Live(iter([100, 104, 2, 6])), 10)[-1] == "the live job has read 10 rows"


def test_the_time_is_the_limit() -> None:
    assert waited(Live(iter(int, None)), 10, seconds=0.1)[-1] == "the live job has read 0 rows"
    assert waited(Live(iter(int, None)), None, seconds=0.1) == ["waiting for 0 s, in which the live job reads rows"]


@pytest.mark.parametrize("rows", [None, 10])
def test_a_job_that_fails_ends_the_run(rows: int | None) -> None:
    with pytest.raises(Inconclusive, match="job j is FAILED"):
        waited(Live(iter(int, None), "FAILED"), rows)


def test_a_target_without_counts() -> None:
    with pytest.raises(Inconclusive, match="leave out --until-rows"):
        waited(object(), 10)
