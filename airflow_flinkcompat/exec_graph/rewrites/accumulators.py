"""Accumulators by what they compute, and the maps and lists beside them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence, Set

from airflow_flinkcompat.exec_graph.layout import CallPart, NamedState, StateField, StateLayout
from airflow_flinkcompat.exec_graph.layouts.aggregations import MERGED_SESSIONS
from airflow_flinkcompat.exec_graph.rewrites.fields import source_of
from airflow_flinkcompat.exec_graph.rewrites.parts import (
    ROWS,
    StateRewrite,
    as_it_is,
    begun,
    stored_fields,
    taken,
    words,
)


def accumulator_states(before: StateLayout, after: StateLayout) -> tuple[StateRewrite, ...] | str:
    """The states of an aggregation.

    Args:
        before: What the old operator stores.
        after: What the new one stores, over the same rows, windows and keys.

    Returns:
        Where each comes from, or why it would be read wrong.
    """
    states = tuple(_state(state, before) for state in after.states)
    return _refused(states, before, after) or states


def unmerged(states: Sequence[StateRewrite], before: StateLayout, what: str) -> str:
    """Why values of several keys or slices cannot be merged.

    Args:
        states: Where the states of an aggregation come from.
        before: What the old operator stores.
        what: What becomes one, in a word.

    Returns:
        The reason, "" where there is none.
    """
    if any(state.name == MERGED_SESSIONS.name for state in before.states):
        return "sessions of several keys would be one with sessions that have ended, of which nothing is stored"
    if any(state.time_to_live for state in before.states):
        return "what was stored of keys that were not used for a while is gone, and their new key may have been"
    fields = (
        field
        for state in states
        for field, place in zip(state.new.value.fields, state.fields, strict=True)
        if place is not None and (field.merges is None or state.new.value.form not in ROWS)
    )
    told = words(fields)
    return f"several {told[0]} of one {what} each do not say that of all their {what}s" if told else ""


def _state(new: NamedState, before: StateLayout) -> StateRewrite:
    """Rows by their fields; a map or list beside a row of accumulators by what it is of."""
    if new.value.form in ROWS:
        old = next(state for state in before.states if state.value.form in ROWS)
        return StateRewrite(new, old, _places(new.value.fields, old.value.fields))
    if not new.value.fields:  # the windows that sessions are merged from
        return as_it_is(new, next((state for state in before.states if state.name == new.name), None))
    same = (state for state in before.states if (state.value, state.map_key) == (new.value, new.map_key))
    return as_it_is(new, next((state for state in same if state.kind is new.kind), None))


def _places(new: Sequence[StateField], old: Sequence[StateField]) -> tuple[int | None, ...]:
    """Where the fields of a row of accumulators come from.

    A call may go on in what other calls have stored, an average in a sum and a count; where one of its parts is missing
    there, all of it begins.
    """
    places = [source_of(field, old) for field in new]
    missing = (field.meaning for field, place in zip(new, places, strict=True) if place is None)
    begins = {meaning.call for meaning in missing if isinstance(meaning, CallPart)}
    return tuple(
        None if place is not None and _lent(field, old[place], begins) else place
        for field, place in zip(new, places, strict=True)
    )


def _lent(field: StateField, stored: StateField, calls: Set[Hashable]) -> bool:
    """Whether one of these calls would take a part of another one's."""
    return isinstance(field.meaning, CallPart) and field.meaning.call in calls and field.meaning != stored.meaning


def _refused(states: Sequence[StateRewrite], before: StateLayout, after: StateLayout) -> str:
    """Why a rewriting would be read wrong, "" where it would not."""
    metrics = words(begun(states))
    if not metrics:
        return ""
    if after.retracting:
        return f"{', '.join(metrics)} would count rows as taken back that it never saw"
    fields = (field for state in states if state.new.value.form in ROWS for field in state.begun)
    untold = {words([field])[0].partition("(")[0]: None for field in fields if field.begins is None}
    if untold:
        return f"what {', '.join(untold)} begins with was not measured"
    # Plans name a computed argument by its place, so what a view is of is asked of the calls that use it.
    going_on = {field.meaning.call for field in taken(states) if isinstance(field.meaning, CallPart)}
    shared = (field for field in begun(states) if _users(field) & going_on)
    kept = words(stored_fields(before))
    distinct = [*words(shared), *(each for each in metrics if each in kept and each.startswith("distinct values"))]
    return f"other metrics share the {distinct[0]}" if distinct else ""


def _users(field: StateField) -> frozenset[object]:
    """The calls that count the values of a DISTINCT; none of any other field."""
    match field.meaning:
        case (("distinct", tuple() as users), _):
            return frozenset(users)
    return frozenset()
