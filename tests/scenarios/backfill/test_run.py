"""Backfills run for real, in one Spark session: rows, ranges, formats and failures."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_flinkcompat.backfill import BackfillError
from tests.support.backfill.documented_windows import DOCUMENTED, DocumentedQuery
from tests.support.backfill.scripts import (
    BID_COLUMNS,
    FIRST,
    SECOND,
    SUM,
    SUM_COLUMNS,
    TUMBLE,
    Run,
    bids,
    lines,
    script,
    table,
)

pytestmark = pytest.mark.slow

# --- the printed tables of the documentation --------------------------------------------------------------------------


@pytest.mark.parametrize("case", DOCUMENTED, ids=lambda case: case.title)
def test_as_printed(run: Run, history: Path, results: Path, case: DocumentedQuery) -> None:
    result = run(bids(case.query, case.columns, history, results))
    assert sorted(csv.reader(lines(results))) == sorted(case.rows)
    assert (result.rows_read, result.rows_dropped, result.rows_written) == (6, 0, len(case.rows))


@pytest.mark.nightly
def test_the_older_syntax_gives_the_same(run: Run, history: Path, results: Path) -> None:
    size = "INTERVAL '10' MINUTE"
    query = (
        f"SELECT TUMBLE_START(bidtime, {size}), TUMBLE_END(bidtime, {size}), SUM(price), "
        f"TUMBLE_ROWTIME(bidtime, {size}) FROM bid GROUP BY TUMBLE(bidtime, {size})"
    )
    run(bids(query, SUM_COLUMNS + ", rowtime TIMESTAMP(3)", history, results))
    assert lines(results) == [f'{FIRST},"2020-04-15 08:09:59.999"', f'{SECOND},"2020-04-15 08:19:59.999"']


@pytest.mark.nightly
def test_an_offset_shifts_the_windows(run: Run, history: Path, results: Path) -> None:
    shifted = SUM.replace("INTERVAL '10' MINUTES", "INTERVAL '10' MINUTES, INTERVAL '5' MINUTES")
    run(bids(shifted, SUM_COLUMNS, history, results))
    assert lines(results) == [
        '"2020-04-15 08:05:00","2020-04-15 08:15:00",15',
        '"2020-04-15 08:15:00","2020-04-15 08:25:00",6',
    ]


# --- arithmetic and time ----------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_integers_as_flink_counts_them(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = ["1,2147483647", "1,1", "2,7", "2,-2", "3,-7", "3,"]
    text = "".join(f"1969-12-31 23:59:{second}.5,{row}\n" for second, row in zip(range(10, 60, 9), rows, strict=True))
    (tmp_path / "in" / "a.csv").write_text(text, encoding="utf-8")
    window = "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))"
    run(
        script(
            table("t", "ts TIMESTAMP(3), k INT, v INT, WATERMARK FOR ts AS ts", tmp_path / "in", csv__null_literal=""),
            table("o", "k INT, ws TIMESTAMP(3), s INT, a INT, h INT, n BIGINT, o INT", tmp_path / "out"),
            "INSERT INTO o SELECT k, window_start, SUM(v), AVG(v), SUM(v) / 2, COUNT(*), MAX(v) + 1 "
            f"FROM {window} GROUP BY k, window_start, window_end",
        )
    )
    minute = '"1969-12-31 23:59:00"'
    assert lines(tmp_path / "out") == [
        f"1,{minute},-2147483648,1073741824,-1073741824,2,-2147483648",
        f"2,{minute},5,2,2,2,8",
        f"3,{minute},-7,-7,-3,2,-6",
    ]


@pytest.mark.nightly
def test_an_average_whose_value_depends_on_the_planner_is_an_error(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    row = "2024-01-01 00:00:00,2147483647\n"
    (tmp_path / "in" / "a.csv").write_text(row, encoding="utf-8")
    text = script(
        table("t", "ts TIMESTAMP(3), v INT, WATERMARK FOR ts AS ts", tmp_path / "in"),
        table("o", "s INT, n BIGINT, a INT", tmp_path / "out"),
        "INSERT INTO o SELECT SUM(v), COUNT(v), AVG(v) "
        "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
    )
    run(text)
    assert lines(tmp_path / "out") == ["2147483647,1,2147483647"]
    (tmp_path / "in" / "a.csv").write_text(row + row, encoding="utf-8")
    with pytest.raises(BackfillError, match="AVG depends on Flink's planner"):
        run(text)


@pytest.mark.nightly
@pytest.mark.parametrize(("last", "fits"), [("1", True), ("9" * 36, False)])
def test_a_sum_that_may_overflow_on_the_way_is_an_error(last: str, fits: bool, run: Run, tmp_path: Path) -> None:
    """Flink adds the next value to nothing then, Spark makes all of it NULL; also where the whole sum would fit."""
    (tmp_path / "in").mkdir()
    rows = "".join(f"2024-01-01 00:00:00,{value}\n" for value in ("5", last, f"-{last}"))
    (tmp_path / "in" / "a.csv").write_text(rows, encoding="utf-8")
    text = script(
        table("t", "ts TIMESTAMP(3), v DECIMAL(38, 2), WATERMARK FOR ts AS ts", tmp_path / "in"),
        table("o", "s DECIMAL(38, 2)", tmp_path / "out"),
        "INSERT INTO o SELECT SUM(v) "
        "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
    )
    if fits:
        run(text)
        assert lines(tmp_path / "out") == ["5"]
    else:
        with pytest.raises(BackfillError, match="may exceed 36 digits, and Flink restarts a sum"):
            run(text)


@pytest.mark.nightly
def test_rows_without_a_time_are_dropped_and_counted(run: Run, history: Path, results: Path) -> None:
    (history / "c.csv").write_text("n/a,99.00,X\nn/a,98.00,Y\n", encoding="utf-8")
    text = bids(SUM, SUM_COLUMNS, history, results).replace("'csv'", "'csv', 'csv.null-literal' = 'n/a'", 1)
    result = run(text, "2020-04-15 08:00:00", "2020-04-15 08:20:00")
    assert lines(results) == [FIRST, SECOND]
    assert (result.rows_read, result.rows_dropped) == (8, 2)


@pytest.mark.nightly
def test_windows_on_instants(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("2024-01-01 00:00:59.999Z,1\n2024-01-01 00:01:00Z,2\n", encoding="utf-8")
    text = script(
        "SET 'table.local-time-zone' = 'UTC'",
        table("t", "ts TIMESTAMP_LTZ(3), v INT, WATERMARK FOR ts AS ts", tmp_path / "in"),
        table("o", "ws TIMESTAMP(3), wt TIMESTAMP_LTZ(3), v INT", tmp_path / "out"),
        "INSERT INTO o SELECT window_start, window_time, v "
        "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))",
    )
    run(text, "2024-01-01 00:01:00")
    assert lines(tmp_path / "out") == ['"2024-01-01 00:01:00","2024-01-01 00:01:59.999Z",2']


# --- ranges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("from_", "to", "expected"),
    [
        ("2020-04-15 08:00:00", "2020-04-15 08:20:00", [FIRST, SECOND]),
        ("2020-04-15 08:00:00.001", "2020-04-15 08:20:00", [SECOND]),
        ("2020-04-15 08:00:00", "2020-04-15 08:19:59.999", [FIRST]),
        ("2020-04-15 08:10:00", None, [SECOND]),
        (None, "2020-04-15 08:10:00", [FIRST]),
        ("2020-04-15 08:01:00", "2020-04-15 08:19:00", []),
    ],
)
def test_exactly_the_windows_wholly_inside(
    run: Run, history: Path, tmp_path: Path, from_: str | None, to: str | None, expected: list[str]
) -> None:
    given = tmp_path / "given"
    result = run(bids(SUM, SUM_COLUMNS, history, "/nowhere"), from_, to, sinks={"results": str(given)})
    assert lines(given) == expected
    assert result.rows_written == len(expected)


# --- formats ----------------------------------------------------------------------------------------------------------


def test_json_in_and_out(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = [
        {"ts": "2024-01-01T00:00:01", "s": 'a"b', "d": 1.50, "more": {"x": 1}},
        {"ts": "2024-01-01T00:00:02.5", "s": None, "d": "2.25"},
        {"ts": None, "s": "lost", "d": 1},
        {"ts": "2024-01-01T00:00:59.999", "d": 1e2},
    ]
    text = "\n\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    (tmp_path / "in" / "a.json").write_text(text, encoding="utf-8")
    iso = {"json__timestamp_format__standard": "ISO-8601"}
    columns = "ts TIMESTAMP(3), s STRING, d DECIMAL(10, 2), WATERMARK FOR ts AS ts"
    result = run(
        script(
            table("t", columns, tmp_path / "in", "json", **iso),
            table("o", "ws TIMESTAMP(3), n BIGINT, d DECIMAL(38, 2), s STRING", tmp_path / "out", "json", **iso),
            "INSERT INTO o SELECT window_start, COUNT(*), SUM(d), MAX(s) "
            "FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end",
        )
    )
    assert lines(tmp_path / "out") == ['{"ws":"2024-01-01T00:00:00","n":3,"d":103.75,"s":"a\\"b"}']
    assert result.rows_dropped == 1


@pytest.mark.nightly
def test_parse_errors_are_ignored_where_the_format_says_so(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = ["1,x,1.5", "2,y", "3,z,1.5,9", "four,z,1.5", "5,,", "6,z,1.5,", '7,"a,b",x']
    (tmp_path / "in" / "a.csv").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    run(
        script(
            table("t", "i INT, s STRING, d DOUBLE", tmp_path / "in", csv__ignore_parse_errors="true"),
            table("o", "i INT, s STRING, d DOUBLE", tmp_path / "out", csv__null_literal="-"),
            "INSERT INTO o SELECT * FROM t",
        )
    )
    assert lines(tmp_path / "out") == sorted(["1,x,1.5", "2,y,-", "-,z,1.5", "5,,-", "6,z,1.5", '7,"a,b",-'])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("2020-04-15 08:05:00,4.00\n", "does not fit the table's format and columns"),
        ("2020-04-15T08:05:00,4.00,C\n", "column bidtime: 2020-04-15T08:05:00 is no TIMESTAMP"),
        ("2020-02-30 08:05:00,4.00,C\n", "parsed by Flink with its own rules"),
        ("2020-04-15 08:05:00,four,C\n", "column price: four is no DECIMAL"),
    ],
)
def test_a_line_flink_refuses_is_an_error_and_nothing_is_published(
    run: Run, history: Path, results: Path, row: str, words: str
) -> None:
    results.mkdir()
    (results / "live.csv").write_text("kept\n", encoding="utf-8")
    (history / "c.csv").write_text(row, encoding="utf-8")
    with pytest.raises(BackfillError) as caught:
        run(bids(SUM, SUM_COLUMNS, history, results), sinks={"results": str(results)})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [path.name for path in results.iterdir()] == ["live.csv"]
    assert sorted(path.name for path in results.parent.iterdir()) == ["history", "results"]


@pytest.mark.nightly
def test_division_by_zero_fails_as_in_flink(run: Run, history: Path, results: Path) -> None:
    query = f"SELECT 1 / CHAR_LENGTH(TRIM(SUBSTRING(item, 2))) FROM {TUMBLE}"
    with pytest.raises(BackfillError, match="division by zero"):
        run(bids(query, "x INT", history, results))


# --- shapes of programs -----------------------------------------------------------------------------------------------


def test_unions_views_filters_and_several_sinks(run: Run, history: Path, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "a.csv").write_text("2020-04-15 08:08:00,7.00,C\n", encoding="utf-8")
    text = script(
        table("bid", BID_COLUMNS, history),
        table("late", BID_COLUMNS, extra),
        "CREATE VIEW all_bids AS SELECT * FROM bid UNION ALL SELECT * FROM late",
        table("totals", "item STRING, total DECIMAL(38, 2), big BOOLEAN", tmp_path / "totals"),
        table("rows", "item STRING, ws TIMESTAMP(3)", tmp_path / "rows"),
        "EXECUTE STATEMENT SET BEGIN "
        "INSERT INTO totals SELECT item, SUM(price), SUM(price) > 5 FROM TABLE(TUMBLE(TABLE all_bids, "
        "DESCRIPTOR(bidtime), INTERVAL '10' MINUTES)) WHERE item IN ('A', 'C') GROUP BY window_start, window_end, item "
        "HAVING COUNT(*) > 0; "
        f"INSERT INTO rows (ws, item) SELECT window_start, LOWER(item) FROM {TUMBLE} WHERE price > 4; END",
    )
    result = run(text)
    assert lines(tmp_path / "totals") == ["A,2,false", "C,11,true"]
    assert lines(tmp_path / "rows") == ['d,"2020-04-15 08:00:00"', 'f,"2020-04-15 08:10:00"']
    assert {source.table: source.rows for source in result.sources} == {"bid": 6, "late": 1}


@pytest.mark.nightly
def test_not_null_columns_hold_no_null(run: Run, history: Path, results: Path) -> None:
    text = bids(f"SELECT NULLIF(item, 'A') FROM {TUMBLE}", "item STRING NOT NULL", history, results)
    with pytest.raises(BackfillError, match="column item of sink results is NOT NULL"):
        run(text)
    run(text, settings={"table.exec.sink.not-null-enforcer": "DROP"})
    assert lines(results) == ["B", "C", "D", "E", "F"]


# --- against a model --------------------------------------------------------------------------------------------------

EVENTS = st.lists(
    st.tuples(
        st.one_of(
            st.none(),
            st.datetimes(min_value=datetime(1969, 12, 31, 22), max_value=datetime(1970, 1, 1, 2)).map(
                lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
            ),
        ),
        st.sampled_from(["a", "b,c", 'say "x"', "", "ü"]),
        st.one_of(st.none(), st.integers(-(2**31), 2**31 - 1)),
    ),
    min_size=1,
    max_size=40,
)


@pytest.mark.nightly
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS, minutes=st.sampled_from([1, 7, 60]), offset=st.integers(-5, 5), cut=st.integers(0, 240))
def test_any_history_agrees_with_a_plain_model(
    run: Run,
    tmp_path_factory: pytest.TempPathFactory,
    events: list[tuple[datetime | None, str, int | None]],
    minutes: int,
    offset: int,
    cut: int,
) -> None:
    place = tmp_path_factory.mktemp("model")
    (place / "in").mkdir()
    with (place / "in" / "a.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerows([moment or "~", key, "~" if v is None else v] for moment, key, v in events)
    offset = offset % minutes
    lower = datetime(1969, 12, 31, 22) + timedelta(minutes=cut)
    result = run(
        script(
            table("t", "ts TIMESTAMP(3), k STRING, v INT, WATERMARK FOR ts AS ts", place / "in", csv__null_literal="~"),
            table(
                "o", "ws TIMESTAMP(3), k STRING, n BIGINT, s INT, a INT, m INT", place / "out", csv__null_literal="~"
            ),
            "INSERT INTO o SELECT window_start, k, COUNT(*), SUM(v), AVG(v), MIN(v) FROM TABLE(TUMBLE(TABLE t, "
            f"DESCRIPTOR(ts), INTERVAL '{minutes}' MINUTE, INTERVAL '{offset}' MINUTE)) "
            "GROUP BY window_start, window_end, k",
        ),
        lower.isoformat(),
    )
    groups: dict[tuple[datetime, str], list[int | None]] = defaultdict(list)
    for moment, key, value in events:
        if moment is not None:
            size, shift = timedelta(minutes=minutes), timedelta(minutes=offset)
            start = moment - (moment - datetime(1970, 1, 1) - shift) % size
            if start >= lower:
                groups[start, key].append(value)
    expected = []
    for (start, key), values in groups.items():
        known = [value for value in values if value is not None]
        wrapped = (sum(known) + 2**31) % 2**32 - 2**31
        average = abs(sum(known)) // len(known) * (1 if sum(known) >= 0 else -1) if known else None
        cells = [wrapped, average, min(known)] if known else ["~"] * 3
        expected.append([str(start), key, str(len(values)), *map(str, cells)])
    assert sorted(csv.reader(lines(place / "out"))) == sorted(expected)
    assert result.rows_dropped == sum(moment is None for moment, _, _ in events)


def test_a_backfill_that_needs_rows_fails_without_one(run: Run, tmp_path: Path, results: Path) -> None:
    """An empty history: the sink keeps what it has. One that has other hours only was read, and is no fault."""
    source = tmp_path / "elsewhere"
    source.mkdir()
    text = bids(SUM, SUM_COLUMNS, source, results)
    results.mkdir(exist_ok=True)
    (results / "kept.csv").write_text("kept\n", encoding="utf-8")
    asked = {"from_": "2020-04-15T10:00:00", "to": "2020-04-15T11:00:00", "allow_empty": False}
    words = "range is from 2020-04-15T10:00:00 to 2020-04-15T11:00:00. No sink was changed"
    (source / "a.csv").touch()
    with pytest.raises(BackfillError, match=rf"read no rows from bid \(.*{words}"):
        run(text, sinks={"results": results.as_uri()}, **asked)
    assert lines(results) == ["kept"]
    (source / "a.csv").write_text("2020-04-15 08:05:00,4.00,C\n", encoding="utf-8")
    assert run(text, sinks={"results": results.as_uri()}, **asked).sinks[0].rows == 0
