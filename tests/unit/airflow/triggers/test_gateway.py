"""The trigger asks a silent target again, less and less often, and judges nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowNotFoundException
from structlog.testing import capture_logs

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.triggers import gateway
from airflow_flinkcompat.airflow.triggers.gateway import SqlGatewayTrigger
from airflow_flinkcompat.deploy import GatewayError
from airflow_flinkcompat.testing.fake_target import AnswerLost

SILENT = GatewayError("the SQL Gateway does not answer")


def asked(monkeypatch: pytest.MonkeyPatch, answer: Callable[[int], Any], *, seconds: float = 20) -> tuple[int, float]:
    """How often the Gateway was asked until the trigger fired, and the time left then. ``answer``: by that number."""
    times = 0

    def engine(_hook: FlinkHook) -> Any:
        nonlocal times
        times += 1
        found = answer(times)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(FlinkHook, "engine", engine)
    until = time.time() + seconds
    event = asyncio.run(asyncio.wait_for(anext(SqlGatewayTrigger("f", until, first_pause=0.01).run()), 30))
    assert event.payload == {"until": until, "silent": times > 1}
    return times, until - time.time()


@pytest.mark.parametrize("silence", [SILENT, AnswerLost("nothing came")])
def test_it_fires_once_the_target_answers(monkeypatch: pytest.MonkeyPatch, silence: Exception) -> None:
    with capture_logs() as records:
        times, left = asked(monkeypatch, lambda time: silence if time < 4 else ("flink", "2.3.0"))
    assert times == 4
    assert left > 0
    assert len(records) == 1, "silence is said once"


def test_it_asks_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "_LAST", 0.08)
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def paused(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", paused)
    asked(monkeypatch, lambda time: SILENT if time < 7 else ("flink", "2.3.0"))
    assert pauses == [0.01, 0.02, 0.04, 0.08, 0.08, 0.08]


def test_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    times, left = asked(monkeypatch, lambda _time: SILENT, seconds=0.3)
    assert times > 1
    assert left <= 0


@pytest.mark.parametrize("error", [GatewayError("login is wrong", 401), AirflowNotFoundException("f"), OSError("bug")])
def test_what_else_is_wrong_is_for_the_task_to_judge(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    assert asked(monkeypatch, lambda _time: error)[0] == 1


def test_it_survives_serialisation() -> None:
    path, arguments = SqlGatewayTrigger("flink_default", 5.0, target="kubernetes").serialize()
    assert path == "airflow_flinkcompat.airflow.triggers.gateway.SqlGatewayTrigger"
    assert SqlGatewayTrigger(**arguments).serialize() == (path, arguments)
    assert arguments["target"] == "kubernetes"
