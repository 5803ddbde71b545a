"""Everybody who computes a case, each as a process of its own: ``python -m dev.benchmarks.backfill.contenders NAME …``.

``naive`` is what one writes in Spark without thinking about it: the window function for TUMBLE and HOP, exploded
windows for CUMULATE, in a session as it comes, but for the time zone.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from dev.benchmarks.backfill.cases import CASES, FIRST, HOURS, LARGE, Case

# Times with all three digits, nothing in quotes.
_WRITTEN = {
    "parquet": "FORMAT parquet",
    "csv": "FORMAT csv, HEADER false, QUOTE '', ESCAPE '', TIMESTAMPFORMAT '%Y-%m-%d %H:%M:%S.%g'",
}


def make_data(case: Case, folder: Path) -> None:
    """Random rows in eight files; ordered ones in the order of time but for half a minute."""
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
    """``flinkcompat backfill`` as a user runs it."""
    from airflow_flinkcompat.cli import main

    script = sink.with_suffix(".sql")
    script.write_text(case.script(source, sink), encoding="utf-8")
    sys.argv = ["flinkcompat", "backfill", str(script), "--sink", f"results={sink}"]
    if not native:
        sys.argv += ["--native", "off"]
    main()


def ours_native(case: Case, source: Path, sink: Path) -> None:
    """The same with native partials where the plan chooses them."""
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
    """A backfill of nothing: what starting costs."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("contender", choices=CONTENDERS)
    parser.add_argument("case", choices=[case.name for case in (*CASES, LARGE)])
    parser.add_argument("source", type=Path)
    parser.add_argument("sink", type=Path)
    arguments = parser.parse_args()
    (case,) = (case for case in (*CASES, LARGE) if case.name == arguments.case)
    CONTENDERS[arguments.contender](case, arguments.source, arguments.sink)


if __name__ == "__main__":
    main()
