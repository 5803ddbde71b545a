"""Native partials over csv: only what is read the same for certain, and Spark after all where a file is not plain."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill.duckdb import eligibility, partials
from airflow_flinkcompat.backfill.duckdb.data_files import CsvFiles, filled_in
from airflow_flinkcompat.backfill.formats.text import CsvFormat
from airflow_flinkcompat.backfill.spark_sql.windows import EPOCH
from airflow_flinkcompat.model.text import sql_text
from airflow_flinkcompat.plan.types import Column, DataType
from tests.scenarios.backfill.duckdb.both_ways import (
    BOUNDS,
    COLUMNS,
    FILTER,
    QUERY,
    WINDOWS,
    both_ways,
    decided,
    files,
    job,
)
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NULLS = ", 'csv.null-literal' = 'NULL'"
HOP = QUERY.format(WINDOWS["HOP"])
KINDS = {
    "INT": DataType("INT"),
    "DECIMAL": DataType("DECIMAL", parameters=(5, 2)),
    "DATE": DataType("DATE"),
    "TIMESTAMP": DataType("TIMESTAMP", parameters=(3,)),
    "VARCHAR": DataType("VARCHAR", parameters=(2147483647,)),
}


def csv(folder: Path, more: str = NULLS) -> str:
    return files(folder / "in", "t", COLUMNS, "csv", more)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Two hours around 1970 in three files: every way to write a plain field, and lines that are none."""
    draw = random.Random(5)
    (tmp_path / "in" / "deep").mkdir(parents=True)
    for name in ("a.csv", "deep/b's", "c.txt"):
        rows = []
        for _ in range(400):
            at = EPOCH + timedelta(microseconds=draw.randrange(-3_600_000_000, 3_600_000_000))
            time = draw.choice([f"{at:%Y-%m-%d %H:%M:%S}", f"{at:%Y-%m-%d %H:%M:%S.%f}"[: draw.randrange(21, 27)]])
            rows.append(
                [
                    "NULL" if draw.random() < 0.03 else time,
                    draw.choice(["a", "", "ä", "Z ", "'q'", "NULL", "null"]),
                    draw.choice(["NULL", "2147483647", "-5", "+7", "007", "-0"]),
                    draw.choice(["NULL", "9223372036854775807", "-9223372036854775808", "3"]),
                    draw.choice(["NULL", "99999999.99", "-0.01", "1", "+01.5", "-0", "7."]),
                    draw.choice(["NULL", f"{at:%Y-%m-%d}", "1969-12-31", "9999-12-31"]),
                    draw.choice(["NULL", f"{at:%Y-%m-%d %H:%M:%S.%f}"]),
                    "no number, which nobody reads".replace(",", ""),
                    "1",
                ]
            )
        lines = "\n".join(map(",".join, rows + rows[:40])) + "\n\n"
        (tmp_path / "in" / name).write_text(lines.rstrip("\n") if name == "c.txt" else lines, encoding="utf-8")
    (tmp_path / "in" / "empty.csv").touch()
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "bounds"), mostly_nightly([("TUMBLE", BOUNDS[0]), ("HOP", BOUNDS[1])], 0))
def test_the_rows_are_those_of_sparks_own_operators(
    spark: SparkSession, history: Path, kind: str, bounds: tuple[str | None, str | None]
) -> None:
    text = job(history, QUERY.format(WINDOWS[kind] + FILTER if kind == "HOP" else WINDOWS[kind]), source=csv(history))
    (said,) = both_ways(spark, history, text, bounds)
    assert "DuckDB aggregates files" in said


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("late", "reason"),
    [
        (b'1970-01-01 00:00:00,"q,""q",NULL,3,1,NULL,NULL,0,1\n', "ValueError: there is b'\"' in "),
        (b"1970-01-01 00:00:00,q\xff,NULL,3,1,NULL,NULL,0,1\n", "InvalidInputException: "),
    ],
)
def test_what_shows_late_makes_spark_do_it_all(
    spark: SparkSession, history: Path, late: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that DuckDB does not read, or not for certain, far behind those that were looked at."""
    monkeypatch.setattr(eligibility, "SAMPLE", 100)
    with (history / "in" / "c.txt").open("ab") as file:
        file.write(b"\n1970-01-01 00:00:01,q,NULL,3,1,NULL,NULL,0,1" * 4000 + b"\n" + late)
    chosen, failed = both_ways(spark, history, job(history, HOP, source=csv(history)))
    assert "DuckDB aggregates files" in chosen
    assert failed.startswith(f"DuckDB failed over t ({reason}")
    assert failed.endswith("), so Spark's own operators aggregate all rows")


@pytest.mark.nightly
@pytest.mark.slow
def test_a_duckdb_without_memory_makes_spark_do_it_all(
    spark: SparkSession, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partials, "MEMORY", "1MB")
    _, failed = both_ways(spark, history, job(history, HOP, source=csv(history)))
    assert "(OutOfMemoryException: " in failed


@pytest.mark.parametrize(
    ("more", "name", "content", "reason"),
    [
        (", 'csv.ignore-parse-errors' = 'true'", "d.csv", b"", "lines that cannot be parsed are skipped"),
        (", 'csv.field-delimiter' = '\\t'", "d.csv", b"", "fields are separated by '\\t'"),
        ("", "d.csv.gz", b"x", "d.csv.gz may be compressed"),
        ("", "d.csv", b'"', "d.csv contains a quote"),
        ("", "d.csv", b"\r\n", "d.csv contains a carriage return"),
        ("", "d.csv", b"\xef\xbb\xbf", "d.csv contains a byte order mark"),
        ("", "d.csv", b"a,b\n", "DuckDB failed: Invalid Input Error: CSV Error on Line: 1"),
    ],
)
@pytest.mark.slow
def test_what_is_left_to_spark(history: Path, more: str, name: str, content: bytes, reason: str) -> None:
    (history / "in" / name).write_bytes(content)
    if content == b"a,b\n":
        for file in ("a.csv", "c.txt", "deep/b's"):
            (history / "in" / file).unlink()
    said, covered = decided(job(history, HOP, source=csv(history, more)))
    assert not covered
    assert said == [f"HOP: Spark's own operators aggregate all rows, because {reason}"]


def test_quotes_that_are_none_and_types_that_are_not_read(history: Path) -> None:
    (history / "in" / "d.csv").write_text('1970-01-01 00:00:00,",1,1,1,NULL,NULL,0,1\n', encoding="utf-8")
    off = csv(history, f"{NULLS}, 'csv.disable-quote-character' = 'true'")
    assert decided(job(history, HOP, source=off))[1]
    count = f"INSERT INTO o SELECT COUNT(k) FROM {WINDOWS['HOP']} GROUP BY window_start, window_end"
    said, _ = decided(job(history, count, "n BIGINT", off.replace("k STRING", "k BOOLEAN")))
    assert "column k of type BOOLEAN is stored as text" in said[0]


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("INT", "-2147483648", -(2**31)),
        ("INT", "+007", 7),
        ("DECIMAL", "-0.5", Decimal("-0.50")),
        ("DECIMAL", "0999.99", Decimal("999.99")),
        ("DATE", "2024-02-29", date(2024, 2, 29)),
        ("TIMESTAMP", "1969-12-31 23:59:59.999999", datetime(1969, 12, 31, 23, 59, 59, 999000)),
        ("TIMESTAMP", "2024-01-01 00:00:00", datetime(2024, 1, 1)),
        ("VARCHAR", " a ", " a "),
        ("VARCHAR", "", ""),
        *((kind, "NULL", None) for kind in KINDS),
    ],
)
def test_plain_fields(tmp_path: Path, kind: str, field: str, value: object) -> None:
    assert read(tmp_path, kind, f"1,{field},2\n\n1,{field},2") == [value, value]


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("INT", ("", " 5", "5 ", "1e3", "1.0", "0x1F", "1_000", "2147483648", "٣", "true")),
        ("DECIMAL", ("", "1.005", "1000", "1e2", ".5", "NaN", "1,5", "-")),
        ("DATE", ("", "2024-02-30", "2024-1-1", "infinity", "epoch", "0000-01-01", "10000-01-01", "0001-01-01 (BC)")),
        (
            "TIMESTAMP",
            (
                "", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01 24:00:00", "2024-01-01 00:00:60", "infinity",
                "2024-02-30 00:00:00", "2024-01-01 00:00:00Z", "2024-01-01 00:00:00+02", "2024-01-01 00:00:00.1234567",
                "0000-01-01 00:00:00", "10000-01-01 00:00:00", " 2024-01-01 00:00:00", "2024-01-01 00:00:00.",
            ),
        ),
    ],
)  # fmt: skip
@pytest.mark.slow
def test_fields_that_are_not_plain_are_errors(tmp_path: Path, kind: str, fields: tuple[str, ...]) -> None:
    import duckdb

    for field in fields:
        with pytest.raises(duckdb.Error):
            pytest.fail(f"{field} is {read(tmp_path, kind, f'1,{field},2')}")


@pytest.mark.parametrize("line", ["1,2", "1,2,3,", "1,2,3,4", "1,2,3,,", "1", " "])
@pytest.mark.slow
def test_a_line_of_another_number_of_fields_is_an_error(tmp_path: Path, line: str) -> None:
    import duckdb

    for rows in (line, f"1,2,3\n{line}\n1,2,3"):
        for kind in ("INT", "VARCHAR"):
            with pytest.raises(duckdb.Error):
                pytest.fail(str(read(tmp_path, kind, rows)))


def read(folder: Path, kind: str, rows: str) -> list[object]:
    """The second of three columns as DuckDB is told to read it."""
    import duckdb

    file = folder / "rows.csv"
    file.write_text(rows, encoding="utf-8")
    columns = tuple(Column(name, KINDS[kind]) for name in "abc")
    held = CsvFiles((file.as_uri(),), CsvFormat(null_literal="NULL"), columns)
    with duckdb.connect(config={"threads": 1}) as connection:
        found = connection.sql(filled_in(f"SELECT {held.value(columns[1])} FROM {held.relation}", held.files))
        return [row[0] for row in found.fetchall()]


def test_a_null_literal_is_a_literal(tmp_path: Path) -> None:
    columns = (Column("a", KINDS["VARCHAR"]), Column("b", KINDS["INT"]))
    assert sql_text("it's") in CsvFiles((), CsvFormat(null_literal="it's"), columns).value(columns[0])
