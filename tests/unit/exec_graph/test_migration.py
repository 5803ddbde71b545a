"""What another job could keep, on the plans of measured pairs and of savepoints."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import pytest

from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state, job_state
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.exec_graph.migration import MigrationExtent, OperatorMigration, migration
from airflow_flinkcompat.exec_graph.model import ExecGraph, RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.symbols import Symbols
from dev.measure.measured import written
from dev.measure.savepoint_fixtures import SINKS
from tests.support.savepoint.savepoints import FOLDER, TAKEN
from tests.unit.exec_graph.test_diff import kept

pytestmark = pytest.mark.slow


def plan(name: str) -> CompiledPlan:
    return read_plan((FOLDER / name / "plan.json").read_text("utf-8"))


def rewritten(name: str) -> OperatorMigration:
    (found,) = (each for each in kept(name).operators if each.effect is RestoreEffect.REWRITTEN)
    return found


@pytest.mark.parametrize("name", TAKEN)
def test_a_job_keeps_all_of_itself(name: str) -> None:
    symbols = Symbols()
    same = migration(*(job_state(compiled_state(plan(name), symbols, {}, SINKS), symbols) for _ in range(2)))
    assert same.kept is MigrationExtent.WHOLE
    assert {each.effect for each in same.operators} == {RestoreEffect.RIGHT}


def test_a_metric_that_is_added_begins_and_the_others_go_on() -> None:
    found = rewritten("w-add-agg-front")
    assert found.new_fields
    assert not found.dropped_fields
    assert [source for state in found.states for source in state.fields].count(None) == len(found.new_fields)
    assert kept("w-add-agg-front").kept is MigrationExtent.PARTIAL


def test_metrics_in_another_order_are_kept_whole() -> None:
    found = rewritten("g-reorder")
    assert (found.new_fields, found.dropped_fields) == ((), ())
    assert found.states[0].fields != tuple(range(len(found.states[0].fields)))
    assert kept("g-reorder").kept is MigrationExtent.WHOLE


def test_keys_in_another_order_are_kept_whole() -> None:
    assert rewritten("g-keys-swap").key == (1, 0)
    assert kept("g-keys-swap").kept is MigrationExtent.WHOLE


def test_a_key_that_goes_is_named() -> None:
    found = rewritten("ga-key-del")
    assert found.merges
    assert found.dropped_fields == ("d",)
    assert kept("ga-key-del").kept is MigrationExtent.PARTIAL


def test_a_metric_that_goes_is_named() -> None:
    found = rewritten("g-del-agg")
    assert found.dropped_fields
    assert not found.new_fields
    assert kept("g-del-agg").kept is MigrationExtent.PARTIAL


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ga-key-add-notshown", "is a new key, by which stored values cannot be separated"),
        ("g-hop", "its rows, windows or conditions changed"),
        ("mr-where-add", "its rows, windows or conditions changed"),
    ],
)
def test_what_cannot_be_kept_says_why(name: str, reason: str) -> None:
    found = kept(name)
    assert found.kept is MigrationExtent.NONE
    (lost,) = (each for each in found.operators if each.effect is RestoreEffect.NOT_MIGRATABLE)
    assert reason in lost.reason


def test_an_identity_that_moves_costs_nothing() -> None:
    found = kept("ms-two-sources-reorder")
    assert found.kept is MigrationExtent.WHOLE
    assert RestoreEffect.MOVED in {each.effect for each in found.operators}


def test_another_table_is_another_source() -> None:
    found = kept("ua-replace")
    assert found.kept is not MigrationExtent.WHOLE
    assert {RestoreEffect.EMPTY, RestoreEffect.DROPPED} <= {
        each.effect
        for each in found.operators
        if StateKind.POSITIONS in {each.old and each.old.kind, each.new and each.new.kind}
    }


def job(told: Mapping[str, Any], symbols: Symbols) -> ExecGraph:
    return job_state(compiled_state(read_plan(json.dumps(told)), symbols, {}, SINKS), symbols)


def test_calls_that_share_a_distinct_keep_their_order() -> None:
    """Of each value a bit says of the first, the second … call whether it has counted it."""
    old = json.loads((FOLDER / "2.3/group-distinct/plan.json").read_text("utf-8"))
    new, symbols = deepcopy(old), Symbols()
    (aggregation,) = (node for node in new["nodes"] if "aggCalls" in node)
    aggregation["aggCalls"].reverse()
    (line,) = (
        each
        for each in migration(job(old, symbols), job(new, symbols)).operators
        if each.effect is RestoreEffect.NOT_MIGRATABLE
    )
    assert line.reason == "other metrics share the distinct values of c"


def test_what_several_distinct_calls_share_over_rows_that_are_taken_back_is_not_known() -> None:
    told = json.loads((FOLDER / "2.3/group-distinct/plan.json").read_text("utf-8"))
    (aggregation,) = (node for node in told["nodes"] if "aggCalls" in node)
    aggregation |= {"needRetraction": True, "aggCallNeedRetractions": [True] * len(aggregation["aggCalls"])}
    (spec,) = (each for each in job(told, Symbols()).specs if each.kind is StateKind.OPERATOR)
    assert isinstance(spec.layout, Unknown)


def of_one_table(told: Mapping[str, Any]) -> dict[str, Any]:
    """A plan as if its sources were one table, of which each reads other rows."""
    made = deepcopy(dict(told))
    for node in made["nodes"]:
        if "scanTableSource" in node:
            scan = node["scanTableSource"]
            which = {"kind": "LITERAL", "value": scan["table"]["identifier"], "type": "VARCHAR(99) NOT NULL"}
            scan["table"]["identifier"] = "`default_catalog`.`default_database`.`orders`"
            scan["abilities"] = [{"type": "FilterPushDown", "predicates": [which]}, *(scan.get("abilities") or ())]
    return made


def test_readers_of_one_table_do_not_take_each_others_positions() -> None:
    (old,), (new,) = (map(of_one_table, side) for side in written("ms-two-sources-reorder"))
    symbols = Symbols()
    found = migration(job(old, symbols), job(new, symbols))
    reasons = {each.reason for each in found.operators if each.effect is RestoreEffect.NOT_MIGRATABLE}
    assert reasons == {"its table is read several times, so stored positions cannot be assigned to sources"}
    assert migration(job(old, symbols), job(old, symbols)).kept is MigrationExtent.WHOLE


def test_a_query_that_comes_does_not_take_what_another_one_has_kept() -> None:
    """Its sink never saw the results of before, and would not, of keys that do not come again."""
    old = json.loads((FOLDER / "2.3/group/plan.json").read_text("utf-8"))
    new, symbols = deepcopy(old), Symbols()
    shift = max(node["id"] for node in old["nodes"])
    branch = {node["id"]: deepcopy(node) for node in old["nodes"] if "scanTableSource" not in node}
    for number, node in branch.items():
        node["id"] = number + shift
        if "aggCalls" in node:
            node["aggCalls"].append({**node["aggCalls"][0], "internalName": "$MAX$1", "name": "most", "type": "BIGINT"})
            node["aggCallNeedRetractions"].append(False)
        if "dynamicTableSink" in node:
            node["dynamicTableSink"]["table"]["identifier"] = "`default_catalog`.`default_database`.`s2`"
    new["nodes"] += branch.values()
    new["edges"] += [
        {**edge, "target": edge["target"] + shift, "source": edge["source"] + shift * (edge["source"] in branch)}
        for edge in old["edges"]
    ]
    found = migration(job(old, symbols), job(new, symbols))
    keeps = [each.effect for each in found.operators if each.new is not None and each.new.name == "group-aggregate"]
    assert (keeps, found.kept) == ([RestoreEffect.MOVED, RestoreEffect.EMPTY], MigrationExtent.PARTIAL)


def test_metrics_over_rows_that_are_taken_back_cannot_begin_later() -> None:
    symbols = Symbols()
    old, new = (
        job_state(compiled_state(plan(f"2.3/{name}"), symbols, {}, SINKS), symbols)
        for name in ("retracting-sum", "retracting-numbers")
    )
    reasons = [each.reason for each in migration(old, new).operators if each.effect is RestoreEffect.NOT_MIGRATABLE]
    assert reasons, "the upper aggregation cannot be kept"


def test_an_operator_that_comes_above_one_that_goes_on_would_lack_its_rows_of_before() -> None:
    (line,) = (each for each in kept("rj-third-add").operators if each.effect is RestoreEffect.NOT_MIGRATABLE)
    assert line.old is None
    assert line.reason == "it would begin empty, without the rows that join emitted before"
    assert kept("rj-third-add").kept is MigrationExtent.NONE


def test_positions_are_kept_of_a_job_that_keeps_nothing_else() -> None:
    found = kept("ua-stateless-remove")
    assert [each.effect for each in found.operators] == [
        RestoreEffect.RIGHT,
        RestoreEffect.RIGHT,
        RestoreEffect.DROPPED,
    ]
    assert found.kept is MigrationExtent.PARTIAL


def test_an_operator_without_keyed_state_has_a_reason() -> None:
    """Lookup joins keep rows of another type in their queue, and nothing by key."""
    old, new = (
        ExecGraph((), (StateSpec(StateKind.OPERATOR, ExecKind.LOOKUP_JOIN, number, meaning=meaning),))
        for number, meaning in (("1", "INNER"), ("2", "LEFT"))
    )
    (line,) = (each for each in migration(old, new).operators if each.new is not None)
    assert line.effect is RestoreEffect.NOT_MIGRATABLE
    assert line.reason == "it keeps no keyed state that a rewritten savepoint could contain"
