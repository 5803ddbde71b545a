"""Which rows are left out as all their windows have fired: none of a slice that is kept."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.backfill.connectors.registry import AssumedLocations
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.history.table_rows import EVERY_WINDOW, TableRows
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.plan.operators import operators

TUMBLING = Side(
    """
    CREATE TABLE t (a STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka');
    CREATE TABLE s (a STRING, n BIGINT) WITH ('connector' = 'print');
    INSERT INTO s SELECT a, COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
    GROUP BY a, window_start, window_end
    """,
    engine="flink",
)


def rows(watermark: int | None) -> TableRows:
    (operator,) = operators(TUMBLING.outputs[0][0])
    return TableRows(TUMBLING.program.pipelines[0], operator.segments[0], AssumedLocations(), watermark)


@st.composite
def sliced(draw: st.DrawFn) -> SlicedWindow:
    kind = draw(st.sampled_from((WindowKind.TUMBLE, WindowKind.HOP, WindowKind.CUMULATE)))
    step = draw(st.integers(1, 50))
    size = step * (1 if kind is WindowKind.TUMBLE else draw(st.integers(1, 6)))
    return SlicedWindow(kind, size, step, draw(st.integers(0, size - 1)))


@given(windows=sliced(), watermark=st.integers(-500, 500), number=st.integers(-30, 30))
def test_a_slice_that_is_kept_is_not_left_out(windows: SlicedWindow, watermark: int, number: int) -> None:
    end = windows.next_end(watermark) + number * windows.step
    begins = rows(watermark).omit_fired_windows(windows).published.from_
    assert begins is not None
    if windows.place(end, watermark) is not None:
        assert datetime(1970, 1, 1) + timedelta(milliseconds=end - windows.step) >= begins


@given(windows=sliced(), watermark=st.integers(-500, 500))
def test_what_has_long_fired_is_left_out(windows: SlicedWindow, watermark: int) -> None:
    begins = rows(watermark).omit_fired_windows(windows).published.from_
    assert begins is not None
    assert datetime(1970, 1, 1) + timedelta(milliseconds=watermark - windows.size) < begins


@pytest.mark.parametrize("watermark", [None, -(1 << 63)])
def test_all_rows_are_needed_where_no_watermark_has_come(watermark: int | None) -> None:
    window = SlicedWindow(WindowKind.TUMBLE, 60_000, 60_000)
    assert rows(watermark).omit_fired_windows(window).published == EVERY_WINDOW
