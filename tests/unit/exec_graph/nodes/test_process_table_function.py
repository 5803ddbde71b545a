"""A process table function in a plan of Flink 2.3.0, whose class keeps a count by key."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.from_compiled import PlanFacts, job_graphs
from airflow_flinkcompat.exec_graph.migration import migration
from airflow_flinkcompat.exec_graph.model import ExecGraph, RestoreEffect
from dev.measure.measured import diff_plans

PLAN = json.loads((Path(__file__).parent / "process_table_function.json").read_text())
SINKS = frozenset({"`default_catalog`.`default_database`.`snk`"})


def changed(**parts: Any) -> dict[str, Any]:
    plan = deepcopy(PLAN)
    (function,) = (each for each in plan["nodes"] if "process-table" in each["type"])
    table, step, *_ = function["functionCall"]["operands"]
    match parts:
        case {"keys": keys}:
            table["partitionKeys"] = keys
        case {"step": value}:
            step["value"] = value
        case {"class": name}:
            function["functionCall"]["catalogName"] = name
        case {"uid": uid}:
            function["uid"] = uid
    return plan


def effects(new: dict[str, Any], old: dict[str, Any] = PLAN) -> set[tuple[RestoreEffect, tuple[str, ...]]]:
    found = diff_plans([read_plan(json.dumps(old))], [read_plan(json.dumps(new))], PlanFacts(SINKS))
    return {(each.effect, each.facets) for each in found.differences}


def graphs(old: dict[str, Any], new: dict[str, Any]) -> tuple[tuple[ExecGraph, ExecGraph], ...]:
    return job_graphs([read_plan(json.dumps(old))], [read_plan(json.dumps(new))], PlanFacts(SINKS))


def test_the_same_function_is_restored() -> None:
    assert effects(PLAN) == set()


@pytest.mark.parametrize(
    ("parts", "effect", "what"),
    [
        ({"keys": [2]}, RestoreEffect.SILENTLY_WRONG, ("keys",)),
        ({"class": "`c`.`d`.`other`"}, RestoreEffect.SILENTLY_WRONG, ("function",)),
        ({"step": 2}, RestoreEffect.UNKNOWN, ("arguments",)),
    ],
)
def test_what_differs_has_its_effect(parts: dict[str, Any], effect: RestoreEffect, what: tuple[str, ...]) -> None:
    assert effects(changed(**parts)) == {(effect, what)}


def test_without_a_uid_it_keeps_nothing() -> None:
    assert effects(changed(uid=None), changed(uid=None)) == set()
    ((old, new),) = graphs(changed(uid=None), PLAN)
    assert [spec.name for spec in old.specs] == [spec.name for spec in new.specs][:-1]


def test_a_migration_refuses_it_with_its_reason() -> None:
    ((old, new),) = graphs(PLAN, changed(step=2))
    (line,) = (each for each in migration(old, new).operators if each.new and "process" in each.new.name)
    assert line.effect is RestoreEffect.NOT_MIGRATABLE
    assert "the class of a process table function declares its state" in line.reason
