"""Time of a backfill next to Spark, Flink and DuckDB on the same files.

Each contender is a process of its own, session start included; counted is the processor time of its whole process tree
(two cores). The rows of all are compared before a figure counts.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from airflow_flinkcompat.local_flink.cluster import flink_home
from dev.benchmarks.backfill.cases import CASES, LARGE, Case
from dev.benchmarks.backfill.contenders import make_data
from dev.benchmarks.processes import Cost, cost_of

_TIMEOUT_SECONDS = 1800
Costs = Mapping[str, float]


@dataclass(frozen=True)
class Goal:
    """What a case asks: the ratio of two contenders' costs stays within a limit."""

    says: str
    one: str
    other: str
    limit: float
    cases: tuple[str, ...]

    def judged(self, case: Case, costs: Costs) -> str:
        """The goal as a line, with what was reached; empty where it does not concern the case or nothing ran."""
        if case.name not in self.cases or self.one not in costs or self.other not in costs:
            return ""
        ratio = costs[self.one] / costs[self.other]
        return f"{self.says}: {ratio:.2f}, {'met' if ratio <= self.limit else 'missed'}"


_TUMBLE, _HOP, _CUMULATE, _SPARSE, _ORDERED, _CSV = (case.name for case in CASES)
GOALS = (
    Goal("with native partials ≤ 1/4 of Flink batch", "ours-native", "flink", 0.25, (_HOP, _CUMULATE, _ORDERED, _CSV)),
    Goal("with native partials ≤ 1/2 of Flink batch", "ours-native", "flink", 0.5, (_TUMBLE,)),
    Goal("Spark's own operators never above Flink batch", "ours", "flink", 1.0, (_HOP, _CUMULATE, _ORDERED, _CSV)),
    Goal("at most 1/4 of naive Spark when dense", "ours", "naive", 0.25, (_HOP, _CUMULATE, _ORDERED)),
    Goal("at most 1.1 of naive Spark when sparse", "ours-native", "naive", 1.1, (_SPARSE,)),
    Goal("at most 3 times DuckDB", "ours-native", "duckdb", 3.0, (LARGE.name,)),
)
EMPTY_GOAL_SECONDS = 4.0


def fingerprint(place: Path) -> tuple[object, ...]:
    """How many rows a result has and what is in them, in whatever order and files."""
    import duckdb

    files = [
        str(file)
        for file in ([place] if place.is_file() else sorted(place.rglob("*")))
        if file.is_file() and not file.name.startswith((".", "_"))
    ]
    if not files:
        return (0, None)
    columns = "k, CAST(window_start AS TIMESTAMP), CAST(window_end AS TIMESTAMP), n, total, most"
    query = f"SELECT count(*), sum(CAST(hash({columns}) AS HUGEINT)) FROM read_parquet(?)"
    with duckdb.connect() as connection:
        (found,) = connection.execute(query, [files]).fetchall()
    return tuple(found)


def run(contender: str, case: Case, source: Path, folder: Path) -> tuple[Cost, tuple[object, ...]]:
    """One run of a contender: its cost and what it wrote. Raises RuntimeError with what it said when it failed."""
    sink = folder / "result"
    shutil.rmtree(sink, ignore_errors=True)
    sink.unlink(missing_ok=True)
    command = [sys.executable, "-m", "dev.benchmarks.backfill.contenders", contender, case.name, str(source), str(sink)]
    cost = cost_of(command, _TIMEOUT_SECONDS)
    if cost.status:
        raise RuntimeError(f"{contender}, {case.name}: {cost.output[-2000:]}")
    return cost, fingerprint(sink)


def medians(contenders: Sequence[str], case: Case, source: Path, folder: Path, runs: int) -> dict[str, float]:
    """The median cost of each contender, which take turns. Raises RuntimeError when their rows differ."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    expected: tuple[object, ...] | None = None
    for _ in range(runs):
        for name in contenders:
            cost, rows = run(name, case, source, folder)
            if rows != (expected := expected or rows):
                raise RuntimeError(f"{name}, {case.name}: {rows} instead of {expected}")
            seconds[name].append(cost.cpu)
    return {name: statistics.median(costs) for name, costs in seconds.items()}


def as_installed(folder: Path) -> None:
    """Lets Python keep the bytecode of what it imports, as an installed package has it, whatever the caller's own."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")


def results(contenders: Sequence[str], cases: Sequence[Case], folder: Path, runs: int) -> Iterator[str]:
    """The benchmark as Markdown, line by line as it is measured."""
    yield f"# Backfill and its peers, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    (dist,) = (flink_home() / "lib").glob("flink-dist-*.jar")
    parts = f"PySpark {version('pyspark')}, Flink {dist.stem.rpartition('-')[2]}, DuckDB {version('duckdb')}"
    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    yield f"Python {platform.python_version()}, {parts}; {machine}; medians of {runs}."
    yield ""
    yield (__doc__ or "").partition("\n\n")[2].strip()
    yield ""
    yield f"| CPU seconds | {' | '.join(contenders)} |"
    yield f"|---|{'---|' * len(contenders)}"
    goals: list[str] = []
    if ours := bool({"ours", "ours-native"} & set(contenders)):
        run("empty", CASES[0], folder, folder)  # leaves bytecode and the archive of classes to those that count
    for case in cases:
        source = folder / case.data
        if not source.exists():
            source.mkdir()
            make_data(case, source)
        costs = medians(contenders, case, source, folder, runs)
        yield f"| {case.name} | {' | '.join(f'{costs[name]:.1f}' for name in contenders)} |"
        goals += [f"* {case.name}: {line}" for goal in GOALS if (line := goal.judged(case, costs))]
    yield ""
    yield from goals
    if not ours:
        return
    empty = statistics.median(run("empty", CASES[0], folder, folder)[0].cpu for _ in range(runs))
    verdict = "met" if empty <= EMPTY_GOAL_SECONDS else "missed"
    yield f"* empty local run ≤ {EMPTY_GOAL_SECONDS:g} s: {empty:.1f} s, {verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the results there too")
    parser.add_argument("--runs", type=int, default=3, help="runs of each contender (default: 3)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only cases whose name holds TEXT")
    parser.add_argument("--contenders", default="ours-native,ours,naive,flink,duckdb", help="by name, with commas")
    parser.add_argument("--large", action="store_true", help="also the case of 100M rows (2 GB of disk)")
    parser.add_argument("--folder", type=Path, help="keep the data there, and use what lies there")
    arguments = parser.parse_args()
    cases = [case for case in (*CASES, *([LARGE] if arguments.large else [])) if arguments.only in case.name]
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        as_installed(Path(scratch))
        writes: Callable[[str], None] = lines.append
        for line in results(arguments.contenders.split(","), cases, folder, arguments.runs):
            print(line, flush=True)
            writes(line)
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
