"""Why no backfill recomputes a script, asked before anybody has named a place or a range."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.backfill.planning import why_refused
from airflow_flinkcompat.compat import Side

WINDOWED = """\
CREATE TABLE orders (item STRING, price BIGINT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH ({source});
CREATE TABLE totals (item STRING, total BIGINT) WITH ({sink});
INSERT INTO totals SELECT item, SUM(price) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(at), INTERVAL '1' HOUR))
GROUP BY item, window_start, window_end;
"""
FILES = "'connector' = 'filesystem', 'path' = '/orders', 'format' = 'csv'"


@pytest.mark.parametrize("sink", [FILES, "'connector' = 'print'", "'connector' = 'hudi'"], ids=str)
@pytest.mark.parametrize("source", [FILES, "'connector' = 'datagen'", "'connector' = 'pulsar'"], ids=str)
def test_a_place_that_is_not_named_yet_is_no_refusal(source: str, sink: str) -> None:
    assert why_refused(Side(WINDOWED.format(source=source, sink=sink), engine="flink")) == ""


@pytest.mark.parametrize("connector", [FILES, "'connector' = 'print'"], ids=str)
def test_a_query_is_refused_wherever_its_tables_lie(connector: str) -> None:
    text = WINDOWED.format(source=connector, sink=connector).replace(", window_start, window_end", "")
    assert "unless both window_start and window_end" in why_refused(Side(text, engine="flink"))


def test_a_table_without_columns_can_be_named_no_place() -> None:
    text = WINDOWED.format(source=FILES, sink=FILES).partition("\n")[2]
    assert "orders" in why_refused(Side(text, engine="flink"))
