"""Windows over rows and row windows: what the Table API says and SQL has no words for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_flinkcompat.frontends import ProgramStatement
from airflow_flinkcompat.frontends.pyflink.reader import parse_program
from airflow_flinkcompat.plan import Program, build_program
from airflow_flinkcompat.plan.nodes import (
    Frame,
    GroupWindowAggregate,
    Measure,
    Node,
    Over,
    Window,
    WindowKind,
    walk_nodes,
)
from airflow_flinkcompat.sql import parse_script

TABLE = """\
CREATE TABLE t (a STRING, b BIGINT, ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH ('connector' = 'x');
"""
ROWS = Measure.ROWS
TEN_MINUTES = "INTERVAL '10' MINUTE"


def planned(query: str, steps: bool = True) -> Program:
    script = parse_script(TABLE + query)
    if steps:
        *declared, query_of = script.statements
        made = ProgramStatement(query_of.text, query_of.span, query_of.tree, query_steps=(("from_path", "window"),))
        script = replace(script, statements=(*declared, made))
    return build_program(script)


def found(program: Program, kind: type[Node]) -> Any:
    (pipeline,) = program.pipelines
    return next(node for node in walk_nodes(pipeline.sink) if isinstance(node, kind))


def frame(clause: str, **given: bool) -> Frame:
    (call,) = found(planned(f"SELECT SUM(b) OVER ({clause}) FROM t;", **given), Over).calls
    assert len(call.partition_by) == 1
    return call.frame  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("call", "window"),
    [
        ("TUMBLE(pt, ROW_INTERVAL(10))", Window(WindowKind.TUMBLE, 10, measure=ROWS)),
        ("HOP(pt, ROW_INTERVAL(2), ROW_INTERVAL(10))", Window(WindowKind.HOP, 10, 2, measure=ROWS)),
        (f"TUMBLE(ts, {TEN_MINUTES})", Window(WindowKind.TUMBLE, 600_000)),
    ],
)
def test_a_group_window_over_rows(call: str, window: Window) -> None:
    node = found(planned(f"SELECT a, SUM(b) FROM t GROUP BY {call}, a;"), GroupWindowAggregate)
    assert (node.window, len(node.keys)) == (window, 1)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("SESSION(pt, ROW_INTERVAL(10))", "SESSION cannot count rows: use TUMBLE or HOP"),
        (f"HOP(pt, ROW_INTERVAL(2), {TEN_MINUTES})", "of one kind, time or rows"),
        (f"TUMBLE(pt, ROW_INTERVAL(2), {TEN_MINUTES})", "of one kind, time or rows"),
        ("TUMBLE(pt, ROW_INTERVAL(0))", "above 0"),
        ("TUMBLE(pt, ROW_INTERVAL(b))", "above 0"),
    ],
)
def test_what_is_no_window_over_rows(call: str, why: str) -> None:
    node = planned(f"SELECT a, SUM(b) FROM t GROUP BY {call}, a;").pipelines[0].sink.input
    assert why in getattr(node, "reason", "")


BY_A = "PARTITION BY a ORDER BY ts"


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (f"{BY_A} ROWS BETWEEN 5 PRECEDING AND CURRENT ROW", Frame("ROWS", 5)),
        (f"{BY_A} ROWS BETWEEN 5 PRECEDING AND 3 FOLLOWING", Frame("ROWS", 5, following=3)),
        (f"{BY_A} RANGE BETWEEN {TEN_MINUTES} PRECEDING AND INTERVAL '5' SECOND FOLLOWING",
         Frame("RANGE", 600_000, following=5_000)),
        (f"{BY_A} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", Frame("ROWS", following=None)),
        (f"{BY_A} RANGE BETWEEN CURRENT ROW AND {TEN_MINUTES} FOLLOWING", Frame("RANGE", 0, following=600_000)),
        (f"PARTITION BY a, TUMBLE(ts, {TEN_MINUTES}) ORDER BY ts", Frame(window=Window(WindowKind.TUMBLE, 600_000))),
        ("PARTITION BY a, TUMBLE(pt, ROW_INTERVAL(10)) ORDER BY pt",
         Frame(window=Window(WindowKind.TUMBLE, 10, measure=ROWS))),
        ("PARTITION BY a, TUMBLE(PROCTIME(), ROW_INTERVAL(10)) ORDER BY PROCTIME()",
         Frame(window=Window(WindowKind.TUMBLE, 10, measure=ROWS))),
        (f"PARTITION BY a, SESSION(ts, {TEN_MINUTES}) ORDER BY ts",
         Frame(window=Window(WindowKind.SESSION, gap=600_000))),
    ],
)  # fmt: skip
def test_a_row_window(clause: str, expected: Frame) -> None:
    assert frame(clause) == expected


@pytest.mark.parametrize(
    "clause",
    [
        f"PARTITION BY a, TUMBLE(ts, {TEN_MINUTES}) ORDER BY pt",
        f"PARTITION BY a, HOP(ts, {TEN_MINUTES}, {TEN_MINUTES}) ORDER BY ts",
        f"PARTITION BY a, TUMBLE(ts, {TEN_MINUTES}, {TEN_MINUTES}) ORDER BY ts",
        "PARTITION BY a, SESSION(pt, ROW_INTERVAL(3)) ORDER BY pt",
    ],
)
def test_what_is_no_row_window_is_kept_whole(clause: str) -> None:
    node = planned(f"SELECT SUM(b) OVER ({clause}) FROM t;").pipelines[0].sink.input
    assert getattr(node, "error", "") == "window"


def test_plain_sql_has_no_words_for_any_of_it() -> None:
    assert frame(f"{BY_A} ROWS BETWEEN 5 PRECEDING AND 3 FOLLOWING", steps=False).other
    for query in (
        "SELECT a, SUM(b) FROM t GROUP BY TUMBLE(pt, ROW_INTERVAL(10)), a;",
        f"SELECT SUM(b) OVER (PARTITION BY a, TUMBLE(ts, {TEN_MINUTES}) ORDER BY ts) FROM t;",
    ):
        program = planned(query, steps=False)
        assert not any(
            isinstance(node, GroupWindowAggregate) or (isinstance(node, Over) and node.calls[0].frame.window)
            for node in walk_nodes(program.pipelines[0].sink)
        )


PROGRAM = f'''\
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import CURRENT_ROW, UNBOUNDED_RANGE, UNBOUNDED_ROW, col, lit, row_interval
from pyflink.table.window import Over, Slide, Tumble

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.execute_sql("""{TABLE.rstrip().rstrip(";")}""")
t = t_env.from_path("t")
'''
GROUPED = 't.window({}.on(col("pt")).alias("w")).group_by(col("w"), col("a")).select(col("b").sum).execute()\n'
OVER = 't.over_window(Over.partition_by(col("a")).order_by(col("ts")){}.alias("w"))'
OVER += '.select(col("b").sum.over(col("w"))).execute()\n'


def of_program(code: str) -> Program:
    return build_program(parse_program(PROGRAM + code))


def test_windows_over_rows_of_a_program() -> None:
    tumble, slide = (
        found(of_program(GROUPED.format(window)), GroupWindowAggregate)
        for window in ("Tumble.over(row_interval(3))", "Slide.over(row_interval(4)).every(row_interval(2))")
    )
    assert tumble.window == Window(WindowKind.TUMBLE, 3, measure=ROWS)
    assert slide.window == Window(WindowKind.HOP, 4, 2, measure=ROWS)


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ("", Frame()),
        (".preceding(UNBOUNDED_RANGE)", Frame()),
        (".preceding(UNBOUNDED_ROW)", Frame("ROWS")),
        (".preceding(row_interval(2))", Frame("ROWS", 2)),
        (".preceding(row_interval(2)).following(CURRENT_ROW)", Frame("ROWS", 2)),
        (".preceding(lit(5).minutes)", Frame("RANGE", 300_000)),
    ],
)
def test_frames_of_a_program(bounds: str, expected: Frame) -> None:
    (call,) = found(of_program(OVER.format(bounds)), Over).calls
    assert (call.frame, len(call.partition_by)) == (expected, 1)
