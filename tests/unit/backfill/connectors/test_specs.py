"""What connectors and formats refuse before anything is read, and how names and places are shown."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest
from airflow_flinkcompat.backfill.connectors.jdbc import (
    JdbcSource,
    identifier,
    is_read_as,
    is_written_as,
    qualified,
)
from airflow_flinkcompat.backfill.planning import plan
from airflow_flinkcompat.backfill.steps import reads_of
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.plan.types import BIGINT, INT, STRING, timestamp
from tests.support.backfill.scripts import script, table

COLUMNS = "a INT, t TIMESTAMP(3), d DATE"
URL = "jdbc:postgresql://${conn.pg.host}/shop?password=hunter2"


def jdbc(**options: str) -> str:
    given = {"connector": "jdbc", "url": URL, "table-name": "orders", "username": "me", "password": "hunter2"}
    given |= {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in given.items() if value)
    return f"CREATE TABLE s ({COLUMNS}) WITH ({pairs})"


def planned(source: str, columns: str = "a INT, b INT", query: str = "a, a") -> object:
    text = script(source, table("o", columns, "/results"), f"INSERT INTO o SELECT {query} FROM s")
    (write,) = plan(BackfillRequest(JobSpec(text))).work.writes
    (read,) = {read for step in write.inputs for read in reads_of(step)}
    return read.source


def test_a_place_shows_no_secret() -> None:
    source = planned(jdbc())
    assert isinstance(source, JdbcSource)
    assert source.place == "jdbc:postgresql://${conn.pg.host}/shop/orders"


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (jdbc(url="jdbc:mysql://h/d"), "url jdbc:mysql: is not PostgreSQL"),
        (jdbc(driver="com.example.Driver"), "driver com.example.Driver is not PostgreSQL"),
        (jdbc(table_name=""), "no option table-name"),
        (jdbc(table_name="my orders"), "my orders is not a name that PostgreSQL accepts"),
        (jdbc(compatible_mode="x"), "does not support the option compatible-mode"),
        (jdbc(scan__fetch_size="many"), "scan.fetch-size is 'many', which is not a whole number"),
        (jdbc(scan__partition__num="3"), "option scan.partition.column is required"),
        (table("s", COLUMNS, "/h", "parquet", parquet__utc_timezone="yes"), "utc-timezone is 'yes'. Write true or"),
        (table("s", COLUMNS, "/h", "parquet", parquet__vectorized="x"), "option parquet.vectorized = 'x' has no exact"),
        (table("s", COLUMNS, "/h", "orc", orc__force__positional__evolution="true"), "orc.force.positional.evolution"),
        (table("s", COLUMNS, "/h", "csv").replace(") WITH", ") PARTITIONED BY (d) WITH"), "column d of type DATE"),
    ],
)  # fmt: skip
def test_what_is_not_exact_is_refused(source: str, words: str) -> None:
    with pytest.raises(BackfillError, match=words) as caught:
        planned(source)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("format", "words"), [("parquet", "zone of Flink's TaskManagers"), ("orc", "depend on the time zones")]
)
def test_times_of_unknown_zones_are_refused_where_they_are_read(format: str, words: str) -> None:
    source = table("s", COLUMNS, "/h", format)
    planned(source)
    with pytest.raises(BackfillError, match=words):
        planned(source, "t STRING, a INT", "CAST(t AS STRING), a")


def test_names_are_those_flink_means() -> None:
    assert identifier("orderId") == '"orderid"'
    assert identifier('"orderId"') == '"orderId"'
    assert qualified("Sales.orders") == '"sales"."orders"'


def test_types_that_stand_for_each_other() -> None:
    assert is_read_as(INT, "integer")
    assert not is_read_as(BIGINT, "integer")
    assert is_written_as(BIGINT, "integer")
    assert is_read_as(STRING, "character varying(20)")
    assert not is_written_as(STRING, "uuid")
    assert is_read_as(timestamp(3), "timestamp(6) without time zone")
    assert not is_read_as(timestamp(3), "timestamp with time zone")
