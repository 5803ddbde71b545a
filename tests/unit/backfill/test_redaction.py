"""Spark's own records of a run, its event log, hold no secret that a script's catalog was given."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, plan
from airflow_flinkcompat.backfill.connectors import iceberg, kafka
from airflow_flinkcompat.backfill.protocols import REDACTION
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.connectors.test_lakes import declared
from tests.support.backfill.scripts import BID_COLUMNS, BIDS, SUM_COLUMNS, TUMBLE, script, table

# A catalog in a folder passes over all of them.
SECRETS = {
    "header.Authorization": "Basic hidden-1",
    "adls.auth.shared-key.account.key": "hidden-2",
    "adls.connection-string.lake": "AccountKey=hidden-3",
    "credential": "id:hidden-4",
    "s3.access-key-id": "hidden-5",
    "client.region": "hidden-6",
    "uri": "https://me:hidden-7@example.org/catalog",
}


@pytest.mark.parametrize("needs", [kafka.NEEDS, iceberg.NEEDS])
def test_spark_is_started_with_it(needs: object) -> None:
    assert set(REDACTION) <= set(needs.conf)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("setting", "hidden"),
    [
        *((f"spark.sql.catalog.flinkcompat_0123.{name}={value}", True) for name, value in SECRETS.items()),
        ("spark.hadoop.fs.azure.account.key.lake=x", True),
        ("spark.hadoop.fs.s3a.access.key=x", True),
        ("spark.sql.catalog.mine.header.X-Auth=x", True),
        ("spark.sql.catalog.mine.uri=thrift://me:x@host:9083", True),
        ("kafka.sasl.jaas.config=x", True),
        ("spark.sql.catalog.mine.uri=thrift://host:9083", False),
        ("spark.sql.shuffle.partitions=2", False),
        ("spark.master=spark://host:7077", False),
    ],
)
def test_what_is_hidden(setting: str, hidden: bool) -> None:
    pattern = dict(REDACTION)["spark.redaction.regex"]
    assert bool(re.search(pattern, setting)) is hidden


@pytest.mark.slow
@pytest.mark.nightly
def test_secrets_of_a_catalog_are_in_no_event_log(tmp_path: Path) -> None:
    from dev.services.kafka import ivy_directory

    (tmp_path / "history.csv").write_text(BIDS, encoding="utf-8")
    where = {"catalog_name": "lake", "catalog_type": "hadoop", "warehouse": str(tmp_path / "lake")}
    given = {
        **where,
        "catalog_database": "db",
        "connector": "iceberg",
        **{name.replace("_", "-"): f"${{env.S{i}}}" for i, name in enumerate(SECRETS)},
    }
    query = f"SELECT window_start, window_end, SUM(price) FROM {TUMBLE} GROUP BY window_start, window_end"
    text = script(
        table("bid", BID_COLUMNS, tmp_path / "history.csv"), declared("results", SUM_COLUMNS, **given),
        f"INSERT INTO results {query}",
    )  # fmt: skip
    conf, events = tmp_path / "conf", tmp_path / "events"
    conf.mkdir()
    events.mkdir()
    settings = {
        "spark.jars.ivy": str(ivy_directory()),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }
    (conf / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in settings.items()), encoding="utf-8")
    request = BackfillRequest(JobSpec(text), master="local[1]")
    (tmp_path / "request.json").write_text(json.dumps(request.to_dict()), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "airflow_flinkcompat.backfill.job", "--request", str(tmp_path / "request.json")],
        env={
            **os.environ,
            **{f"S{i}": value for i, value in enumerate(SECRETS.values())},
            "SPARK_CONF_DIR": str(conf),
            "PYTHONPATH": str(Path.cwd()),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    logged = "".join(path.read_text(encoding="utf-8") for path in events.rglob("*") if path.is_file())
    assert "SparkListenerSQLExecutionStart" in logged
    (catalog,) = {target.location.catalog for target in targets(request)}  # type: ignore[attr-defined]
    assert f'"spark.sql.catalog.{catalog}.credential":"*********(redacted)"' in logged, "settings are in the log"
    assert [
        value
        for value in SECRETS.values()
        if re.search(r"hidden-\d", value).group() in logged + done.stdout + done.stderr
    ] == []  # type: ignore[union-attr]


def targets(request: BackfillRequest) -> list[object]:
    return [write.target for write in plan(request).work.writes]
