"""What a script is told to keep, against the plans that Flink compiled of it and against how restores ended."""

from __future__ import annotations

from collections import Counter

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.diff import diff
from airflow_flinkcompat.exec_graph.from_compiled import compiled_graph
from airflow_flinkcompat.exec_graph.from_script import job_state
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.exec_graph.model import ExecGraph, RestoreEffect, StateKind
from dev.measure.measured import Restore, connectors, pairs, planned
from tests.unit.exec_graph.test_from_compiled import SINKS

BESIDE_IDS = {"ps-group-maxpar-change", "ps-stateless-maxpar-add"}
"""Refused for what is no matter of ids."""
KAFKA = "CREATE TABLE k ({}) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json');\n"
ROW = "a STRING, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts"
SINK = (
    "CREATE TABLE s (a STRING, b BIGINT) WITH ('connector' = '{}', 'topic' = 'u', 'format' = 'json');\nINSERT INTO s\n"
)
WINDOW = (
    "SELECT a, SUM(b) FROM TABLE(TUMBLE(TABLE k, DESCRIPTOR(ts), INTERVAL '1' MINUTE))\n"
    "GROUP BY a, window_start, window_end;"
)


def state_of(side: Side) -> ExecGraph | Unknown:
    """What the one query of a script keeps."""
    program = side.program
    outputs, _ = side.outputs
    if len(program.pipelines) != 1 or 0 not in outputs:
        return Unknown("there are several queries, or it was not read")
    return job_state(outputs[0], program.pipelines[0], program)


def kept(script: str, **settings: str) -> ExecGraph:
    found = state_of(Side(script, settings, engine="flink"))
    assert isinstance(found, ExecGraph), found
    return found


def kinds(script: str) -> list[tuple[str, ...]]:
    return [tuple(node.kind for node in graph.nodes) for graph in kept(script).graphs]


@pytest.mark.nightly
@pytest.mark.slow
def test_the_operators_are_those_of_the_compiled_plans() -> None:
    """Wherever anything is said: the same operators, and so the same ids, or they are among those that may be."""
    told: Counter[str] = Counter()
    seen: set[object] = set()
    for name, plans in planned().items():
        for side, found in zip(pairs()[name].sides(), plans, strict=True):
            key = (side.script, tuple(side.settings.items()))
            state = state_of(side)
            if key in seen or len(found) != 1:
                continue
            seen.add(key)
            if isinstance(state, Unknown):
                told["not predicted"] += 1
                continue
            assert compiled_graph(found[0], SINKS).graph in state.graphs, side.script
            told["certain" if len(state.graphs) == 1 else "one of two"] += 1
    print(f"\n{told}")
    assert told["certain"] >= 160
    assert told["one of two"] <= 15


def effects(pair: Restore) -> set[RestoreEffect] | None:
    old, new = (state_of(side) for side in pair.sides())
    if isinstance(old, Unknown) or isinstance(new, Unknown):
        return None
    return {each.effect for each in diff(old, new).stored.states}


@pytest.mark.slow
def test_a_state_is_gone_exactly_where_a_restore_over_connectors_was_refused_at_submit() -> None:
    told = {pair: found for pair in connectors() if not pair.old_version and (found := effects(pair)) is not None}
    gone = {pair.id for pair, found in told.items() if RestoreEffect.REFUSED_AT_SUBMIT in found}
    refused = {pair.id for pair in told if pair.outcome == "refused_at_submit"}
    carried = {pair.id for pair, found in told.items() if found == {RestoreEffect.RIGHT}}
    assert gone <= refused
    assert refused & carried == BESIDE_IDS
    assert len([pair for pair in told if pair.outcome == "restored_right" and pair.id in carried]) >= 230


def test_a_source_that_is_read_whole_and_in_order_needs_no_calc() -> None:
    whole = KAFKA.format(ROW) + SINK.format("print") + WINDOW
    further = KAFKA.format(f"{ROW}, e INT") + SINK.format("print") + WINDOW
    (first,), (second,) = kinds(whole), kinds(further)
    assert first[:3] == ("table-source-scan", "local-window-aggregate", "global-window-aggregate")
    assert second[:3] == ("table-source-scan", "calc", "local-window-aggregate")
    assert [each.effect for each in diff(kept(whole), kept(further)).states] == [RestoreEffect.REFUSED_AT_SUBMIT]


def test_a_stateless_query_keeps_its_positions_whatever_stands_in_front_of_a_sink_that_keeps_nothing() -> None:
    old = KAFKA.format(ROW) + SINK.format("print") + "SELECT a, b FROM k;"
    new = (
        KAFKA.format(f"{ROW}, e INT") + SINK.format("print") + "SELECT UPPER(a), CAST(e AS BIGINT) FROM k WHERE b > 2;"
    )
    assert [spec.kind for spec in kept(old).specs] == [StateKind.POSITIONS]
    assert [each.effect for each in diff(kept(old), kept(new)).states] == [RestoreEffect.RIGHT]


def test_a_calc_that_comes_in_front_of_a_sink_takes_the_state_of_its_writer() -> None:
    plain = KAFKA.format("a STRING, b BIGINT") + SINK.format("kafka")
    found = diff(kept(plain + "SELECT a, b FROM k;"), kept(plain + "SELECT UPPER(a), b FROM k;"))
    assert {each.effect for each in found.stored.states} == {RestoreEffect.RIGHT, RestoreEffect.DROPPED}


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (KAFKA.format(ROW) + SINK.format("hudi") + "SELECT a, b FROM k;", "a sink with connector hudi"),
        (
            KAFKA.format(ROW).replace("json", "debezium-json") + SINK.format("kafka") + "SELECT a, b FROM k;",
            "may be retracted",
        ),
        (KAFKA.format(ROW) + SINK.format("print") + "SELECT f(a), b FROM k;", "--function f=scalar:java"),
        (
            "CREATE FUNCTION f AS 'm.f' LANGUAGE PYTHON;"
            + KAFKA.format(ROW)
            + SINK.format("print")
            + "SELECT f(a), b FROM k;",
            "Python function",
        ),
        (KAFKA.format(ROW) + SINK.format("print") + "SELECT a, b FROM k UNION ALL SELECT a, b FROM k;", "one table"),
        (SINK.format("print") + "SELECT a, b FROM k;", "not declared"),
    ],
)
def test_what_is_not_certain_is_not_predicted(script: str, reason: str) -> None:
    found = state_of(Side(script, engine="flink"))
    assert isinstance(found, Unknown)
    assert reason in found.reason


FIRST = (
    "CREATE TABLE k (a STRING, b BIGINT, {0}) WITH ({1});\nCREATE TABLE s (a STRING{2}) WITH ({3});\n"
    "INSERT INTO s SELECT a FROM k;"
)
MYSQL, KEYED = "'connector' = 'mysql-cdc'", "PRIMARY KEY (a) NOT ENFORCED"


@pytest.mark.parametrize(
    ("column", "source", "key", "sink", "told"),
    [
        (KEYED, MYSQL, "", "print", True),
        ("ts TIMESTAMP(3), WATERMARK FOR ts AS ts", "'connector' = 'faker'", "", "print", True),
        ("ts TIMESTAMP(3), WATERMARK FOR ts AS ts", "'connector' = 'datagen'", "", "blackhole", True),
        (KEYED, MYSQL, f", {KEYED}", "print", True),
        ("c INT", MYSQL, f", {KEYED}", "print", False),  # results are kept by the sink's key
        (KEYED, MYSQL + ", 'changelog-mode' = 'upsert'", "", "print", False),
        (KEYED, MYSQL, "", "kafka", False),
        ("c INT", "'connector' = 'datagen', 'fields.c.kind' = 'sequence'", "", "print", False),
        ("c INT", "'connector' = 'faker'", "", "kafka", False),
        ("c INT", "'connector' = 'made-up'", "", "print", False),
    ],
)
def test_positions_alone_find_their_operator_whatever_comes_behind(
    column: str, source: str, key: str, sink: str, told: bool
) -> None:
    found = state_of(Side(FIRST.format(column, source, key, f"'connector' = '{sink}'"), engine="flink"))
    assert isinstance(found, ExecGraph) is told
    if isinstance(found, ExecGraph):
        (positions,) = found.specs
        measured = kept(KAFKA.format("a STRING") + SINK.format("print") + "SELECT a, 1 FROM k;")
        assert positions.kind is StateKind.POSITIONS
        assert positions.id == measured.specs[0].id
