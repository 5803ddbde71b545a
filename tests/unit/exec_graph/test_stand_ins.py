"""Operator ids with stand-ins for sinks, over the compiled plans of measured jobs."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, ExecNode
from airflow_flinkcompat.exec_graph.from_compiled import DEFAULTS, JobSettings, compiled_graph, sinks_of
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.nodes.sink import keeps_rows
from airflow_flinkcompat.exec_graph.stand_ins import UNKNOWN_IDS, StandIns, stand_in_ids
from dev.measure.measured import planned

NONE = frozenset[str]()


def node(place: int, kind: ExecKind, *inputs: int, **table: str) -> ExecNode:
    config = {name: {"table": {"identifier": identifier}} for name, identifier in table.items()}
    return ExecNode(place, kind, "", config, (), (), inputs)


@pytest.fixture
def two_sinks() -> CompiledPlan:
    """A statement set that copies rows into one sink, and aggregates computed columns for another sink."""
    nodes = (
        node(0, ExecKind.TABLE_SOURCE_SCAN, scanTableSource="orders"),
        node(1, ExecKind.SINK, 0, dynamicTableSink="copies"),
        node(2, ExecKind.CALC, 0),
        node(3, ExecKind.EXCHANGE, 2),
        node(4, ExecKind.GROUP_AGGREGATE, 3),
        node(5, ExecKind.SINK, 4, dynamicTableSink="totals"),
    )
    return CompiledPlan("2.3", nodes)


def id_of_aggregate(plan: CompiledPlan, single: frozenset[str]) -> str:
    made = compiled_graph(plan, single)
    return made.id_of(plan.nodes[4])


def test_a_smaller_stand_in_changes_the_ids_of_another_query(two_sinks: CompiledPlan) -> None:
    """A committer is numbered before the aggregation, and stand-ins that discard rows have no committer."""
    found = stand_in_ids(two_sinks, NONE, NONE, DEFAULTS)
    assert [found[kind].differ for kind in StandIns] == [True, True, False]
    real, other = (id_of_aggregate(two_sinks, single) for single in (NONE, frozenset(sinks_of(two_sinks))))
    assert real != other
    assert (found[StandIns.IDLE].with_stand_ins(real), found[StandIns.IDLE].real(other)) == (other, real)


def test_a_larger_stand_in_changes_them_too(two_sinks: CompiledPlan) -> None:
    single = frozenset(sinks_of(two_sinks))
    assert [stand_in_ids(two_sinks, single, NONE, DEFAULTS)[kind].differ for kind in StandIns] == [False, False, True]


def test_sinks_that_print_stay_in_a_template(two_sinks: CompiledPlan) -> None:
    """So the operators before such a sink keep its parallelism."""
    sinks = frozenset(sinks_of(two_sinks))
    found = stand_in_ids(two_sinks, sinks, sinks, JobSettings(apart=sinks))
    assert [found[kind].differ for kind in StandIns] == [False, True, True]


@pytest.mark.parametrize("kind", StandIns)
def test_every_operator_has_one_counterpart(kind: StandIns) -> None:
    """No operator of a stand-in gets the state of a real sink, and no id is used twice."""
    for sides in planned().values():
        for plan in (*sides[0], *sides[1]):
            real = compiled_graph(plan).graph
            found = stand_in_ids(plan, NONE, NONE, DEFAULTS)[kind]
            renamed = [found.with_stand_ins(id) for id in real.ids]
            assert len({*renamed}) == len(renamed)
            assert found.stand_ins.isdisjoint(renamed)
            assert [found.real(id) for id in renamed] == [*real.ids]
            assert not [id for id in found.stand_ins if found.real(id) is not None]


def test_a_materializer_is_an_operator_of_the_query() -> None:
    """With stand-ins, too, so it restores its own state."""
    plans = [plan for sides in planned().values() for side in sides for plan in side]
    sinks = [(plan, each) for plan in plans for each in plan.nodes if each.kind is ExecKind.SINK and keeps_rows(each)]
    assert sinks
    for plan, sink in sinks:
        for kind in StandIns:
            found = stand_in_ids(plan, NONE, NONE, DEFAULTS)[kind]
            single = NONE if kind is StandIns.STORING else frozenset(sinks_of(plan))
            assert found.ids[compiled_graph(plan).id_of(sink)] == compiled_graph(plan, single).id_of(sink)


def test_without_a_plan_no_id_changes(two_sinks: CompiledPlan) -> None:
    ids = compiled_graph(two_sinks).graph.ids
    for each in UNKNOWN_IDS.values():
        assert not each.differ
        assert each.all_real(map(each.with_stand_ins, ids)) == {*ids}
