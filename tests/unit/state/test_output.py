"""Rows in formats that cannot represent all values of SQL."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_flinkcompat.state import QueryFailed, open_savepoint, query
from airflow_flinkcompat.state.output import json_rows, text_table, write_rows
from dev.measure.savepoint_fixtures import FOLDER

SAVEPOINT = str(FOLDER / "hopping-windows-become-tumbling-ones" / "old")
LATE = 2_932_897
"""Days from 1970 to the first day of the year 10000."""
ROWS = pa.table(
    {
        "number": pa.array([float("nan"), float("inf"), -1.5]),
        "day": pa.array([LATE, 0, None], pa.date32()),
        "moment": pa.array([LATE * 86_400_000, 0, None], pa.timestamp("ms")),
        "content": pa.array([b"\0\xff", b"", None]),
        "many": pa.array([[float("-inf"), None], [], None], pa.list_(pa.float64())),
    }
)
JSON = (
    '{"number": "NaN", "day": "10000-01-01", "moment": "10000-01-01 00:00:00.000", "content": "00ff", '
    '"many": ["-Infinity", null]}\n'
    '{"number": "Infinity", "day": "1970-01-01", "moment": "1970-01-01 00:00:00", "content": "", "many": []}\n'
    '{"number": -1.5, "day": null, "moment": null, "content": null, "many": null}\n'
)


def written(rows: pa.Table, style: str, folder: Path) -> bytes:
    write_rows(rows.to_reader(), style, folder / "rows")
    assert [path.name for path in folder.iterdir()] == ["rows"]
    return (folder / "rows").read_bytes()


def test_json_of_values_that_python_or_json_lacks(tmp_path: Path) -> None:
    assert written(ROWS, "json", tmp_path).decode() == JSON
    for line in json_rows(ROWS):
        json.loads(line, parse_constant=pytest.fail)


def test_csv_and_text_of_the_same_values(tmp_path: Path) -> None:
    assert written(ROWS, "csv", tmp_path).decode().splitlines()[1] == (
        'nan,"10000-01-01","10000-01-01 00:00:00.000","00ff","[""-Infinity"", null]"'
    )
    assert text_table(ROWS).splitlines()[2].split()[:3] == ["nan", "10000-01-01", "10000-01-01"]


def test_the_ends_of_time_are_infinite_and_sums_are_numbers(tmp_path: Path) -> None:
    sql = "SELECT timestamp 'infinity' a, timestamptz '-infinity' b, date 'infinity' c, sum(field_0) d"
    with query(open_savepoint(SAVEPOINT), f"{sql} FROM globalwindowaggregate") as result:
        rows = result.reader().read_all()
    assert written(rows, "csv", tmp_path).decode().splitlines()[1] == '"infinity","-infinity","infinity",150'
    assert written(rows, "json", tmp_path) == b'{"a": "infinity", "b": "-infinity", "c": "infinity", "d": 150}\n'


def test_nested_values_that_python_lacks() -> None:
    late = pa.array([[LATE * 86_400_000, None]], pa.list_(pa.timestamp("ms")))
    rows = pa.table({"many": late, "row": pa.StructArray.from_arrays([late], ["inner"])})
    text = '["10000-01-01 00:00:00.000", null]'
    assert list(json_rows(rows)) == [f'{{"many": {text}, "row": {{"inner": {text}}}}}']


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        ("INTERVAL '0' SECOND", "PT0S"),
        ("INTERVAL '20' SECOND", "PT20S"),
        ("INTERVAL '1 year 2 days'", "P12M2D"),
        ("INTERVAL '26 hours 4 minutes 5.25 seconds'", "PT26H4M5.25S"),
        ("INTERVAL '1 month' - INTERVAL '2 days 1 minute 0.5 seconds'", "P1M-2DT-1M-0.5S"),
    ],
)
def test_an_interval_has_the_form_of_iso_8601(interval: str, text: str, tmp_path: Path) -> None:
    with query(open_savepoint(SAVEPOINT), f"SELECT {interval} AS i, NULL::INTERVAL AS n") as result:
        rows = result.reader().read_all()
    assert written(rows, "csv", tmp_path).decode() == f'"i","n"\n"{text}",\n'
    assert written(rows, "json", tmp_path).decode() == f'{{"i": "{text}", "n": null}}\n'
    assert text_table(rows).splitlines()[-1].split() == [text, "NULL"]


def test_one_statement_is_allowed() -> None:
    for sql in ("SELECT 1; SELECT 2", ""):
        with pytest.raises(QueryFailed, match="must be one statement that returns rows"):
            query(open_savepoint(SAVEPOINT), sql).__enter__()


def test_a_failed_query_leaves_the_former_file(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("former\n", "utf-8")
    failing = (
        "SELECT CASE WHEN sum_b > 3 THEN error('stop') END FROM (SELECT field_0 AS sum_b FROM globalwindowaggregate)"
    )
    with pytest.raises(QueryFailed, match="stop"), query(open_savepoint(SAVEPOINT), failing) as result:
        write_rows(result.reader(), "csv", file)
    assert file.read_text("utf-8") == "former\n"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_remains_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_rows(ROWS.to_reader(), "json", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text("utf-8") == JSON


def test_columns_with_equal_names_are_numbered() -> None:
    with query(open_savepoint(SAVEPOINT), "SELECT 1 AS a, 2 AS a, 3 AS b") as result:
        assert result.reader().read_all().to_pylist() == [{"a": 1, "a_1": 2, "b": 3}]


def test_the_list_of_tables_has_no_other_tables() -> None:
    savepoint = open_savepoint(SAVEPOINT)
    for sql in ("SHOW TABLES", "SELECT table_name FROM information_schema.tables ORDER BY ALL"):
        with query(savepoint, sql) as result:
            names = [row[0] for row in zip(*result.reader().read_all().to_pydict().values(), strict=True)]
        assert names == sorted([*(table.name for table in savepoint.tables), "_operators", "_sources"])


def test_a_moment_in_a_table_of_text() -> None:
    assert text_table(pa.table({"at": [datetime.datetime(2024, 1, 1)]})).splitlines()[-1] == "2024-01-01 00:00:00"
