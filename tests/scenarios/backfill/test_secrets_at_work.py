"""A password on its way from Airflow's connection to PostgreSQL, watched: it shows in no argument, log or setting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, BaseHook, Connection
from structlog.testing import capture_logs

from airflow_flinkcompat.airflow.operators import FlinkBackfillOperator
from tests.support.airflow.operators.fakes import Run
from tests.support.backfill.scripts import BID_COLUMNS, BIDS, SUM, SUM_COLUMNS, lines, script, table

if TYPE_CHECKING:
    from dev.services.postgres import Postgres

pytestmark = pytest.mark.slow


@contextmanager
def watched() -> Iterator[set[str]]:
    """The command lines of all processes there are while the block lasts, as ``ps`` would show them."""
    seen: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    seen.add(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
                except OSError:
                    continue

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


@pytest.mark.nightly
def test_a_password_shows_nowhere(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    values = ", ".join("('{}', {}, '{}')".format(*row.split(",")) for row in BIDS.splitlines())
    columns = "bidtime timestamp, price numeric(10, 2), item text"
    postgres.run(f"DROP TABLE IF EXISTS bid; CREATE TABLE bid ({columns}); INSERT INTO bid VALUES {values}")
    source = (
        f"CREATE TABLE bid ({BID_COLUMNS}) WITH ('connector' = 'jdbc', 'url' = '{postgres.url}', 'table-name' = 'bid', "
        "'username' = '${conn.pg-main.login}', 'password' = '${conn.pg-main.password}')"
    )
    text = script(source, table("results", SUM_COLUMNS, tmp_path / "results"), f"INSERT INTO results {SUM}")
    connections = {
        "spark_default": Connection(conn_id="spark_default", conn_type="spark", host="local[1]"),
        "pg-main": Connection(conn_id="pg-main", conn_type="postgres", login="postgres", password=postgres.password),
    }
    monkeypatch.setattr(BaseHook, "get_connection", classmethod(lambda _cls, conn_id: connections[conn_id]))
    events = tmp_path / "events"
    events.mkdir()
    # What the environment page of Spark's UI shows is in its event log.
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }

    def task(task_id: str) -> FlinkBackfillOperator:
        with DAG("d"):
            return FlinkBackfillOperator(task_id=task_id, deployment="orders", script=text, spark={"conf": conf})

    results: list[Any] = []
    with capture_logs() as records, watched() as seen:
        results.append(Run().execute(task("reads")))
        postgres.run("DROP TABLE bid")
        with pytest.raises(Exception) as failed:  # noqa: PT011 -- whatever Spark's operator raises
            Run().execute(task("fails"))
    assert len(lines(tmp_path / "results")) == 2
    assert results[0]["rows_read"] == 6
    assert any("--request" in line and "job.py" in line for line in seen), "spark-submit was watched"
    logged = [path.read_text(encoding="utf-8") for path in events.rglob("*") if path.is_file()]
    assert any("SparkListenerEnvironmentUpdate" in log for log in logged)
    shown = [*seen, *logged, str(records), caplog.text, *capfd.readouterr(), str(results), str(failed.value)]
    assert [text for text in shown if postgres.password in text] == []
