"""Every compared field of what a plan's view holds is a part of a change, so that a new field cannot be forgotten."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.parts import operator_parts, output_parts, table_parts
from airflow_flinkcompat.plan.expressions import AggregateCall, Call, Literal
from airflow_flinkcompat.plan.nodes import Frame, Measure, Table, Watermark, Window, WindowField, WindowKind
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinForm,
    JoinOperator,
    OtherOperator,
    Output,
    OverOperator,
    Region,
    Source,
    Windowing,
)
from airflow_flinkcompat.plan.origins import SourceColumn
from airflow_flinkcompat.plan.program import Fact, FunctionDeclaration, Pipeline, Problem, Program
from airflow_flinkcompat.plan.types import BIGINT, INT, STRING, UNKNOWN, Column, TimeAttribute

A, B = SourceColumn(0, "a", type=UNKNOWN), SourceColumn(0, "b", type=UNKNOWN)
WINDOW = Window(WindowKind.HOP, size=60, slide=20, gap=None, offset=0)
WINDOWING = Windowing(WINDOW, A, TimeAttribute.ROWTIME, "tvf", (A,))
REGION = Region(Source("t"), windows=(WINDOWING,))
AGGREGATE = AggregateOperator(
    region=REGION,
    keys=(A,),
    window_keys=frozenset({WindowField.START, WindowField.END}),
    key_order=(0, WindowField.START, WindowField.END),
    aggregates=(AggregateCall("SUM", (B,), BIGINT),),
    grouping_sets=None,
    window=WINDOWING,
    windowed=True,
)
OTHER = OtherOperator("UNION ALL", (REGION, REGION), (("condition", A),), ((A,), (A,)))
OVER = OverOperator(
    region=REGION,
    aggregates=(AggregateCall("SUM", (B,), BIGINT),),
    partition_by=(A,),
    order=((A, True, None),),
    frame=Frame("ROWS", 2),
    clock=TimeAttribute.ROWTIME,
    row=(A,),
    input_row=(A, B),
)
JOIN = JoinOperator(
    form=JoinForm.INTERVAL,
    join="INNER",
    regions=(REGION, REGION),
    keys=((A, A),),
    conditions=frozenset({A}),
    bounds=(0, 1),
    times=(A, A),
    clock=TimeAttribute.ROWTIME,
    rows=((A,), (A,)),
)
OUTPUT = Output(REGION, (A,), "sink")
TABLE = Table(("", "", "t"), (Column("a", BIGINT),), ("a",), options=(("connector", "print"),))

OF_REGION: dict[str, Any] = {
    "origin": Source("u"),
    "filters": frozenset({A}),
    "window_filters": frozenset({A}),
    "functions": ((Call("split", (A,), UNKNOWN), False),),
    "windows": (replace(WINDOWING, time=B),),
    "hints": (("STATE_TTL", "a=1d"),),
}
OF_WINDOW: dict[str, Any] = {
    "kind": WindowKind.CUMULATE,
    "size": 61,
    "slide": 21,
    "gap": 1,
    "offset": 1,
    "measure": Measure.ROWS,
}
OF_WINDOWING: dict[str, Any] = {
    "window": replace(WINDOW, size=61),
    "time": B,
    "time_attribute": TimeAttribute.PROCTIME,
    "notation": "group window",
    "partition_by": (B,),
    "mismatched": ("TUMBLE_START(b)",),
}
OF_AGGREGATE: dict[str, Any] = {
    "region": replace(REGION, filters=frozenset({A})),
    "keys": (B,),
    "window_keys": frozenset({WindowField.START}),
    "key_order": (WindowField.START, 0, WindowField.END),
    "aggregates": (AggregateCall("MAX", (B,), BIGINT),),
    "grouping_sets": frozenset({(frozenset({A}), 1)}),
    "window": replace(WINDOWING, time=B),
    "windowed": False,
    "repeated_keys": 1,
    "repeated_calls": 1,
    "left_out": (A,),
}
OF_OTHER: dict[str, Any] = {
    "kind": "ORDER BY",
    "regions": (REGION, replace(REGION, filters=frozenset({A}))),
    "detail": (("condition", B),),
    "rows": ((A,), (A, B)),
}
OF_OVER: dict[str, Any] = {
    "region": replace(REGION, filters=frozenset({A})),
    "aggregates": (AggregateCall("MAX", (B,), BIGINT),),
    "partition_by": (B,),
    "order": ((A, False, None),),
    "frame": Frame("ROWS", 3),
    "clock": TimeAttribute.PROCTIME,
    "row": (A, B),
    "input_row": (A,),
}
OF_JOIN: dict[str, Any] = {
    "form": JoinForm.REGULAR,
    "join": "LEFT",
    "regions": (REGION, replace(REGION, filters=frozenset({A}))),
    "keys": ((A, B),),
    "conditions": frozenset({B}),
    "bounds": (0, 2),
    "times": (A, B),
    "clock": TimeAttribute.PROCTIME,
    "rows": ((A,), (A, B)),
}
OF_OUTPUT: dict[str, Any] = {
    "region": replace(REGION, filters=frozenset({A})),
    "columns": (B,),
    "sink": "other",
    "insert_columns": ("a",),
    "partition": (("dt", "'x'"),),
    "overwrite": True,
    "hints": (("OPTIONS", "a=b"),),
}
OF_SOURCE: dict[str, Any] = {"table": "u", "hints": (("OPTIONS", "a=b"),)}
OF_TABLE: dict[str, Any] = {
    "columns": (Column("a", INT),),
    "physical": ("b",),
    "metadata": (("a", "k", True),),
    "computed": (("a", A),),
    "watermark": Watermark("a", A),
    "primary_key": ("a",),
    "partitioned_by": ("a",),
    "options": (("connector", "print"), ("x", "y")),
}


def compared(cls: type) -> set[str]:
    return {field.name for field in fields(cls) if field.compare}


@pytest.mark.parametrize(
    ("base", "changes", "parts"),
    [
        (AGGREGATE, OF_AGGREGATE, operator_parts),
        (OTHER, OF_OTHER, operator_parts),
        (OVER, OF_OVER, operator_parts),
        (JOIN, OF_JOIN, operator_parts),
        (OUTPUT, OF_OUTPUT, output_parts),
        (TABLE, OF_TABLE, table_parts),
        (REGION, OF_REGION, lambda region: operator_parts(replace(AGGREGATE, region=region))),
        (REGION, OF_REGION, lambda region: output_parts(replace(OUTPUT, region=region))),
        (REGION, OF_REGION, lambda region: operator_parts(replace(OTHER, regions=(region, REGION)))),
        (Source("t"), OF_SOURCE, lambda source: output_parts(replace(OUTPUT, region=replace(REGION, origin=source)))),
        (WINDOWING, OF_WINDOWING, lambda w: operator_parts(replace(AGGREGATE, window=w))),
        (WINDOWING, OF_WINDOWING, lambda w: output_parts(replace(OUTPUT, region=replace(REGION, windows=(w,))))),
        (WINDOW, OF_WINDOW, lambda w: operator_parts(replace(AGGREGATE, window=replace(WINDOWING, window=w)))),
    ],
    ids=lambda value: type(value).__name__ if not callable(value) and not isinstance(value, dict) else "",
)
def test_every_field_is_a_part(base: Any, changes: dict[str, Any], parts: Any) -> None:
    # A table is found by its path; whether it is declared is a difference of its own.
    assert set(changes) == compared(type(base)) - {"path", "declared"}
    for name, value in changes.items():
        changed = replace(base, **{name: value})
        assert changed != base
        assert parts(changed) != parts(base), name


PROGRAM = """\
CREATE TABLE t (a STRING, b BIGINT) WITH ('connector' = 'print');
CREATE TABLE u (a STRING, b BIGINT) WITH ('connector' = 'print');
INSERT INTO t SELECT a, b FROM u;
"""


def changed_program(**parts: Any) -> Change:
    old, new = Side(PROGRAM), Side(PROGRAM)
    new.__dict__["program"] = replace(new.program, **parts)
    return Change(old, new)


def test_every_field_of_a_program_is_compared() -> None:
    program = Side(PROGRAM).program
    (pipeline,) = program.pipelines
    twice = (pipeline, pipeline)
    changes: dict[str, Any] = {
        "pipelines": twice,
        "tables": (*program.tables, TABLE),
        "views": (("v", "CREATE VIEW v AS SELECT 1"),),
        "functions": (FunctionDeclaration("f", "scalar"),),
        "facts": (Fact("ResourceStatement", "", "ADD JAR 'x'"),),
        "problems": (Problem("statement", "no", "SELECT"),),
    }
    # Settings count where a query stands; after the last one they say nothing.
    assert set(changes) == compared(Program) - {"settings"}
    for name, value in changes.items():
        assert changed_program(**{name: value}).differences, name


def test_every_field_of_a_pipeline_is_compared() -> None:
    (pipeline,) = Side(PROGRAM).program.pipelines
    changes: dict[str, Any] = {
        "sink": replace(pipeline.sink, overwrite=True),
        "settings": (("a", "b"),),
        "statement_set": 0,
        "steps": ("from_path", "insert"),
    }
    assert set(changes) == compared(Pipeline)
    for name, value in changes.items():
        assert changed_program(pipelines=(replace(pipeline, **{name: value}),)).differences, name


@pytest.mark.parametrize(
    ("part", "base", "changes"),
    [
        (
            "functions",
            FunctionDeclaration("f", "scalar"),
            {"name": "g", "kind": "table", "language": "python", "definition": "x"},
        ),
        ("facts", Fact("Alter", "", "ALTER"), {"kind": "Drop", "text": "DROP", "after": (1,)}),
        ("problems", Problem("statement", "no", "SELECT"), {"reason": "other", "text": "SELECT 1"}),
    ],
)
def test_every_field_of_a_declaration_is_compared(part: str, base: Any, changes: dict[str, Any]) -> None:
    # A fact's text holds its name, a problem's text what its message is about.
    assert set(changes) == compared(type(base)) - ({"name", "message"} if part != "functions" else set())
    for name, value in changes.items():
        change = changed_program(**{part: (replace(base, **{name: value}),)})
        change.old.__dict__["program"] = replace(change.old.program, **{part: (base,)})
        assert change.differences, name


def test_literals_that_differ_in_type_differ() -> None:
    from airflow_flinkcompat.plan.origins import meaning

    assert meaning(Literal(1, INT)) != meaning(Literal(1, STRING))
