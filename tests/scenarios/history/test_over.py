"""An OVER by event time goes on from what history says as from what Flink holds."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from airflow_flinkcompat.backfill.connectors.registry import AssumedLocations, TableLocations
from airflow_flinkcompat.backfill.execution.frames import Execution
from airflow_flinkcompat.backfill.protocols import Locations
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateLayout, Stored
from airflow_flinkcompat.exec_graph.stored_columns import derive_aggregation
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.over import over_query
from airflow_flinkcompat.history.state_rows import StateQuery
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.migration.slices import EVER
from airflow_flinkcompat.plan.operators import OverOperator, operators
from airflow_flinkcompat.plan.origins import describe
from airflow_flinkcompat.plan.types import TimeAttribute
from airflow_flinkcompat.savepoint.binary import KeyedStateKind

DELAY = 4
BEGIN = datetime(2024, 1, 1)
SCRIPT = """
CREATE TABLE came (k STRING, v BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '4' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'file://DATA/came', 'format' = 'csv');
CREATE TABLE printed (v BIGINT, total BIGINT) WITH ('connector' = 'print');
INSERT INTO printed SELECT v, SUM(v) OVER (PARTITION BY k ORDER BY {}) FROM came;
"""
FRAMES = {
    "RANGE": "ts",
    "ROWS": "ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "3 ROWS": "ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
    "7 SECONDS": "ts RANGE BETWEEN INTERVAL '7' SECOND PRECEDING AND CURRENT ROW",
}
LONG = Stored("Long")


def query(script: str, locations: Locations, watermark: int | None = None) -> StateQuery:
    side = Side(script, engine="flink")
    outputs, problems = side.outputs
    assert not problems
    ((place, output),) = outputs.items()
    (operator,) = operators(output)
    assert isinstance(operator, OverOperator)
    framed = operator.frame.preceding is not None
    layout = derive_aggregation(operator.as_aggregation, False, framed)
    if operator.clock is TimeAttribute.ROWTIME:
        types = {"k": "VARCHAR(2147483647)", "v": "BIGINT", "ts": "TIMESTAMP(3)"}
        row = tuple(StateField(types[describe(each)], each, describe(each)) for each in operator.row)
        beside = {True: ["lastTriggeringTsState", "processedCountState"], False: []}[framed]
        if framed and operator.frame.unit == "RANGE":
            beside = ["lastTriggeringTsState", "cleanupTsState"]
        states = [NamedState(name, KeyedStateKind.VALUE, LONG) for name in beside]
        states.append(NamedState("inputState", KeyedStateKind.MAP, Stored("List<row>", row), LONG))
        layout = StateLayout(layout.key, (*layout.states, *states), layout.timers, retracting=framed)
    rows = TableRows(side.program.pipelines[place], operator.segment, locations, watermark)
    return over_query(rows, operator, layout)


class Came(NamedTuple):
    """A row, its time in milliseconds."""

    key: str
    number: int
    time: int


@dataclass
class Key:
    """What is held of a key: how many values there are and their sum, and rows by their times."""

    count: int = 0
    total: int = 0
    rows: dict[int, list[int]] = field(default_factory=dict)
    timers: set[int] = field(default_factory=set)
    last: int = 0
    counted: int = 0
    cleaned: int | None = None


@dataclass
class Over:
    """Flink's OVER by event time, of a frame of ``rows``, of ``reach`` milliseconds, or from the beginning."""

    unit: str
    rows: int | None = None
    reach: int | None = None
    keys: dict[str, Key] = field(default_factory=lambda: defaultdict(Key))
    watermark: int = -(1 << 62)
    sent: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def framed(self) -> bool:
        return self.rows is not None or self.reach is not None

    def take(self, row: Came) -> None:
        key = self.keys[row.key]
        if row.time <= (key.last if self.framed else self.watermark):
            return
        key.rows.setdefault(row.time, []).append(row.number)
        key.timers.add(row.time)
        if self.reach is not None and (key.cleaned is None or key.cleaned < row.time + self.reach + 1):
            key.cleaned = row.time + self.reach * 3 // 2 + 1
            key.timers.add(key.cleaned)

    def advance(self, watermark: int) -> None:
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        for key in self.keys.values():
            while due := [timer for timer in key.timers if timer <= watermark]:
                key.timers.remove(min(due))
                if not self.framed:
                    self._next_watermark(key)
                elif self.rows is not None:
                    self._frame_of_rows(key, min(due))
                else:
                    self._frame_of_time(key, min(due))

    def _adds(self, key: Key, number: int) -> None:
        key.count, key.total = key.count + 1, key.total + number

    def _takes_back(self, key: Key, number: int) -> None:
        key.count, key.total = key.count - 1, key.total - number

    def _sends(self, key: Key, number: int) -> None:
        self.sent.append((number, key.count, key.total))

    def _next_watermark(self, key: Key) -> None:
        for time in sorted(time for time in key.rows if time <= self.watermark):
            numbers = key.rows.pop(time)
            for number in numbers:
                self._adds(key, number)
                if self.unit == "ROWS":
                    self._sends(key, number)
            for number in numbers if self.unit == "RANGE" else ():
                self._sends(key, number)

    def _frame_of_rows(self, key: Key, time: int) -> None:
        assert self.rows is not None
        for number in [*key.rows.get(time, ())]:
            if key.counted < self.rows:
                key.counted += 1
            else:
                oldest = min(key.rows)
                self._takes_back(key, key.rows[oldest].pop(0))
                if not key.rows[oldest]:
                    del key.rows[oldest]
            self._adds(key, number)
            self._sends(key, number)
        key.last = time

    def _frame_of_time(self, key: Key, time: int) -> None:
        assert self.reach is not None
        if key.cleaned is not None and key.cleaned <= time:
            key.count, key.total, key.rows, key.last, key.cleaned = 0, 0, {}, 0, None
            return
        for left in [each for each in key.rows if time - each > self.reach and time in key.rows]:
            for number in key.rows.pop(left):
                self._takes_back(key, number)
        for number in key.rows.get(time, ()):
            self._adds(key, number)
        for number in key.rows.get(time, ()):
            self._sends(key, number)
        key.last = time


def over(frame: str) -> Over:
    if frame == "3 ROWS":
        return Over("ROWS", rows=3)
    return Over("RANGE", reach=7000) if frame == "7 SECONDS" else Over(frame)


def drawn(draw: random.Random, begin: int, count: int, delay: int) -> list[Came]:
    """Rows whose times go up, where watermarks stay behind but for some that are out of order, none of them late."""
    since = int(BEGIN.replace(tzinfo=UTC).timestamp()) + 50
    return [
        Came(
            draw.choice("aabcd"),
            number,
            (since + (number // 3 + draw.choice((0, 0, 1, 2, 3)) if delay else 2 * number)) * 1000,
        )
        for number in range(begin, begin + count)
    ]


def ran(jobs: Sequence[Over], rows: Sequence[Came], draw: random.Random, delay: int) -> None:
    """Watermarks come between rows as it happens, and never go further than rows do."""
    reached = jobs[0].watermark
    for row in rows:
        for job in jobs:
            job.take(row)
        reached = max(reached, row.time - delay * 1000)
        if draw.random() < 0.3:
            for job in jobs:
                job.advance(reached)


def begun(frame: str, found: StateQuery, execution: Execution) -> Over:
    """The job that begins with what is computed."""
    made = over(frame)
    for each in found.states:
        columns = [column for column in execution.frame(each.steps).columns if column.startswith("c")]
        for name, *told in execution.frame(each.steps).select(*columns).collect():
            key = made.keys[name]
            match each.state.name, each.moment:
                case "accState", _:
                    key.count, key.total = told[:2]
                case "inputState", None:
                    key.rows[told[0]] = [row[1] for row in told[1]]
                case "inputState", _:
                    key.rows[told[1]] = [row[1] for row in told[2]]
                    key.timers.add(told[1])
                case "lastTriggeringTsState", _:
                    (key.last,) = told
                case "processedCountState", _:
                    (key.counted,) = told
                case "cleanupTsState", _:
                    key.cleaned = told[1]
                    key.timers.add(told[1])
    return made


PAIRS = [(one, other) for one in FRAMES for other in FRAMES]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("former", "frame", "delay", "seed"),
    [
        ("RANGE", "7 SECONDS", 0, 1),
        ("3 ROWS", "3 ROWS", DELAY, 1),
        *((*pair, delay, 2) for pair in PAIRS for delay in (0, DELAY)),
        *((frame, frame, DELAY, 3) for frame in FRAMES),
    ],
)
def test_rows_to_come_are_sent_alike(
    former: str, frame: str, delay: int, seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    """``former`` is the frame of the job whose timers tell which rows it had sent."""
    draw = random.Random(seed)
    before = drawn(draw, 0, 20 if seed == 3 else 90, delay)
    old, flink = over(former), over(frame)
    ran([old, flink], before, draw, delay)
    (tmp_path / "came").mkdir()
    lines = (f"{row.key},{row.number},{datetime.fromtimestamp(row.time / 1000, UTC):%F %T}.000" for row in before)
    (tmp_path / "came" / "rows.csv").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    script = SCRIPT.format(FRAMES[frame]).replace("file://DATA", tmp_path.as_uri())
    timers = [timer for key in old.keys.values() for timer in key.timers]
    reached = min(timers) - 1 if timers else EVER
    found, execution = query(script, TableLocations(), reached), Execution(spark)
    (doubt,) = found.doubts
    assert not execution.frame(doubt.steps).take(1)
    made = begun(frame, found, execution)
    if frame != "7 SECONDS":
        assert made.keys == flink.keys
    after = [row for row in drawn(draw, 90, 60, delay) if row.time > flink.watermark]
    flink.sent.clear()
    # It starts without a watermark, as does one that goes on from its own state.
    flink.watermark = made.watermark
    for job in (flink, made):
        ran([job], after, random.Random(seed), delay)
        job.advance(EVER)
    assert Counter(made.sent) == Counter(flink.sent)
    assert len({total for _, _, total in flink.sent}) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("frame", "times", "doubtful"),
    [
        ("RANGE", [20, 10, *range(40, 60, 2)], True),
        ("3 ROWS", [20, 10, *range(40, 60, 2)], False),
        ("3 ROWS", [*range(40, 60, 2), 62, 57], True),
        ("7 SECONDS", [20, 10, *range(40, 60, 2)], False),
        ("7 SECONDS", [*range(40, 60, 2), 53], True),
    ],
)
def test_a_row_that_may_have_come_late(
    frame: str, times: list[int], doubtful: bool, spark: SparkSession, tmp_path: Path
) -> None:
    """Of a frame only those matter that it still holds."""
    (tmp_path / "came").mkdir()
    lines = (f"a,{number},{BEGIN + timedelta(seconds=time)}.000\n" for number, time in enumerate(times))
    (tmp_path / "came" / "rows.csv").write_text("".join(lines), "utf-8")
    script = SCRIPT.format(FRAMES[frame]).replace("file://DATA", tmp_path.as_uri())
    (doubt,) = query(script, TableLocations(), EVER).doubts
    assert bool(Execution(spark).frame(doubt.steps).take(1)) is doubtful


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        *((frame, None) for frame in FRAMES.values()),
        ("p", None),
        ("p ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW", None),
        (
            "p ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
            "history does not record when the rows in a processing-time OVER frame arrived",
        ),
        (
            "p RANGE BETWEEN INTERVAL '7' SECOND PRECEDING AND CURRENT ROW",
            "history does not record when the rows in a processing-time OVER frame arrived",
        ),
    ],
)
def test_what_is_computed(order: str, reason: str | None) -> None:
    script = SCRIPT.format(order)
    if reason is None:
        found = query(script, AssumedLocations())
        assert found.timers_show_pending is order.startswith("ts")
        return
    with pytest.raises(NotComputable, match=reason):
        query(script, AssumedLocations())
