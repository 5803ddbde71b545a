"""Stored rows by their columns: deduplication and Top-N."""

from __future__ import annotations

from airflow_flinkcompat.state.layout import StateLayout
from airflow_flinkcompat.state.rewrites.parts import StateRewrite, begun, by_fields, means, stored_fields, words


def row_states(before: StateLayout, after: StateLayout) -> tuple[StateRewrite, ...] | str:
    """The states of an operator that stores the rows it reads.

    Args:
        before: What the old operator stores.
        after: What the new one stores, over the same rows and keys.

    Returns:
        Where each comes from, or why it would be read wrong.
    """
    states = tuple(by_fields(state, before) for state in after.states)
    return _refused(states, before) or states


def _refused(states: tuple[StateRewrite, ...], before: StateLayout) -> str:
    """Why rewritten rows would be read wrong, "" where they would not."""
    if any(state.old is None for state in states) or len(states) != len(before.states):
        return "what it stores is laid out otherwise"
    new = begun(states)
    if retyped := {field.meaning for field in new} & set(means(stored_fields(before))):
        return f"{', '.join(words(field for field in new if field.meaning in retyped))} is of another type"
    if new and before.retracting:
        return f"rows that are taken back have {', '.join(words(new))}, which the stored ones have not"
    if needed := words(field for field in new if field.begins is None):
        return f"{', '.join(needed)} takes no NULL, and stored rows have nothing else there"
    return ""
