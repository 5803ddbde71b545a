"""Time of a backfill, compared with Spark, Flink and DuckDB on the same files.

Each contender runs in a separate process, including its session start. The processor time of its whole process tree
is measured (two cores). The rows of all contenders are compared before a figure is used. ``naive`` is Spark's own
window function for TUMBLE and HOP, and exploded windows for CUMULATE, in a session that sets only the time zone.
"""

from __future__ import annotations

import os
import platform
import shutil
import statistics
import sys
import tempfile
from argparse import SUPPRESS
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from dev.tools import Cost, benchmark_parser, cost_of, explanation, publish

FIRST = "2024-01-01 00:00:00"
HOURS = 4
COLUMNS = "ts TIMESTAMP(3), k BIGINT, v BIGINT"
RESULTS = "k BIGINT, window_start TIMESTAMP(3), window_end TIMESTAMP(3), n BIGINT, total BIGINT, most BIGINT"


@dataclass(frozen=True)
class Case:
    """One query over files of one ``format``; ``slide`` and ``size`` in minutes, ``slide`` 0 for TUMBLE."""

    name: str
    kind: str
    slide: int
    size: int
    rows: int = 20_000_000
    keys: int = 1_000
    ordered: bool = False
    format: str = "parquet"

    @property
    def data(self) -> str:
        """Name of the data set, which several cases can share."""
        return f"{self.rows}-rows-{self.keys}-keys{'-in-order' if self.ordered else ''}-{self.format}"

    @property
    def window(self) -> str:
        """The windowing function as Flink SQL."""
        lengths = [f"INTERVAL '{minutes}' MINUTE" for minutes in (self.slide, self.size) if minutes]
        return f"TABLE({self.kind}(TABLE orders, DESCRIPTOR(ts), {', '.join(lengths)}))"

    def script(self, source: Path, sink: Path) -> str:
        """The Flink SQL script, for Flink and for the backfill."""
        utc = ", 'parquet.utc-timezone' = 'true'" if self.format == "parquet" else ""
        return (
            f"CREATE TABLE orders ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '30' SECOND) "
            f"WITH ('connector' = 'filesystem', 'path' = '{source}', 'format' = '{self.format}'{utc});\n"
            f"CREATE TABLE results ({RESULTS}) WITH ('connector' = 'filesystem', 'path' = '{sink}', "
            "'format' = 'parquet', 'parquet.utc-timezone' = 'true');\n"
            "INSERT INTO results SELECT k, window_start, window_end, COUNT(*), SUM(v), MAX(v) "
            f"FROM {self.window} GROUP BY k, window_start, window_end;\n"
        )

    def relation(self, source: Path) -> str:
        """The rows of a folder in DuckDB's SQL."""
        if self.format == "parquet":
            return f"'{source}/*.parquet'"
        columns = "{'ts': 'TIMESTAMP', 'k': 'BIGINT', 'v': 'BIGINT'}"
        return f"read_csv('{source}/*.csv', columns = {columns}, header = false, auto_detect = false)"

    def duckdb(self, source: Path, sink: Path) -> str:
        """The same query in the fastest form for DuckDB: partial results per slice, then the windows."""
        slice_ = self.slide or self.size
        start = f"time_bucket(INTERVAL {self.size} MINUTE, slice)"
        end = f"{start} + to_minutes((i + 1) * {slice_})"
        partials = (
            f"SELECT k, time_bucket(INTERVAL {slice_} MINUTE, ts) AS slice, count(*) AS n, sum(v) AS total, "
            f"max(v) AS most FROM {self.relation(source)} GROUP BY ALL"
        )
        length = {
            "TUMBLE": f"SELECT k, slice AS s, slice + INTERVAL {self.size} MINUTE AS e, n, total, most FROM p",
            "HOP": (
                f"SELECT k, slice - to_minutes(i * {slice_}) AS s, slice - to_minutes(i * {slice_}) "
                f"+ INTERVAL {self.size} MINUTE AS e, n, total, most "
                f"FROM p, range({self.size // slice_}) AS r(i)"
            ),
            "CUMULATE": (
                f"SELECT k, {start} AS s, {end} AS e, n, total, most "
                f"FROM p, range({self.size // slice_}) AS r(i) WHERE slice < {end}"
            ),
        }[self.kind]
        return (
            f"COPY (WITH p AS ({partials}), w AS ({length}) SELECT k, s AS window_start, e AS window_end, "
            "CAST(sum(n) AS BIGINT) AS n, CAST(sum(total) AS BIGINT) AS total, max(most) AS most FROM w GROUP BY ALL) "
            f"TO '{sink}' (FORMAT parquet, PER_THREAD_OUTPUT)"
        )


CASES = (
    Case("TUMBLE 10 min", "TUMBLE", 0, 10),
    Case("HOP 2/10 min", "HOP", 2, 10),
    Case("CUMULATE 5/60 min", "CUMULATE", 5, 60),
    Case("HOP 2/10 min, sparse", "HOP", 2, 10, keys=1_000_000),
    Case("HOP 2/10 min, rows in order of time", "HOP", 2, 10, ordered=True),
    Case("HOP 2/10 min, 8M rows of csv", "HOP", 2, 10, rows=8_000_000, format="csv"),
)
LARGE = Case("HOP 2/10 min, 100M rows", "HOP", 2, 10, rows=100_000_000)

# Times with three digits of milliseconds, no quoted values.
_WRITTEN = {
    "parquet": "FORMAT parquet",
    "csv": "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', TIMESTAMPFORMAT '%Y-%m-%d %H:%M:%S.%g'",
}


def make_data(case: Case, folder: Path) -> None:
    """Random rows in eight files; ordered rows are in the order of time, up to half a minute."""
    import duckdb

    millis = HOURS * 3_600_000
    for part in range(8):
        rows = case.rows // 8
        after = f"({part}::BIGINT * {rows} + i) / {case.rows} * {millis} + random() * 30000"
        after = after if case.ordered else f"random() * {millis}"
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT TIMESTAMP '{FIRST}' + to_milliseconds(CAST({after} AS BIGINT)) AS ts, "
                f"CAST(floor(random() * {case.keys}) AS BIGINT) AS k, CAST(floor(random() * 10000) AS BIGINT) AS v "
                f"FROM range({rows}) AS r(i)) TO '{folder / f'part-{part}.{case.format}'}' ({_WRITTEN[case.format]})"
            )


def ours(case: Case, source: Path, sink: Path, native: bool = False) -> None:
    """Run ``flinkcompat backfill`` like a user."""
    from airflow_flinkcompat.cli import main

    script = sink.with_suffix(".sql")
    script.write_text(case.script(source, sink), encoding="utf-8")
    sys.argv = ["flinkcompat", "backfill", str(script), "--sink", f"results={sink}"]
    if not native:
        sys.argv += ["--native", "off"]
    main()


def ours_native(case: Case, source: Path, sink: Path) -> None:
    """Run the same with native partial aggregates if the plan chooses them."""
    ours(case, source, sink, native=True)


def naive_spark(case: Case, source: Path, sink: Path) -> None:
    """Spark's own window function, or exploded windows."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F

    with SparkSession.builder.master("local[*]").config("spark.sql.session.timeZone", "UTC").getOrCreate() as spark:
        if case.format == "parquet":
            orders = spark.read.parquet(str(source))
        else:
            orders = spark.read.schema("ts TIMESTAMP, k BIGINT, v BIGINT").csv(str(source))
        if case.kind == "CUMULATE":
            start = F.expr(f"window(ts, '{case.size} minutes').start")
            ends = F.expr(
                f"explode(sequence(window(ts, '{case.slide} minutes').end, s + INTERVAL {case.size} MINUTES, "
                f"INTERVAL {case.slide} MINUTES))"
            )
            rows = orders.withColumn("s", start).withColumn("e", ends)
        else:
            window = F.window("ts", f"{case.size} minutes", f"{case.slide or case.size} minutes")
            rows = orders.withColumn("w", window).select(
                "k", "v", F.col("w.start").alias("s"), F.col("w.end").alias("e")
            )
        results = rows.groupBy("k", F.col("s").alias("window_start"), F.col("e").alias("window_end")).agg(
            F.count(F.lit(1)).alias("n"), F.sum("v").alias("total"), F.max("v").alias("most")
        )
        results.write.parquet(str(sink))


def flink(case: Case, source: Path, sink: Path) -> None:
    """Flink in batch mode on two slots."""
    from dev.services.flink_batch import flink_batch, parquet_jars

    statements = [part for part in case.script(source, sink).split(";\n") if part.strip()]
    with flink_batch(parquet_jars()) as batch:
        batch.run(statements, {"parallelism.default": "2"})


def duckdb(case: Case, source: Path, sink: Path) -> None:
    """DuckDB alone: the floor."""
    import duckdb as database

    database.sql("SET threads = 2")
    database.sql(case.duckdb(source, sink))


def empty(case: Case, source: Path, sink: Path) -> None:
    """Run a backfill of an empty input, to measure the cost of the start."""
    source = sink.with_suffix(".empty")
    source.mkdir(exist_ok=True)
    ours(case, source, sink)


CONTENDERS: dict[str, Callable[[Case, Path, Path], None]] = {
    "ours": ours,
    "ours-native": ours_native,
    "naive": naive_spark,
    "flink": flink,
    "duckdb": duckdb,
    "empty": empty,
}


_TIMEOUT_SECONDS = 1800
Costs = Mapping[str, float]


@dataclass(frozen=True)
class Goal:
    """Goal of a benchmark case: a limit for the cost ratio of two contenders."""

    says: str
    one: str
    other: str
    limit: float
    cases: tuple[str, ...]

    def judged(self, case: Case, costs: Costs) -> str:
        """Line with the goal and the measured ratio; "" if the goal does not apply or nothing was measured."""
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
    """Row count and hash of a result, independent of the order of rows and files."""
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
    """Cost and result of one run of a contender. Raises RuntimeError with its output if it failed."""
    sink = folder / "result"
    shutil.rmtree(sink, ignore_errors=True)
    sink.unlink(missing_ok=True)
    command = [sys.executable, "-m", "dev.benchmarks.backfill", contender, case.name, str(source), str(sink)]
    cost = cost_of(command, _TIMEOUT_SECONDS)
    if cost.status:
        raise RuntimeError(f"{contender}, {case.name}: {cost.output[-2000:]}")
    return cost, fingerprint(sink)


def medians(contenders: Sequence[str], case: Case, source: Path, folder: Path, runs: int) -> dict[str, float]:
    """Median cost of each contender; contenders run alternately. Raises RuntimeError if rows differ."""
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
    """Let Python store the bytecode of its imports, as for an installed package."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")


def results(contenders: Sequence[str], cases: Sequence[Case], folder: Path, runs: int) -> Iterator[str]:
    """The benchmark as Markdown, line by line as it is measured."""
    from airflow_flinkcompat.local_flink.cluster import flink_home

    yield f"# Backfill and its peers, {datetime.now(UTC):%Y-%m-%d}"
    yield ""
    (dist,) = (flink_home() / "lib").glob("flink-dist-*.jar")
    parts = f"PySpark {version('pyspark')}, Flink {dist.stem.rpartition('-')[2]}, DuckDB {version('duckdb')}"
    machine = f"{os.cpu_count()} cores, {platform.machine()}"
    yield f"Python {platform.python_version()}, {parts}; {machine}; medians of {runs}."
    yield ""
    yield explanation(__doc__)
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
    parser = benchmark_parser(__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each contender (default: 3)")
    parser.add_argument("--only", metavar="TEXT", default="", help="only cases whose name holds TEXT")
    parser.add_argument("--contenders", default="ours-native,ours,naive,flink,duckdb", help="by name, with commas")
    parser.add_argument("--large", action="store_true", help="also the case of 100M rows (2 GB of disk)")
    parser.add_argument("--folder", type=Path, help="keep the data there, and use what lies there")
    parser.add_argument("--contend", nargs=4, help=SUPPRESS)
    options = parser.parse_args()
    if options.contend:
        contender, name, source, sink = options.contend
        (case,) = (case for case in (*CASES, LARGE) if case.name == name)
        CONTENDERS[contender](case, Path(source), Path(sink))
        return
    cases = [case for case in (*CASES, *([LARGE] if options.large else [])) if options.only in case.name]
    with tempfile.TemporaryDirectory() as scratch:
        folder: Path = options.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        as_installed(Path(scratch))
        publish(results(options.contenders.split(","), cases, folder, options.runs), options.write)


if __name__ == "__main__":
    main()
