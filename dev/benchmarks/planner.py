"""Cost of Flink's own planner: cold start, warm questions, 30 jobs, memory.

A cold start is a new process that answers one script, with the class archive and without. Warm pairs are measured
restores of Flink 2.3, one after the other in one process. Counted is processor time of the planner's processes, which a
busy machine changes less than the clock, and seconds by the clock of the whole question, the Python part included. The
SQL Gateway compiles both scripts of the same pairs, as ``--explain-plan`` had it do.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from airflow_flinkcompat.compat import InputError, Side
from airflow_flinkcompat.deploy import DeployError, SqlGatewayPlanner, explain_plans
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.planner import Installation, close_all, find, make_archive, predict
from airflow_flinkcompat.planner.questions import plan
from airflow_flinkcompat.sql import ScriptError
from dev.measure import measured
from dev.tools import publish

LINE = "2.3"
SCRIPTS = 1_500
JOBS = 30
ROUNDS = 3
Pair = tuple[Side, Side]


class _Bare(Installation):
    """A planner that has no class archive."""

    @property
    def class_archive(self) -> Path:
        return Path(os.devnull, "none")


@dataclass
class Cost:
    """Seconds: of processor time of the processes that this one started, and by the clock."""

    cpu: float = 0.0
    wall: float = 0.0
    each: list[tuple[float, float]] = field(default_factory=list)


def pairs() -> list[Pair]:
    """The measured changes of a line."""
    found = []
    for one in (*measured.narrow(), *measured.load(measured.WIDE)):
        if one.version.startswith(LINE) and not one.old_version:
            sides = ((one.old, one.settings_old, "old.sql"), (one.new, one.settings_new, "new.sql"))
            before, after = (
                Side(text.replace("Result", "Results"), settings, engine="flink", engine_version=LINE, source=name)
                for text, settings, name in sides
            )
            found.append((before, after))
    return found


def used() -> float:
    """Processor time of all processes that this one started and that run."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


@contextmanager
def counted(cost: Cost) -> Iterator[None]:
    """Add what happens inside to a cost."""
    cpu, wall = used(), time.monotonic()
    yield
    spent = used() - cpu, time.monotonic() - wall
    cost.each.append(spent)
    cost.cpu += spent[0]
    cost.wall += spent[1]


def cold(installation: Installation, side: Side) -> tuple[float, float]:
    """The least of several starts that answer one script."""
    found = []
    for _ in range(ROUNDS):
        close_all()
        with counted(cost := Cost()):
            plan(side, installation)
        found.append((cost.cpu, cost.wall))
    return min(found)


def asked(ask: Callable[[Side, Side], object], chosen: list[Pair]) -> Cost:
    """What all pairs cost, one by one."""
    cost = Cost()
    for old, new in chosen:
        with counted(cost):
            try:
                ask(old, new)
            except (InputError, ScriptError, DeployError) as error:
                print(f"not planned: {error}"[:200], file=sys.stderr)
    return cost


def spread(cost: Cost, which: int) -> str:
    """Median and 95 % in milliseconds."""
    values = sorted(1_000 * each[which] for each in cost.each)
    return f"{statistics.median(values):.0f} / {values[int(len(values) * 0.95)]:.0f}"


def memory() -> float:
    """The memory of the largest process that this one started, in MB."""
    return max(each.memory_info().rss for each in psutil.Process().children(recursive=True)) / 2**20


def results(scripts: int) -> str:
    """Measure everything; return it as Markdown."""
    installation = find(LINE)
    make_archive(installation)
    known = pairs()
    side = known[0][0]
    bare = _Bare(installation.line, installation.home, installation.java, installation.classpath)

    def planner(old: Side, new: Side) -> object:
        return predict(old, new, installation, installation)

    load = os.getloadavg()[0]
    started = cold(installation, side)
    without = cold(bare, side)
    close_all()
    diff = asked(planner, list(islice(cycle(known), 0, 13 * JOBS, 13)))  # of all shapes, the start included
    close_all()
    asked(planner, known[:10])
    warm = asked(planner, list(islice(cycle(known), 10, scripts // 2)))
    resident = memory()
    close_all()
    with (
        TemporaryDirectory(prefix="flinkcompat-bench-") as folder,
        LocalFlink(folder, gateway_only=True) as flink,
        SqlGatewayPlanner(flink.gateway_url) as gateway,
    ):
        begin = used()
        first = asked(lambda old, new: explain_plans(old, new, gateway), known[:1])
        first.cpu += begin
        compiled = asked(lambda old, new: explain_plans(old, new, gateway), known[10:60])
        of_gateway = memory()
    pairs_each = (
        ("processor ms a pair, median / 95 %", spread(warm, 0), spread(compiled, 0), "250 (median, an idle core)"),
        ("ms a pair by the clock, median / 95 %", spread(warm, 1), spread(compiled, 1), ""),
    )
    share = statistics.median(each[0] for each in warm.each) / statistics.median(each[0] for each in compiled.each)
    lines = [
        f"# What Flink's planner costs, {datetime.now(UTC):%Y-%m-%d}",
        "",
        f"Flink {installation.line.version}, Python {platform.python_version()}, "
        f"{os.cpu_count()} cores. The load was {load:.1f} at the beginning and {os.getloadavg()[0]:.1f} at the end: "
        "where other work ran, the clock counts for less than processor time. Made by `make bench-planner`.",
        "",
        "| what | planner | SQL Gateway (`--explain-plan`) | goal |",
        "|---|--:|--:|--:|",
        f"| cold start and one script, processor seconds | {started[0]:.1f} | {first.cpu:.1f} (with one pair) | 5 |",
        f"| the same without the class archive | {without[0]:.1f} | | |",
        f"| cold start and one script, seconds by the clock | {started[1]:.1f} | | |",
        *(f"| {name} | {mine} | {other} | {goal} |" for name, mine, other, goal in pairs_each),
        f"| {JOBS} changed jobs in all, start included: processor seconds | {diff.cpu:.1f} | | |",
        f"| {JOBS} changed jobs in all, start included: seconds by the clock | {diff.wall:.1f} | | 20 |",
        f"| memory after {scripts} scripts, MB | {resident:.0f} | {of_gateway:.0f} (after 100) | 500 |",
        "",
        f"A pair costs the planner {share:.1f} times the processor time of the Gateway, which compiles two plans. The "
        "planner also makes both job graphs, opens the operators and restores the new ones from the state of the old "
        "ones, and does so once more with two subtasks where a script sets no `parallelism.default`.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="where the table goes (default: standard output)")
    parser.add_argument("--scripts", type=int, default=SCRIPTS, help="how many scripts one process plans")
    options = parser.parse_args()
    table = results(options.scripts)
    publish(table, options.write)
