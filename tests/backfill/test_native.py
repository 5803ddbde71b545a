"""Native partials: the rows, counts and errors of Spark's own operators, and what is left to these."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, native, run_backfill
from airflow_flinkcompat.backfill.native import Natives, NotNative
from airflow_flinkcompat.backfill.windows import EPOCH
from tests.backfill.scripts import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = (
    "ts TIMESTAMP(3), k STRING, i INT, b BIGINT, d DECIMAL(10, 2), day DATE, at_ TIMESTAMP(6), x DOUBLE, "
    "n INT NOT NULL, WATERMARK FOR ts AS ts"
)
RESULTS = (
    "k STRING, d DECIMAL(10, 2), ws TIMESTAMP(3), we TIMESTAMP(3), n BIGINT, c BIGINT, si INT, sb BIGINT, ab BIGINT, "
    "sd DECIMAL(38, 2), lo STRING, hi INT, l DATE, h DATE, a TIMESTAMP(6), md DECIMAL(10, 2)"
)
QUERY = (
    "INSERT INTO o SELECT k, d, window_start, window_end, COUNT(*), COUNT(i), SUM(i), SUM(b), AVG(b), SUM(d), MIN(k), "
    "MAX(i), MIN(day), MAX(day), MAX(at_), MIN(d) FROM {} GROUP BY k, d, window_start, window_end"
)
WINDOWS = {
    "TUMBLE": "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE, INTERVAL '-3' MINUTE))",
    "HOP": "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '4' MINUTE, INTERVAL '10' MINUTE))",
    "CUMULATE": "TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '20' MINUTE))",
}


def files(place: Path, name: str, columns: str) -> str:
    return (
        f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{place}', 'format' = 'parquet', "
        "'parquet.utc-timezone' = 'true');"
    )


def job(folder: Path, query: str, results: str = RESULTS) -> str:
    return script(files(folder / "in", "t", COLUMNS), files(folder / "out", "o", results), query)


def decided(text: str) -> tuple[list[str], bool]:
    """What is said of a script's aggregation, and whether it is computed natively."""
    from airflow_flinkcompat.backfill import plan_backfill

    said: list[str] = []
    return said, Natives(True, said.append).covers(plan_backfill(BackfillRequest(text, "job.sql")))


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little data is worth it here."""
    monkeypatch.setattr(native, "ROWS", 1)
    monkeypatch.setattr(native, "DENSE", 0.0)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """An hour around 1970 in three files, one of them deep, with NULLs, duplicates and sums beyond their type."""
    import pyarrow as arrow
    from pyarrow import parquet

    draw = random.Random(9)
    schema = arrow.schema([
        ("ts", arrow.timestamp("us")), ("k", arrow.string()), ("i", arrow.int32()), ("b", arrow.int64()),
        ("d", arrow.decimal128(10, 2)), ("day", arrow.date32()), ("at_", arrow.timestamp("us")),
        ("x", arrow.float64()), ("n", arrow.int32()),
    ])  # fmt: skip
    (tmp_path / "in" / "deep=1").mkdir(parents=True)
    for name in ("a.parquet", "deep=1/b's.parquet", "c.parquet"):
        rows = []
        for _ in range(300):
            at = EPOCH + timedelta(milliseconds=draw.randrange(-1_800_000, 1_800_000))
            rows.append({
                "ts": None if draw.random() < 0.03 else at,
                "k": draw.choice(["a", "", "ä", "Z", None]),
                "i": draw.choice([None, 2**31 - 1, -5, 7]),
                "b": draw.choice([None, 2**63 - 1, -(2**63), 3]),
                "d": draw.choice([None, Decimal("99999999.99"), Decimal("-0.01")]),
                "day": draw.choice([None, at.date()]),
                "at_": draw.choice([None, at + timedelta(microseconds=1)]),
                "x": 0.5,
                "n": 1,
            })  # fmt: skip
        rows += rows[:40]
        options = {"use_deprecated_int96_timestamps": True} if name == "c.parquet" else {}
        parquet.write_table(
            arrow.Table.from_pylist(rows, schema), tmp_path / "in" / name, row_group_size=100, **options
        )
    (tmp_path / "in" / "_hidden.parquet").write_bytes(b"no row")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("bounds", [(None, None), ("1969-12-31 23:41", "1970-01-01 00:13")])
def test_the_rows_are_those_of_sparks_own_operators(
    spark: SparkSession, history: Path, kind: str, bounds: tuple[str | None, str | None]
) -> None:
    from_, to = (None if moment is None else datetime.fromisoformat(moment) for moment in bounds)
    text, found = job(history, QUERY.format(WINDOWS[kind])), []
    for way in ("auto", "off"):
        said: list[str] = []
        place = history / way
        request = BackfillRequest(text, "job.sql", from_=from_, to=to, sinks={"o": str(place)}, native=way)
        result = run_backfill(request, said.append)
        assert any("DuckDB aggregates files" in line for line in said) == (way == "auto"), said
        rows = sorted(map(repr, spark.read.parquet(str(place)).collect()))
        counts = (result.rows_read, result.rows_dropped, result.sinks[0].rows, result.sinks[0].windows)
        found.append((rows, counts))
    assert found[0] == found[1]
    assert found[0][0]
    assert found[0][1][1] > 0


@pytest.mark.slow
def test_a_time_finer_than_declared_is_the_same_error(spark: SparkSession, history: Path) -> None:
    assert spark.getActiveSession() is spark
    text = job(history, QUERY.format(WINDOWS["HOP"])).replace("ts TIMESTAMP(3), k", "ts TIMESTAMP(2), k")
    said = []
    for way in ("auto", "off"):
        with pytest.raises(BackfillError) as error:
            run_backfill(BackfillRequest(text, "job.sql", native=way))
        said.append(str(error.value))
    assert "column ts holds a time finer than TIMESTAMP(2)" in said[0]
    assert said[0] == said[1]
    assert not (history / "out").exists()


def test_what_is_computed_natively(history: Path) -> None:
    for kind, window in WINDOWS.items():
        said, covered = decided(job(history, QUERY.format(window)))
        assert covered
        assert len(said) == 1
        assert said[0].startswith(f"{kind}: about ")
        assert said[0].endswith("DuckDB aggregates files to slices")


@pytest.mark.parametrize(
    ("select", "results", "reason"),
    [
        ("SUM(x)", "s DOUBLE", "column x is DOUBLE"),
        ("SUM(i * 2)", "s INT", "an aggregate is not over a plain column"),
        ("SUM(n)", "s INT NOT NULL", "column n is NOT NULL, which Spark checks"),
        ("COUNT(DISTINCT i)", "s BIGINT", "an aggregate is DISTINCT"),
    ],
)
def test_what_is_left_to_spark(history: Path, select: str, results: str, reason: str) -> None:
    said, covered = decided(
        job(history, f"INSERT INTO o SELECT {select} FROM {WINDOWS['HOP']} GROUP BY window_start, window_end", results)
    )
    assert not covered
    assert len(said) == 1
    assert said[0] == f"HOP: Spark's own operators aggregate all rows, because {reason}"


def test_filtered_rows_are_left_to_spark(history: Path) -> None:
    query = f"INSERT INTO o SELECT COUNT(*) FROM {WINDOWS['HOP']} WHERE i > 0 GROUP BY window_start, window_end"
    said, covered = decided(job(history, query, "n BIGINT"))
    assert not covered
    assert said == ["HOP: Spark's own operators aggregate all rows, because rows are filtered"]


def test_files_of_other_types_few_rows_and_sparse_ones(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = job(history, QUERY.format(WINDOWS["HOP"]))
    said, covered = decided(text.replace("b BIGINT, d", "b INT, d"))
    assert not covered
    assert "column b is BIGINT in a.parquet, not INTEGER" in said[0]
    monkeypatch.setattr(native, "DENSE", 1e9)
    assert "rows per key and slice" in decided(text)[0][0]
    monkeypatch.setattr(native, "ROWS", 10_000)
    assert "1020 rows are too few" in decided(text)[0][0]
    (history / "in" / "d.parquet").write_bytes(b"no parquet at all")
    assert "DuckDB does not read the files" in decided(text)[0][0]


def test_it_can_be_turned_off(history: Path) -> None:
    from airflow_flinkcompat.backfill import plan_backfill

    request = BackfillRequest(job(history, QUERY.format(WINDOWS["HOP"])), "job.sql", native="off")
    said: list[str] = []
    assert not Natives(request.native == "auto", said.append).covers(plan_backfill(request))
    assert said == []
    with pytest.raises(BackfillError, match="native is 'on'; write auto or off"):
        BackfillRequest("", native="on")


def test_paths_are_literals() -> None:
    assert native.path_of("file:///a%20b/c") == "/a b/c"
    assert native.read_parquet(["/it's"]) == "read_parquet(['/it''s'], hive_partitioning = false)"
    for place in ("s3a://bucket/a", "file:///a/*.parquet"):
        with pytest.raises(NotNative):
            native.path_of(place)
