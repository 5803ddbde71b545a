"""Which columns of a sink hold the windows its rows are published for."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, plan
from airflow_flinkcompat.backfill.compile.sink_columns import window_columns
from airflow_flinkcompat.backfill.protocols import WindowColumns
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.plan import build_program
from airflow_flinkcompat.sql import parse_script
from tests.support.backfill.scripts import BID_COLUMNS, SUM, TUMBLE, bids, script, table

MINUTE = 60_000_000
STAMPS = "a TIMESTAMP(3), b TIMESTAMP(3)"
FIVE = "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '5' MINUTES))"
HOP = "TABLE(HOP(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))"
CUMULATE = HOP.replace("HOP", "CUMULATE")
SESSION = "TABLE(SESSION(TABLE bid PARTITION BY item, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES))"
OLD = "SESSION(bidtime, INTERVAL '5' MINUTE)"


def columns_of(query: str, columns: str, into: str = "results") -> WindowColumns:
    text = script(table("bid", BID_COLUMNS, "/h"), table("results", columns, "/r"), f"INSERT INTO {into} {query}")
    program = build_program(parse_script(text))
    assert not program.problems, program.problems
    return window_columns(program.pipelines[0].sink)


@pytest.mark.parametrize(
    ("query", "columns", "expected"),
    [
        (SUM, f"{STAMPS}, c DECIMAL(38, 2)", WindowColumns("a", "b", 10 * MINUTE)),
        (f"SELECT window_end, window_start FROM {TUMBLE}", STAMPS, WindowColumns("b", "a", 10 * MINUTE)),
        (f"SELECT window_end FROM {HOP}", "a TIMESTAMP(6)", WindowColumns(None, "a", 10 * MINUTE)),
        (f"SELECT window_start, window_end FROM {CUMULATE}", STAMPS, WindowColumns("a", "b")),
        (f"SELECT window_start, window_end FROM {SESSION}", STAMPS, WindowColumns("a", "b")),
        (f"SELECT window_time, window_end FROM {TUMBLE}", STAMPS, WindowColumns(None, "b", 10 * MINUTE)),
        # What is computed is no bound, and a bound without its milliseconds is none either.
        (
            f"SELECT window_start + INTERVAL '1' HOUR, bidtime FROM {TUMBLE}",
            STAMPS,
            WindowColumns(None, None, 10 * MINUTE),
        ),
        (f"SELECT CAST(window_start AS TIMESTAMP(0)) FROM {TUMBLE}", "a TIMESTAMP(3)", WindowColumns(size=10 * MINUTE)),
        # Filters and a second aggregation on the same window pass bounds on; of two windows the outer one counts.
        (
            f"SELECT window_start, window_end FROM ({SUM}) AS s (window_start, window_end, total) WHERE total > 3",
            STAMPS,
            WindowColumns("a", "b", 10 * MINUTE),
        ),
        (
            f"SELECT SESSION_START(bidtime, INTERVAL '5' MINUTE), SESSION_END(bidtime, INTERVAL '5' MINUTE) FROM bid "
            f"GROUP BY item, {OLD}",
            STAMPS,
            WindowColumns("a", "b"),
        ),
        # Branches must agree.
        (
            f"SELECT window_start, window_end FROM {FIVE} UNION ALL SELECT window_start, window_end FROM {TUMBLE}",
            STAMPS,
            WindowColumns("a", "b"),
        ),
        (
            f"SELECT window_start, window_end FROM {FIVE} UNION ALL SELECT window_start, window_start FROM {FIVE}",
            STAMPS,
            WindowColumns("a", None, 5 * MINUTE),
        ),
        ("SELECT bidtime, bidtime FROM bid", STAMPS, WindowColumns()),
    ],
)
def test_columns_that_hold_windows(query: str, columns: str, expected: WindowColumns) -> None:
    assert columns_of(query, columns) == expected


def test_columns_are_those_the_insert_names() -> None:
    query = f"SELECT window_start, window_end FROM {TUMBLE}"
    found = columns_of(query, f"x STRING, {STAMPS}", into="results (b, a)")
    assert found == WindowColumns("b", "a", 10 * MINUTE)


def test_several_inserts_into_one_sink_must_agree() -> None:
    text = bids(f"SELECT window_start, window_end FROM {TUMBLE}", STAMPS)
    text += f"INSERT INTO results SELECT window_start, bidtime FROM {FIVE};\n"
    (write,) = plan(BackfillRequest(JobSpec(text))).work.writes
    assert write.rows.windows == WindowColumns("a", None, None)
