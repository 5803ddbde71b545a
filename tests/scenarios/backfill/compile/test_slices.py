"""Aggregation by slices: what is computed so, when it pays, and that its rows are those of the plain way."""

from __future__ import annotations

import math
import random
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, plan, run_backfill
from airflow_flinkcompat.backfill.execution.windows import DENSE, density
from airflow_flinkcompat.backfill.spark_sql.windows import Aligned, from_micros, to_micros
from airflow_flinkcompat.backfill.steps import Group, Read, Slices, Step, UnionAll, Work
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.plan.nodes import WindowKind
from tests.support.backfill.scripts import requested, script, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


COLUMNS = (
    "ts TIMESTAMP(3), k STRING, i INT, b BIGINT, d DECIMAL(10, 2), g DECIMAL(30, 2), x DOUBLE, f BOOLEAN, "
    "WATERMARK FOR ts AS ts"
)
HOP = "TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '4' MINUTES, INTERVAL '10' MINUTES))"
CUMULATE = "TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '20' MINUTES, INTERVAL '2' MINUTE))"
TUMBLE = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTES))"
WINDOW = "GROUP BY window_start, window_end"


def work_of(query: str, columns: str, source: str | Path = "/history", **request: object) -> Work:
    source = table("t", COLUMNS, source, csv__null_literal="NULL")
    text = script(source, table("o", columns, "/results"), f"INSERT INTO o {query}")
    return plan(requested(text, **request)).work


def slices_of(query: str, columns: str) -> Slices | None:
    step: Step = work_of(query, columns).writes[0].inputs[0]
    while not isinstance(step, Group):
        assert not isinstance(step, Read | UnionAll)
        step = step.input
    return step.slices


def test_the_parts_of_aggregates_are_computed_once() -> None:
    found = slices_of(f"SELECT k, SUM(i), AVG(i), COUNT(i), COUNT(*) FROM {HOP} {WINDOW}, k",
                      "k STRING, s INT, a INT, c BIGINT, n BIGINT")  # fmt: skip
    assert found is not None
    assert found.partials == ("sum(c2)", "count(c2)", "count(1)")
    assert found.keys == ((2, "c1"),)
    assert found.fields == ((0, 0), (1, 1))
    assert found.aggregates[2:] == ((5, "sum(p1)"), (6, "sum(p2)"))


def test_projections_and_filters_in_between_go_to_the_slices() -> None:
    query = (
        "SELECT e, key, SUM(v) FROM "
        f"(SELECT window_start AS s, window_end AS e, UPPER(k) AS key, i * 2 AS v, f FROM {HOP}) "
        "WHERE f AND v > 4 GROUP BY s, e, key"
    )
    found = slices_of(query, "we TIMESTAMP(3), k STRING, s INT")
    assert found is not None
    assert found.keys == ((2, "upper(c1)"),)
    assert found.condition == "((c7 AND (CAST(c2 * CAST('2' AS INT) AS INT) > CAST('4' AS INT))))"
    assert found.partials == ("sum(CAST(c2 * CAST('2' AS INT) AS INT))",)


def test_an_inner_filter_stands_before_what_it_guards() -> None:
    inner = f"SELECT window_start AS s, window_end AS e, i, f FROM {HOP} WHERE i <> 0"
    found = slices_of(f"SELECT e, COUNT(*) FROM ({inner}) WHERE 10 / i > 1 GROUP BY s, e", "e TIMESTAMP(3), n BIGINT")
    assert found is not None
    guard, guarded = found.condition.index("(c2 <> "), found.condition.index("div c2")
    assert guard < guarded


def test_distinct_values_become_keys_of_a_slice() -> None:
    found = slices_of(
        f"SELECT COUNT(DISTINCT b) FILTER (WHERE f), SUM(i), MAX(DISTINCT x) FROM {CUMULATE} {WINDOW}",
        "n BIGINT, s INT, x DOUBLE",
    )
    assert found is not None
    assert found.values == ((11, "IF(c7, c3, NULL)"),)
    assert found.aggregates[0][1] == "count(DISTINCT c11)"
    assert found.partials[0] == "sum(c2)"
    assert found.partials[1].startswith("max(IF(isnan(c6)")


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        (f"SELECT SUM(i), MAX(window_time) FROM {TUMBLE} {WINDOW}", "s INT, t TIMESTAMP(3)"),
        ("SELECT SUM(i) FROM " + HOP.replace("'10'", "'4'") + f" {WINDOW}", "s INT"),
        (f"SELECT SUM(g) FROM {HOP} {WINDOW}", "s DECIMAL(38, 2)"),
        (f"SELECT AVG(DISTINCT i) FROM {HOP} {WINDOW}", "s INT"),
        (f"SELECT COUNT(DISTINCT i), COUNT(DISTINCT b) FROM {HOP} {WINDOW}", "a BIGINT, b BIGINT"),
        (f"SELECT MAX(window_time) FROM {HOP} {WINDOW}", "t TIMESTAMP(3)"),
        (f"SELECT SUM(i) FROM {HOP} WHERE window_start > ts {WINDOW}", "s INT"),
        (f"SELECT SUM(i) FROM {HOP} {WINDOW}, window_start > ts", "s INT"),
    ],
)
def test_what_is_not_computed_by_slices(query: str, columns: str) -> None:
    assert slices_of(query, columns) is None


# --- when it pays -----------------------------------------------------------------------------------------------------

MINUTE = 60_000_000


def _history(rows: int, keys: int, minutes: int, ordered: bool) -> list[tuple[int, int, int]]:
    draw = random.Random(11)
    times = [draw.randrange(minutes * MINUTE) for _ in range(rows)]
    if ordered:
        times.sort()
    return [(draw.randrange(keys), time // MINUTE, time) for time in times]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(
    ("keys", "minutes", "dense"), [(10, 60, True), (200, 60, True), (100_000, 60, False), (1000, 10_000, False)]
)
@pytest.mark.slow
def test_the_first_rows_tell_whether_slices_pay(keys: int, minutes: int, dense: bool, ordered: bool) -> None:
    rows = _history(60_000, keys, minutes, ordered)
    true = len(rows) / len({row[:2] for row in rows})
    assert (true >= DENSE) == dense
    assert (density(rows[:5_000], MINUTE, total=len(rows)) >= DENSE) == dense


def test_without_anything_known_slices_are_taken() -> None:
    assert density([], MINUTE) == math.inf
    assert density(_history(60_000, 200, 60, ordered=False)[:500], MINUTE) >= DENSE


# --- the same rows either way -----------------------------------------------------------------------------------------


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """An hour around 1970 with NULLs, duplicates and sums beyond their type."""
    draw = random.Random(5)
    lines = []
    for _ in range(600):
        millis = draw.randrange(-1_800_000, 1_800_000)
        time = str(from_micros(millis * 1000))
        values = [
            draw.choice(["a", "b", "NULL"]), draw.choice(["NULL", "2147483647", "-5", "7"]),
            draw.choice(["NULL", "9223372036854775807", "3", "3"]), draw.choice(["NULL", "99999999.99", "-0.01"]),
            "1.00",
            draw.choice(["NULL", "0.25", "-8"]), draw.choice(["NULL", "true", "false"]),
        ]  # fmt: skip
        lines.append(",".join([time if draw.random() > 0.02 else "NULL", *values]))
    place = tmp_path / "in"
    place.mkdir()
    (place / "a.csv").write_text("".join(f"{line}\n" for line in lines + lines[:50]), encoding="utf-8")
    return place


BOTH_WAYS = [
    (
        "SELECT k, {fields}, COUNT(*), SUM(i), SUM(b), AVG(b), SUM(d), AVG(d), MIN(x), MAX(i), AVG(x), COUNT(f), "
        "SUM(x) FILTER (WHERE f), COUNT(DISTINCT b) FILTER (WHERE i > 0) FROM {window} "
        "GROUP BY k, {fields}",
        "k STRING, ws TIMESTAMP(3), we TIMESTAMP(3), wt TIMESTAMP(3), n BIGINT, s INT, sb BIGINT, ab BIGINT, "
        "sd DECIMAL(38, 2), ad DECIMAL(38, 6), mx DOUBLE, mi INT, ax DOUBLE, cf BIGINT, sx DOUBLE, cd BIGINT",
    ),
    (
        "SELECT {fields}, COUNT(DISTINCT b) FROM {window} WHERE f IS NOT TRUE GROUP BY {fields}",
        "ws TIMESTAMP(3), we TIMESTAMP(3), wt TIMESTAMP(3), n BIGINT",
    ),
]
OLDER = "HOP(ts, INTERVAL '4' MINUTE, INTERVAL '10' MINUTE)"


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("window", "range"),
    mostly_nightly(
        [
            (HOP, ()),
            (CUMULATE, ("1969-12-31 23:41", None)),
            (CUMULATE, ()),
            (HOP, ("1969-12-31 23:41", "1970-01-01 00:13")),
        ],
        1,
    ),
)
def test_slices_give_the_rows_of_the_plain_way(
    spark: SparkSession, events: Path, window: str, range: tuple[str | None, ...]
) -> None:
    from airflow_flinkcompat.backfill.execution.frames import Execution

    bounds = {
        key: datetime.fromisoformat(at) for key, at in zip(("from_", "to"), range, strict=False) if at is not None
    }
    queries = [
        (query.format(window=window, fields="window_start, window_end, window_time"), columns)
        for query, columns in BOTH_WAYS
    ]
    if window == HOP:
        fields = ", ".join(OLDER.replace("HOP", f"HOP_{field}") for field in ("START", "END", "ROWTIME"))
        queries.append((
            f"SELECT k, {fields}, SUM(i) FROM t GROUP BY k, {OLDER}",
            "k STRING, ws TIMESTAMP(3), we TIMESTAMP(3), wt TIMESTAMP(3), s INT",
        ))  # fmt: skip
    for query, columns in queries:
        work = work_of(query, columns, events, **bounds)
        found = []
        for by_slices in (True, False):
            execution = Execution(spark, work, by_slices=by_slices)
            rows, _ = execution.rows(work.writes[0])
            found.append(sorted(map(repr, rows.collect())))
            assert ("slice#" in rows._jdf.queryExecution().analyzed().toString()) == by_slices
            assert execution.rows_dropped() > 0
        assert found[0] == found[1]
        assert found[0]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "words"), [(1, "slices are aggregated first"), (9999, "rows are assigned to windows")]
)
def test_a_sample_of_the_rows_decides(spark: SparkSession, tmp_path: Path, keys: int, words: str) -> None:
    assert spark.getActiveSession() is spark
    (tmp_path / "in").mkdir()
    rows = "".join(f"2024-01-01 00:{i // 60:02d}:{i % 60:02d},k{i % keys},1\n" for i in range(1800))
    (tmp_path / "in" / "a.csv").write_text(rows, encoding="utf-8")
    text = script(
        table("t", "ts TIMESTAMP(3), k STRING, v INT, WATERMARK FOR ts AS ts", tmp_path / "in"),
        table("o", "k STRING, s INT", tmp_path / "out"),
        f"INSERT INTO o SELECT k, SUM(v) FROM {HOP} {WINDOW}, k",
    )
    said: list[str] = []
    result = run_backfill(BackfillRequest(JobSpec(text, source="job.sql")), said.append)
    assert any(words in line for line in said), said
    windows = Aligned(WindowKind.HOP, 10 * MINUTE, 4 * MINUTE)
    start = to_micros(datetime(2024, 1, 1))
    found = [(i % keys, window) for i in range(1800) for window in windows.windows_of(start + i * 1_000_000)]
    assert result.sinks[0].rows == len(set(found))
    assert result.rows_read == 1800
