"""How far the watermark may have been when a row came.

History does not say how far it was; but no further than the greatest of the rows before it in its own partition or
file.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_flinkcompat.backfill.connectors.kafka.spec import KafkaSource
from airflow_flinkcompat.backfill.spark_sql.windows import micros_of
from airflow_flinkcompat.backfill.steps import Select, Where
from airflow_flinkcompat.bootstrap.archived_topic.spec import ArchivedTopic
from airflow_flinkcompat.bootstrap.errors import NotComputable
from airflow_flinkcompat.bootstrap.table_rows import TableRows
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.nodes import Scan

_IDLE = ("scan.watermark.idle-timeout", "table.exec.source.idle-timeout")


def rows_met(rows: TableRows, columns: Sequence[Expression], matter: str) -> Select:
    """The rows of a table, each with how far the watermark may have been when it came."""
    table, source = rows.table, rows.locations.source(rows.table)
    assert table.watermark is not None
    if not rows.ordered:
        raise NotComputable(f"{source.place} does not tell which rows came late for {matter}")
    if any(table.option(option) or dict(rows.pipeline.settings).get(option) for option in _IDLE):
        raise NotComputable(f"where partitions may be idle, history does not tell which rows came late for {matter}")
    width = len(columns)
    # Rows that no condition lets through move the watermark too.
    read = rows.selected(Scan(table), [*columns, rows.time, table.watermark.expression, *rows.conditions])
    # A broker's partitions have watermarks of their own, of which the job's is the least; files are read one by one.
    stream = "PARTITION BY arrival.stream " if isinstance(source, KafkaSource | ArchivedTopic) else ""
    before = f"OVER ({stream}ORDER BY arrival ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    mixed = "FALSE" if stream else "min(arrival.stream) OVER () <> max(arrival.stream) OVER ()"
    found = [f"c{i}" for i in range(width)]
    found += [micros_of(f"c{width}"), f"max({micros_of(f'c{width + 1}')}) {before}", mixed]
    through = [f"c{width + 2 + i}" for i in range(len(rows.conditions))]
    met = Select(read, (*enumerate([*found, *through]),))
    if not through:
        return met
    let_through = Where(met, " AND ".join(f"c{width + 3 + i}" for i in range(len(through))))
    return Select(let_through, (*enumerate(f"c{i}" for i in range(width + 3)),))
