"""A range in chunks: every window in exactly one of them, taken up after a failure, the same rows in the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, plan, run_backfill
from airflow_flinkcompat.backfill.journal import filled_in, journal_place
from airflow_flinkcompat.backfill.planning import chunk_ranges
from airflow_flinkcompat.backfill.protocols import Range
from airflow_flinkcompat.backfill.spark_sql.windows import Aligned, WindowRange, to_micros
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.model.durations import parse_duration
from airflow_flinkcompat.plan import build_program
from airflow_flinkcompat.plan.nodes import Window, WindowKind
from airflow_flinkcompat.sql import parse_script
from tests.support.backfill.scripts import BID_COLUMNS, Run, lines, requested, script, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


COLUMNS = "window_start TIMESTAMP(3), window_end TIMESTAMP(3), total DECIMAL(38, 2)"
TUMBLE = "TUMBLE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES)"
HOP = "HOP(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '5' MINUTES, INTERVAL '20' MINUTES)"
CUMULATE = "CUMULATE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '5' MINUTES, INTERVAL '30' MINUTES)"
SESSION = "SESSION(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '5' MINUTES)"


def sums(window: str, history: Path | str = "/history", results: Path | str = "/results") -> str:
    query = f"SELECT window_start, window_end, SUM(price) FROM TABLE({window}) GROUP BY window_start, window_end"
    return script(
        table("bid", BID_COLUMNS, history), table("results", COLUMNS, results), f"INSERT INTO results {query}"
    )


def cuts(text: str, from_: str, to: str, length: str) -> list[str]:
    bounds = Range(datetime.fromisoformat(from_), datetime.fromisoformat(to))
    found = chunk_ranges(build_program(parse_script(text)), bounds, parse_duration(length))
    assert all(chunk.from_ == bounds.from_ for chunk in found)
    assert [chunk.after for chunk in found] == [None, *(chunk.to for chunk in found[:-1])]
    return [f"{chunk.to:%d %H:%M}" for chunk in found]


class Stopped(Exception):
    """What ends a run half-way."""


def stopping_at(begin: str) -> Callable[[str], None]:
    """Hears a run's progress until it says a line that begins so."""

    def stop(line: str) -> None:
        if line.startswith(begin):
            raise Stopped

    return stop


@pytest.mark.parametrize(
    ("window", "length", "expected"),
    [
        (TUMBLE, "6h", ["01 06:00", "01 12:00", "01 18:00", "02 00:00"]),
        (TUMBLE, "15min", [f"01 {m // 60:02d}:{m % 60 // 10}0" for m in range(15, 1440, 15)] + ["02 00:00"]),
        (HOP, "8h", ["01 08:00", "01 16:00", "02 00:00"]),
        (CUMULATE, "10h", ["01 10:00", "01 20:00", "02 00:00"]),
        (TUMBLE, "30d", ["02 00:00"]),
        (TUMBLE, "3000000d", ["02 00:00"]),
    ],
)
def test_chunks_begin_where_no_window_is_cut(window: str, length: str, expected: list[str]) -> None:
    assert cuts(sums(window), "2026-01-01", "2026-01-02", length) == expected


@pytest.mark.parametrize(
    ("window", "from_", "length", "words"),
    [
        (TUMBLE, "2026-01-01", "5min", "chunks must be at least 10min long"),
        (
            TUMBLE,
            "0001-01-01",
            "10min",
            r"would split this range into 106[0-9]{6} chunks, but at most 10000 are supported",
        ),
        (SESSION, "2026-01-01", "1h", "a range of sessions cannot be split into chunks"),
        (TUMBLE, None, "1h", "require a range with both ends"),
    ],
)
def test_what_cannot_be_cut_is_refused(window: str, from_: str | None, length: str, words: str) -> None:
    bounds = Range((from_ and datetime.fromisoformat(from_)) or None, datetime(2026, 1, 2))
    with pytest.raises(BackfillError, match=words):
        chunk_ranges(build_program(parse_script(sums(window))), bounds, parse_duration(length))


@given(
    kind=st.sampled_from([WindowKind.TUMBLE, WindowKind.HOP, WindowKind.CUMULATE]),
    slide=st.integers(1, 4),
    times=st.integers(1, 5),
    from_=st.integers(-20, 20),
    hours=st.integers(1, 60),
    length=st.integers(1, 30),
)
def test_every_window_is_in_exactly_one_chunk(
    kind: WindowKind, slide: int, times: int, from_: int, hours: int, length: int
) -> None:
    hour = 3_600_000
    window = Window(kind, size=slide * times * hour, slide=None if kind is WindowKind.TUMBLE else slide * hour)
    program = build_program(parse_script(sums(_written(window))))
    begin = datetime(2026, 1, 1) + timedelta(hours=from_)
    bounds = Range(begin, begin + timedelta(hours=hours))
    try:
        chunks = chunk_ranges(program, bounds, timedelta(hours=length))
    except BackfillError:
        assert length < (slide if kind is WindowKind.HOP else slide * times)
        return
    aligned = Aligned.of(window)
    first = to_micros(begin) - 20 * 3_600_000_000
    times_seen = range(first, to_micros(begin) + (hours + 20) * 3_600_000_000, 3_600_000_000)
    for start, end in {window for micros in times_seen for window in aligned.windows_of(micros)}:
        wanted = aligned.wanted(start, end, WindowRange.inside(bounds.from_, bounds.to))
        holding = [
            part for part in chunks if aligned.wanted(start, end, WindowRange.inside(part.from_, part.to, part.after))
        ]
        assert len(holding) == int(wanted)


def _written(window: Window) -> str:
    lengths = [window.slide, window.size] if window.slide else [window.size]
    text = ", ".join(f"INTERVAL '{(length or 0) // 3_600_000}' HOURS" for length in lengths)
    return f"{window.kind}(TABLE bid, DESCRIPTOR(bidtime), {text})"


def test_another_request_has_another_journal() -> None:
    request = BackfillRequest(
        JobSpec(sums(TUMBLE)), from_=datetime(2026, 1, 1), to=datetime(2026, 1, 2), chunk=timedelta(hours=1)
    )
    place = journal_place(request, plan(request).work)
    assert place.startswith("file:///.results.chunks-")

    def other(**changes: object) -> str:
        changed = BackfillRequest.from_dict({**request.to_dict(), **changes})
        return journal_place(changed, plan(changed).work)

    assert other() == other(master="local[1]") == other(source="elsewhere.sql") == place
    different = [
        other(script=sums(HOP)),
        other(to="2026-01-03"),
        other(chunk="2h"),
        other(tables={"bid": "/other"}),
        other(settings={"table.local-time-zone": "UTC"}),
        other(allow_incomplete=True),
    ]
    assert len({place, *different}) == 7
    assert other(journal="/kept").startswith("file:///kept/backfill-")


def test_what_placeholders_stand_for_is_told_apart() -> None:
    text = "'url' = 'jdbc:postgresql://${conn.pg.host}/${env.DATABASE}', 'password' = '${conn.pg.password}'"
    request = BackfillRequest(JobSpec(text))
    values = {"FLINKCOMPAT_CONN_PG_HOST": "prod", "DATABASE": "shop", "FLINKCOMPAT_CONN_PG_PASSWORD": "hunter2"}
    found = filled_in(request, values)
    assert found == filled_in(request, {**values, "OTHER": "x"})
    different = [filled_in(request, {**values, name: "dev"}) for name in values]
    different += [filled_in(request, {}), filled_in(BackfillRequest(JobSpec(""), tables={"a": text}), values)]
    assert len({str(each) for each in (found, *different)}) == 6
    assert not any(value in str(found) for value in values.values())
    assert filled_in(BackfillRequest(JobSpec("SELECT 1")), values) == {}


# --- run for real -----------------------------------------------------------------------------------------------------


@pytest.fixture
def bids(tmp_path: Path) -> Path:
    place = tmp_path / "history"
    place.mkdir()
    begin = datetime(2026, 1, 1)
    rows = (f"{begin + timedelta(minutes=(7 * i) % 360)},{i % 11}.50,A\n" for i in range(400))
    (place / "a.csv").write_text("".join(rows) + "n/a,1.00,B\n", encoding="utf-8")
    return place


def asked(text: str, sink: Path, **more: object) -> BackfillRequest:
    text = text.replace("'csv'", "'csv', 'csv.null-literal' = 'n/a'", 1)
    span = {"from_": datetime(2026, 1, 1), "to": datetime(2026, 1, 1, 6), "sinks": {"results": str(sink)}}
    return requested(text, **{**span, **more})


@pytest.mark.slow
@pytest.mark.parametrize("window", mostly_nightly([TUMBLE, HOP, CUMULATE], 1))
def test_chunks_add_up_to_the_whole_range(spark: SparkSession, bids: Path, tmp_path: Path, window: str) -> None:
    assert spark.getActiveSession() is spark
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    once = run_backfill(asked(sums(window, bids), whole))
    said: list[str] = []
    many = run_backfill(asked(sums(window, bids), parts, chunk=timedelta(hours=2)), said.append)
    assert lines(parts) == lines(whole)
    assert (many.rows_written, many.windows_written) == (once.rows_written, once.windows_written)
    assert many.windows_written == len(lines(whole)) > 10
    assert (many.rows_dropped, many.chunks, many.rows_read) == (1, 3, 3 * once.rows_read)
    progress = [line for line in said if line.startswith("chunk")]
    assert [line.split(" (")[0] for line in progress] == [f"chunk {i} of 3" for i in (1, 2, 3)]
    assert all("left" in line and "windows" in line for line in progress)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history", "parts", "whole"]


@pytest.mark.slow
@pytest.mark.nightly
def test_a_run_after_a_failed_one_takes_up_its_chunks(spark: SparkSession, bids: Path, tmp_path: Path) -> None:
    assert spark.getActiveSession() is spark
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run_backfill(asked(sums(HOP, bids), whole))
    request = asked(sums(HOP, bids), parts, chunk=timedelta(hours=2), journal=str(tmp_path / "journal"))

    with pytest.raises(Stopped):
        run_backfill(request, stopping_at("chunk 2"))
    assert not parts.exists()
    (journal,) = (tmp_path / "journal").iterdir()
    entries = sorted(path.name for path in journal.iterdir() if path.suffix == ".json")
    assert entries == ["chunk-000001.json", "chunk-000002.json", "history.json"]
    assert json.loads((journal / entries[0]).read_text())["counts"]["rows"] == [21]
    # Rows of a chunk that was not finished are nobody's.
    (journal / entries[1]).unlink()
    said: list[str] = []
    run_backfill(request, said.append)
    assert [line.split(")")[1][:14] for line in said if line.startswith("chunk")] == [
        ": an earlier r", ": 24 rows in 2", ": 24 rows in 2",
    ]  # fmt: skip
    assert lines(parts) == lines(whole)
    assert not journal.exists()
    # Nothing is left to take up: a repeated run computes anew, and ends at the same rows.
    said.clear()
    run_backfill(request, said.append)
    assert not any("earlier run" in line for line in said)
    assert lines(parts) == lines(whole)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("change", ["one more file", "a file written again"])
def test_chunks_of_another_history_are_computed_anew(run: Run, bids: Path, tmp_path: Path, change: str) -> None:
    request = asked(sums(TUMBLE, bids), tmp_path / "parts", chunk=timedelta(hours=3))

    with pytest.raises(Stopped):
        run_backfill(request, stopping_at("chunk 1"))
    file = bids / ("b.csv" if change == "one more file" else "a.csv")
    earlier = file.read_text(encoding="utf-8") if file.exists() else ""
    file.write_text(earlier + "2026-01-01 00:01:00,1000.00,A\n", encoding="utf-8")
    said: list[str] = []
    run_backfill(request, said.append)
    assert [line.split(": ")[0] for line in said if "earlier run" in line] == [
        f"the history has changed since an earlier run (bid {bids.as_uri()})"
    ]
    run_backfill(asked(sums(TUMBLE, bids), tmp_path / "whole"))
    assert lines(tmp_path / "parts") == lines(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["history", "parts", "whole"]


@pytest.mark.nightly
@pytest.mark.slow
def test_several_sinks_with_windows_of_several_lengths(run: Run, bids: Path, tmp_path: Path) -> None:
    text = sums(HOP, bids).replace("'csv'", "'csv', 'csv.null-literal' = 'n/a'", 1)
    text += script(
        table("counts", "window_start TIMESTAMP(3), n BIGINT", "/counts"),
        f"INSERT INTO counts SELECT window_start, COUNT(*) FROM TABLE({TUMBLE}) GROUP BY window_start, window_end",
    )
    found = []
    for name, more in (("whole", {}), ("parts", {"chunk": timedelta(hours=1)})):
        sinks = {"results": str(tmp_path / name / "a"), "counts": str(tmp_path / name / "b")}
        result = run(text, "2026-01-01 00:00:00", "2026-01-01 06:00:00", sinks=sinks, **more)
        found.append([lines(tmp_path / name / each) for each in ("a", "b")])
        assert [sink.windows for sink in result.sinks] == [69, 36]
    assert found[0] == found[1]


@pytest.mark.nightly
@pytest.mark.slow
def test_late_rows_are_the_same_in_chunks(run: Run, tmp_path: Path) -> None:
    """What is late depends on all rows that came before, also on those of other chunks; it is counted once for each
    window inside the range that a row came too late for."""
    (tmp_path / "in").mkdir()
    begin = datetime(2026, 1, 1)
    times = [begin + timedelta(minutes=(37 * i) % 90 + 3 * i) for i in range(120)]
    (tmp_path / "in" / "a.csv").write_text("".join(f"{time},1.00,A\n" for time in times), encoding="utf-8")
    bounds = Range(begin, begin + timedelta(hours=6))
    found = []
    for name, more in (("whole", {}), ("parts", {"chunk": timedelta(hours=1)}), ("all", {"late": "include"})):
        given = {"late": "drop", "sinks": {"results": str(tmp_path / name)}, **more}
        result = run(sums(HOP, tmp_path / "in"), str(bounds.from_), str(bounds.to), **given)
        found.append((lines(tmp_path / name), result.rows_late))
    whole, parts, everything = found
    assert parts == whole
    assert whole[1] == late_pairs(times, bounds)
    assert whole[0] != everything[0]
    assert whole[1] > everything[1] == 0


@pytest.mark.nightly
@pytest.mark.slow
def test_late_rows_of_windows_under_windows_are_counted_once(run: Run, tmp_path: Path) -> None:
    """Chunks of 20 minutes share windows of 5 minutes, which windows of 40 minutes hold."""
    (tmp_path / "in").mkdir()
    begin = datetime(2026, 1, 1)
    times = [begin + timedelta(minutes=(37 * i) % 90 + 3 * i) for i in range(60)]
    (tmp_path / "in" / "a.csv").write_text("".join(f"{time},1.00,A\n" for time in times), encoding="utf-8")
    bounds = "window_start, window_end"
    inner = (
        f"CREATE VIEW sums AS SELECT window_time AS wt, SUM(price) AS price FROM TABLE({TUMBLE}) "
        f"GROUP BY {bounds}, window_time;\nINSERT INTO"
    ).replace("'10'", "'5'")
    hop = "HOP(TABLE sums, DESCRIPTOR(wt), INTERVAL '10' MINUTES, INTERVAL '40' MINUTES)"
    text = sums(hop, tmp_path / "in").replace("INSERT INTO", inner)
    found = []
    for name, more in (("whole", {}), ("parts", {"chunk": timedelta(minutes=20)})):
        given = {"late": "drop", "sinks": {"results": str(tmp_path / name)}, **more}
        result = run(text, str(begin + timedelta(minutes=10)), str(begin + timedelta(hours=1, minutes=40)), **given)
        found.append((lines(tmp_path / name), result.rows_late))
    assert found[0] == found[1]
    assert len(found[0][0]) > 5 < found[0][1]


def late_pairs(times: list[datetime], bounds: Range) -> int:
    """Rows and windows of HOP inside the bounds, of which the window was complete before the row came."""
    windows = Aligned(WindowKind.HOP, size=1_200_000_000, slide=300_000_000)
    wanted, highest, found = WindowRange.inside(bounds.from_, bounds.to), -1, 0
    for micros in map(to_micros, times):
        held = [each for each in windows.windows_of(micros) if windows.wanted(*each, wanted)]
        found += sum(end - 1000 <= highest for _, end in held)
        highest = max(highest, micros - 1_000_000)
    return found
