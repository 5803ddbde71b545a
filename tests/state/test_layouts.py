"""What operators of compiled plans are told to store, against the savepoints that Flink took of the same scripts."""

from __future__ import annotations

from functools import cache

import pytest

from airflow_flinkcompat.state.compiled import read_plan
from airflow_flinkcompat.state.compiled.symbols import Symbols
from airflow_flinkcompat.state.from_compiled import compiled_state
from airflow_flinkcompat.state.from_savepoint import stored_layouts
from airflow_flinkcompat.state.layout import LayoutUnknown, StateLayout
from airflow_flinkcompat.state.layouts.compiled_node import layout
from tests.savepoint.savepoints import FOLDER, TAKEN

SINKS = frozenset(f"`default_catalog`.`default_database`.`{name}`" for name in ("Printed", "keyed", "s1", "s2"))


@cache
def told(name: str) -> dict[str, StateLayout | LayoutUnknown]:
    """Layouts by id, of the plan beside a savepoint."""
    plan = read_plan((FOLDER / name / "plan.json").read_text("utf-8"))
    symbols = Symbols()
    made = {
        number: layout(operator.node, operator.inputs, symbols)
        for number, operator in compiled_state(plan, symbols, {}, SINKS).operators
    }
    return {number: found for number, found in made.items() if found is not None}


@pytest.mark.parametrize("name", TAKEN)
def test_what_a_plan_stores_is_what_its_savepoint_holds(name: str) -> None:
    found = {
        number: each.stored if isinstance(each, StateLayout) else each.reason for number, each in told(name).items()
    }
    assert found == {number: each.stored for number, each in stored_layouts(str(FOLDER / name)).items()}
