"""Planted secrets show nowhere: not in rendered fields, XCom, logs, the ledger, the approval page, or an error."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, TaskDeferred
from airflow.providers.standard.operators import hitl
from airflow.sdk import Connection
from airflow.sdk._shared.secrets_masker import SecretsMasker, _secrets_masker
from airflow.sdk.execution_time.task_runner import _serialize_rendered_fields
from jinja2 import UndefinedError

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators import FlinkSqlCompatibilityOperator
from airflow_flinkcompat.deploy.flink.gateway import GatewayError
from dev.services.object_stores import serving
from tests.support.airflow.operators.fakes import Run, script
from tests.support.airflow.operators.versions import AwaitingAnswer
from tests.unit.airflow.operators.conftest import Site

GET_CONN = FlinkHook.get_conn
PLANTED = (
    "planted-pw",
    "planted-jaas",
    "planted-url",
    "pl4nt",
    "planted-comment",
    "planted-setting",
    *(f"planted-tail{i}" for i in range(1, 8)),
)
ODD = """'a.password' = 'planted-tail1, planted-tail2 "x', 'basic-auth' = 'me:''planted-tail3\n\t planted-tail4'"""
"""Values with blanks, commas, quotes and a line break."""
SECRETIVE = (
    script(size=5)
    .replace("'/in'", "'/in', 'password' = 'planted-pw', 'short.token' = 'pl4nt', " + ODD)
    .replace(
        "'/out'",
        "'/out', 'url' = 'jdbc:postgresql://me:planted-url@db/x', 'properties.sasl.jaas.config' = "
        "'org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"planted-jaas\";'",
    )
    + "-- password = 'planted-comment'\n"
)  # fmt: skip
SETTINGS = {
    "s3.secret-key": "planted-setting 'planted-tail5', \"planted-tail6\"\nplanted-tail7",
    "parallelism.default": "2",
}


@pytest.fixture
def unmasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow's own masker is off: whatever it would have hidden must not be there in the first place."""
    monkeypatch.setattr(SecretsMasker, "redact", lambda _self, item, *_arguments, **_more: item)


def leaks(*texts: Any) -> list[str]:
    seen = "\n".join(text if isinstance(text, str) else json.dumps(text, default=str) for text in texts)
    return [secret for secret in PLANTED if secret in seen]


def test_the_test_would_notice() -> None:
    assert leaks(SECRETIVE, SETTINGS) == list(PLANTED)


@pytest.mark.usefixtures("unmasked")
def test_check_approval_and_refusal_show_no_secret(
    deployed: Site, logs: list[Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    pages: list[Any] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **arguments: pages.append(arguments))
    with pytest.raises(AirflowFailException) as failed:
        deployed.checked(SECRETIVE, settings=SETTINGS)
    # A check of an earlier version let it pass: nothing after it shows a secret either.
    monkeypatch.setattr(FlinkSqlCompatibilityOperator, "_require_deployable", lambda *_: None)
    run, tasks, _ = deployed.checked(SECRETIVE, settings=SETTINGS, check={"policy": {"incompatible": "approve"}})
    with pytest.raises(AwaitingAnswer):
        run.execute(tasks["approve"])
    sha256 = run.pushed["check", "summary"]["new_sha256"]
    run.pushed["approve", "decision"] = {"choice": "restart", "by": "ada", "new_sha256": sha256}
    with pytest.raises(AirflowException) as refused:
        run.execute(tasks["restart"])
    assert any("Verdict: incompatible" in record["event"] for record in logs)
    fields = [_serialize_rendered_fields(task) for task in (tasks["check"], tasks["restart"])]
    pushed = list(run.pushed.values())
    stored = [path.read_text() for path in (deployed.folder / "ledger").rglob("*") if path.is_file()]
    assert pages
    assert all("TUMBLE" in field["script"] for field in fields)
    assert fields[0]["settings"]["parallelism.default"] == "2"
    assert leaks(caplog.text, logs, pages, str(failed.value), str(refused.value), fields, pushed, stored) == []


def test_literal_secrets_fail_the_check_with_their_places(deployed: Site) -> None:
    with pytest.raises(AirflowFailException) as failed:
        deployed.checked(SECRETIVE)
    lines = str(failed.value).splitlines()
    assert any("orders.sql:2:" in line and "password is a secret in plain text" in line for line in lines)
    assert leaks(*lines) == []


@pytest.mark.usefixtures("unmasked")
def test_the_gateways_echo_of_a_statement_is_masked(deployed: Site, logs: list[Any]) -> None:
    run, tasks, _ = deployed.checked(script(size=5))
    deployed.cluster.refuse = GatewayError(f"SQL validation failed: {SECRETIVE}")
    with pytest.raises(AirflowException, match="SQL validation failed") as refused:
        run.execute(tasks["restart"])
    assert leaks(str(refused.value), logs) == []


def test_what_was_found_is_masked_in_every_later_log(deployed: Site) -> None:
    Run().render(deployed.tasks(script=SECRETIVE)["check"])
    for value in ("planted-pw", 'planted-tail1, planted-tail2 "x', "me:'planted-tail3\n\t planted-tail4"):
        assert leaks(str(_secrets_masker().redact(f"echo: {value}"))) == []


def test_settings_are_masked_in_every_later_log_as_well(deployed: Site) -> None:
    Run().render(deployed.tasks(script=SECRETIVE, settings=SETTINGS)["check"])
    assert leaks(str(_secrets_masker().redact(f"echo: {SETTINGS['s3.secret-key']}"))) == []


@pytest.mark.usefixtures("unmasked")
def test_a_task_on_a_list_of_scripts_is_masked_too(deployed: Site) -> None:
    """Mapped tasks are rendered by another road."""
    from airflow.sdk import DAG

    from airflow_flinkcompat.airflow.operators import FlinkSqlDeployOperator

    with DAG("mapped"):
        mapped = FlinkSqlDeployOperator.partial(task_id="deploy", deployment="orders").expand(script=[SECRETIVE])
    task = mapped.unmap({"script": SECRETIVE})
    task._do_render_template_fields(task, mapped.template_fields, Run().context(task), task.get_template_env(), set())
    assert leaks(_serialize_rendered_fields(task)) == []
    assert task.rendered("script") == SECRETIVE.removesuffix("\n")  # as Jinja has it


@pytest.mark.usefixtures("unmasked")
def test_places_and_options_of_a_backfill_are_masked() -> None:
    from airflow.sdk import DAG

    from airflow_flinkcompat.airflow.operators import FlinkBackfillOperator

    place = "s3://key:planted-url@bucket/orders"
    with DAG("d"):
        task = FlinkBackfillOperator(
            task_id="b", deployment="orders", script=SECRETIVE, settings=SETTINGS, tables={"orders": place},
            sinks={"totals": place}, spark={"conf": {"spark.hadoop.fs.s3a.secret.key": "planted-setting"}},
            ledger="s3://key:planted-url@bucket/ledger",
        )  # fmt: skip
    Run().render(task)
    fields = _serialize_rendered_fields(task)
    assert leaks(fields) == []
    assert fields["tables"] == {"orders": "s3://key:***@bucket/orders"}
    assert task.rendered("tables") == {"orders": place}
    assert task.rendered("spark")["conf"] == {"spark.hadoop.fs.s3a.secret.key": "planted-setting"}


def test_a_template_that_cannot_be_rendered_is_logged_masked(deployed: Site, caplog: pytest.LogCaptureFixture) -> None:
    broken = deployed.tasks(script=SECRETIVE + "{{ nobody.knows.this }}")["check"]
    with pytest.raises(UndefinedError, match="nobody"):
        Run().render(broken)
    assert "Exception rendering Jinja template" in caplog.text
    assert leaks(caplog.text) == []


class _Cluster:
    """Gateway and JobManager over HTTP: one job, which failed, and says what it was given."""

    url = ""

    def __init__(self, failure: str) -> None:
        self.answers: dict[str, Any] = {
            "/v2/info": {"productName": "Apache Flink", "version": "2.3.0"},
            "/jobs/overview": {"jobs": []},
            "/jobs/job-1/status": {"status": "FAILED"},
            "/jobs/job-1": {"jid": "job-1", "name": "orders", "state": "FAILED", "vertices": []},
            "/jobs/job-1/exceptions": {"exceptionHistory": {"entries": [{"stacktrace": failure, "timestamp": 1}]}},
            "/jobs/job-1/checkpoints": {},
        }

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(self.answers[environ["PATH_INFO"]]).encode()]


def test_what_a_connection_holds_is_masked_after_a_wait_as_well(
    site: Site, logs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that goes on submits nothing, so it would not know what the placeholders stood for."""
    value = "quite-an-ordinary-word"
    run, tasks, _ = site.checked(script().replace("'/out'", "'/out', 'password' = '${conn.lake.password}'"))
    task = tasks["first"]
    task.settle_seconds, task.patience = 60, 0.1
    with pytest.raises(TaskDeferred) as deferred:
        run.execute(task)
    cluster = _Cluster(f"java.io.IOException: nobody may come in by {value} here")
    with serving(cluster):
        connections = {
            "flink_default": Connection(conn_id="f", conn_type="flink", host=cluster.url),
            "lake": Connection(conn_id="lake", conn_type="generic", password=value),
        }
        monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(connections.__getitem__))
        monkeypatch.setattr(FlinkHook, "get_conn", GET_CONN)
        monkeypatch.setattr(FlinkHook, "jobmanager_url", cluster.url)
        del task.hook
        with pytest.raises(AirflowException, match=r"IOException: nobody may come in by \*\*\* here") as failed:
            run.complete(task, {"wait": deferred.value.trigger.wait})
    stored = [path.read_text() for path in (site.folder / "ledger").rglob("*.json")]
    assert any("nobody may come in" in text for text in stored)
    assert value not in f"{failed.value}{logs}{stored}"
    assert _secrets_masker().redact(f"echo: {value}") == "echo: ***", "and by Airflow in every later log"
