"""Scripts of others as the bench runs them: connectors, secrets and rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dev.measure import public_jobs
from dev.measure.public_jobs import NotRunnable, PublicJob, declarations

SINK = "CREATE TABLE totals (item STRING, n BIGINT) WITH ('connector' = 'starrocks', 'password' = 'geheim');\n"
ORDERS = """\
CREATE TEMPORARY TABLE orders (item STRING, price DECIMAL(10, 2), at STRING, ts AS TO_TIMESTAMP(at), pt AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'kafka', 'topic' = 'shop.orders', 'format' = 'avro',
  'properties.bootstrap.servers' = 'b1:9092', 'properties.sasl.jaas.config' = 'geheim',
  'scan.startup.mode' = 'latest-offset');
"""
COUNT = "INSERT INTO totals SELECT item, COUNT(*) FROM orders WHERE item <> 'free' GROUP BY item;\n"


def _job(old: str, new: str | None = None, known: str = "") -> PublicJob:
    return PublicJob(
        "p1", old, old if new is None else new, {each.this.name: each for each in declarations(known or "SHOW TABLES")}
    )


def test_a_topic_stays_a_topic_without_secrets_and_only_the_restored_script_keeps_its_startup() -> None:
    job = _job(SINK + ORDERS + COUNT)
    old, new, reference = job.scripts()
    assert "'topic' = 'p1_shop.orders'" in old
    assert "'format' = 'json'" in old
    assert "geheim" not in old
    assert "b1:9092" not in old
    assert "'scan.startup.mode' = 'earliest-offset'" in old == reference
    assert "'scan.startup.mode' = 'latest-offset'" in new
    assert "CREATE TABLE totals (item STRING, n BIGINT) WITH ('connector' = 'print')" in new
    assert job.replaced == {"starrocks"}


def test_rows_have_the_columns_of_both_sides_and_words_of_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public_jobs, "GENERATED", tmp_path)
    job = _job(SINK + ORDERS + COUNT, SINK + ORDERS.replace("price DECIMAL", "kind ROW<n INT>, price DECIMAL") + COUNT)
    job.scripts()
    job.feed()
    before, after = (
        (tmp_path / "p1_shop.orders" / f"{phase}.csv").read_text().splitlines() for phase in ("before", "after")
    )
    rows = [json.loads(line) for line in [*before, *after]]
    assert set(rows[0]) == {"item", "price", "at", "kind"}
    assert set(rows[0]["kind"]) == {"n"}
    assert "free" in {row["item"] for row in rows}
    assert [row["at"] for row in rows] == sorted({row["at"] for row in rows})


def test_a_lookup_is_a_filled_table_of_the_database_and_a_keyed_sink_an_empty_one() -> None:
    lookup = (
        "CREATE TABLE names (item STRING, name STRING) WITH ('connector' = 'cust-redis');\n"
        "INSERT INTO totals SELECT o.item, n.name FROM orders AS o "
        "JOIN names FOR SYSTEM_TIME AS OF o.pt AS n ON o.item = n.item;\n"
    )
    sink = (
        "CREATE TABLE totals (item STRING, name STRING, PRIMARY KEY (item) NOT ENFORCED) WITH ('connector' = 'hudi');\n"
    )
    job = _job(sink + ORDERS + lookup)
    assert "'table-name' = 'names'" in job.scripts()[0]
    assert 'INSERT INTO "names"' in job.database()
    assert 'CREATE TABLE "totals" ("item" TEXT, "name" TEXT, PRIMARY KEY ("item"));' in job.database()
    assert 'INSERT INTO "totals"' not in job.database()


def test_changes_of_a_database_are_a_topic_of_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(public_jobs, "GENERATED", tmp_path)
    orders = "CREATE TABLE orders (item STRING, PRIMARY KEY (item) NOT ENFORCED) WITH ('connector' = 'mysql-cdc');\n"
    job = _job(SINK + orders + COUNT)
    assert "'format' = 'debezium-json'" in job.scripts()[0]
    job.feed()
    first = json.loads((tmp_path / "p1_orders" / "before.csv").read_text().splitlines()[0])
    assert first["op"] == "c"
    assert set(first["after"]) == {"item"}


def test_tables_of_a_catalog_come_from_elsewhere_and_several_inserts_are_one_job() -> None:
    twice = COUNT + COUNT
    script = _job(f"USE CATALOG shop;\nSET 'parallelism.default' = '3';\n{SINK}{twice}", known=ORDERS).scripts()[0]
    assert script.startswith("CREATE TABLE orders (")
    assert "EXECUTE STATEMENT SET\nBEGIN\nINSERT" in script
    assert "parallelism" not in script
    assert "CATALOG" not in script


def test_a_lookup_of_rows_within_rows_cannot_be_run() -> None:
    nested = (
        "CREATE TABLE names (item STRING, cf ROW<name STRING>) WITH ('connector' = 'hbase-2.2');\n"
        "INSERT INTO totals SELECT o.item, 1 FROM orders AS o JOIN names FOR SYSTEM_TIME AS OF o.pt AS n ON TRUE;\n"
    )
    with pytest.raises(NotRunnable, match="names"):
        _job(SINK + ORDERS + nested).scripts()
