"""A backfill and a live job that divide the windows between them, against one job that saw everything, with real parts.

Rows arrive out of order, by less than the watermark's delay. The live job starts where the record says, the backfill
runs on what had arrived when the source passed boundary and delay.
"""

from __future__ import annotations

import random
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from airflow_flinkcompat.backfill import BackfillError, BackfillRequest, plan, run_backfill
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.hand_over import HandOver
from airflow_flinkcompat.deploy import Ledger, Options, Start, deploy
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import JobSpec
from dev.services.csv_job import SETTINGS, wait_for
from tests.support.backfill.scripts import lines, script, table
from tests.support.backfill.topics import held, topic_table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.kafka import Broker

pytestmark = pytest.mark.slow

PATIENCE = 180
DELAY, HALF = timedelta(seconds=10), timedelta(minutes=6)
WINDOWS = {
    "tumble": "TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
    "hop": "HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)",
    "cumulate": "CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '1' MINUTE)",
}
ORDERS = "ts {kind}(3), customer STRING, amount INT, WATERMARK FOR ts AS ts - INTERVAL '{delay}' SECOND"
TOTALS = "window_start TIMESTAMP(3), window_end TIMESTAMP(3), customer STRING, n BIGINT, total INT, least INT"
KEYED = f"{TOTALS}, PRIMARY KEY (window_start, window_end, customer) NOT ENFORCED"

Event = tuple[datetime, str, int]


@dataclass(frozen=True)
class Times:
    """Twelve minutes with the boundary in the middle: ``begin`` in UTC, windows on the clock of ``zone``, if any."""

    begin: datetime = datetime(2026, 1, 1)
    zone: str = ""

    @property
    def boundary(self) -> datetime:
        return self.begin + HALF

    @property
    def last(self) -> datetime:
        return self.boundary + HALF

    @property
    def settings(self) -> dict[str, str]:
        # Flink takes no window's columns for a key, and asks what happens to two rows of one.
        keyed = {"table.exec.sink.require-on-conflict": "false"}
        return {**SETTINGS, **keyed, **({"table.local-time-zone": self.zone} if self.zone else {})}

    @property
    def orders(self) -> str:
        """The columns of the source."""
        return ORDERS.format(kind="TIMESTAMP_LTZ" if self.zone else "TIMESTAMP", delay=DELAY.seconds)

    def local(self, moment: datetime) -> datetime:
        """On the clock of the windows."""
        if not self.zone:
            return moment
        return moment.replace(tzinfo=UTC).astimezone(ZoneInfo(self.zone)).replace(tzinfo=None)

    def instant(self, text: str) -> datetime:
        """In UTC, what a hand-over record says of the source's times."""
        return datetime.fromisoformat(text).replace(tzinfo=None)

    def arrivals(self, seed: int) -> list[Event]:
        """Events in the order in which they arrive, each up to (not quite) the watermark's delay after its time."""
        chance = random.Random(seed)
        span = int((self.last - self.begin).total_seconds() * 1000)
        events = []
        for _ in range(1500):
            time = self.begin + timedelta(milliseconds=chance.randrange(span))
            arrival = time + timedelta(milliseconds=chance.randrange(DELAY.seconds * 1000))
            events.append((arrival, (time, chance.choice("abc"), chance.randrange(100))))
        # One row long after the others closes their windows.
        far = self.last + timedelta(minutes=30)
        return [event for _, event in sorted(events)] + [(far, "z", 0)]

    def written(self, place: Path, events: Sequence[Event]) -> None:
        """One file, so that rows are read as they arrived; whole the moment it is seen."""
        place.mkdir(parents=True)
        zone = "Z" if self.zone else ""
        rows = (f"{time.isoformat(' ', 'milliseconds')}{zone},{who},{amount}\n" for time, who, amount in events)
        (place / ".rows.csv").write_text("".join(rows), encoding="utf-8")
        (place / ".rows.csv").rename(place / "rows.csv")

    def job(self, source: Path, sinks: Sequence[str]) -> str:
        """Three aggregations of one source in one job, into sinks named as their windows."""
        select = "SELECT window_start, window_end, customer, COUNT(*), SUM(amount), MIN(amount)"
        by = "GROUP BY window_start, window_end, customer"
        inserts = [f"INSERT INTO {name} {select} FROM TABLE({window}) {by};" for name, window in WINDOWS.items()]
        return script(
            table("orders", self.orders, source, source__monitor_interval="150 ms"),
            *sinks,
            f"EXECUTE STATEMENT SET BEGIN {' '.join(inserts)} END",
        )

    def windows_of(self, rows: Sequence[str], later: bool) -> list[str]:
        """The rows of windows that end after the boundary, or by it."""
        boundary = self.local(self.boundary)
        return [row for row in rows if (datetime.fromisoformat(row.split(",")[1].strip('"')) > boundary) == later]

    def done(self, name: str, rows: Sequence[str]) -> bool:
        """Whether the last window is there for all keys; windows that one watermark closes come together."""
        begin = self.local(self.last - timedelta(seconds=20 if name == "hop" else 60))
        return sum(row.startswith(f'"{begin}",') for row in rows) >= 3


TIMES = {  # of the cases with folders
    "UTC": Times(),
    "a zone": Times(zone="Asia/Kathmandu"),
    # The boundary is where clocks go from 02:00 to 03:00.
    "clocks change": Times(datetime(2026, 3, 29, 0, 54), "Europe/Berlin"),
}


@pytest.fixture
def target(local_flink: LocalFlink) -> Iterator[SqlGatewayTarget]:
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        yield target
        for name in ("live", "scratch"):
            for job_id in target.running(name):
                target.cancel(job_id)


def folders(place: Path) -> list[str]:
    return [table(name, TOTALS, place / name) for name in WINDOWS]


def all_rows(place: Path) -> dict[str, list[str]]:
    return {name: lines(place / name) for name in WINDOWS}


@dataclass(frozen=True)
class HandedOver:
    """A live job that runs from where the record of a request says, beside one that began with the first event."""

    times: Times
    request: BackfillRequest
    events: Sequence[Event]
    scratch: Path

    def truth(self) -> dict[str, list[str]]:
        """All rows of the job that saw everything."""

        def done() -> bool:
            return all(self.times.done(name, rows) for name, rows in all_rows(self.scratch).items())

        wait_for(done, "the job that saw everything is done", PATIENCE)
        return all_rows(self.scratch)

    def backfill(self) -> None:
        """On what has arrived when the source has passed the boundary by the delay, and not before."""
        history = Path(self.request.tables["orders"])
        passed = next(i for i, (time, _, _) in enumerate(self.events) if time >= self.times.boundary + DELAY)
        self.times.written(history, self.events[:passed])
        with pytest.raises(BackfillError, match="does not reach"):
            run_backfill(self.request)
        (history / "rows.csv").unlink()
        history.rmdir()
        self.times.written(history, self.events[: passed + 1])
        run_backfill(self.request)


def handed_over(
    target: SqlGatewayTarget,
    place: Path,
    times: Times,
    seed: int,
    tables: Sequence[str],
    sinks: Mapping[str, str],
) -> HandedOver:
    """Starts both jobs; the live one writes into ``tables``."""
    events, source, scratch = times.arrivals(seed), place / "orders", place / "scratch"
    text = times.job(source, tables)
    request = BackfillRequest(
        JobSpec(text, settings=times.settings),
        tables={"orders": str(place / "history")},
        sinks=sinks,
        boundary=times.local(times.boundary),
    )
    record = plan(request).hand_over
    assert record is not None
    (start,) = record.sources
    # HOP reaches back furthest: 40 seconds before the boundary, and the delay.
    live_from = times.instant(start.live_from)
    assert live_from == times.boundary - timedelta(seconds=40) - DELAY

    # The live job starts with the first row at or after that time, as a source does that is asked to start by time.
    first = next(i for i, (time, _, _) in enumerate(events) if time >= live_from)
    times.written(source, events[first:])
    ledger = Ledger(place / "ledger", "live")
    side = Side(text, times.settings, engine="flink")
    options = Options(settle_seconds=1, start_timeout=120)
    deploy(target, ledger, side, start_mode="stateless", checked_old_sha256=None, hand_over=record, options=options)
    head = ledger.head()
    assert head is not None
    assert HandOver.from_dict(head.hand_over) == record

    # The same job over everything from the beginning.
    times.written(place / "all", events)
    everything = times.job(place / "all", folders(scratch))
    target.start(JobSpec(everything, {**times.settings, "pipeline.name": "scratch"}), Start(), uuid.uuid4().hex)
    return HandedOver(times, request, events, scratch)


# One of them every time, all of them in the nightly run.
@pytest.mark.parametrize("seed", mostly_nightly([7, 11, 23, 42, 2026], 1))
@pytest.mark.parametrize("case", mostly_nightly([*TIMES, "keys"], 1))
def test_no_window_is_wrong_missing_or_double(
    target: SqlGatewayTarget,
    spark: SparkSession,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    case: str,
    seed: int,
) -> None:
    if case in TIMES:
        in_folders_of_their_own(target, tmp_path, TIMES[case], seed)
    else:
        in_one_place(target, spark, request.getfixturevalue("broker"), tmp_path, seed)


def in_folders_of_their_own(target: SqlGatewayTarget, place: Path, times: Times, seed: int) -> None:
    """A reader puts the rows of both together at the boundary."""
    live, backfilled = place / "live", place / "backfilled"
    sinks = {name: str(backfilled / name) for name in WINDOWS}
    both = handed_over(target, place, times, seed, folders(live), sinks)
    both.backfill()

    def done() -> bool:
        return all(times.done(name, rows) for name, rows in all_rows(live).items())

    wait_for(done, "the live job is done", PATIENCE)
    truth, ours, theirs = both.truth(), all_rows(backfilled), all_rows(live)
    for name in WINDOWS:
        expected = Counter(truth[name])
        joined = Counter([*ours[name], *times.windows_of(theirs[name], later=True)])
        assert (joined - expected, expected - joined) == (Counter(), Counter()), name
        assert times.windows_of(ours[name], later=True) == []
        # The division matters: of windows that end by the boundary the live job has seen a part of the rows.
        partial = times.windows_of(theirs[name], later=False)
        assert Counter(partial) - expected, name


def in_one_place(target: SqlGatewayTarget, spark: SparkSession, broker: Broker, place: Path, seed: int) -> None:
    """The backfill replaces what the live job has written of windows that end by the boundary, in the same topics."""
    times = TIMES["UTC"]
    topics = {name: broker.topic(spark._jvm) for name in WINDOWS}
    formats = {"key__format": "csv", "value__format": "csv"}
    tables = [topic_table(name, KEYED, at, broker.servers, "upsert-kafka", **formats) for name, at in topics.items()]
    both = handed_over(target, place, times, seed, tables, {})

    def found() -> dict[str, list[str]]:
        return {name: sorted(held(spark, broker, topic).values()) for name, topic in topics.items()}

    def done() -> bool:
        return all(times.done(name, rows) for name, rows in found().items())

    wait_for(done, "the live job is done", PATIENCE)
    before, truth = found(), both.truth()
    both.backfill()
    after = found()
    for name in WINDOWS:
        assert after[name] == truth[name]
        assert set(times.windows_of(before[name], later=False)) - set(truth[name]), name
