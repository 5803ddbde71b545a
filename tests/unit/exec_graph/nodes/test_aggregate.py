"""Accumulators that go on in what other calls have stored."""

from __future__ import annotations

from airflow_flinkcompat.exec_graph.layout import Begins, CallPart, NamedState, StateField, StateLayout, Stored
from airflow_flinkcompat.exec_graph.nodes.aggregate import accumulator_states
from airflow_flinkcompat.exec_graph.rewriting import new_fields, words
from airflow_flinkcompat.savepoint.binary import KeyedStateKind


def call(function: str, *parts: str) -> tuple[StateField, ...]:
    return tuple(StateField("BIGINT", CallPart(function, "b", part), f"{function}(b)", Begins.ZERO) for part in parts)


SUM, COUNT, AVG = call("SUM", "sum"), call("COUNT", "count"), call("AVG", "sum", "count")


def row(*fields: StateField) -> StateLayout:
    return StateLayout((), (NamedState("accState", KeyedStateKind.VALUE, Stored("row", fields)),))


def places(old: StateLayout, new: StateLayout) -> tuple[tuple[int | None, ...], tuple[str, ...]]:
    made = accumulator_states(old, new)
    assert not isinstance(made, str), made
    return made[0].fields, words(new_fields(made))


def test_an_average_goes_on_in_a_sum_and_a_count() -> None:
    assert places(row(*SUM, *COUNT), row(*SUM, *AVG)) == ((0, 0, 1), ())


def test_an_average_of_which_no_count_is_stored_begins_as_a_whole() -> None:
    """Its sum alone is stored: taken from there, it would be one of all rows over a count of some."""
    assert places(row(*SUM), row(*SUM, *AVG)) == ((0, None, None), ("AVG(b)",))


def test_a_sum_and_a_count_go_on_in_an_average() -> None:
    assert places(row(*AVG), row(*COUNT, *SUM)) == ((1, 0), ())
