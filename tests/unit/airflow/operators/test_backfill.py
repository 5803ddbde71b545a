"""The backfill is submitted by the Spark provider's own operator, with a request that nobody else can read."""

from __future__ import annotations

import json
import logging
import os
import stat
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.common.compat.sdk import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowSkipException,
)
from airflow.sdk import DAG, BaseHook, Connection

from airflow_flinkcompat.airflow.operators import FlinkBackfillOperator
from airflow_flinkcompat.backfill.request import BackfillRequest
from airflow_flinkcompat.compat.hand_over import HandOver
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import BackfilledEntry, DeployedEntry, JobStart
from airflow_flinkcompat.model import JobSpec
from tests.support.airflow.operators.fakes import Run, script

PASSWORD = "planted-pw 'quoted' \"twice\""
DATABASE = script().replace(
    "'connector' = 'filesystem', 'path' = '/in', 'format' = 'csv'",
    "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'orders', "
    "'username' = '${conn.shop-db.login}', 'password' = '${conn.shop-db.password}'",
)


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What spark-submit would be called with."""
    seen: dict[str, Any] = {}

    def submit(self: SparkSubmitHook, application: str = "", **_arguments: Any) -> None:
        command = self._build_spark_submit_command(application)
        shipped = "--files" if "--files" in command else "--request"
        request = Path(command[command.index(shipped) + 1])
        seen.update(command=command, file=request, mode=stat.S_IMODE(request.stat().st_mode), env=self._env)
        seen["request"] = BackfillRequest.from_json(request.read_text(encoding="utf-8"))
        seen["environment"] = dict(os.environ)
        if result := seen.get("result"):
            Path(command[command.index("--result") + 1]).write_text(json.dumps(result), encoding="utf-8")
        if seen.get("fail"):
            raise AirflowException("Error code is: 1")

    connections = {
        "spark_default": Connection(conn_id="spark_default", conn_type="spark", host="local[2]"),
        "yarn": Connection(conn_id="yarn", conn_type="spark", host="yarn"),
        "cluster": Connection(conn_id="cluster", conn_type="spark", host="spark://master", port=7077),
        "shop-db": Connection(conn_id="shop-db", conn_type="postgres", login="reader", password=PASSWORD),
    }

    def get_connection(_cls: type[BaseHook], conn_id: str) -> Connection:
        if conn_id not in connections:
            raise AirflowNotFoundException(conn_id)
        return connections[conn_id]

    monkeypatch.setattr(BaseHook, "get_connection", classmethod(get_connection))
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
    assert request.job.script == script().removesuffix("\n")  # as Jinja has it
    assert (request.tables, request.sinks) == ({"orders": "/archive"}, {"totals": "/history/run-1"})
    assert (str(request.from_), str(request.to)) == ("2026-01-01 00:00:00", "2026-01-02 12:00:00")
    assert request.job.settings == {"table.local-time-zone": "UTC"}
    assert result["sinks"] == {"totals": "/history/run-1"}
    json.dumps(result)


def test_what_was_sent_before_a_migration_ends_where_that_says(submitted: dict[str, Any]) -> None:
    run = Run()
    run.pushed["migrate", "return_value"] = {"sent_until": "2026-01-02T00:00:00"}
    task = backfill(script(), sinks={"totals": "/history"}, sent_before="migrate")
    assert run.execute(task)["to"] == str(submitted["request"].to).replace(" ", "T") == "2026-01-02T00:00:00"


@pytest.mark.parametrize("told", [None, {}, {"sent_until": None}])
def test_nothing_is_computed_where_no_window_was_sent(submitted: dict[str, Any], told: Any) -> None:
    run = Run()
    run.pushed["migrate", "return_value"] = told
    with pytest.raises(AirflowSkipException, match="no window that was already emitted"):
        run.execute(backfill(script(), sinks={"totals": "/history"}, sent_before="migrate"))
    assert "request" not in submitted
    with pytest.raises(ValueError, match="omit to and boundary"):
        backfill(script(), to="2026-01-02", sent_before="migrate")


def test_the_request_is_private_and_gone_afterwards(submitted: dict[str, Any]) -> None:
    Run().execute(backfill(script()))
    assert submitted["mode"] == 0o600
    assert not submitted["file"].exists()
    submitted["fail"] = True
    with pytest.raises(AirflowException, match="Error code"):
        Run().execute(backfill(script()))
    assert not submitted["file"].exists()


def test_the_task_fails_with_the_reason_of_the_spark_job(submitted: dict[str, Any]) -> None:
    submitted |= {"fail": True, "result": {"error": "the backfill has no row to write"}}
    with pytest.raises(AirflowException, match=r"^the backfill failed: the backfill has no row to write$"):
        Run().execute(backfill(script(), allow_empty=False))
    assert submitted["request"].allow_empty is False


def test_it_submits_the_packages_own_job(submitted: dict[str, Any]) -> None:
    Run().execute(backfill(script(), spark={"conf": {"spark.ui.enabled": "false"}, "env_vars": {"TZ": "UTC"}}))
    command = submitted["command"]
    (application,) = (part for part in command if part.endswith("airflow_flinkcompat/backfill/job.py"))
    assert Path(application).is_file()
    assert "spark.ui.enabled=false" in command
    assert command[command.index("--name") + 1] == "flinkcompat-backfill-orders"
    assert submitted["env"]["TZ"] == "UTC"
    assert str(Path(application).parents[2]) in submitted["env"]["PYTHONPATH"].split(":")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"from_": "yesterday"}, "'yesterday' is not a time"),
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


def test_what_was_counted_is_returned(submitted: dict[str, Any]) -> None:
    submitted["result"] = {"rows_read": 7, "rows_written": 2, "windows_written": 1, "sources": [], "chunks": 1}
    result = Run().execute(backfill(script()))
    assert (result["rows_read"], result["rows_written"], result["windows_written"]) == (7, 2, 1)
    assert "sources" not in result


def test_a_boundary_gives_the_record_a_deployment_takes(submitted: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "{{ run_id }}.json"
    arguments = {"boundary": "2026-01-02", "sinks": {"totals": "/history"}, "hand_over": str(file)}
    result = Run().execute(backfill(script(), **arguments, chunk="1d", from_="2026-01-01", journal="/journal"))
    record = HandOver.from_dict(result["hand_over"])
    assert record.sources[0].live_from == "2026-01-01 23:59:55"
    assert HandOver.from_json((tmp_path / "run-1.json").read_text(encoding="utf-8")) == record
    request: BackfillRequest = submitted["request"]
    assert (str(request.to), request.chunk, request.journal) == ("2026-01-02 00:00:00", timedelta(days=1), "/journal")
    with pytest.raises(AirflowFailException, match="would contain rows of both the backfill and the live job"):
        Run().execute(backfill(script(), boundary="2026-01-02"))
    with pytest.raises(AirflowFailException, match="cuts a window"):
        Run().execute(backfill(script(), **{**arguments, "boundary": "2026-01-02 00:01:00"}))


def test_what_was_recomputed_is_noted_in_the_ledger(submitted: dict[str, Any], tmp_path: Path) -> None:
    submitted["result"] = {"rows_read": 12, "rows_written": 4, "plan": "…"}
    secret = "s3://key:planted-pw@bucket/history"
    given = {"ledger": str(tmp_path / "ledger"), "sinks": {"totals": secret}, "from_": "2026-01-01", "to": "2026-01-02"}
    Run().execute(backfill(script(), **given))
    ledger = Ledger(tmp_path / "ledger", "orders")
    (entry,) = ledger.entries()
    assert isinstance(entry, BackfilledEntry)
    assert (entry.range_from, entry.range_to) == ("2026-01-01", "2026-01-02")
    assert (entry.counts, entry.hand_over) == ({"rows_read": 12, "rows_written": 4}, None)
    assert (list(entry.sinks), entry.owner) == (["totals"], "airflow:d/run-1/backfill")
    assert "planted-pw" not in (tmp_path / "ledger" / "orders" / "000001.json").read_text("utf-8")
    # Of what runs it has the digest, whatever the engine's version is there.
    job = JobSpec(script().removesuffix("\n"), engine="flink", engine_version="2.3.0")
    ledger.append(DeployedEntry(job=job, start=JobStart()))
    Run().execute(backfill(script(), **given))
    last = ledger.entries()[-1]
    assert isinstance(last, BackfilledEntry)
    assert last.version.sha256 == job.digest()


def test_a_backfill_that_is_done_does_not_fail_for_its_ledger(
    submitted: dict[str, Any], tmp_path: Path, logs: list[Any]
) -> None:
    (tmp_path / "file").touch()
    for place in (None, str(tmp_path / "file")):  # none is named; one that cannot be written
        Run().execute(backfill(script(), ledger=place))
    said = [record["event"] % record.get("positional_args", ()) for record in logs]
    told = [words for words in said if words.startswith("Cannot record this backfill in the ledger: ")]
    assert "no ledger is set" in told[0]
    assert "cannot" in told[1]


def test_a_dry_run_says_what_would_be_done_and_submits_nothing(submitted: dict[str, Any], logs: list[Any]) -> None:
    result = Run().execute(backfill(script(), dry_run=True, sinks={"totals": "/x"}, boundary="2026-01-02"))
    said = "\n".join(record["event"] % record.get("positional_args", ()) for record in logs)
    assert "aggregate   SUM(price) GROUP BY window_start, window_end, shop" in said
    assert result["hand_over"]["boundary"] == "2026-01-02 00:00:00"
    assert "command" not in submitted


@pytest.mark.parametrize("conn_id", ["spark_default", "yarn", "cluster"])
def test_values_of_connections_reach_the_driver_in_its_environment_only(
    submitted: dict[str, Any], conn_id: str, logs: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    result = Run().execute(backfill(DATABASE, conn_id=conn_id))
    assert submitted["environment"]["FLINKCOMPAT_CONN_SHOP_DB_PASSWORD"] == PASSWORD
    assert submitted["environment"]["FLINKCOMPAT_CONN_SHOP_DB_LOGIN"] == "reader"
    assert "FLINKCOMPAT_CONN_SHOP_DB_PASSWORD" not in os.environ
    request = submitted["request"].to_dict()
    shown = json.dumps([submitted["command"], request, result, logs], default=str) + caplog.text
    assert "planted-pw" not in shown
    assert "${conn.shop-db.password}" in request["script"]
    assert "--packages" in submitted["command"]


def test_a_driver_elsewhere_gets_no_values(submitted: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException, match=r"deploy mode client, or set .*secretKeyRef") as caught:
        Run().execute(backfill(DATABASE, conn_id="yarn", spark={"deploy_mode": "cluster"}))
    assert "planted-pw" not in str(caught.value)
    assert "command" not in submitted
    Run().execute(backfill(script(), conn_id="yarn", spark={"deploy_mode": "cluster", "durable": False}))
    command = submitted["command"]
    assert command[-2:] == ["--request", "request.json"]
    assert Path(command[command.index("--files") + 1]).name == "request.json"


def test_a_variable_of_the_drivers_environment_is_left_to_the_driver(submitted: dict[str, Any]) -> None:
    """It is no literal secret, and in deploy mode cluster what the message about connections advises."""
    text = DATABASE.replace("${conn.shop-db.login}", "reader").replace(
        "${conn.shop-db.password}", "${env.SHOP_PASSWORD}"
    )
    Run().execute(backfill(text, conn_id="yarn", spark={"deploy_mode": "cluster", "durable": False}))
    assert "${env.SHOP_PASSWORD}" in submitted["request"].job.script
    assert not any(name.startswith("FLINKCOMPAT_CONN_") for name in submitted["environment"])


def test_a_connection_that_only_a_comment_names_is_not_asked_for(submitted: dict[str, Any]) -> None:
    Run().execute(backfill("-- once: ${conn.gone.password}\n" + script()))
    assert not any(name.startswith("FLINKCOMPAT_CONN_") for name in submitted["environment"])


def test_every_spelling_of_a_password_is_masked_in_later_logs(submitted: dict[str, Any]) -> None:
    from airflow.sdk._shared.secrets_masker import _secrets_masker

    from airflow_flinkcompat.secrets.spellings import variants

    Run().execute(backfill(DATABASE))
    for variant in variants(PASSWORD):
        assert variant not in str(_secrets_masker().redact(f"Spark says: {variant}"))


@pytest.mark.parametrize(
    ("arguments", "uri"),
    [({}, "file:///out"), ({"sinks": {"totals": "s3a://lake/h"}}, "s3://lake/h")],
)
def test_a_backfill_tells_of_what_it_wrote(submitted: dict[str, Any], arguments: Any, uri: str) -> None:
    submitted["result"] = {"rows_read": 7, "rows_written": 3, "windows_written": 2}
    with DAG("d"):
        task = FlinkBackfillOperator(
            task_id="backfill", deployment="orders", script=script(), to="2026-01-02", **arguments
        )
    run = Run()
    run.execute(task)
    said = {"event": "backfilled", "deployment": "orders", "entry": None, "sha256": None, "from": None}
    said |= {"to": "2026-01-02", "rows_read": 7, "rows_written": 3, "windows_written": 2, "table": "totals"}
    assert run.asset_events("backfill") == {uri: said}


def test_a_dry_run_tells_nothing(submitted: dict[str, Any]) -> None:
    with DAG("d"):
        task = FlinkBackfillOperator(task_id="backfill", deployment="orders", script=script(), dry_run=True)
    run = Run()
    run.execute(task)
    assert run.asset_events("backfill") == {}
    assert task.outlets == []
