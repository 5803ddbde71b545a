"""Tables of stored state on a real Spark: the same rows as DuckDB reads in this process, and the same errors."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from airflow_flinkcompat import spark_state
from airflow_flinkcompat.cli import cli
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.spark_state import read_table
from airflow_flinkcompat.state import QueryFailed, open_savepoint, query
from dev.benchmarks.generated_savepoints import generate
from dev.measure.savepoint_fixtures import FOLDER, SAVEPOINTS
from tests.support.nightly import mostly_nightly

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
HOP = FOLDER / "hopping-windows-become-tumbling-ones" / "old"


@pytest.mark.parametrize(
    "path", mostly_nightly([HOP, SAVEPOINTS / "2.3" / "join-types", SAVEPOINTS / "2.3" / "group-types"])
)
def test_spark_reads_the_rows_of_duckdb(path: Path, spark: SparkSession) -> None:
    savepoint = open_savepoint(str(path))
    for table in savepoint.tables:
        times = [field.name for field in table.schema if str(field.type) == "time32[ms]"]
        casts = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in times)
        with query(savepoint, f"SELECT *{f' REPLACE ({casts})' if times else ''} FROM {table.name}") as result:
            expected = sorted(map(repr, result.reader().read_all().to_pylist()))
        found = read_table(spark, savepoint, table.name).toArrow()
        assert sorted(map(repr, found.to_pylist())) == expected


@pytest.mark.nightly
def test_key_groups_are_shared_among_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    savepoint = open_savepoint(str(generate(HOP, 3000, tmp_path / "large")))
    monkeypatch.setattr(spark_state, "_PART", savepoint.size // 4)
    rows = read_table(spark, savepoint, "globalwindowaggregate")
    assert rows.rdd.getNumPartitions() > 3
    assert rows.select("key_0").distinct().count() == 3000
    with query(savepoint, "SELECT count(*) AS rows FROM globalwindowaggregate") as result:
        assert result.reader().read_all().to_pylist() == [{"rows": rows.count()}]


def test_a_table_that_is_missing(spark: SparkSession) -> None:
    with pytest.raises(QueryFailed, match="has no table nothing: state show lists the tables"):
        read_table(spark, open_savepoint(str(HOP)), "nothing")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["state", "sql", *arguments, "--spark"], catch_exceptions=True)
    if isinstance(result.exception, InputError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.nightly
@pytest.mark.usefixtures("spark")
def test_the_command_shows_and_writes_rows(tmp_path: Path) -> None:
    sql = "SELECT key_0, sum(field_0) AS total FROM globalwindowaggregate GROUP BY ALL ORDER BY key_0"
    alone = CliRunner().invoke(cli, ["state", "sql", str(HOP), sql])
    assert run(str(HOP), sql) == alone.stdout
    for style in ("csv", "json", "parquet"):
        run(str(HOP), sql, "--format", style, "--output", str(tmp_path / style))
        assert list((tmp_path / style).glob(f"part-*.{style}*"))
    with pytest.raises(InputError, match="already exists"):
        run(str(HOP), sql, "--format", "csv", "--output", str(tmp_path / "csv"))


@pytest.mark.usefixtures("spark")
def test_errors_of_a_query_and_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing"):
        run(str(HOP), "SELECT * FROM nothing")
    with pytest.raises(InputError, match="add --format and --output"):
        run(str(HOP), "SELECT 1", "--format", "json")
    large = generate(HOP, 3000, tmp_path / "large")
    (file,) = (path for path in large.iterdir() if path.name != "_metadata")
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2] + b"\xff" * (len(content) - len(content) // 2))
    with pytest.raises(InputError) as found:
        run(str(large), "SELECT sum(field_0) FROM globalwindowaggregate")
    assert f"large/{file.name}: " in str(found.value)
    assert len(str(found.value).splitlines()) == 1
