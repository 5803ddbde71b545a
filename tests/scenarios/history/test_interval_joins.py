"""An interval join goes on from what history says as from what Flink holds, with all rows that are not late."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from airflow_flinkcompat.backfill.connectors.registry import AssumedLocations, TableLocations
from airflow_flinkcompat.backfill.execution.frames import Execution
from airflow_flinkcompat.backfill.protocols import Locations
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_script import operator_layout
from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.joins import interval_join_query
from airflow_flinkcompat.history.state_rows import StateQuery
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.history.watermarks import least_watermark
from airflow_flinkcompat.plan.operators import JoinOperator, operators

NAMES = ("lefts", "rights")
DELAY = 3
BEGIN = datetime(2024, 1, 1)
SCRIPT = """
CREATE TABLE lefts (k STRING, v BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '3' SECOND)
WITH ('connector' = 'filesystem', 'path' = 'file://DATA/lefts', 'format' = 'csv');
CREATE TABLE rights WITH ('path' = 'file://DATA/rights') LIKE lefts;
INSERT INTO printed SELECT l.v, r.v AS w FROM lefts AS l JOIN rights AS r ON l.k = r.k AND l.ts BETWEEN
r.ts + INTERVAL '{}' SECOND AND r.ts + INTERVAL '{}' SECOND;
CREATE TABLE printed (v BIGINT, w BIGINT) WITH ('connector' = 'print');
"""


def query(script: str, locations: Locations, watermark: int | None = None) -> StateQuery:
    side = Side(script, engine="flink")
    outputs, problems = side.outputs
    assert not problems
    ((place, output),) = outputs.items()
    (operator,) = operators(output)
    assert isinstance(operator, JoinOperator)
    layout = operator_layout(operator, Symbols())
    assert isinstance(layout, StateLayout)
    pipeline = side.program.pipelines[place]
    sides = [TableRows(pipeline, segment, locations, watermark) for segment in operator.segments]
    return interval_join_query(sides, operator, layout)


class Came(NamedTuple):
    """A row of one side, its time in seconds."""

    side: int
    key: str
    time: int
    number: int


@dataclass
class Join:
    """Flink's ``TimeIntervalJoin`` by event time: INNER, in seconds (milliseconds there) that begin at 1970."""

    reach: tuple[int, int]
    caches: tuple[dict[str, dict[int, list[int]]], ...] = field(
        default_factory=lambda: (defaultdict(dict), defaultdict(dict))
    )
    timers: tuple[dict[str, int], ...] = field(default_factory=lambda: ({}, {}))
    watermark: int = 0
    expired: list[int] = field(default_factory=lambda: [0, 0])
    sent: Counter[tuple[int, int]] = field(default_factory=Counter)

    def take(self, row: Came) -> None:
        other = 1 - row.side
        first, last = row.time - self.reach[other], row.time + self.reach[row.side]
        if self.expired[other] < last:
            self.expired[other] = self.watermark - self.reach[other] - 1
            cached = self.caches[other][row.key]
            for time in list(cached):
                if first <= time <= last:
                    pairs = ((row.number, each) for each in cached[time])
                    self.sent.update(pair if row.side == 0 else pair[::-1] for pair in pairs)
                if time <= self.expired[other]:
                    del cached[time]
        if self.watermark < last:
            self.caches[row.side][row.key].setdefault(row.time, []).append(row.number)
            self.timers[row.side].setdefault(row.key, last + 1)

    def advance(self, watermark: int) -> None:
        self.watermark = max(self.watermark, watermark)
        due = [(timer, side, key) for side in (0, 1) for key, timer in self.timers[side].items()]
        for timer, side, key in sorted(due):
            if timer > self.watermark:
                continue
            self.expired[side] = self.watermark - self.reach[side] - 1
            cached = self.caches[side][key]
            for time in [time for time in cached if time <= self.expired[side]]:
                del cached[time]
            if cached:
                self.timers[side][key] = min(cached) + self.reach[side] + 1
            else:
                del self.timers[side][key]


def drawn(draw: random.Random, count: int, begin: int = 0) -> list[Came]:
    """Rows whose times go up, some of them out of order and some late."""
    return [
        Came(draw.randint(0, 1), draw.choice("abcd"), begin + 50 + number // 3 - draw.choice((0, 1, 2, 5, 12)), number)
        for number in range(begin * 3, begin * 3 + count)
    ]


def ran(join: Join, rows: Sequence[Came], draw: random.Random, reached: list[int]) -> None:
    """Watermarks come between rows as it happens, and never go further than rows do."""
    for row in rows:
        join.take(row)
        reached[row.side] = max(reached[row.side], row.time - DELAY)
        if draw.random() < 0.3:
            join.advance(min(reached))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("bounds", [(-10, 5), (2, 8), (-8, -2), (0, 0)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rows_that_are_not_late_are_joined_alike(
    bounds: tuple[int, int], seed: int, spark: SparkSession, tmp_path: Path
) -> None:
    draw, reach = random.Random(seed), (-bounds[0], bounds[1])
    before, reached = drawn(draw, 120), [-DELAY, -DELAY]
    flink = Join(reach)
    ran(flink, before, draw, reached)
    for side, name in enumerate(NAMES):
        (tmp_path / name).mkdir()
        lines = (
            f"{row.key},{row.number},{BEGIN + timedelta(seconds=row.time)}.000" for row in before if row.side == side
        )
        (tmp_path / name / "rows.csv").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    script = SCRIPT.format(*bounds).replace("file://DATA", tmp_path.as_uri())
    clocks = query(script, TableLocations()).clocks
    watermark = min(least_watermark(spark, rows) for rows in clocks)
    assert seconds(watermark) == min(reached)
    begun = Join(reach)
    execution = Execution(spark)
    for each in query(script, TableLocations(), watermark).states:
        side = "Right" in each.state.name
        for found in execution.frame(each.steps).drop("arrival").collect():
            if each.moment is None:
                key, time, cached = found
                begun.caches[side][key][seconds(time)] = [number for _, number, _ in cached]
            else:
                begun.timers[1 - side][found[0]] = seconds(found[2] - 1) + 1
    late = [set(cached) - set(begun.caches[0][key]) for key, cached in flink.caches[0].items()]
    assert all(time + reach[0] < min(reached) for times in late for time in times)
    after = [row for row in drawn(draw, 60, 40) if row.time > min(reached)]
    assert after
    flink.sent.clear()
    for join, further in ((flink, [*reached]), (begun, [*reached])):
        on_time = random.Random(seed)
        for row in after:
            if row.time > min(further):
                ran(join, [row], on_time, further)
    assert flink.sent == begun.sent
    assert flink.sent, "some rows are joined"


def seconds(millis: int) -> int:
    return millis // 1000 - int((BEGIN - datetime(1970, 1, 1)).total_seconds())


JOINED = SCRIPT.format(-1, 1).replace("filesystem", "kafka")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (JOINED.replace("AS l JOIN", "AS l LEFT JOIN"), "an outer interval join does not store its watermark"),
        (JOINED.replace("ts - INTERVAL '3' SECOND", "SOURCE_WATERMARK()"), "source_watermark"),
    ],
)
def test_what_is_not_computed(script: str, reason: str) -> None:
    with pytest.raises((NotComputable, BackfillError), match=reason):
        query(script, AssumedLocations())
