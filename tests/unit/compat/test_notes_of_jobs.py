"""What a report adds where a script makes several jobs, or a query writes into no table."""

from __future__ import annotations

from airflow_flinkcompat.compat import check

TABLES = """
CREATE TABLE orders (a STRING, b BIGINT) WITH ('connector' = 'kafka', 'topic' = 'orders',
  'properties.bootstrap.servers' = 'b:9092', 'format' = 'json');
CREATE TABLE kept (a STRING, b BIGINT) WITH ('connector' = 'print');
"""
INSERT = "INSERT INTO kept SELECT a, b FROM orders;\n"


def warned(script: str, about: str) -> bool:
    report = check(TABLES + INSERT, TABLES + script, engine="flink")
    return any(about in warning for warning in report.warnings)


def test_each_job_goes_on_from_a_savepoint_of_its_own() -> None:
    said = "starts 2 jobs, each with a separate savepoint"
    assert warned(INSERT + INSERT, said)
    assert not warned(INSERT, "own savepoint")
    assert not warned(f"EXECUTE STATEMENT SET BEGIN\n{INSERT}{INSERT}END;", "own savepoint")


def test_a_query_without_insert_is_judged_as_if_it_wrote_into_a_sink() -> None:
    assert warned("SELECT a, b FROM orders;", "a query without INSERT")
    assert not warned(INSERT, "a query without INSERT")
