"""How a job went, by what a JobManager answers."""

from __future__ import annotations

from typing import Any, cast

import pytest

from airflow_flinkcompat.deploy.flink.job_history import job_history
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
