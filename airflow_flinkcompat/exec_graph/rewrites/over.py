"""OVER: accumulators by what they compute, and the rows of the frame by their columns."""

from __future__ import annotations

from dataclasses import replace

from airflow_flinkcompat.exec_graph.layout import StateField, StateLayout
from airflow_flinkcompat.exec_graph.rewrites.parts import StateRewrite, by_fields, stored_fields
from airflow_flinkcompat.exec_graph.rewrites.rows import row_states

_ACCUMULATORS = "accState"


def over_states(before: StateLayout, after: StateLayout) -> tuple[StateRewrite, ...] | str:
    """The states of an OVER aggregation.

    Args:
        before: What the old operator stores.
        after: What the new one stores, over the same rows, keys and frames.

    Returns:
        Where each comes from, or why it would be read wrong.
    """
    accumulators = next(by_fields(state, before) for state in after.states if state.name == _ACCUMULATORS)
    refused = (_refused(call, before) for call in accumulators.begun)
    if reason := next(filter(None, refused), ""):
        return reason
    if _beside(before) != _beside(after):
        return "its maps and lists next to the accumulators differ"
    rows = row_states(*map(_without_accumulators, (before, after)))
    return rows if isinstance(rows, str) else (accumulators, *rows)


def _without_accumulators(layout: StateLayout) -> StateLayout:
    return replace(layout, states=tuple(state for state in layout.states if state.name != _ACCUMULATORS))


def _beside(layout: StateLayout) -> list[object]:
    """What DISTINCT, MIN and MAX keep beside."""
    return [state for state in layout.states if state.name.startswith(("agg", "distinct"))]


def _refused(call: StateField, before: StateLayout) -> str:
    """Why a call that begins now would be computed wrong, "" where it would not."""
    if call.begins is None:
        return f"what {call.words} begins with was not measured"
    read = frozenset().union(*(field.sources for field in stored_fields(before)))
    if before.retracting and (not call.sources or call.sources & read):
        return f"{call.words} never counted the rows that leave the frame, and they would be taken from it"
    return ""
