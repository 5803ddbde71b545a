"""A backfill and a live job that divide the windows between them, against one job that saw everything, with real parts.

Rows arrive out of order, by less than the watermark's delay. The live job starts where the record says, the backfill
runs on what had arrived when the source passed boundary and delay.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, plan
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.handover import HandOver
from airflow_flinkcompat.deploy import Ledger, LocalFlink, Options, SqlGatewayTarget, Start, deploy
from tests.backfill.scripts import Run, lines, script, table
from tests.deploy.jobs import SETTINGS, wait_for

pytestmark = pytest.mark.slow

BEGIN, BOUNDARY, DELAY = datetime(2026, 1, 1), datetime(2026, 1, 1, 0, 6), timedelta(seconds=10)
LAST = BEGIN + timedelta(minutes=12)
WINDOWS = {
    "tumble": "TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
    "hop": "HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)",
    "cumulate": "CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)",
}
ORDERS = f"ts TIMESTAMP(3), customer STRING, amount INT, WATERMARK FOR ts AS ts - INTERVAL '{DELAY.seconds}' SECOND"
TOTALS = "window_start TIMESTAMP(3), window_end TIMESTAMP(3), customer STRING, n BIGINT, total INT, least INT"

Event = tuple[datetime, str, int]


def arrivals(seed: int) -> list[Event]:
    """Events in the order in which they arrive, each up to (not quite) the watermark's delay after its time."""
    chance = random.Random(seed)
    span = int((LAST - BEGIN).total_seconds() * 1000)
    events = []
    for _ in range(1500):
        time = BEGIN + timedelta(milliseconds=chance.randrange(span))
        arrival = time + timedelta(milliseconds=chance.randrange(DELAY.seconds * 1000))
        events.append((arrival, (time, chance.choice("abc"), chance.randrange(100))))
    # One row long after the others closes their windows.
    far = LAST + timedelta(minutes=30)
    return [event for _, event in sorted(events)] + [(far, "z", 0)]


def written(place: Path, events: Sequence[Event]) -> None:
    """One file, so that rows are read as they arrived; whole the moment it is seen."""
    place.mkdir(parents=True)
    text = "".join(f"{time.isoformat(' ', 'milliseconds')},{customer},{amount}\n" for time, customer, amount in events)
    (place / ".rows.csv").write_text(text, encoding="utf-8")
    (place / ".rows.csv").rename(place / "rows.csv")


def job(source: Path, sinks: Path) -> str:
    """Three aggregations of one source in one job."""
    select = "SELECT window_start, window_end, customer, COUNT(*), SUM(amount), MIN(amount)"
    by = "GROUP BY window_start, window_end, customer"
    inserts = [f"INSERT INTO {name} {select} FROM TABLE({window}) {by};" for name, window in WINDOWS.items()]
    return script(
        table("orders", ORDERS, source, source__monitor_interval="150 ms"),
        *(table(name, TOTALS, sinks / name) for name in WINDOWS),
        f"EXECUTE STATEMENT SET BEGIN {' '.join(inserts)} END",
    )


def windows_of(rows: Sequence[str], later: bool) -> list[str]:
    """The rows of windows that end after the boundary, or by it."""
    return [row for row in rows if (datetime.fromisoformat(row.split(",")[1].strip('"')) > BOUNDARY) == later]


@pytest.fixture
def target(local_flink: LocalFlink) -> Iterator[SqlGatewayTarget]:
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        yield target
        for name in ("live", "scratch"):
            for job_id in target.running(name):
                target.cancel(job_id)


def _count(place: Path, begin: str) -> int:
    return sum(row.startswith(begin) for row in lines(place))


def all_rows(place: Path) -> dict[str, list[str]]:
    return {name: lines(place / name) for name in WINDOWS}


@pytest.mark.parametrize("seed", [7])
def test_no_window_is_wrong_missing_or_double(target: SqlGatewayTarget, run: Run, tmp_path: Path, seed: int) -> None:
    events = arrivals(seed)
    source, live, backfilled, scratch = (tmp_path / name for name in ("orders", "live", "backfilled", "scratch"))
    text = job(source, live)
    sinks = {name: str(backfilled / name) for name in WINDOWS}
    request = BackfillRequest(
        text, settings=SETTINGS, tables={"orders": str(tmp_path / "history")}, sinks=sinks, boundary=BOUNDARY
    )
    record = plan(request).hand_over
    assert record is not None
    (start,) = record.sources
    # HOP reaches back furthest: 40 seconds before the boundary, and the delay.
    assert datetime.fromisoformat(start.live_from) == BOUNDARY - timedelta(seconds=40) - DELAY

    # The live job starts with the first row at or after that time, as a source does that is asked to start by time.
    first = next(i for i, (time, _, _) in enumerate(events) if time >= datetime.fromisoformat(start.live_from))
    written(source, events[first:])
    ledger = Ledger(tmp_path / "ledger", "live")
    side = Side(text, SETTINGS, engine="flink")
    options = Options(settle_seconds=1, start_timeout=120)
    deploy(target, ledger, side, start_mode="stateless", checked_old_sha256=None, hand_over=record, options=options)
    head = ledger.head()
    assert head is not None
    assert HandOver.from_dict(head.hand_over) == record

    # The same job over everything from the beginning.
    written(tmp_path / "all", events)
    target.submit(job(tmp_path / "all", scratch), {**SETTINGS, "pipeline.name": "scratch"}, Start())

    # The backfill runs on what has arrived when the source has passed the boundary by the delay, and not before.
    passed = next(i for i, (time, _, _) in enumerate(events) if time >= BOUNDARY + DELAY)
    written(tmp_path / "history", events[:passed])
    with pytest.raises(BackfillError, match="does not reach"):
        run(text, settings=SETTINGS, tables=request.tables, sinks=sinks, boundary=BOUNDARY)
    (tmp_path / "history" / "rows.csv").unlink()
    (tmp_path / "history").rmdir()
    written(tmp_path / "history", events[: passed + 1])
    run(text, settings=SETTINGS, tables=request.tables, sinks=sinks, boundary=BOUNDARY)

    # The last window of all keys; windows that one watermark closes come with one checkpoint.
    last = {"hop": LAST - timedelta(seconds=20)}
    for place in (live, scratch):
        for name in WINDOWS:
            begin = f'"{last.get(name, LAST - timedelta(minutes=1))}",'
            wait_for(lambda at=place / name, of=begin: _count(at, of) >= 3, f"{place} is done")
    truth, ours, theirs = all_rows(scratch), all_rows(backfilled), all_rows(live)
    for name in WINDOWS:
        expected = Counter(truth[name])
        joined = Counter([*ours[name], *windows_of(theirs[name], later=True)])
        assert (joined - expected, expected - joined) == (Counter(), Counter()), name
        assert windows_of(ours[name], later=True) == []
        # The division matters: of windows that end by the boundary the live job has seen a part of the rows.
        partial = windows_of(theirs[name], later=False)
        assert Counter(partial) - expected, name
