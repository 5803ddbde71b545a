"""Which row a deduplication keeps whose values expire where none came for a while."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.backfill.execution.frames import Execution
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_script import operator_layout
from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.history.ranks import rank_query
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import RankOperator, operators
from airflow_flinkcompat.savepoint.source_positions import FilesRead

LIVES = 5000
SCRIPT = """
CREATE TABLE orders (k STRING, v BIGINT, ts TIMESTAMP(3), p AS PROCTIME(), WATERMARK FOR ts AS ts)
WITH ('connector' = 'filesystem', 'path' = '{}', 'format' = 'csv');
CREATE TABLE printed (k STRING, v BIGINT) WITH ('connector' = 'print');
INSERT INTO printed
SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS n FROM orders) WHERE n = 1;
"""


class FilesInOrder(TableLocations):
    """Files that a job has read whole."""

    def source(self, table: Table) -> FileSource:
        found = super().source(table)
        assert isinstance(found, FileSource)
        seen = frozenset(path.as_uri() for path in Path(found.place.removeprefix("file:")).iterdir())
        return replace(found, read=FilesRead(seen, (), ()))


Held = dict[str, tuple[int, int]]


def expected(order: str, rows: list[tuple[str, int, int, int]]) -> Held:
    """By key the number of the row that is held (of a first one 1), and when that was written."""
    held: dict[str, tuple[int, int, int]] = {}
    for key, number, time, came in rows:
        before = held.get(key)
        expired = before is None or came - before[1] >= LIVES
        newer = order == "p DESC" or (order == "ts DESC" and before is not None and time >= before[2])
        if expired or newer:
            held[key] = (number, came, time)
    return {key: (1 if order == "p" else number, came) for key, (number, came, _) in held.items()}


@pytest.mark.slow
@pytest.mark.parametrize("order", ["p", "p DESC", "ts DESC"])
def test_what_is_held_of_a_key(order: str, spark: SparkSession, tmp_path: Path) -> None:
    draw, rows = random.Random(1), list[tuple[str, int, int, int]]()
    folder, came = tmp_path / "orders", 1_700_000_000_000
    folder.mkdir()
    for file in range(12):
        came += draw.choice((1000, 2000, 4999, 5000, 9000))
        own = [(draw.choice("abcdef"), 3 * file + i, draw.randint(0, 59), came) for i in range(3)]
        path = folder / f"{file:02}.csv"
        path.write_text("".join(f"{key},{number},2024-01-01 00:00:{time:02}.000\n" for key, number, time, _ in own))
        os.utime(path, ns=(came * 1_000_000, came * 1_000_000))
        rows += own
    side = Side(SCRIPT.format(folder.as_uri(), order), engine="flink")
    ((place, output),) = side.outputs[0].items()
    (operator,) = operators(output)
    assert isinstance(operator, RankOperator)
    layout = operator_layout(operator, Symbols(), time_to_live=True)
    assert isinstance(layout, StateLayout)
    pipeline = side.program.pipelines[place]
    read = TableRows(pipeline, operator.segment, FilesInOrder(), time_to_live=LIVES)
    ((found,),) = [rank_query(read, operator, layout).states]
    held = {}
    for row in Execution(spark).frame(found.steps).collect():
        number = 1 if order == "p" else row[f"c{1 + [each.words for each in layout.states[0].row].index('v')}"]
        held[row["c0"]] = (number, row[max(name for name in row.asDict() if name.startswith("c"))])
    assert held == expected(order, rows)
    assert any(came < rows[-1][3] - LIVES for _, came in held.values()), "some have expired by now"
