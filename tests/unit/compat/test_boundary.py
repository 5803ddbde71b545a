"""Where windows can be divided between a backfill and a live job, checked against windows counted out one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.compat.boundary import first_start, hand_over, nearest
from airflow_flinkcompat.compat.hand_over import BoundaryError, HandOver
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.model import FunctionDeclaration, JobSpec
from airflow_flinkcompat.plan.nodes import Window, WindowKind

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
SINK = "CREATE TABLE o (a STRING) WITH ('connector' = 'blackhole');\n"


def source(time: str = "ts TIMESTAMP(3)", watermark: str = "ts - INTERVAL '30' SECOND", options: str = "") -> str:
    return (
        f"CREATE TABLE t (k STRING, v INT, {time}, pt AS PROCTIME(), WATERMARK FOR ts AS {watermark})"
        f" WITH ('connector' = 'kafka'{options});\n"
    )


def windowed(window: str, table: str = "TABLE t", time: str = "ts") -> str:
    name, _, sizes = window.partition(" ")
    return (
        f"SELECT k, window_start, window_end, SUM(v) FROM TABLE({name}({table}, DESCRIPTOR({time}), {sizes})) "
        "GROUP BY k, window_start, window_end"
    )


def record(query: str, boundary: str, tables: str = "", settings: str = "") -> HandOver:
    text = f"{settings}{tables or source()}{SINK}INSERT INTO o {query};\n"
    sha256 = JobSpec(text).part_digests()
    return hand_over(Side(text).program, datetime.fromisoformat(boundary), sha256, AT)


@pytest.mark.parametrize(
    ("window", "live_from", "first"),
    [
        ("TUMBLE INTERVAL '10' MINUTE", "2026-01-01 07:59:30", "2026-01-01 08:00:00"),
        ("HOP INTERVAL '2' MINUTE, INTERVAL '10' MINUTE", "2026-01-01 07:51:30", "2026-01-01 07:52:00"),
        ("CUMULATE INTERVAL '5' MINUTE, INTERVAL '1' HOUR", "2026-01-01 07:59:30", "2026-01-01 08:00:00"),
        ("HOP INTERVAL '10' MINUTE, INTERVAL '2' MINUTE", "2026-01-01 07:59:30", "2026-01-01 08:00:00"),
    ],
)
def test_where_the_live_job_starts(window: str, live_from: str, first: str) -> None:
    found = record(windowed(window), "2026-01-01 08:00:00")
    (start,), (sink,) = found.sources, found.sinks
    assert (start.table, start.time_column, start.delay_ms) == ("t", "ts", 30_000)
    assert (start.live_from, start.history_until) == (live_from, "2026-01-01 08:00:30")
    assert (sink.sink, sink.first_window_start) == ("o", first)
    assert sink.backfill_owns == "window_end <= TIMESTAMP '2026-01-01 08:00:00'"
    assert sink.live_owns == "window_end > TIMESTAMP '2026-01-01 08:00:00'"


def test_a_window_over_windows_reads_from_before_both() -> None:
    inner = (
        "(SELECT k, window_time AS wt, SUM(v) AS v FROM TABLE(HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE, "
        "INTERVAL '5' MINUTE)) GROUP BY k, window_start, window_end, window_time)"
    )
    view = f"CREATE VIEW w AS {inner[1:-1]};\n"
    outer = windowed("HOP INTERVAL '5' MINUTE, INTERVAL '20' MINUTE", "TABLE w", "wt")
    found = record(outer, "2026-01-01 08:00:00", tables=source() + view)
    assert found.sinks[0].first_window_start == "2026-01-01 07:45:00"
    assert found.sources[0].live_from == "2026-01-01 07:40:30"


def test_both_sides_of_a_union_are_started() -> None:
    other = source().replace("TABLE t", "TABLE u").replace("'30'", "'90'")
    both = "CREATE VIEW w AS SELECT k, v, ts FROM t UNION ALL SELECT k, v, ts FROM u;\n"
    found = record(windowed("TUMBLE INTERVAL '1' MINUTE", "TABLE w"), "2026-01-01 08:00:00", source() + other + both)
    assert [(s.table, s.live_from) for s in found.sources] == [
        ("t", "2026-01-01 07:59:30"),
        ("u", "2026-01-01 07:58:30"),
    ]


@pytest.mark.parametrize(("zone", "hour"), [("Europe/Berlin", "21"), ("GMT+03:00", "20"), ("UTC", "23")])
def test_instants_are_written_with_their_zone(zone: str, hour: str) -> None:
    settings = f"SET 'table.local-time-zone' = '{zone}';\n"
    found = record(
        windowed("TUMBLE INTERVAL '1' HOUR"), "2026-07-01 00:00:00", source("ts TIMESTAMP_LTZ(3)"), settings=settings
    )
    assert found.boundary == "2026-07-01 00:00:00"
    assert found.sources[0].live_from == f"2026-06-30T{hour}:59:30Z"


@pytest.mark.parametrize(
    ("boundary", "live_from", "history_until"),
    [
        # Clocks go from 02:00 to 03:00: the windows after 03:00 reach back to a time that never was.
        ("2026-03-29 03:00:00", "2026-03-29T00:58:30Z", "2026-03-29T01:00:30Z"),
        ("2026-03-29 02:30:00", "2026-03-29T00:28:30Z", "2026-03-29T01:30:30Z"),
        # They go back from 03:00 to 02:00: what has passed the first 02:30 may still bring rows for the second.
        ("2026-10-25 02:30:00", "2026-10-25T00:28:30Z", "2026-10-25T01:30:30Z"),
    ],
)
def test_instants_where_clocks_change(boundary: str, live_from: str, history_until: str) -> None:
    window = windowed("HOP INTERVAL '1' MINUTE, INTERVAL '2' MINUTE")
    zone = "SET 'table.local-time-zone' = 'Europe/Berlin';\n"
    (found,) = record(window, boundary, source("ts TIMESTAMP_LTZ(3)"), settings=zone).sources
    assert (found.live_from, found.history_until) == (live_from, history_until)


@pytest.mark.parametrize(
    ("boundary", "window", "words"),
    [
        ("2026-01-01 08:01:00", "TUMBLE INTERVAL '10' MINUTE", "2026-01-01 08:00:00 or 2026-01-01 08:10:00"),
        ("2026-01-01 08:01:00", "HOP INTERVAL '2' MINUTE, INTERVAL '10' MINUTE", "08:00:00 or 2026-01-01 08:02:00"),
        ("2026-01-01 08:05:00", "CUMULATE INTERVAL '5' MINUTE, INTERVAL '1' HOUR", "08:00:00 or 2026-01-01 09:00:00"),
        ("2026-01-01 08:00:00", "TUMBLE INTERVAL '1' DAY, INTERVAL '6' HOUR", "06:00:00 or 2026-01-02 06:00:00"),
        ("2026-01-01 08:00:00.000001", "TUMBLE INTERVAL '1' HOUR", "08:00:00 or 2026-01-01 09:00:00"),
    ],
)
def test_a_boundary_inside_a_window_names_the_two_beside_it(boundary: str, window: str, words: str) -> None:
    with pytest.raises(BoundaryError, match="cuts a window") as caught:
        record(windowed(window), boundary)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("query", "tables", "words"),
    [
        (windowed("SESSION INTERVAL '5' MINUTE").replace("t, D", "t PARTITION BY k, D"), "", "pause"),
        (
            "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM t",
            "",
            "an OVER aggregation combines .* needs every earlier row of each key",
        ),
        (
            "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) FROM t",
            "",
            "needs the 3 rows before it of each key",
        ),
        (
            "SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '5' MINUTE PRECEDING AND "
            "CURRENT ROW) FROM t",
            "",
            "needs the rows of INTERVAL '5' MINUTE before it",
        ),
        ("SELECT k, SUM(v) FROM t GROUP BY k", "", "a group aggregation keeps"),
        ("SELECT k FROM t", "", "belong to no window"),
        (windowed("TUMBLE INTERVAL '1' MINUTE", time="pt"), "", "do not use event time"),
        (windowed("TUMBLE INTERVAL '1' MINUTE"), source(watermark="GREATEST(ts, ts)"), "column minus an interval"),
        (windowed("TUMBLE INTERVAL '1' MINUTE"), source("ts TIMESTAMP_LTZ(3)"), "table.local-time-zone, which is not"),
    ],
)
def test_what_has_no_boundary_says_why_and_what_to_do(query: str, tables: str, words: str) -> None:
    with pytest.raises(BoundaryError, match=words) as caught:
        record(query, "2026-01-01 08:00:00", tables)
    assert "manually" in str(caught.value) or "SET it" in str(caught.value)


def test_several_sinks_share_one_start_of_their_source() -> None:
    both = windowed("TUMBLE INTERVAL '1' MINUTE") + ";\nINSERT INTO p "
    both += windowed("HOP INTERVAL '1' MINUTE, INTERVAL '1' HOUR")
    found = record(both, "2026-01-01 08:00:00", source() + SINK.replace("TABLE o", "TABLE p"))
    assert [sink.sink for sink in found.sinks] == ["o", "p"]
    assert [source.live_from for source in found.sources] == ["2026-01-01 07:00:30"]


def test_the_record_travels_as_json_and_knows_its_script() -> None:
    options = ", 'scan.startup.mode' = 'latest-offset'"
    query, declared = windowed("TUMBLE INTERVAL '1' MINUTE"), source(options=options)
    found = record(query, "2026-01-01 08:00:00", declared)
    assert HandOver.from_json(found.to_json()) == found
    assert found.sources[0].startup == {"scan.startup.mode": "latest-offset"}
    assert any("latest-offset" in line for line in found.lines())
    job = JobSpec(f"{declared}{SINK}INSERT INTO o {query};\n")
    found.check(job)
    with pytest.raises(BoundaryError, match="different values of settings, catalog than"):
        found.check(replace(job, settings={"a": "b"}, catalog="CREATE TABLE t (a INT)"))
    damaged = (
        "[]",
        "{",
        '{"schema": "flinkcompat-handover/1"}',
        found.to_json().replace('"boundary": "', '"bound": "'),
    )
    for text in damaged:
        with pytest.raises(BoundaryError):
            HandOver.from_json(text)


def test_a_blank_line_at_the_end_is_no_other_script() -> None:
    assert JobSpec("a").part_digests() == JobSpec("\na\n", catalog="\n").part_digests()
    assert JobSpec("a").part_digests() != JobSpec("b").part_digests()
    declared = (FunctionDeclaration("f", "scalar"), FunctionDeclaration("g", "table", "python"))
    assert JobSpec("a", {}, declared).part_digests() == JobSpec("a", {}, declared[::-1]).part_digests()


# --- against windows counted out --------------------------------------------------------------------------------------


@st.composite
def definitions(draw: st.DrawFn) -> Window:
    kind = draw(st.sampled_from([WindowKind.TUMBLE, WindowKind.HOP, WindowKind.CUMULATE]))
    step, times = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    offset = draw(st.integers(-20, 20))
    if kind is WindowKind.TUMBLE:
        return Window(kind, size=step, offset=offset)
    size = draw(st.integers(1, 30)) if kind is WindowKind.HOP else step * times
    return Window(kind, size=size, slide=step, offset=offset)


def windows(definition: Window, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Every window that begins in a span, counted out as the documentation words it."""
    size, slide = definition.size or 0, definition.slide or definition.size or 0
    for start in range(first, last):
        period = slide if definition.kind is WindowKind.HOP else size
        if (start - definition.offset) % period == 0:
            steps = range(slide, size + 1, slide) if definition.kind is WindowKind.CUMULATE else [size]
            yield from ((start, start + length) for length in steps)


@given(definition=definitions(), moment=st.integers(-50, 50))
def test_the_first_window_that_ends_later(definition: Window, moment: int) -> None:
    later = [start for start, end in windows(definition, -200, 200) if end > moment]
    assert first_start(definition, moment) == min(later)


@given(some=st.lists(definitions(), min_size=1, max_size=3), moment=st.integers(-100, 100))
def test_the_nearest_moments_divide_every_window(some: list[Window], moment: int) -> None:
    periods = [(w.slide if w.kind is WindowKind.HOP else w.size) or 0 for w in some]

    def divides(at: int) -> bool:
        return all((at - w.offset) % period == 0 for w, period in zip(some, periods, strict=True))

    found = nearest(some, moment)
    own = periods[0]
    if found is None:  # nor does any of the first window's own moments, until all periods begin again
        assert not any(divides(at) for at in range(some[0].offset, some[0].offset + prod(periods), own))
    if found is not None:
        before, after = found
        assert divides(before)
        assert divides(after)
        assert before <= moment < after
        assert not any(divides(at) for at in range(before + own, after, own))


def test_the_start_loses_no_row_of_an_owned_window() -> None:
    """The rows of a live job's own windows all lie after its start."""
    found = record(windowed("HOP INTERVAL '2' MINUTE, INTERVAL '10' MINUTE"), "2026-01-01 08:00:00")
    boundary, start = datetime(2026, 1, 1, 8), datetime.fromisoformat(found.sources[0].live_from)
    own = [begin for begin, end in windows(Window(WindowKind.HOP, 10, 2), -100, 100) if end > 0]
    assert start + timedelta(seconds=30) == boundary + timedelta(minutes=min(own))
