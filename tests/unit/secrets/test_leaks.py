"""Values planted behind every kind of placeholder, and literal ones, show in no output, whoever echoes them and how."""

from __future__ import annotations

import html
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock
from urllib.parse import quote

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_flinkcompat import Side, check
from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, explain, plan, run_backfill
from airflow_flinkcompat.backfill.job import main as backfill_job
from airflow_flinkcompat.backfill.journal import filled_in, journal_place
from airflow_flinkcompat.backfill.spark import fill_in
from airflow_flinkcompat.compat.reports.markdown import render_markdown
from airflow_flinkcompat.compat.reports.render import render_text
from airflow_flinkcompat.deploy import DeployError, Ledger, Start
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.ledger.entries import FailedEntry, JobStart
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.secrets import placeholders
from airflow_flinkcompat.secrets.placeholders import (
    AnyPlaceholder,
    Placeholder,
    environment_lookup,
    resolve_placeholders,
)

CORE = "Qx7Zw9Kv"
VALUES = st.builds(
    lambda before, after: before + CORE + after,
    *[
        st.text(
            st.one_of(st.sampled_from("'\"\\ %+&\n\t/@:;#?é😀"), st.characters(codec="utf-8", exclude_characters="\0")),
            max_size=4,
        )
    ]
    * 2,
)

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{}";'
#: Where a script asks for a value: options of tables, whole or a part, in and out of double quotes, a hint, a literal.
POSITIONS = {
    "option": ("'password' = '{}'", "jdbc"),
    "part of an option": ("'username' = 'prefix-{}-suffix'", "jdbc"),
    "URL": ("'url' = 'jdbc:postgresql://db/shop?user=u&token={}'", "jdbc"),
    "JAAS": (f"'properties.sasl.jaas.config' = '{JAAS}'", "kafka"),
    "JSON": ("'properties.sasl.oauthbearer.assertion' = '{{\"key\": \"{}\"}}'", "kafka"),
    "header": ("'properties.x.header' = 'Basic {}'", "kafka"),
}
PLACEHOLDERS = ("${conn.shop-db.password}", "${conn.shop-db.extra.key}", "${env.SHOP_SECRET}")
ECHOES: dict[str, Callable[[str], str]] = {
    "as it was sent": lambda text: text,
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps(json.dumps({"value": text})),
    "URL": lambda text: quote(text, safe=""),
    "HTML": html.escape,
    "Python": repr,
    "on one line": lambda text: " ".join(text.split()),
}
OPTIONS = {
    "jdbc": {"connector": "'jdbc'", "url": "'jdbc:postgresql://db/shop'", "table-name": "'bid'"},
    "kafka": {
        "connector": "'kafka'", "topic": "'bids'", "properties.bootstrap.servers": "'b:1'", "format": "'json'",
        "scan.startup.mode": "'earliest-offset'", "scan.bounded.mode": "'latest-offset'",
    },
}  # fmt: skip

positions = st.sampled_from(sorted(POSITIONS))
asked = st.sampled_from(PLACEHOLDERS)
echoes = st.sampled_from(sorted(ECHOES))


def script(position: str, written: str) -> str:
    option, connector = POSITIONS[position]
    option = option.format(written)
    kept = (f"'{key}' = {value}" for key, value in OPTIONS[connector].items() if not option.startswith(f"'{key}'"))
    return (
        f"CREATE TABLE bid (ts TIMESTAMP(3), price INT, WATERMARK FOR ts AS ts) WITH ({', '.join((*kept, option))});\n"
        "CREATE TABLE sums (at TIMESTAMP(3), total INT) WITH ('connector' = 'filesystem', 'path' = '/r', "
        "'format' = 'csv');\n"
        "INSERT INTO sums SELECT window_end, SUM(price) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' "
        "HOUR)) GROUP BY window_start, window_end;\n"
    )


def environment(value: str) -> dict[str, str]:
    return {each.variable: value for text in PLACEHOLDERS for each in placeholders(text)}


def leaks(*texts: object) -> list[str]:
    seen = (text if isinstance(text, str) else json.dumps(text, default=str) for text in texts)
    return [text for text in seen if CORE in text]


@given(positions, asked, VALUES, echoes)
@example("JAAS", "${env.SHOP_SECRET}", f'{CORE}"\\', "as it was sent")
@example("JSON", "${conn.shop-db.password}", f'a"{CORE}', "JSON in JSON")
def test_errors_and_progress_of_a_backfill(position: str, written: str, value: str, echo: str) -> None:
    """Kafka, JDBC, Spark: each says what it was given, in its own way, on one line or on many."""
    request, given = BackfillRequest(JobSpec(script(position, written))), environment(value)
    option = POSITIONS[position][0].format(written).partition(" = ")[2][1:-1]
    sent = fill_in(option, given)
    assert CORE in sent
    said = f"cannot be read: [{ECHOES[echo](sent)}]"

    @contextmanager
    def session(*_: object) -> Iterator[Any]:
        yield SimpleNamespace(sparkContext=SimpleNamespace(master="local"))

    def fail(_session: object, _plan: object, progress: Callable[[str], None], *_: object) -> None:
        progress(said)
        raise BackfillError(said)

    lines: list[str] = []
    with (
        mock.patch.dict(os.environ, given),
        mock.patch.object(run_module(), "spark_session", session),
        mock.patch.object(run_module(), "pinned_snapshots", mock.MagicMock()),
        mock.patch.object(run_module(), "_run", fail),
        pytest.raises(BackfillError) as failed,
    ):
        run_backfill(request, lines.append)
    assert leaks(str(failed.value), repr(failed.value), *lines) == []
    assert str(failed.value).startswith("cannot be read: [")
    assert len(lines) == 1


def run_module() -> Any:
    return sys.modules["airflow_flinkcompat.backfill.run"]


@given(positions, asked, VALUES)
def test_plans_requests_and_journals_of_a_backfill_hold_placeholders(position: str, written: str, value: str) -> None:
    request = BackfillRequest(JobSpec(script(position, written)), journal="/kept")
    with mock.patch.dict(os.environ, environment(value)):
        planned = plan(request)
        shown = [
            explain(planned, request),
            json.dumps(request.to_dict()),
            repr(planned),
            journal_place(request, planned.work),
            filled_in(request, os.environ),
        ]
    assert leaks(*shown) == []
    assert written in shown[1]


def test_a_short_value_is_warned_of_before_a_backfill_and_changes_no_word(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_SECRET", "t")

    def session(*_: object) -> Any:
        raise BackfillError("stopped at parse")

    monkeypatch.setattr(run_module(), "spark_session", session)
    file = tmp_path / "request.json"
    file.write_text(json.dumps(BackfillRequest(JobSpec(script("option", "${env.SHOP_SECRET}"))).to_dict()))
    assert backfill_job(["--request", str(file)]) == 1
    out, err = capsys.readouterr()
    assert "the value of ${env.SHOP_SECRET} is too short to be masked" in out
    assert err == "backfill failed: stopped at parse\n"


class _Cluster(httpx.MockTransport):
    """A SQL Gateway that refuses the first statement it is told, and says which one that was."""

    def __init__(self, echo: Callable[[str], str]) -> None:
        super().__init__(self.answer)
        self.echo, self.sent = echo, ""

    def answer(self, request: httpx.Request) -> httpx.Response:
        body: dict[str, Any] = json.loads(request.content) if request.content else {}
        self.sent = body.get("statement") or self.sent
        if request.url.path.endswith("/result/0"):
            trace = f"o.a.f.Wrapper: no\nCaused by: o.a.f.ValidationException: of [{self.echo(self.sent)}] nothing"
            return httpx.Response(500, json={"errors": ["Internal server error.", trace]})
        return httpx.Response(200, json={"sessionHandle": "s", "operationHandle": "o", "status": "CLOSED"})


def lookup(value: str) -> Callable[[AnyPlaceholder], str]:
    def found(placeholder: AnyPlaceholder) -> str:
        assert isinstance(placeholder, Placeholder)
        return value

    return found


@given(positions, asked.filter(lambda text: "conn" in text), VALUES, echoes)
def test_errors_and_ledger_of_a_deployment(
    tmp_path_factory: pytest.TempPathFactory, position: str, written: str, value: str, echo: str
) -> None:
    cluster, records = _Cluster(ECHOES[echo]), _Records()
    gateway = SqlGateway("http://gateway.test:8083", transport=cluster, retry_wait=0.01)
    text, settings = script(position, written), {"user.key": written}
    root = logging.getLogger()
    root.addHandler(records)
    try:
        with (
            SqlGatewayTarget(gateway, JobManager("http://jm.test:8081"), lookup=lookup(value)) as target,
            pytest.raises(DeployError) as refused,
        ):
            target.validate(JobSpec(text, settings=settings), Start())
    finally:
        root.removeHandler(records)
    assert CORE in cluster.sent
    ledger = Ledger(tmp_path_factory.mktemp("ledger"), "orders")
    entry = ledger.append(FailedEntry(job=JobSpec(text, settings), start=JobStart(), message=str(refused.value)))
    assert leaks(str(refused.value), records.texts, entry.to_dict()) == []
    assert "ValidationException: of [" in str(refused.value)


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def test_a_short_value_is_warned_of_in_a_deployment(caplog: pytest.LogCaptureFixture) -> None:
    gateway = SqlGateway("http://gateway.test:8083", transport=_Cluster(str), retry_wait=0.01)
    with (
        SqlGatewayTarget(gateway, JobManager("http://jm.test:8081"), lookup=lambda _: "t") as target,
        pytest.raises(DeployError, match="CREATE TABLE bid"),
    ):
        target.validate(JobSpec(script("option", "${conn.shop-db.password}")), Start())
    assert [each.getMessage().partition(" is too")[0] for each in caplog.records if each.levelname == "WARNING"] == [
        "the value of ${conn.shop-db.password}",
    ]


def test_a_variable_of_the_environment_stops_a_deployment_before_anything_is_sent() -> None:
    cluster = _Cluster(str)
    gateway = SqlGateway("http://gateway.test:8083", transport=cluster, retry_wait=0.01)
    with (
        SqlGatewayTarget(gateway, JobManager("http://jm.test:8081")) as target,
        pytest.raises(DeployError, match=r"\$\{env.SHOP_SECRET\} is filled in only by a backfill.*\$\{conn\."),
    ):
        target.validate(JobSpec(script("option", "${env.SHOP_SECRET}")), Start())
    assert cluster.sent == ""


@given(positions, VALUES.filter(lambda value: "{" not in value and "}" not in value))
def test_reports_on_literal_secrets(position: str, value: str) -> None:
    """Where the option's key tells: a value in an option of another name is one only behind a placeholder."""
    if POSITIONS[position][0].split("'")[1] not in ("password", "properties.sasl.jaas.config"):
        position = "option"
    sent = resolve_placeholders(script(position, "${env.A}"), environment_lookup({"A": value})).text
    report = check(Side(script("option", "old"), engine="flink"), Side(sent, engine="flink"))
    page = render_markdown(report)
    assert leaks(render_text(report), page, html.unescape(page), report.to_dict()) == []


def test_the_tests_would_notice() -> None:
    value = f"a'{CORE}"
    assert leaks(value, {"a": value}, "none") == [value, json.dumps({"a": value})]
