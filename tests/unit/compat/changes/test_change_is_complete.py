"""Every compared field of what a plan's view holds is a part of a change, so that a new field cannot be forgotten."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import operator_parts, output_parts, table_parts
from airflow_flinkcompat.model import FunctionDeclaration
from airflow_flinkcompat.plan.expressions import AggregateCall, FunctionCall, Literal
from airflow_flinkcompat.plan.nodes import (
    Frame,
    Measure,
    Table,
    WatermarkStrategy,
    Window,
    WindowField,
    WindowKind,
)
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    AssignedWindow,
    JoinForm,
    JoinOperator,
    Operator,
    OtherOperator,
    Output,
    OverOperator,
    RankOperator,
    Source,
    StatelessSegment,
)
from airflow_flinkcompat.plan.origins import SourceColumn
from airflow_flinkcompat.plan.program import OtherStatement, Pipeline, Problem, Program
from airflow_flinkcompat.plan.types import BIGINT, INT, STRING, UNKNOWN, Column, TimeAttribute

A, B = SourceColumn(0, "a", type=UNKNOWN), SourceColumn(0, "b", type=UNKNOWN)
WINDOW = Window(WindowKind.HOP, size=60, slide=20, gap=None, offset=0)
WINDOWING = AssignedWindow(WINDOW, A, TimeAttribute.ROWTIME, "tvf", (A,))
SEGMENT = StatelessSegment(Source("t"), windows=(WINDOWING,))
AGGREGATE = AggregateOperator(
    segment=SEGMENT,
    keys=(A,),
    window_keys=frozenset({WindowField.START, WindowField.END}),
    key_order=(0, WindowField.START, WindowField.END),
    aggregates=(AggregateCall("SUM", (B,), BIGINT),),
    grouping_sets=None,
    window=WINDOWING,
    windowed=True,
    argument_types=((BIGINT,),),
)
OTHER = OtherOperator("UNION ALL", (SEGMENT, SEGMENT), (("condition", A),), ((A,), (A,)), ((BIGINT,), (BIGINT,)))
OVER = OverOperator(
    segment=SEGMENT,
    aggregates=(AggregateCall("SUM", (B,), BIGINT),),
    partition_by=(A,),
    order=((A, True, None),),
    frame=Frame("ROWS", 2),
    clock=TimeAttribute.ROWTIME,
    row=(A,),
    all_columns=(A, B),
    argument_types=((BIGINT,),),
)
JOIN = JoinOperator(
    form=JoinForm.INTERVAL,
    join="INNER",
    segments=(SEGMENT, SEGMENT),
    keys=((A, A),),
    conditions=frozenset({A}),
    bounds=(0, 1),
    times=(A, A),
    clock=TimeAttribute.ROWTIME,
    rows=((A,), (A,)),
    row_types=((BIGINT,), (BIGINT,)),
)
RANK = RankOperator(
    segment=SEGMENT,
    partition=(A,),
    order=((B, True, None),),
    first=1,
    last=3,
    row=(A, B),
    number_read=False,
    row_types=(BIGINT, BIGINT),
)
OUTPUT = Output(SEGMENT, (A,), "sink")
TABLE = Table(("", "", "t"), (Column("a", BIGINT),), ("a",), options=(("connector", "print"),))

OF_REGION: dict[str, Any] = {
    "origin": Source("u"),
    "filters": frozenset({A}),
    "window_filters": frozenset({A}),
    "functions": ((FunctionCall("split", (A,), UNKNOWN), False),),
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
    "segment": replace(SEGMENT, filters=frozenset({A})),
    "keys": (B,),
    "window_keys": frozenset({WindowField.START}),
    "key_order": (WindowField.START, 0, WindowField.END),
    "aggregates": (AggregateCall("MAX", (B,), BIGINT),),
    "grouping_sets": frozenset({(frozenset({A}), 1)}),
    "window": replace(WINDOWING, time=B),
    "windowed": False,
    "repeated_keys": 1,
    "repeated_calls": 1,
    "pruned_inputs": (A,),
}
OF_OTHER: dict[str, Any] = {
    "kind": "ORDER BY",
    "segments": (SEGMENT, replace(SEGMENT, filters=frozenset({A}))),
    "attributes": (("condition", B),),
    "rows": ((A,), (A, B)),
}
OF_OVER: dict[str, Any] = {
    "segment": replace(SEGMENT, filters=frozenset({A})),
    "aggregates": (AggregateCall("MAX", (B,), BIGINT),),
    "partition_by": (B,),
    "order": ((A, False, None),),
    "frame": Frame("ROWS", 3),
    "clock": TimeAttribute.PROCTIME,
    "row": (A, B),
    "all_columns": (A,),
}
OF_JOIN: dict[str, Any] = {
    "form": JoinForm.REGULAR,
    "join": "LEFT",
    "segments": (SEGMENT, replace(SEGMENT, filters=frozenset({A}))),
    "keys": ((A, B),),
    "conditions": frozenset({B}),
    "bounds": (0, 2),
    "times": (A, B),
    "clock": TimeAttribute.PROCTIME,
    "rows": ((A,), (A, B)),
}
OF_RANK: dict[str, Any] = {
    "segment": replace(SEGMENT, filters=frozenset({A})),
    "partition": (B,),
    "order": ((B, False, None),),
    "first": 2,
    "last": 4,
    "row": (A,),
    "number_read": True,
    "selected": (A,),
    "constant_key": True,
    "order_clock": TimeAttribute.ROWTIME,
}
OF_OPERATORS: dict[Any, dict[str, Any]] = {
    AGGREGATE: OF_AGGREGATE,
    OTHER: OF_OTHER,
    OVER: OF_OVER,
    JOIN: OF_JOIN,
    RANK: OF_RANK,
}
OF_OUTPUT: dict[str, Any] = {
    "segment": replace(SEGMENT, filters=frozenset({A})),
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
    "watermark": WatermarkStrategy("a", A),
    "primary_key": ("a",),
    "partitioned_by": ("a",),
    "options": (("connector", "print"), ("x", "y")),
}


def compared(cls: type) -> set[str]:
    return {field.name for field in fields(cls) if field.compare}


def test_no_kind_of_operator_is_left_out() -> None:
    assert {type(operator) for operator in OF_OPERATORS} == set(Operator.__subclasses__())


@pytest.mark.parametrize("operator", OF_OPERATORS, ids=lambda operator: type(operator).__name__)
def test_every_operator_says_what_it_is(operator: Operator) -> None:
    assert operator.kind
    assert all(isinstance(segment, StatelessSegment) for segment in operator.segments)
    assert operator.prune(set()).kind == operator.kind


@pytest.mark.parametrize(
    ("base", "changes", "parts"),
    [
        *((operator, changes, operator_parts) for operator, changes in OF_OPERATORS.items()),
        (OUTPUT, OF_OUTPUT, output_parts),
        (TABLE, OF_TABLE, table_parts),
        (SEGMENT, OF_REGION, lambda segment: operator_parts(replace(AGGREGATE, segment=segment))),
        (SEGMENT, OF_REGION, lambda segment: output_parts(replace(OUTPUT, segment=segment))),
        (SEGMENT, OF_REGION, lambda segment: operator_parts(replace(OTHER, segments=(segment, SEGMENT)))),
        (Source("t"), OF_SOURCE, lambda source: output_parts(replace(OUTPUT, segment=replace(SEGMENT, origin=source)))),
        (WINDOWING, OF_WINDOWING, lambda w: operator_parts(replace(AGGREGATE, window=w))),
        (WINDOWING, OF_WINDOWING, lambda w: output_parts(replace(OUTPUT, segment=replace(SEGMENT, windows=(w,))))),
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


# It names the views and functions below: what no query may use is no part of a job.
PROGRAM = """\
CREATE TABLE named (v STRING, f STRING, g STRING) WITH ('connector' = 'print');
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
        "views": Side(f"CREATE VIEW v AS SELECT 1; {PROGRAM}").program.views,
        "functions": (FunctionDeclaration("f", "scalar"),),
        "other_statements": (OtherStatement("ResourceStatement", "", "ADD JAR 'x'"),),
        "problems": (Problem("statement", "no", "SELECT"),),
        "opaque": "a digest",
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
        ("other_statements", OtherStatement("Alter", "", "ALTER"), {"kind": "Drop", "text": "DROP", "after": (1,)}),
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
    from airflow_flinkcompat.plan.origins import normalize

    assert normalize(Literal(1, INT)) != normalize(Literal(1, STRING))
