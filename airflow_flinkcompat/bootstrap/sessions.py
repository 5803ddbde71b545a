"""Which sessions history tells: those of which no row may have come late.

A job cuts sessions as rows come, and closes one as soon as a watermark reaches its last millisecond. What came later
than that was dropped, or began another session.
"""

from __future__ import annotations

from collections.abc import Sequence

from airflow_flinkcompat.backfill.steps import Select, Where
from airflow_flinkcompat.bootstrap.lateness import rows_met
from airflow_flinkcompat.bootstrap.state_rows import Doubt
from airflow_flinkcompat.bootstrap.table_rows import TableRows
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.nodes import Window


def late_in_sessions(rows: TableRows, keys: Sequence[Expression], sessions: Window) -> Doubt:
    """The rows that may have come too late for their session, or after a part of it was closed."""
    assert sessions.gap is not None
    gap, width = sessions.gap * 1000, len(keys)
    of_key = ", ".join(f"c{i}" for i in range(width)) or "1"
    met = rows_met(rows, keys, "a session")
    columns = [f"c{i}" for i in range(width)]
    time, watermark, unordered = f"c{width}", f"c{width + 1}", f"c{width + 2}"
    columns += [time, watermark, unordered]
    by_time = f"OVER (PARTITION BY {of_key} ORDER BY {time})"
    beside = Select(met, (*enumerate([*columns, f"lag({time}) {by_time}", f"lag({watermark}) {by_time}"]),))
    former, former_met = f"c{width + 3}", f"c{width + 4}"
    begins = f"({former} IS NULL OR {time} - {former} > {gap})"
    late = f"coalesce({watermark} >= {time} + {gap} - 1000, FALSE)"
    closed = f"coalesce(greatest({watermark}, {former_met}) >= {former} + {gap} - 1000, FALSE)"
    doubtful = f"{unordered} OR {late} OR (NOT {begins} AND {closed})"
    number = f"sum(IF({begins}, 1, 0)) OVER (PARTITION BY {of_key} ORDER BY {time} ROWS UNBOUNDED PRECEDING)"
    numbered = Select(beside, (*enumerate([*columns, f"{number}", doubtful]),))
    end = f"max({time}) OVER (PARTITION BY {of_key}, c{width + 3}) + {gap}"
    ended = Select(numbered, ((0, end), (1, f"c{width + 4}")))
    return Doubt(
        Select(Where(ended, "c1"), ((0, "c0"),)),
        "a row may have come too late for its session, and history does not tell whether it did",
    )
