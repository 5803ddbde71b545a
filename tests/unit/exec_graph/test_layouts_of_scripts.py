"""Layouts derived from a script alone, compared with those of the plans that Flink 2.3.0 compiled of it.

The plans of drawn queries are those of 2026-11-25 (``dev/benchmarks/results/layouts-2026-11-25.md``).
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state
from airflow_flinkcompat.exec_graph.from_script import job_state, query_state
from airflow_flinkcompat.exec_graph.layout import StateLayout, Unknown
from airflow_flinkcompat.exec_graph.model import ExecGraph, StateKind
from airflow_flinkcompat.exec_graph.nodes import layout
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.plan.operators import operators
from dev.measure.measured import pairs, planned

PLANS = Path(__file__).parents[2] / "fixtures" / "measured" / "drawn-aggregations.json.gz"
PLANS_OF_ROWS = PLANS.with_name("drawn-rows.json.gz")
TABLE = (
    "CREATE TABLE t (a STRING, b BIGINT, c ARRAY<INT>, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)\n"
    "WITH ('connector' = '{connector}', 'format' = '{format}', 'path' = '/t', 'topic' = 't');\n"
)
SINK = "CREATE TABLE s (a STRING, n BIGINT) WITH ('connector' = 'print');\n"
QUERY = "SELECT a, SUM(b) FROM t GROUP BY a;"


def script(query: str = QUERY, connector: str = "kafka", format: str = "json") -> Side:
    return Side(TABLE.format(connector=connector, format=format) + SINK + f"INSERT INTO s {query}", engine="flink")


def derived(side: Side) -> StateLayout | Unknown | None:
    """The layout of a query's only operator by its script, or why it is unknown; None without a single operator."""
    outputs, _ = side.outputs
    program = side.program
    if len(program.pipelines) != 1 or 0 not in outputs or len(operators(outputs[0])) != 1:
        return None
    state = query_state(outputs[0], program.pipelines[0], program, Symbols())
    if isinstance(state, Unknown):
        return state
    return next(spec.layout for spec in state.specs if spec.kind is StateKind.OPERATOR)


def compiled(plan: CompiledPlan) -> list[StateLayout | Unknown]:
    """The layout of each keyed operator of a compiled plan, without rows held in front of a sink."""
    symbols = Symbols()
    found = (
        layout(each.node, each.inputs, symbols)
        for _, each in compiled_state(plan, symbols, {}, frozenset()).operators
        if each.node.kind != "sink"
    )
    return [each for each in found if each is not None]


def verdict(side: Side, plan: CompiledPlan) -> str:
    """``equal``, ``different``, or which of both layouts is unknown."""
    own, others = derived(side), compiled(plan)
    if not isinstance(own, StateLayout):
        return "unknown by the script"
    if len(others) != 1:
        return "different"
    if isinstance(others[0], Unknown):
        return "known by the script alone"
    return "equal" if own.stored == others[0].stored else "different"


@pytest.mark.slow
def test_it_is_what_the_plans_of_the_measured_restores_store() -> None:
    found: Counter[str] = Counter()
    seen = set()
    for name, plans in planned().items():
        for side, of_side in zip(pairs()[name].sides(), plans, strict=True):
            key = (side.script, tuple(side.settings.items()))
            if key in seen or len(of_side) != 1:
                continue
            seen.add(key)
            result = verdict(side, of_side[0])
            assert result != "different", f"{side.script}\n{derived(side)}"
            found[result] += 1
    assert found["equal"] > 320, found


@pytest.mark.slow
@pytest.mark.parametrize(("path", "least"), [(PLANS, 100), (PLANS_OF_ROWS, 40)], ids=["aggregations", "rows"])
def test_it_is_what_the_plans_of_drawn_queries_store(path: Path, least: int) -> None:
    found: Counter[str] = Counter()
    for row in json.loads(gzip.decompress(path.read_bytes())):
        side = Side(row["script"], row["settings"], engine="flink")
        result = verdict(side, read_plan(json.dumps(row["plan"])))
        assert result != "different", f"{side.script}\n{derived(side)}"
        found[result] += 1
    assert found["equal"] > least, found


def test_the_state_of_a_job_holds_it() -> None:
    side = script("SELECT a, COUNT(DISTINCT b) FROM t GROUP BY a;")
    state = job_state(side.outputs[0][0], side.program.pipelines[0], side.program)
    assert isinstance(state, ExecGraph)
    (operator,) = (spec for spec in state.specs if spec.kind is StateKind.OPERATOR)
    assert isinstance(operator.layout, StateLayout)
    (row,) = (state.value.fields for state in operator.layout.states if state.name == "accState")
    assert [(field.type, field.words) for field in row] == [
        ("BIGINT", "COUNT(DISTINCT b)"),
        ("RAW('org.apache.flink.table.api.dataview.MapView')", "distinct values of b"),
    ]
    assert [field.words for field in operator.layout.key] == ["a"]


@pytest.mark.parametrize(
    ("side", "reason"),
    [
        (script(format="debezium-json"), "may be retracted"),
        (script(connector="made-up"), "is unknown"),
        (script("SELECT a, own(b) FROM t GROUP BY a;"), "user-defined"),
        (script("SELECT c, SUM(b) FROM t GROUP BY c;"), "the stored form of ARRAY<INT>"),
        (script("SELECT a, SUM(b) FROM t GROUP BY GROUPING SETS ((a), ());"), "requires additional operators"),
        (script("SELECT /*+ STATE_TTL('t' = '1 d') */ a, SUM(b) FROM t GROUP BY a;"), "hint"),
        (script("SELECT a, STDDEV_POP(b) FROM t GROUP BY a;"), "STDDEV_POP"),
    ],
)
def test_what_is_not_certain_is_not_told(side: Side, reason: str) -> None:
    found = derived(side)
    assert isinstance(found, Unknown)
    assert reason in found.reason


RANKED = "SELECT a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {by} ORDER BY {order}) AS n FROM {rows}) {kept}"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (RANKED.format(by="a", order="b", rows="(SELECT * FROM t WHERE a = 'x')", kept="WHERE n <= 2"), "a constant"),
        (
            RANKED.format(by="a", order="b", rows="(SELECT a, b + 1 AS b FROM t)", kept="WHERE n <= 2"),
            "computed column",
        ),
        (RANKED.format(by="a", order="ts", rows="t", kept="WHERE n = 1"), "stored form of ARRAY"),
        ("SELECT l.a, l.b FROM t AS l JOIN t AS r ON UPPER(l.a) = r.a", "computed join key"),
        ("SELECT a, SUM(b) OVER (PARTITION BY a ORDER BY ts) FROM t", "only from compiled plans"),
    ],
)
def test_rows_that_may_be_stored_otherwise_are_not_told(query: str, reason: str) -> None:
    array = query.replace("SELECT a, b FROM", "SELECT a, b, c FROM") if "ARRAY" in reason else query
    found = derived(script(f"{array};"))
    assert isinstance(found, Unknown)
    assert reason in found.reason


def test_rows_are_told_with_their_columns() -> None:
    found = derived(
        script(RANKED.format(by="a", order="b DESC", rows="(SELECT * FROM t WHERE b > 1)", kept="WHERE n <= 2;"))
    )
    assert isinstance(found, StateLayout)
    (state,) = found.states
    assert [(field.type, field.words) for field in state.value.fields] == [
        ("VARCHAR(2147483647)", "a"),
        ("BIGINT", "b"),
    ]


def test_a_query_without_an_operator_is_none() -> None:
    assert derived(script("SELECT a, b FROM t;")) is None
