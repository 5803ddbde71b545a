"""Programs of the Table API: rows of a backfill are those of Flink's stream over the same rows, in each kind of window.

Windows over rows exist in no SQL, so Flink runs the very words of the program through its Java Table API.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_flinkcompat.backfill import BackfillResult, run_backfill
from tests.scenarios.backfill.compile.test_over import history
from tests.support.backfill.scripts import lines, requested, table
from tests.support.nightly import mostly_nightly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.flink_batch import FlinkBatch


PROGRAM = """
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import CURRENT_RANGE, CURRENT_ROW, UNBOUNDED_RANGE, UNBOUNDED_ROW, col, lit, row_interval
from pyflink.table.window import Over, Session, Slide, Tumble

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
{ddl}
query = {query}
query.execute_insert("o").wait()
"""
GROUPED = 't_env.from_path("t").window({window}.alias("w")).group_by({keys}).select({select})'
CALLS = 'col("v").sum, col("v").count, col("d").avg, col("s").max, col("v").count.distinct'
COLUMNS = "s INT, n BIGINT, a DECIMAL(38, 6), m STRING, dc BIGINT"
OVER = 't_env.from_path("t").over_window(Over.{window}.alias("w")).select(col("nr"), {calls})'
OVER_CALLS = 'col("v").sum.over(col("w")), col("v").count.over(col("w")), col("d").avg.over(col("w")), '
OVER_CALLS += 'col("s").max.over(col("w"))'
OVER_COLUMNS = "nr INT, s INT, n BIGINT, a DECIMAL(38, 6), m STRING"
BOTH, ALONE = 'col("w"), col("k")', 'col("w")'
BOUNDS = 'col("w").start, col("w").end, '
BOUND_COLUMNS = "ws TIMESTAMP(3), we TIMESTAMP(3), "


def rows(size: int, slide: int = 0) -> str:
    every = f"Slide.over(row_interval({size})).every(row_interval({slide}))" if slide else ""
    return f'{every or f"Tumble.over(row_interval({size}))"}.on(col("pt"))'


def counted(window: str) -> tuple[str, str]:
    return GROUPED.format(window=window, keys=BOTH, select=f'col("k"), {CALLS}'), f"k STRING, {COLUMNS}"


def timed(window: str) -> tuple[str, str]:
    query = GROUPED.format(window=window, keys=BOTH, select=f'col("k"), {BOUNDS}{CALLS}')
    return query, f"k STRING, {BOUND_COLUMNS}{COLUMNS}"


def over(window: str) -> tuple[str, str]:
    return OVER.format(window=window, calls=OVER_CALLS), OVER_COLUMNS


KEYED = 'partition_by(col("k")).order_by(col("{}"))'
ROWS = {
    "tumble 2": counted(rows(2)),
    "tumble 3": counted(rows(3)),
    "slide 3/1": counted(rows(3, 1)),
    "slide 3/2": counted(rows(3, 2)),
    "slide 4/2": counted(rows(4, 2)),
    "slide 2/2": counted(rows(2, 2)),
    "slide 2/3": counted(rows(2, 3)),
    "global tumble 7": (GROUPED.format(window=rows(7), keys=ALONE, select=CALLS), COLUMNS),
    "global slide 5/3": (GROUPED.format(window=rows(5, 3), keys=ALONE, select=CALLS), COLUMNS),
    "filtered tumble 2": (counted(rows(2))[0].replace('"t")', '"t").filter(col("v") > 0)', 1), f"k STRING, {COLUMNS}"),
}
TIMES = {
    "tumble 10 s": timed('Tumble.over(lit(10).seconds).on(col("ts"))'),
    "slide 15 s / 5 s": timed('Slide.over(lit(15).seconds).every(lit(5).seconds).on(col("ts"))'),
    "slide 10 s / 4 s": timed('Slide.over(lit(10).seconds).every(lit(4).seconds).on(col("ts"))'),
    "slide 4 s / 10 s": timed('Slide.over(lit(4).seconds).every(lit(10).seconds).on(col("ts"))'),
    "session 3 s": timed('Session.with_gap(lit(3).seconds).on(col("ts"))'),
    "global session 1 s": (
        GROUPED.format(window='Session.with_gap(lit(1).seconds).on(col("ts"))', keys=ALONE, select=f"{BOUNDS}{CALLS}"),
        BOUND_COLUMNS + COLUMNS,
    ),
}
OVERS = {
    "over rows 2": over(KEYED.format("ts") + ".preceding(row_interval(2)).following(CURRENT_ROW)"),
    "over range 5 s": over(KEYED.format("ts") + ".preceding(lit(5).seconds).following(CURRENT_RANGE)"),
    "over range": over(KEYED.format("ts")),
    "over unbounded rows": over(KEYED.format("ts") + ".preceding(UNBOUNDED_ROW)"),
    "over unbounded range": over(KEYED.format("ts") + ".preceding(UNBOUNDED_RANGE)"),
    "over arrived rows 3": over(KEYED.format("pt") + ".preceding(row_interval(3))"),
    "over global rows 1": over('order_by(col("ts")).preceding(row_interval(1))'),
}


def by_both(
    flink: FlinkBatch, folder: Path, source: str, query: str, columns: str, **request: Any
) -> tuple[list[str], list[str], BackfillResult]:
    """A query of a program over a source: the lines Flink writes, those of a backfill, and what it reports."""
    places = [folder / "by-flink", folder / "by-spark"]
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
    flink.run([source, table("o", columns, places[0])], streaming=True, query=(query, "o"))
    ddl = "\n".join(f'{chr(10)}t_env.execute_sql("""{text}""")' for text in (source, table("o", columns, places[1])))
    program = PROGRAM.format(ddl=ddl, query=query)
    result = run_backfill(requested(program, **{"source": "job.py", "language": "python", **request}))
    return lines(places[0]), lines(places[1]), result


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [*mostly_nightly(list(ROWS), 1), *mostly_nightly(list(TIMES), 0), *mostly_nightly(list(OVERS), 1)]
)
def test_like_flink(flink: FlinkBatch, spark: SparkSession, tmp_path: Path, case: str) -> None:
    query, columns = {**ROWS, **TIMES, **OVERS}[case]
    by_flink, by_spark, _ = by_both(flink, tmp_path, history(tmp_path / "in"), query, columns)
    assert by_spark == by_flink
    assert len(by_flink) > 20
