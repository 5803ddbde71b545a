"""Order at a boundary: history must have passed it before windows that end there are published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.compile.compiler import OPERATORS
from airflow_flinkcompat.backfill.compile.context import CompileContext
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.protocols import Locations, Range
from airflow_flinkcompat.backfill.spark_sql.windows import timestamp
from airflow_flinkcompat.backfill.steps import Step
from airflow_flinkcompat.compat.cutover.record import Cutover
from airflow_flinkcompat.plan.nodes import Scan
from airflow_flinkcompat.plan.program import Program

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Guard:
    """``rows`` of a table with its event time in ``c{time}``; one of them must be at ``until`` or later."""

    table: str
    rows: Step
    time: int
    until: datetime

    @property
    def _passed(self) -> str:
        kind = "TIMESTAMP_NTZ" if self.until.tzinfo is None else "TIMESTAMP_LTZ"
        return f"c{self.time} >= {timestamp(self.until, kind)}"

    def check(self, frame: DataFrame) -> None:
        """Raise :class:`BackfillError` if the history ends before the moment; stop reading at a later row."""
        from pyspark.sql import functions as F

        if not frame.where(self._passed).select(F.lit(1)).isEmpty():
            return
        last = frame.agg(F.expr(f"CAST(max(c{self.time}) AS STRING)")).first()
        seen = f"its last event time is {last[0]}" if last is not None and last[0] is not None else "it holds no rows"
        raise BackfillError(
            f"the history of {self.table} does not reach {self.until.isoformat(' ')}, the boundary plus the delay of "
            f"its watermark: {seen}, so rows of windows that end by the boundary may still come. Run the backfill when "
            "the source has passed that time; pass --allow-incomplete only for a source known to have gone quiet"
        )


def guards(program: Program, locations: Locations, record: Cutover) -> tuple[Guard, ...]:
    """Conditions on each table that the hand-over names."""
    until: Mapping[str, str] = {source.table: source.history_until for source in record.sources}
    found: dict[str, Guard] = {}
    for pipeline in program.pipelines:
        context = CompileContext(OPERATORS, locations, Range(), dict(pipeline.settings))
        for node in pipeline.sink.nodes:
            if isinstance(node, Scan) and node.table.name in until and node.table.watermark is not None:
                names = [column.name for column in node.table.columns]
                time = names.index(node.table.watermark.column)
                name = node.table.name
                moment = datetime.fromisoformat(until[name])
                found.setdefault(name, Guard(name, context.compile(node, frozenset({time})), time, moment))
    return tuple(found.values())
