"""What Flink's words say of the state a job was to start from, as values that everything above goes by."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.deploy.errors import SnapshotGone, StateFault, StateRefused, TargetError, fault_of, refusal
from tests.unit.deploy.flink.test_clients import Server, jobmanager, ok

SAID = {
    "IllegalStateException: Failed to rollback to checkpoint/savepoint file:/s. Cannot map checkpoint/savepoint state "
    "for operator a to the new program": StateFault.MISFIT,
    "IllegalStateException: Max parallelism mismatch between checkpoint/savepoint state and new program": (
        StateFault.MISFIT
    ),
    "FileNotFoundException: Cannot find checkpoint or savepoint file/directory '/s'": StateFault.GONE,
    "EOFException": StateFault.DAMAGED,
    "IOException: Unexpected magic number 00000000": StateFault.DAMAGED,
    "ValidationException: Object 't' not found": None,
    "": None,
}


@pytest.mark.parametrize(("words", "fault"), SAID.items())
def test_words_are_told_apart_by_what_is_wrong_with_the_state(words: str, fault: StateFault | None) -> None:
    assert fault_of(words) is fault
    error = refusal(f"orders.sql:1: {words}", words)
    assert (type(error), getattr(error, "fault", None)) == (StateRefused if fault else TargetError, fault)


@pytest.mark.parametrize(("words", "kind"), [("java.io.FileNotFoundException: /s", "gone"), ("IOException: full", "")])
def test_a_savepoint_that_is_gone_cannot_be_deleted(words: str, kind: str) -> None:
    server = Server(
        {
            "POST /savepoint-disposal": [ok(**{"request-id": "r"})],
            "GET /savepoint-disposal/r": [
                ok(status={"id": "COMPLETED"}, operation={"failure-cause": {"stack-trace": words}})
            ],
        }
    )
    with pytest.raises(Exception, match="the disposal of the savepoint failed") as caught:
        jobmanager(server).dispose_savepoint("file:/s")
    assert isinstance(caught.value, SnapshotGone) == bool(kind)
