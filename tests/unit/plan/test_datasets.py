"""Tables by the names that OpenLineage and Airflow's assets have for the same data."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.plan import Program, build_program
from airflow_flinkcompat.plan.datasets import Dataset, dataset_at, read, written
from airflow_flinkcompat.sql import parse_script


def program(options: str, insert: str = "INSERT INTO t SELECT a FROM s") -> Program:
    source = "CREATE TABLE s (a INT) WITH ('connector' = 'datagen');"
    return build_program(parse_script(f"{source} CREATE TABLE t (a INT) WITH ({options}); {insert};"))


KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b1:9092,b2:9092', 'topic' = "
JDBC = "'connector' = 'jdbc', 'table-name' = '{}', 'url' = 'jdbc:{}'"
ICEBERG = "'connector' = 'iceberg', 'catalog-name' = 'lake', 'catalog-database' = 'sales', 'catalog-table' = 'orders', "


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (f"{KAFKA}'orders'", [("kafka://b1:9092", "orders", "kafka://b1:9092/orders")]),
        (
            f"{KAFKA}'a;b'",
            [("kafka://b1:9092", "a", "kafka://b1:9092/a"), ("kafka://b1:9092", "b", "kafka://b1:9092/b")],
        ),
        (
            "'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = 'PLAINTEXT://b', 'topic' = 'o'",
            [("kafka://b:9092", "o", "kafka://b:9092/o")],
        ),
        (
            JDBC.format("orders", "postgresql://db/shop"),
            [("postgres://db:5432", "shop.public.orders", "postgres://db:5432/shop/public/orders")],
        ),
        (
            JDBC.format('sales."orders"', "postgresql://ada:pw@db:5433/shop?ssl=true"),
            [("postgres://db:5433", "shop.sales.orders", "postgres://db:5433/shop/sales/orders")],
        ),
        (
            JDBC.format("orders", "postgresql://db/shop?currentSchema=sales"),
            [("postgres://db:5432", "shop.sales.orders", "postgres://db:5432/shop/sales/orders")],
        ),
        (JDBC.format("orders", "mysql://db/shop"), [("mysql://db:3306", "shop.orders", "mysql://db:3306/shop/orders")]),
        ("'connector' = 'filesystem', 'path' = '/out/'", [("file", "/out", "file:///out")]),
        ("'connector' = 'filesystem', 'path' = 's3a://lake/o/'", [("s3://lake", "o", "s3://lake/o")]),
        ("'connector' = 'delta', 'table-path' = 'hdfs://n:8020/o'", [("hdfs://n:8020", "/o", "hdfs://n:8020/o")]),
        (
            f"{ICEBERG}'catalog-type' = 'hadoop', 'warehouse' = 's3://lake/wh'",
            [("s3://lake", "wh/sales/orders", "s3://lake/wh/sales/orders")],
        ),
        (
            f"{ICEBERG}'uri' = 'thrift://metastore:9083'",
            [("hive://metastore:9083", "sales.orders", "hive://metastore:9083/sales.orders")],
        ),
        # What the script does not tell has no name.
        (f"{ICEBERG}'catalog-type' = 'rest', 'uri' = 'https://catalog'", []),
        ("'connector' = 'kafka', 'properties.bootstrap.servers' = 'b', 'topic-pattern' = 'o.*'", []),
        ("'connector' = 'kafka', 'properties.bootstrap.servers' = '${conn.k.host}', 'topic' = 'o'", []),
        ("'connector' = 'kafka', 'topic' = 'o'", []),
        ("'connector' = 'filesystem', 'path' = 'out'", []),
        ("'connector' = 'filesystem', 'path' = 's3://who:pw@lake/o'", []),
        ("'connector' = 'filesystem', 'path' = 'http://[::1/o'", []),
        (JDBC.format("orders", "oracle:thin:@db:1521/shop"), []),
        (JDBC.format("orders", "postgresql:shop"), []),
        ("'connector' = 'print'", []),
    ],
)
def test_a_sink_has_the_names_of_its_data(options: str, expected: list[tuple[str, str, str]]) -> None:
    assert written(program(options)) == {"t": tuple(Dataset(*each) for each in expected)}


def test_a_placeholder_beside_the_place_hides_nothing() -> None:
    secret = f"{KAFKA}'orders', 'properties.sasl.jaas.config' = '${{conn.k.password}}'"
    assert [each.name for each in written(program(secret))["t"]] == ["orders"]


def test_a_hint_that_leads_elsewhere_is_not_passed_over() -> None:
    insert = "INSERT INTO t /*+ OPTIONS('topic' = 'other') */ SELECT a FROM s"
    assert written(program(f"{KAFKA}'orders'", insert)) == {"t": ()}
    insert = "INSERT INTO t /*+ OPTIONS('sink.parallelism' = '2') */ SELECT a FROM s"
    assert [each.name for each in written(program(f"{KAFKA}'orders'", insert))["t"]] == ["orders"]


def test_every_table_that_is_read_is_found_through_views_joins_and_lookups() -> None:
    script = """
    CREATE TABLE o (k INT, p AS PROCTIME()) WITH ('connector' = 'filesystem', 'path' = '/o');
    CREATE TABLE c (k INT) WITH ('connector' = 'jdbc', 'table-name' = 'c', 'url' = 'jdbc:postgresql://db/shop');
    CREATE TABLE u (k INT) WITH ('connector' = 'filesystem', 'path' = '/u');
    CREATE TABLE t (k INT) WITH ('connector' = 'print');
    CREATE VIEW v AS SELECT o.k FROM o JOIN c FOR SYSTEM_TIME AS OF o.p ON o.k = c.k;
    INSERT INTO t SELECT k FROM v UNION ALL SELECT k FROM u;
    """
    found = read(build_program(parse_script(script)))
    assert {name: [each.uri for each in sets] for name, sets in found.items()} == {
        "o": ["file:///o"],
        "c": ["postgres://db:5432/shop/public/c"],
        "u": ["file:///u"],
    }


def test_the_root_of_a_bucket_has_a_name() -> None:
    assert dataset_at("gs://lake") == Dataset("gs://lake", "/", "gs://lake/")
