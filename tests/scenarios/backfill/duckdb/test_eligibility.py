"""Native partials: the rows, counts and errors of Spark's own operators, and what is left to these."""

from __future__ import annotations

import random
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, run_backfill
from airflow_flinkcompat.backfill.duckdb import data_files, eligibility
from airflow_flinkcompat.backfill.duckdb.data_files import NotEligible
from airflow_flinkcompat.backfill.spark_sql.windows import EPOCH
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.duckdb.both_ways import BOUNDS, FILTER, QUERY, WINDOWS, both_ways, decided, job
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
@pytest.mark.parametrize(
    ("kind", "bounds"), mostly_nightly([("HOP", BOUNDS[0]), ("TUMBLE", BOUNDS[1]), ("CUMULATE", BOUNDS[1])])
)
def test_the_rows_are_those_of_sparks_own_operators(
    spark: SparkSession, history: Path, kind: str, bounds: tuple[str | None, str | None]
) -> None:
    text = job(history, QUERY.format(WINDOWS[kind] + FILTER if kind == "CUMULATE" else WINDOWS[kind]))
    (said,) = both_ways(spark, history, text, bounds)
    assert "DuckDB aggregates the files" in said


@pytest.mark.nightly
@pytest.mark.slow
def test_a_time_finer_than_declared_is_the_same_error(spark: SparkSession, history: Path) -> None:
    assert spark.getActiveSession() is spark
    text = job(history, QUERY.format(WINDOWS["HOP"])).replace("ts TIMESTAMP(3), k", "ts TIMESTAMP(2), k")
    said = []
    for way in ("auto", "off"):
        with pytest.raises(BackfillError) as error:
            run_backfill(BackfillRequest(JobSpec(text, source="job.sql"), native=way))
        said.append(str(error.value))
    assert "column ts contains a time that is more precise than TIMESTAMP(2)" in said[0]
    assert said[0] == said[1]
    assert not (history / "out").exists()


def test_what_is_computed_natively(history: Path) -> None:
    for kind, window in WINDOWS.items():
        said, covered = decided(job(history, QUERY.format(window)))
        assert covered
        assert len(said) == 1
        assert said[0].startswith(f"{kind}: there are about ")
        assert said[0].endswith("DuckDB aggregates the files to slices")


@pytest.mark.parametrize(
    ("select", "results", "reason"),
    [
        ("COUNT(x)", "s BIGINT", "column x has the type DOUBLE"),
        ("SUM(i * 2)", "s INT", "the argument of an aggregate is an expression"),
        ("SUM(n)", "s INT NOT NULL", "column n is NOT NULL, which only Spark checks"),
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


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("i > 0", ""),
        ("k <> 'it' AND i IS NOT NULL OR day = DATE '2024-01-01' AND NOT (b <= -3)", ""),
        ("i + 1 > 0", "rows are filtered by more than comparisons of columns with literals"),
        ("k LIKE 'a%'", "rows are filtered by more than comparisons of columns with literals"),
        ("k = 'it''s'", "rows are filtered by more than comparisons of columns with literals"),
        ("d > 1.5", "rows are filtered by more than comparisons of columns with literals"),
        ("i > b", "rows are filtered by more than comparisons of columns with literals"),
        ("n > 1", "column n is NOT NULL, which only Spark checks"),
    ],
)
def test_filtered_rows(history: Path, condition: str, reason: str) -> None:
    query = f"INSERT INTO o SELECT COUNT(*) FROM {WINDOWS['HOP']} WHERE {condition} GROUP BY window_start, window_end"
    said, covered = decided(job(history, query, "n BIGINT"))
    assert covered == (not reason)
    assert reason in said[0]


def test_files_of_other_types_few_rows_and_sparse_ones(history: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = job(history, QUERY.format(WINDOWS["HOP"]))
    said, covered = decided(text.replace("b BIGINT, d", "b INT, d"))
    assert not covered
    assert "column b is BIGINT in a.parquet, not INTEGER" in said[0]
    monkeypatch.setattr(eligibility, "DENSE", 1e9)
    assert "rows per key and slice" in decided(text)[0][0]
    monkeypatch.setattr(eligibility, "ROWS", 10_000)
    assert "the files contain only 1020 rows" in decided(text)[0][0]
    (history / "in" / "d.parquet").write_bytes(b"no parquet at all")
    assert "because DuckDB failed: " in decided(text)[0][0]


def test_it_can_be_turned_off() -> None:
    from airflow_flinkcompat.backfill.run import _accelerator

    ways = {"native": ("auto", "off", "auto"), "master": (None, None, "spark://host:7077")}
    requests = [
        BackfillRequest(JobSpec(""), native=native, master=master)
        for native, master in zip(*ways.values(), strict=True)
    ]
    assert [_accelerator(request, print) is not None for request in requests] == [True, False, False]
    with pytest.raises(BackfillError, match="native is 'on'"):
        BackfillRequest(JobSpec(""), native="on")


def test_paths_are_literals() -> None:
    assert data_files.path_of("file:///a%20b/c") == "/a b/c"
    assert data_files.filled_in("[{files}]", ["file:///it's"]) == "['/it''s']"
    for place in ("s3a://bucket/a", "file:///a/*.parquet"):
        with pytest.raises(NotEligible):
            data_files.path_of(place)


def test_files_are_those_that_spark_lists(tmp_path: Path) -> None:
    for name in ("b", "a/c", "_d=1/e", "_f/g", ".h", "a/_i", "j._COPYING_"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x", encoding="utf-8")
    (tmp_path / "empty").touch()
    assert data_files.listed(tmp_path.as_uri()) == tuple((tmp_path / name).as_uri() for name in ("_d=1/e", "a/c", "b"))
    (tmp_path / "a" / "link").symlink_to(tmp_path / "_f")
    with pytest.raises(NotEligible, match="links to other folders"):
        data_files.listed(tmp_path.as_uri())
