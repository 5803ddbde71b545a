"""The operators of compiled plans against how restores with them ended."""

from __future__ import annotations

from functools import cache

import pytest

from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, ExecNode, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import (
    JobSettings,
    compiled_graph,
    compiled_state,
    job_state,
    sinks_of,
    sources_of,
)
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.model import StateKind
from airflow_flinkcompat.exec_graph.symbols import Symbols
from dev.measure.measured import pairs, planned
from tests.support.savepoint.savepoints import FOLDER

SINKS = frozenset(
    f"`default_catalog`.`default_database`.`{table}`"
    for table in ("flinkcompat_query", "S1", "S2", "S3", "MySink", "Sink2", "Result")
)
BESIDE_THE_GRAPH = {"x-maxparallelism-change"}
"""Refused for what is no matter of ids."""


@cache
def ids(name: str, side: int) -> frozenset[str]:
    """The ids of what keeps state; the sinks of the measured pairs keep nothing, but for files in some."""
    return frozenset(
        number
        for plan in planned()[name][side]
        for number, operator in compiled_state(plan, Symbols(), {}, SINKS).operators
        if operator.keeps
    )


@cache
def all_ids(name: str, side: int) -> frozenset[str]:
    return frozenset(number for plan in planned()[name][side] for number in compiled_graph(plan, SINKS).graph.ids)


@pytest.mark.slow
def test_a_restore_is_refused_at_submit_where_an_id_is_gone() -> None:
    told = [name for name, sides in planned().items() if all(len(side) == 1 for side in sides)]
    gone = {name for name in told if ids(name, 0) - all_ids(name, 1)}
    refused = {name for name in told if pairs()[name].outcome == "refused_at_submit"}
    assert len(told) > 450
    assert refused - gone <= BESIDE_THE_GRAPH
    assert not gone - refused


@pytest.mark.slow
def test_every_operator_has_an_id_of_its_own() -> None:
    for sides in planned().values():
        for plan in (*sides[0], *sides[1]):
            made = compiled_graph(plan)
            assert len(set(made.graph.ids)) == len(made.graph.nodes) == len(made.graph.order)


def test_what_runs_at_a_parallelism_of_its_own_is_chained_to_nothing() -> None:
    """What stands in front of such a sink has a reader less in its task, so another id; such a source itself."""
    (plan,) = planned()["w-add-agg"][0]
    told = compiled_graph(plan, SINKS).graph
    changed = {}
    for name in (*sinks_of(plan), *sources_of([plan])):
        apart = compiled_graph(plan, SINKS, JobSettings(apart=frozenset({name}))).graph
        changed[name] = {place for place, id_ in enumerate(told.ids) if apart.ids[place] != id_}
    last = len(told.nodes) - 1
    assert set(map(frozenset, changed.values())) == {frozenset({last - 1, last}), frozenset(range(last + 1))}


def test_a_sink_with_a_materializer_names_its_writer_and_its_committer() -> None:
    """Their state is carried beside what the materializer stores by key."""
    symbols = Symbols()
    compiled = compiled_state(read_plan((FOLDER / "2.3/materialized/plan.json").read_text("utf-8")), symbols, {}, set())
    (sink,) = (spec for spec in job_state(compiled, symbols).specs if spec.kind is StateKind.SINK)
    kinds = [compiled.graph.nodes[compiled.graph.ids.index(id)].kind for id in (sink.id, *sink.further_ids)]
    assert kinds == ["sink-materializer", "sink", "committer"]


WAITING = "c643c86ed74f54afcdfe88bd32682798"


@pytest.mark.parametrize(
    ("behavior", "id"),
    [("DEDUPLICATE", "5329a2b4b551de6aa35176092bc3c621"), ("ERROR", WAITING), ("NOTHING", WAITING)],
)
def test_a_materializer_that_waits_for_watermarks_has_another_id(behavior: str, id: str) -> None:
    """An operator that assigns timestamps precedes it. The ids are those that Flink 2.3.0 generated."""
    column = {"name": "c", "dataType": "STRING NOT NULL"}
    table = {"identifier": "s", "resolvedTable": {"schema": {"columns": [column]}}}
    sink = {
        "dynamicTableSink": {"table": table},
        "requireUpsertMaterialize": True,
        "conflictStrategy": {"behavior": behavior},
    }
    kinds = (
        *(ExecKind.TABLE_SOURCE_SCAN, ExecKind.WATERMARK_ASSIGNER, ExecKind.CALC, ExecKind.EXCHANGE),
        *(ExecKind.GROUP_AGGREGATE, ExecKind.CALC, ExecKind.SINK),
    )
    scan = {"scanTableSource": {"table": {"identifier": "o"}}}
    nodes = tuple(
        ExecNode(place, kind, "", {**scan, **sink}, (), (), (place - 1,) if place else ())
        for place, kind in enumerate(kinds)
    )
    found = compiled_graph(CompiledPlan("2.3", nodes), {"s"})
    assert found.id_of(nodes[-1]) == id
