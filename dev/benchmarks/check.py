"""Time of a check as a multiple of the time of parsing.

The check is ``check(old, new)`` on engine vvr, with all its steps: it parses both scripts, plans, pairs and judges
them, finds literal secrets and creates the report. It is compared with ``parse_script`` of the same two scripts. A
ratio of 1 would mean that the check costs nothing in addition to parsing. The goal of 2 means that it costs as much
as parsing. Each figure is processor time, including garbage collection, the best of several runs (timeit): other runs
include other work of the machine.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import timeit
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from time import process_time

from airflow_flinkcompat.cli.batch import batch
from airflow_flinkcompat.cli.project import Given
from airflow_flinkcompat.compat import check
from airflow_flinkcompat.project.job_options import JobOptions
from airflow_flinkcompat.sql import parse_script
from airflow_flinkcompat.testing.fixture_cases import Case, load_cases
from dev.tools import benchmark_parser, explanation, publish

SMALL = """\
CREATE TABLE orders (customer STRING, amount BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH ('connector' = 'x');
INSERT INTO totals
SELECT customer, SUM(amount)
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '1' MINUTE))
GROUP BY customer, window_start, window_end;
"""
"""Five lines."""

_TABLES = """\
-- shop {n}
CREATE TABLE orders_{n} (
  order_id BIGINT,
  customer STRING,
  item STRING,
  region STRING,
  amount DECIMAL(10, 2),
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'orders_{n}', 'properties.bootstrap.servers' = 'broker:9092');
CREATE TABLE totals_{n} (
  customer STRING, item STRING, window_start TIMESTAMP(3), total DECIMAL(38, 2), n DECIMAL(38, 2)
)
WITH ('connector' = 'kafka', 'topic' = 'totals_{n}', 'properties.bootstrap.servers' = 'broker:9092');

"""
_VIEW = """\
CREATE TEMPORARY VIEW step_{n}_{level} AS
SELECT
  order_id, UPPER(TRIM(customer)) AS customer, COALESCE(item, 'level {level}') AS item, region, order_time,
  CASE WHEN amount > {level} THEN amount ELSE amount * 2 END AS amount
FROM {below}
WHERE region <> 'R{level}';
"""
_INSERT = """\
INSERT INTO totals_{n}
SELECT customer, item, window_start, SUM(amount), COUNT(order_id)
FROM TABLE(TUMBLE(TABLE step_{n}_{top}, DESCRIPTOR(order_time), INTERVAL '10' MINUTE))
GROUP BY customer, item, window_start, window_end;

"""
LEVELS = 5
"""Number of views above each table, so a query reads five views deep and ``amount`` 3**5 times."""
LINES = 50
"""Number of lines for one table with its views, its sink and its query."""


def large(lines: int) -> str:
    """A script of about ``lines`` lines: chains of five views, each with a separate table and sink."""
    return "".join(_block(n) for n in range(max(1, round(lines / LINES))))


def _block(n: int) -> str:
    below = [f"orders_{n}", *(f"step_{n}_{level}" for level in range(1, LEVELS))]
    views = "".join(_VIEW.format(n=n, level=level, below=name) for level, name in enumerate(below, start=1))
    return _TABLES.format(n=n) + views + _INSERT.format(n=n, top=LEVELS)


def changed(script: str) -> str:
    """The script with its first query's metrics changed."""
    return script.replace("COUNT(order_id)", "MAX(amount)", 1).replace(
        "SUM(amount)\n", "SUM(amount), COUNT(amount)\n", 1
    )


FIXTURES = Path(__file__).parents[2] / "tests" / "fixtures" / "vvr"
RATIO_GOAL = 2.0
LARGE_GOAL_MS = 100.0
SIZES = (500, 1000, 2000, 5000)


@dataclass(frozen=True)
class Timing:
    """One pair: lines of the proposed script, milliseconds to parse both sides, to check the change."""

    name: str
    lines: int
    parse: float
    check: float

    @property
    def ratio(self) -> float:
        return self.check / self.parse


def best(run: Callable[[], object], rounds: int, seconds: float) -> float:
    """The best of ``rounds`` timings, each long enough to be accurate, in milliseconds of processor time."""
    timer = timeit.Timer(run, "import gc; gc.enable()", timer=process_time)
    number = max(1, round(seconds / max(timer.timeit(1), 1e-6)))
    return min(timer.repeat(rounds, number)) / number * 1000


def timed(name: str, old: str, new: str, rounds: int = 5, seconds: float = 0.1) -> Timing:
    """Parse and check of one pair, after a first run of both."""
    check(old, new)
    gc.collect()
    parse = best(lambda: (parse_script(old), parse_script(new)), rounds, seconds)
    return Timing(name, len(new.splitlines()), parse, best(lambda: check(old, new), rounds, seconds))


def fixtures() -> list[Case]:
    """Every case of the vendor's documents."""
    return [case for folder in sorted(FIXTURES.iterdir()) if folder.is_dir() for case in load_cases(folder)]


def of_fixtures(cases: list[Case]) -> Timing:
    """Medians over all fixtures. Each fixture runs once or twice, because their number is large."""
    each = [timed(case.id, case.old_script, case.new_script, rounds=2, seconds=0.01) for case in cases]
    middle = sorted(each, key=lambda timing: timing.ratio)[len(each) // 2]
    return Timing(
        f"fixtures, median of {len(each)}",
        round(statistics.median(timing.lines for timing in each)),
        middle.parse,
        middle.check,
    )


def batch_rate(cases: list[Case], seconds: float) -> float:
    """Pairs a second through the code of ``flinkcompat batch`` on one core."""
    lines = [json.dumps({"id": c.id, "old": c.old_script, "new": c.new_script}).encode() for c in cases]
    done, started = 0, process_time()
    while (spent := process_time() - started) < seconds:
        done += sum("outcome" in answer for answer in batch(lines, Given(JobOptions(engine="vvr")), None))
    return done / spent


def results(seconds: float) -> Iterator[str]:
    """The benchmark as Markdown, line by line as it is measured."""
    cases = fixtures()
    yield f"# Check over parse, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    yield f"Python {platform.python_version()}, sqlglot {version('sqlglot')}, {machine}."
    yield ""
    yield explanation(__doc__)
    yield ""
    yield "| pair | lines | parse both, ms | check, ms | check / parse | goal |"
    yield "|---|---|---|---|---|---|"
    big = large(500)
    yield row(timed("five lines", SMALL, changed(SMALL)))
    yield row(of_fixtures(cases))
    one = timed("50 views", big, changed(big))
    yield row(one, one.check <= LARGE_GOAL_MS, f", ≤ {LARGE_GOAL_MS:g} ms")
    yield ""
    yield "| lines | parse both, µs a line | check, µs a line | check / parse |"
    yield "|---|---|---|---|"
    for size in SIZES:
        script = large(size)
        timing = timed(str(size), script, changed(script), rounds=3)
        per_line = (f"{ms * 1000 / timing.lines:.0f}" for ms in (timing.parse, timing.check))
        yield f"| {timing.lines} | {' | '.join(per_line)} | {timing.ratio:.2f} |"
    yield ""
    yield f"Batch: {batch_rate(cases, seconds):.0f} pairs a second on one core, over the {len(cases)} fixtures."


def row(timing: Timing, holds: bool = True, more: str = "") -> str:
    """A row of the table; ``holds`` is a condition of ``more`` in addition to the ratio."""
    goal = f"≤ {RATIO_GOAL:g}{more}: {'met' if timing.ratio <= RATIO_GOAL and holds else 'missed'}"
    figures = f"{timing.parse:.2f} | {timing.check:.2f} | {timing.ratio:.2f}"
    return f"| {timing.name} | {timing.lines} | {figures} | {goal} |"


if __name__ == "__main__":
    parser = benchmark_parser(__doc__)
    parser.add_argument("--seconds", type=float, default=5, help="seconds for the rate of batches (default: 5)")
    options = parser.parse_args()
    publish(results(options.seconds), options.write)
