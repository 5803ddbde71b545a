"""Accumulators by what they compute, and the maps and lists beside them."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_flinkcompat.state.layout import NamedState, StateLayout
from airflow_flinkcompat.state.rewrites.parts import (
    ROWS,
    StateRewrite,
    as_it_is,
    begun,
    by_fields,
    stored_fields,
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


def _state(new: NamedState, before: StateLayout) -> StateRewrite:
    """Rows by their fields; a map or list beside a row of accumulators by what it is of."""
    if new.value.form in ROWS:
        return by_fields(new, before)
    if not new.value.fields:  # the windows that sessions are merged from
        return as_it_is(new, next((state for state in before.states if state.name == new.name), None))
    same = (state for state in before.states if (state.value, state.map_key) == (new.value, new.map_key))
    return as_it_is(new, next((state for state in same if state.kind is new.kind), None))


def _refused(states: Sequence[StateRewrite], before: StateLayout, after: StateLayout) -> str:
    """Why a rewriting would be read wrong, "" where it would not."""
    metrics = words(begun(states))
    if not metrics:
        return ""
    if after.retracting:
        return f"{', '.join(metrics)} would count rows as taken back that it never saw"
    if any(field.shared for field in (*stored_fields(before), *stored_fields(after))):
        return "a metric may be computed of fields that are kept and fields that begin now"
    kept = words(stored_fields(before))
    distinct = [each for each in metrics if each in kept and each.startswith("distinct values")]
    return f"other metrics share the {distinct[0]}" if distinct else ""
