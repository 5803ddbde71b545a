"""The keyed state that plans predict, compared with the savepoints that Flink took of the same scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from airflow_flinkcompat.exec_graph.exec_node import read_plan
from airflow_flinkcompat.exec_graph.from_compiled import JobSettings, compiled_state, job_state
from airflow_flinkcompat.exec_graph.from_savepoint import LayoutDifference, layout_differences
from airflow_flinkcompat.exec_graph.layout import StateField, StateLayout, StateNamespace, Stored, Unknown
from airflow_flinkcompat.exec_graph.model import StateSpec
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.savepoint.binary import KeyedStateKind
from dev.measure.savepoint_fixtures import SINKS
from tests.support.savepoint.savepoints import FOLDER, TAKEN


@cache
def predicted(name: str) -> tuple[StateSpec, ...]:
    """The states that the plan next to a savepoint predicts."""
    symbols = Symbols()
    plan = read_plan((FOLDER / name / "plan.json").read_text("utf-8"))
    settings = JobSettings(expires=name.endswith("-expiring"))
    return job_state(compiled_state(plan, symbols, {}, SINKS, settings=settings), symbols).specs


@pytest.mark.parametrize("name", TAKEN)
def test_a_savepoint_holds_what_its_plan_predicts(name: str) -> None:
    assert not [spec for spec in predicted(name) if isinstance(spec.layout, Unknown)]
    assert layout_differences(predicted(name), str(FOLDER / name)) == ()


def _first(**changed: object) -> Callable[[StateLayout], StateLayout]:
    def change(layout: StateLayout) -> StateLayout:
        first, *others = layout.states
        return replace(layout, states=(replace(first, **changed), *others))  # type: ignore[arg-type]

    return change


def _types(stored: Stored) -> Stored:
    return Stored(stored.form, (StateField("DOUBLE"), *stored.fields[1:]))


ALTERATIONS: dict[str, Callable[[StateLayout], StateLayout]] = {
    "name of a state": _first(name="accMapState"),
    "kind of a state": _first(kind=KeyedStateKind.REDUCING),
    "namespace": _first(namespace=StateNamespace.WINDOW),
    "time to live": lambda layout: _first(time_to_live=not layout.states[0].time_to_live)(layout),
    "serializer of values": _first(value=Stored("List<Tuple<row, Int>>")),
    "type of a field": lambda layout: _first(value=_types(layout.states[0].value))(layout),
    "number of fields": lambda layout: _first(value=Stored("row", (*layout.states[0].value.fields, StateField("INT"))))(
        layout
    ),
    "serializer of map keys": _first(map_key=Stored("Double")),
    "one state more": lambda layout: replace(layout, states=(*layout.states, replace(layout.states[0], name="more"))),
    "one state less": lambda layout: replace(layout, states=layout.states[1:]),
    "key": lambda layout: replace(layout, key=(*layout.key, StateField("INT"))),
    "timers": lambda layout: replace(layout, timers=f"{layout.timers}-others"),
}


@pytest.mark.parametrize("altered", ALTERATIONS)
@pytest.mark.parametrize(
    "name", ["1.20/tumble", "2.3/over", "2.3/group-ttl", "2.3/interval-join", "2.3/group-parallel"]
)
def test_any_difference_is_found(name: str, altered: str) -> None:
    specs = [
        replace(spec, layout=ALTERATIONS[altered](spec.layout)) if isinstance(spec.layout, StateLayout) else spec
        for spec in predicted(name)
    ]
    (found,) = layout_differences(specs, str(FOLDER / name))
    assert found.predicted != found.stored


def test_fields_in_another_order_are_a_difference() -> None:
    source, spec, *others = predicted("2.3/group-types")
    assert isinstance(spec.layout, StateLayout)
    (state,) = spec.layout.states
    turned = replace(state, value=Stored(state.value.form, state.value.fields[::-1]))
    specs = (source, replace(spec, layout=replace(spec.layout, states=(turned,))), *others)
    assert len(layout_differences(specs, str(FOLDER / "2.3/group-types"))) == 1


def test_keyed_state_of_an_operator_without_prediction_is_a_difference() -> None:
    name = "2.3/limited"
    for nothing in (None, "no line"):
        specs = [replace(each, layout=None) for each in predicted(name) if not (nothing and each.layout)]
        (found,) = layout_differences(specs, str(FOLDER / name))
        assert found.predicted == "nothing"
        assert "data-state-with-append MAP of row to List<row>" in found.stored


def test_a_difference_shows_both_sides() -> None:
    specs = [
        replace(spec, layout=ALTERATIONS["name of a state"](spec.layout))
        if isinstance(spec.layout, StateLayout)
        else spec
        for spec in predicted("2.3/group-ttl")
    ]
    assert layout_differences(specs, str(FOLDER / "2.3/group-ttl")) == (
        LayoutDifference(
            f"group-aggregate {specs[1].id}",
            "accMapState VALUE of row (BIGINT) with a time to live",
            "accState VALUE of row (BIGINT) with a time to live",
        ),
    )
