"""Operators that hold rows: which columns a rewriting carries, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat.savepoint.kinds import KeyedStateKind
from airflow_flinkcompat.state.layout import Begins, NamedState, StateField, StateLayout, Stored
from airflow_flinkcompat.state.migration import Keep, OperatorMigration, migration
from airflow_flinkcompat.state.model import JobState, StateKind, StateSpec

A, B, C = (StateField("BIGINT", name, name, begins=Begins.NULL) for name in "abc")


def operator(*fields: StateField, form: str = "row", retracting: bool = False, unmeasured: str = "") -> StateSpec:
    sort_key = Stored("row", (A,)) if form != "row" else None
    kind = KeyedStateKind.VALUE if form == "row" else KeyedStateKind.MAP
    layout = StateLayout((A,), (NamedState("rows", kind, Stored(form, fields), sort_key),), retracting=retracting)
    return StateSpec(StateKind.OPERATOR, "rank", "1" * 32, layout, "of these rows", unmeasured)


def made(old: StateSpec, new: StateSpec) -> OperatorMigration:
    (line,) = migration(JobState((), (old,)), JobState((), (new,))).operators
    return line


@pytest.mark.parametrize("form", ["row", "List<row>"])
@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ((A, B, C), (A, C), (0, 2)),
        ((A, B), (B, A), (1, 0)),
        ((A, B), (A, C, B), (0, None, 1)),
    ],
)
def test_columns_are_carried_by_what_they_mean(
    form: str, old: tuple[StateField, ...], new: tuple[StateField, ...], places: tuple[int | None, ...]
) -> None:
    line = made(operator(*old, form=form), operator(*new, form=form))
    assert line.keep is Keep.REWRITTEN
    assert [state.fields for state in line.states] == [places]
    assert line.begun == tuple(each.words for each, place in zip(new, places, strict=True) if place is None)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (operator(A, B), operator(A, replace(B, type="INT")), "b is of another type"),
        (operator(A), operator(A, replace(B, begins=None)), "b takes no NULL"),
        (operator(A, retracting=True), operator(A, B, retracting=True), "rows that are taken back have b"),
        (operator(A, B), operator(A, B, form="List<row>"), "laid out otherwise"),
        (operator(A, B), operator(A, unmeasured="another N"), "laid out otherwise"),
    ],
)
def test_what_would_be_read_wrong_is_refused(old: StateSpec, new: StateSpec, reason: str) -> None:
    line = made(old, new)
    assert line.keep is Keep.IMPOSSIBLE
    assert reason in line.reason


def test_a_column_may_go_where_rows_are_taken_back() -> None:
    line = made(operator(A, B, retracting=True), operator(A, retracting=True))
    assert (line.keep, line.lost) == (Keep.REWRITTEN, ("b",))
