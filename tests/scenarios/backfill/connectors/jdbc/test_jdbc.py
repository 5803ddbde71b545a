"""Tables of a real PostgreSQL read and published."""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest
from airflow_flinkcompat.model import JobSpec
from tests.support.backfill.scripts import BID_COLUMNS, BIDS, SUM, SUM_COLUMNS, TUMBLE, Run, lines, script, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from dev.services.postgres import Postgres

pytestmark = pytest.mark.slow

RESULTS = "window_start timestamp(3), window_end timestamp(3), total numeric(38, 2)"
ROWS = [
    "2020-04-15 08:00:00|2020-04-15 08:10:00|11.00",
    "2020-04-15 08:10:00|2020-04-15 08:20:00|10.00",
]
LATER = "2020-04-15 08:20:00|2020-04-15 08:30:00|7.00"
INSERT_LATER = "INSERT INTO results VALUES ('2020-04-15 08:20:00', '2020-04-15 08:30:00', 7)"
PASSWORD = "FLINKCOMPAT_CONN_PG_MAIN_PASSWORD"


def declared(name: str, columns: str, postgres: Postgres, **options: str) -> str:
    """CREATE TABLE on PostgreSQL, the password a placeholder."""
    given = {"connector": "jdbc", "url": postgres.url, "table-name": name, "username": "postgres"}
    given |= {"password": "${conn.pg-main.password}"}
    given |= {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    return f"CREATE TABLE {name} ({columns}) WITH ({pairs})"


@pytest.fixture(autouse=True)
def database(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty database, and its password in the environment."""
    monkeypatch.setenv(PASSWORD, postgres.password)
    postgres.run("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")


@pytest.fixture
def bid(postgres: Postgres) -> str:
    """The bids as a table of PostgreSQL, and its declaration."""
    values = ", ".join("('{}', {}, '{}')".format(*row.split(",")) for row in BIDS.splitlines())
    columns = "bidtime timestamp, price numeric(10, 2), item text"
    postgres.run(f"CREATE TABLE bid ({columns}); INSERT INTO bid VALUES {values}")
    return declared("bid", BID_COLUMNS, postgres)


def rows(postgres: Postgres) -> list[str]:
    return sorted(postgres.run("SELECT * FROM results"))


def staged(postgres: Postgres) -> list[str]:
    return postgres.run("SELECT relname FROM pg_class WHERE relname LIKE 'flinkcompat%'")


def test_from_table_to_table_and_again(run: Run, postgres: Postgres, bid: str) -> None:
    postgres.run(f"CREATE TABLE results ({RESULTS}); {INSERT_LATER}")
    text = script(bid, declared("results", SUM_COLUMNS, postgres), f"INSERT INTO results {SUM}")
    for _ in range(2):
        result = run(text, "2020-04-15 08:00:00", "2020-04-15 08:20:00")
        assert rows(postgres) == [*ROWS, LATER]
    assert result.rows_written == 2
    assert result.sinks[0].place == f"{postgres.url}/results"
    run(text, "2020-04-15 08:10:00")
    assert rows(postgres) == ROWS
    postgres.run("UPDATE bid SET price = 0; UPDATE results SET total = 1")
    run(text, to="2020-04-15 08:10:00")
    assert [row.rpartition("|")[2] for row in rows(postgres)] == ["0.00", "1.00"]
    run(text)
    assert [row.rpartition("|")[2] for row in rows(postgres)] == ["0.00", "0.00"]
    assert staged(postgres) == []


@pytest.mark.nightly
@pytest.mark.parametrize("field", ["window_start", "window_end"])
def test_one_bound_of_a_window_says_the_other(run: Run, postgres: Postgres, bid: str, field: str) -> None:
    postgres.run(f"CREATE TABLE results ({field} timestamp, total numeric(38, 2))")
    postgres.run("INSERT INTO results VALUES ('2020-04-15 07:50:00', 1), ('2020-04-15 08:30:00', 2)")
    sink = declared("results", f"{field} TIMESTAMP(3), total DECIMAL(38, 2)", postgres)
    query = f"SELECT {field}, SUM(price) FROM {TUMBLE} GROUP BY window_start, window_end"
    text = script(bid, sink, f"INSERT INTO results {query}")
    for _ in range(2):
        run(text, "2020-04-15 08:00:00", "2020-04-15 08:20:00")
        assert [row.rpartition("|")[2] for row in rows(postgres)] == ["1.00", "11.00", "10.00", "2.00"]


@pytest.mark.nightly
def test_without_a_window_the_whole_table_or_nothing(run: Run, postgres: Postgres, bid: str) -> None:
    postgres.run("CREATE TABLE results (total numeric(38, 2)); INSERT INTO results VALUES (5)")
    query = f"SELECT SUM(price) FROM {TUMBLE} GROUP BY window_start, window_end"
    text = script(bid, declared("results", "total DECIMAL(38, 2)", postgres), f"INSERT INTO results {query}")
    with pytest.raises(BackfillError, match="the sink has no column of window_start as TIMESTAMP"):
        run(text, "2020-04-15 08:00:00")
    assert rows(postgres) == ["5.00"]
    run(text)
    assert rows(postgres) == ["10.00", "11.00"]


@pytest.mark.nightly
def test_a_key_keeps_the_row_of_the_latest_window(run: Run, postgres: Postgres, bid: str) -> None:
    columns = "item text PRIMARY KEY, window_start timestamp, window_end timestamp, total numeric(38, 2)"
    postgres.run(
        f"CREATE TABLE results ({columns}); INSERT INTO bid VALUES ('2020-04-15 08:18:00', 9, 'A');"
        "INSERT INTO results VALUES ('B', '2020-04-15 09:00:00', '2020-04-15 09:10:00', 1),"
        "('C', '2020-04-15 07:00:00', '2020-04-15 07:10:00', 1), ('X', '2020-04-15 08:00:00', '2020-04-15 08:10:00', 1)"
    )
    columns = "item STRING, window_start TIMESTAMP(3), window_end TIMESTAMP(3), total DECIMAL(38, 2)"
    sink = declared("results", f"{columns}, PRIMARY KEY (item) NOT ENFORCED", postgres)
    query = f"SELECT item, window_start, window_end, SUM(price) FROM {TUMBLE} GROUP BY item, window_start, window_end"
    for _ in range(2):
        run(script(bid, sink, f"INSERT INTO results {query}"), "2020-04-15 08:00:00", "2020-04-15 08:20:00")
        assert postgres.run("SELECT item, window_end::time, total FROM results ORDER BY 1") == [
            *("A|08:20:00|9.00", "B|09:10:00|1.00", "C|08:10:00|4.00", "D|08:10:00|5.00", "E|08:20:00|1.00"),
            "F|08:20:00|6.00",
        ]


@pytest.mark.nightly
def test_rows_of_one_key_and_one_window_are_refused(run: Run, postgres: Postgres, bid: str) -> None:
    postgres.run("CREATE TABLE results (window_start timestamp, window_end timestamp, total numeric(38, 2))")
    sink = declared("results", f"{SUM_COLUMNS}, PRIMARY KEY (window_start) NOT ENFORCED", postgres)
    query = f"SELECT window_start, window_end, SUM(price) FROM {TUMBLE} GROUP BY item, window_start, window_end"
    with pytest.raises(
        BackfillError, match=r'the primary key \("window_start"\) = \(2020-04-15 08:.*distinguish the rows'
    ):
        run(script(bid, sink, f"INSERT INTO results {query}"))
    assert rows(postgres) == staged(postgres) == []


TYPES = {
    "b": ("BOOLEAN", "boolean", ["true", "false"]),
    "t": ("TINYINT", "smallint", ["-128", "127"]),
    "s": ("SMALLINT", "smallint", ["-32768", "32767"]),
    "i": ("INT", "integer", ["-2147483648", "7"]),
    "l": ("BIGINT", "bigint", ["-9223372036854775808", "8"]),
    "f": ("FLOAT", "real", ["0.1", "'NaN'"]),
    "d": ("DOUBLE", "double precision", ["1e-300", "'-Infinity'"]),
    "n": ("DECIMAL(10, 2)", "numeric(10, 2)", ["-99999999.99", "0.10"]),
    "m": ("DECIMAL(38, 18)", "numeric", ["12345678901234567890.123456789012345678", "-0.500000000000000000"]),
    "v": ("VARCHAR(5)", "varchar(5)", ["'a|\"ü'", "''"]),
    "x": ("STRING", "text", ["'two\nlines'", "'O''Brien \\ 😀'"]),
    "c": ("CHAR(3)", "char(3)", ["'ab'", "'abc'"]),
    "y": ("DATE", "date", ["'0001-01-01'", "'2024-02-29'"]),
    "z": ("TIMESTAMP(6)", "timestamp", ["'1969-12-31 23:59:59.999999'", "'2024-03-31 02:30:00'"]),
    "w": ("TIMESTAMP(3)", "timestamp(3)", ["'1582-10-10 00:00:00.001'", "'9999-12-31 23:59:59.999'"]),
}


def test_every_type_comes_back_as_it_was(run: Run, postgres: Postgres) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (_, kind, _) in TYPES.items())
    values = ["NULL"] * len(TYPES), *zip(*(values for _, _, values in TYPES.values()), strict=True)
    postgres.run(f"CREATE TABLE given ({columns}); CREATE TABLE results ({columns});")
    postgres.run("INSERT INTO given VALUES " + ", ".join(f"({', '.join(row)})" for row in values))
    flink = ", ".join(f"{name} {kind}" for name, (kind, _, _) in TYPES.items())
    run(
        script(
            declared("given", flink, postgres),
            declared("results", flink, postgres),
            "INSERT INTO results SELECT * FROM given",
        )
    )
    assert rows(postgres) == sorted(postgres.run("SELECT * FROM given"))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("flink", "stored", "words"),
    [
        ("a BIGINT", "integer", "column a is integer in PostgreSQL, which Flink does not read as BIGINT"),
        ("a STRING", "uuid", "column a is uuid"),
        ("a TIMESTAMP(3)", "timestamptz", "column a is timestamp with time zone"),
        ("a INT, c INT", "integer", 'PostgreSQL has no column "c"'),
        ("a TIMESTAMP(3)", "timestamp", r"column a contains a time that is more precise than TIMESTAMP\(3\)"),
        ("a INT NOT NULL", "integer", "NULL in column a"),
    ],
)
def test_what_is_not_read_exactly_is_refused_when_it_is_read(
    run: Run, postgres: Postgres, results: Path, flink: str, stored: str, words: str
) -> None:
    value = "'2020-01-01 00:00:00.0001'" if "time" in stored else "NULL"
    postgres.run(f"CREATE TABLE given (a {stored}, b integer); INSERT INTO given VALUES ({value}, 1)")
    source = declared("given", f"{flink}, b INT", postgres)
    text = script(
        source, table("o", flink, results), f"INSERT INTO o SELECT {'a, c' if 'c INT' in flink else 'a'} FROM given"
    )
    with pytest.raises(BackfillError, match=words):
        run(text)
    assert not results.exists()


@pytest.mark.nightly
def test_a_column_nobody_reads_may_be_anything(run: Run, postgres: Postgres, results: Path) -> None:
    postgres.run(
        'CREATE TABLE given (a uuid, "order" integer, camelcase integer); INSERT INTO given VALUES (NULL, 1, 2)'
    )
    source = declared("given", 'a BYTES, `"order"` INT, camelCase INT', postgres)
    run(script(source, table("o", "b INT, c INT", results), 'INSERT INTO o SELECT `"order"`, camelCase FROM given'))
    assert lines(results) == ["1,2"]


@pytest.mark.nightly
def test_partitioned_reading_leaves_out_what_lies_outside_as_in_flink(
    run: Run, postgres: Postgres, results: Path
) -> None:
    postgres.run("CREATE TABLE given (a integer); INSERT INTO given SELECT nullif(g, 7) FROM generate_series(0, 20) g")
    options = {"scan__partition__column": "a", "scan__partition__num": "3"}
    options |= {"scan__partition__lower_bound": "5", "scan__partition__upper_bound": "12", "scan__fetch_size": "2"}
    source = declared("given", "a INT", postgres, **options)
    run(script(source, table("o", "a INT", results), "INSERT INTO o SELECT a FROM given"))
    assert sorted(map(int, lines(results))) == [5, 6, 8, 9, 10, 11, 12]


@pytest.mark.nightly
def test_a_second_backfill_of_the_same_sink_waits_for_none(
    run: Run, postgres: Postgres, bid: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_flinkcompat.backfill.connectors import jdbc_spark as jdbc
    from airflow_flinkcompat.backfill.connectors.jdbc import Database, JdbcSink
    from airflow_flinkcompat.backfill.protocols import PublishedRows, Range
    from airflow_flinkcompat.plan.nodes import Table

    monkeypatch.setattr(jdbc, "_PATIENCE_SECONDS", 1)
    postgres.run(f"CREATE TABLE results ({RESULTS})")
    database = Database(postgres.url, "results", "postgres", postgres.password)
    published = PublishedRows(Table(("", "", "results"), (), ()), ())
    other = jdbc.JdbcPublication(spark, JdbcSink(database), published, Range())
    other.check()
    text = script(bid, declared("results", SUM_COLUMNS, postgres), f"INSERT INTO results {SUM}")
    with pytest.raises(BackfillError, match="another backfill is publishing to"):
        run(text)
    other.discard()
    run(text)
    assert rows(postgres) == ROWS


def test_a_password_is_shown_nowhere(
    run: Run, postgres: Postgres, bid: str, spark: SparkSession, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from airflow_flinkcompat.backfill.connectors.jdbc import JdbcSource
    from airflow_flinkcompat.backfill.connectors.jdbc_spark import JdbcReader
    from airflow_flinkcompat.backfill.planning import plan
    from airflow_flinkcompat.backfill.steps import reads_of

    postgres.run(f"CREATE TABLE results ({RESULTS})")
    text = script(bid, declared("results", SUM_COLUMNS, postgres), f"INSERT INTO results {SUM}")
    request = BackfillRequest(JobSpec(text))
    (write,) = plan(request).work.writes
    (source,) = {read.source for step in write.inputs for read in reads_of(step)}
    assert isinstance(source, JdbcSource)
    spark.sparkContext.setLogLevel("INFO")
    JdbcReader(spark, source).rows().explain("extended")
    run(text)
    spark.sparkContext.setLogLevel("FATAL")
    shown = capfd.readouterr()
    settings = [f"{key}={value}" for key, value in spark.sparkContext.getConf().getAll()]
    seen = "\n".join([shown.out, shown.err, repr(write), json.dumps(request.to_dict()), *settings])
    assert "JDBCRelation" in seen
    assert postgres.password not in seen

    monkeypatch.setenv(PASSWORD, "not-" + postgres.password)
    with pytest.raises(BackfillError, match="cannot be reached: FATAL: password authentication failed") as caught:
        run(text)
    assert postgres.password not in str(caught.value)
    monkeypatch.delenv(PASSWORD)
    with pytest.raises(BackfillError, match=f"the variable {PASSWORD} is not set"):
        run(text)


def _inserting(postgres: Postgres) -> bool:
    return postgres.run("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == ["1"]


def _staging(postgres: Postgres) -> bool:
    return bool(staged(postgres))


@pytest.mark.nightly
@pytest.mark.parametrize("moment", mostly_nightly([_staging, _inserting], 1))
def test_a_killed_run_leaves_the_table_alone_and_the_next_one_cleans_up(
    run: Run, postgres: Postgres, bid: str, tmp_path: Path, moment: Callable[[Postgres], bool]
) -> None:
    postgres.run(
        f"CREATE TABLE results ({RESULTS}); {INSERT_LATER};"
        "INSERT INTO results SELECT '2020-04-15 08:00', '2020-04-15 08:10', 99;"
        "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql "
        "AS $$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$;"
        "CREATE TRIGGER wait BEFORE INSERT ON results FOR EACH STATEMENT EXECUTE FUNCTION wait()"
    )
    before = rows(postgres)
    text = script(bid, declared("results", SUM_COLUMNS, postgres), f"INSERT INTO results {SUM}")
    request = tmp_path / "request.json"
    bounds = {"from": "2020-04-15 08:00:00", "to": "2020-04-15 08:20:00"}
    request.write_text(json.dumps({"script": text, **bounds}), encoding="utf-8")
    job = subprocess.Popen(
        [sys.executable, "-m", "airflow_flinkcompat.backfill.job", "--request", str(request)],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "PYSPARK_SUBMIT_ARGS": f"--conf spark.jars.ivy={_ivy()} pyspark-shell"},
    )
    for _ in itertools.count():
        assert job.poll() is None
        if moment(postgres):
            break
        time.sleep(0.02)
    time.sleep(random.random() / 2)
    os.killpg(job.pid, 9)
    job.wait()
    assert rows(postgres) == before
    assert staged(postgres)
    postgres.run("DROP TRIGGER wait ON results")
    run(text, "2020-04-15 08:00:00", "2020-04-15 08:20:00")
    assert rows(postgres) == [*ROWS, LATER]
    assert staged(postgres) == []


def _ivy() -> str:
    from tests.support.spark_packages import NEEDS

    return dict(NEEDS.conf)["spark.jars.ivy"]
