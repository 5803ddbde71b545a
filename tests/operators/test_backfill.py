"""The backfill is submitted by the Spark provider's own operator, with a request that nobody else can read."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import DAG, BaseHook, Connection
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_flinkcompat.backfill.request import BackfillRequest
from airflow_flinkcompat.operators import FlinkBackfillOperator
from tests.operators.fakes import Run, script


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What spark-submit would be called with."""
    seen: dict[str, Any] = {}

    def submit(self: SparkSubmitHook, application: str = "", **_arguments: Any) -> None:
        command = self._build_spark_submit_command(application)
        request = Path(command[command.index("--request") + 1])
        seen.update(command=command, file=request, mode=stat.S_IMODE(request.stat().st_mode), env=self._env)
        seen["request"] = BackfillRequest.from_json(request.read_text(encoding="utf-8"))
        if seen.get("fail"):
            raise AirflowException("Error code is: 1")

    connection = Connection(conn_id="spark_default", conn_type="spark", host="local[2]")
    monkeypatch.setattr(BaseHook, "get_connection", classmethod(lambda _cls, _conn_id: connection))
    monkeypatch.setattr(SparkSubmitHook, "submit", submit)
    return seen


def backfill(text: str, **arguments: Any) -> FlinkBackfillOperator:
    with DAG("d"):
        return FlinkBackfillOperator(task_id="backfill", deployment="orders", script=text, **arguments)


def test_the_request_holds_what_was_asked_for(submitted: dict[str, Any]) -> None:
    task = backfill(
        script(), tables={"orders": "/archive"}, sinks={"totals": "/history/{{ run_id }}"}, from_="2026-01-01",
        to="2026-01-02 12:00:00", settings={"table.local-time-zone": "UTC"},
    )  # fmt: skip
    result = Run().execute(task)
    request: BackfillRequest = submitted["request"]
    assert request.script_text == script().removesuffix("\n")  # as Jinja has it
    assert (request.tables, request.sinks) == ({"orders": "/archive"}, {"totals": "/history/run-1"})
    assert (str(request.from_), str(request.to)) == ("2026-01-01 00:00:00", "2026-01-02 12:00:00")
    assert request.settings == {"table.local-time-zone": "UTC"}
    assert result["sinks"] == {"totals": "/history/run-1"}
    json.dumps(result)


def test_the_request_is_private_and_gone_afterwards(submitted: dict[str, Any]) -> None:
    Run().execute(backfill(script()))
    assert submitted["mode"] == 0o600
    assert not submitted["file"].exists()
    submitted["fail"] = True
    with pytest.raises(AirflowException, match="Error code"):
        Run().execute(backfill(script()))
    assert not submitted["file"].exists()


def test_it_submits_the_packages_own_job(submitted: dict[str, Any]) -> None:
    Run().execute(backfill(script(), spark={"conf": {"spark.ui.enabled": "false"}, "env_vars": {"TZ": "UTC"}}))
    command = submitted["command"]
    assert Path(command[-3]).is_file()
    assert command[-3].endswith("airflow_flinkcompat/backfill/job.py")
    assert "spark.ui.enabled=false" in command
    assert command[command.index("--name") + 1] == "flinkcompat-backfill-orders"
    assert submitted["env"]["TZ"] == "UTC"
    assert str(Path(command[-3]).parents[2]) in submitted["env"]["PYTHONPATH"].split(":")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"from_": "yesterday"}, "'yesterday' is no time"),
        ({"from_": "2026-01-02", "to": "2026-01-01"}, "range is empty"),
    ],
)
def test_a_span_that_is_none_is_named(submitted: dict[str, Any], arguments: Any, message: str) -> None:
    with pytest.raises(AirflowFailException, match=message):
        Run().execute(backfill(script(), **arguments))
    assert "command" not in submitted


def test_literal_secrets_go_into_no_file(submitted: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException, match="secrets in plain text") as caught:
        Run().execute(backfill(script().replace("'/in'", "'/in', 'password' = 'planted-pw'")))
    assert "planted-pw" not in str(caught.value)
    assert "command" not in submitted


def test_what_it_decides_itself_cannot_be_given() -> None:
    with DAG("d"), pytest.raises(ValueError, match="application"):
        FlinkBackfillOperator(task_id="b", deployment="o", script="x.sql", spark={"application": "other.py"})


def test_killing_it_ends_the_spark_job(submitted: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[bool] = []
    monkeypatch.setattr(SparkSubmitHook, "on_kill", lambda _self: killed.append(True))
    task = backfill(script())
    task.on_kill()
    assert killed == []
    Run().execute(task)
    task.on_kill()
    assert killed == [True]
