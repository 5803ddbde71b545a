"""Comparison of the rows of a shadow run, compared with the same comparison in Spark.

Both scripts have written changes of a keyed sink, in files as a Flink sink writes them. Each key has five changes, and
one key in 10,000 has another last row in the new script. Ours is ``compare_rows``, with DuckDB. The peer parses the
same files in Spark with two local cores, takes the latest row of each key, and joins both sides. Both print the number
of differing keys. Processor time includes all processes. Memory is the largest resident set of our process.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from argparse import SUPPRESS
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from airflow_flinkcompat.backfill.spark import spark_session
from airflow_flinkcompat.deploy.shadow.rows import compare_rows
from airflow_flinkcompat.deploy.target import SinkTable
from dev.tools import Cost, benchmark_parser, cost_of, explanation, publish

SINK = SinkTable(
    ("c", "d", "totals"),
    {"customer": "BIGINT", "region": "STRING", "total": "DECIMAL(20, 2)", "orders": "BIGINT", "since": "TIMESTAMP(3)"},
    ("customer",),
)
WRITERS, CHANGES, DIFFERENT = 4, 5, 10_000
SCHEMA = (
    "op STRING, before STRUCT<customer: BIGINT>, after STRUCT<customer: BIGINT, region: STRING, "
    "total: DECIMAL(20, 2), orders: BIGINT, since: STRING>"
)
LONGEST = 3600.0


def fill(folder: Path, rows: int) -> None:
    """Write the changes of both scripts into ``folder``/old and ``folder``/new."""
    with duckdb.connect() as connection:
        for side in ("old", "new"):
            (folder / side).mkdir()
            for writer in range(WRITERS):
                more = f"CASE WHEN change = {CHANGES - 1} AND customer % {DIFFERENT} = 0 THEN 1 ELSE 0 END"
                image = (
                    "{'customer': customer, 'region': 'region ' || customer % 50, 'total': "
                    f"((customer * 7 + change * 131) % 1000000 / 100 + {more if side == 'new' else 0})::DECIMAL(20, 2)"
                    ", 'orders': change + 1, 'since': '2026-01-01 00:00:00'}"
                )
                file = folder / side / f"part-0-{writer}-0"
                connection.execute(
                    f"COPY (SELECT NULL AS before, {image} AS after, 'c' AS op FROM (SELECT i // {CHANGES} * {WRITERS} "
                    f"+ {writer} AS customer, i % {CHANGES} AS change FROM range({rows // WRITERS}) AS r(i))) "
                    f"TO '{file}' (FORMAT json)"
                )


def ours(folder: Path) -> int:
    """The number of differing keys, by the comparison of a shadow run."""
    (found,) = compare_rows([(SINK, str(folder / "old"))], [(SINK, str(folder / "new"))])
    return found.differing


def peer(folder: Path) -> int:
    """The number of differing keys, by Spark."""
    with spark_session("local[2]") as spark:
        from pyspark.sql import functions as f

        sides = []
        for side in ("old", "new"):
            rows = spark.read.schema(SCHEMA).json(str(folder / side)).withColumn("n", f.monotonically_increasing_id())
            customer = f.coalesce("after.customer", "before.customer")
            latest = f.max_by(f.struct("after", "op"), "n").alias(side)
            sides.append(rows.groupBy(customer.alias("customer")).agg(latest))
        old, new = sides
        joined = old.join(new, "customer", "full")
        return joined.where(~f.col("old").eqNullSafe(f.col("new"))).count()


def results(folder: Path, sizes: Sequence[int]) -> Iterator[str]:
    """The result as Markdown."""
    yield f"# Comparison of written rows, {datetime.now(UTC).date().isoformat()}"
    yield f"\n{explanation(__doc__)}\n"
    yield "| changes of each script | size of each | ours | Spark | processor time of ours to Spark |"
    yield "|---|---|---|---|---|"
    for rows in sizes:
        with tempfile.TemporaryDirectory(dir=folder) as own:
            fill(Path(own), rows)
            size = sum(file.stat().st_size for file in (Path(own) / "old").iterdir())
            costs = [_cost(name, own) for name in ("ours", "peer")]
        (mine, memory), (theirs, _) = costs
        ours_, spark_ = (f"{cost.wall:.0f} s, {cost.cpu:.0f} s of processor" for cost in (mine, theirs))
        ratio = mine.cpu / theirs.cpu
        yield f"| {rows:,} | {size / 1e9:.1f} GB | {ours_}, {memory:.1f} GB of memory | {spark_} | {ratio:.2f} |"


def _cost(name: str, folder: str) -> tuple[Cost, float]:
    """The cost of one program, and its memory in GB. Raises RuntimeError if it fails or counts other keys."""
    cost = cost_of([sys.executable, "-m", "dev.benchmarks.shadow_rows", "--run", name, folder], LONGEST)
    lines = [line.split() for line in cost.output.splitlines() if line.startswith("keys ")]
    if cost.status or not lines:
        raise RuntimeError(f"{name} failed:\n{cost.output}")
    _, count, memory = lines[-1]
    print(f"{name}: {count} differing keys", file=sys.stderr)
    return cost, float(memory)


def main() -> None:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000, 50_000_000])
    parser.add_argument("--folder", type=Path, metavar="DIR", help="parent of the files")
    parser.add_argument("--run", nargs=2, help=SUPPRESS)
    options = parser.parse_args()
    if options.run:
        name, folder = options.run
        count = {"ours": ours, "peer": peer}[name](Path(folder))
        print(f"keys {count} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20):.2f}")
        return
    publish(results(options.folder, options.rows), options.write)


if __name__ == "__main__":
    main()
