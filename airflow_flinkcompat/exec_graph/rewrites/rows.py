"""Stored rows by their columns: deduplication, Top-N, joins."""

from __future__ import annotations

from dataclasses import replace

from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout
from airflow_flinkcompat.exec_graph.rewrites.parts import ROWS, StateRewrite, as_it_is, begun, by_fields, means, words
from airflow_flinkcompat.savepoint.binary_row import FieldForm, field_form

_IN_TWO_WAYS = frozenset({FieldForm.DECIMAL, FieldForm.TIMESTAMP})
"""Forms of fields of which Flink stores NULL with room for a value or without."""


def row_states(before: StateLayout, after: StateLayout) -> tuple[StateRewrite, ...] | str:
    """The states of an operator that stores the rows it reads.

    Args:
        before: What the old operator stores.
        after: What the new one stores, over the same rows and keys.

    Returns:
        Where each comes from, or why it would be read wrong.
    """
    states = tuple(
        by_fields(state, before)
        if state.value.form in ROWS or state.counts_rows
        else as_it_is(state, next((old for old in before.states if _stores_the_same(old, state)), None))
        for state in after.states
    )
    if len(states) != len(before.states):
        return "what it stores is laid out otherwise"
    return next(filter(None, map(_refused, states)), "") or states


def _stores_the_same(old: NamedState, new: NamedState) -> bool:
    return replace(old, time_to_live=new.time_to_live) == new


def _refused(state: StateRewrite) -> str:
    """Why rewritten rows would be read wrong, "" where they would not."""
    old, new, added = state.old, state.new, begun([state])
    if old is None:
        return "what it stores is laid out otherwise"
    if retyped := {field.meaning for field in added} & set(means(old.row)):
        return f"{', '.join(words(field for field in added if field.meaning in retyped))} is of another type"
    if added and (old.retracting or new.retracting):
        return f"rows that are taken back have {', '.join(words(added))}, which the stored ones have not"
    if needed := words(field for field in added if field.begins is None):
        return f"{', '.join(needed)} takes no NULL, and stored rows have nothing else there"
    if state.adds_counts and new.retracting:
        twice = words(field for field in new.row if _is_null_in_two_ways(field.type))
        if twice:
            return f"rows that are taken back are looked for by their bytes, and a NULL of {twice[0]} may have others"
    return ""


def _is_null_in_two_ways(type: str) -> bool:
    return not type.endswith(" NOT NULL") and field_form(type) in _IN_TWO_WAYS
