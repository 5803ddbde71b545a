"""Pairs of operators of two jobs that may share state, matched by kind, rows and keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Set

from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.model import StateKind, StateSpec
from airflow_flinkcompat.exec_graph.rewriting import means, stored_fields


def family(spec: StateSpec) -> str:
    """Name of the group of operators that may reuse each other's state: one kind, or one sink."""
    if spec.kind is StateKind.OPERATOR:
        return ExecKind(spec.name).in_one_phase
    return f"sink {spec.name}" if spec.kind is StateKind.SINK else ""


def aggregates(spec: StateSpec) -> bool:
    """True if an operator stores accumulators by key in a known layout."""
    return _has(spec, Trait.AGGREGATES) and isinstance(spec.layout, StateLayout)


def holds_rows(spec: StateSpec) -> bool:
    """True if an operator stores rows in a known layout."""
    return _has(spec, Trait.HOLDS_ROWS) and isinstance(spec.layout, StateLayout)


def _has(spec: StateSpec, trait: Trait) -> bool:
    return spec.kind is StateKind.OPERATOR and trait in ExecKind(spec.name).traits


def known_layout(spec: StateSpec) -> StateLayout:
    """The layout of an operator, which must be known."""
    assert isinstance(spec.layout, StateLayout)
    return spec.layout


def key_meanings(spec: StateSpec) -> Counter[object]:
    """The meanings of an operator's key columns."""
    return Counter(means(known_layout(spec).key))


def states_for(new: StateSpec, pool: Iterable[StateSpec], *, sinks: Iterable[Set[str]]) -> list[StateSpec]:
    """The old states that a new operator may reuse, selected by the sinks downstream.

    A sink that contains the results of an operator needs the state of that operator. A new sink would receive
    retractions of rows that it never received.
    """
    if new.kind is not StateKind.OPERATOR:
        return list(pool)
    before, after = sinks
    found = [
        old
        for old in pool
        if old.kind is StateKind.OPERATOR and (old.sinks & new.sinks or not (old.sinks & after or new.sinks & before))
    ]
    return sorted(
        found, key=lambda old: (old.sinks != new.sinks, old.unmeasured_properties != new.unmeasured_properties)
    )


def shared_fields(old: StateSpec, new: StateSpec) -> int:
    """The number of fields that both operators store."""
    return len(set(stored_fields(known_layout(old))) & set(stored_fields(known_layout(new))))


def matching_operators(
    new: StateSpec, left: Iterable[StateSpec], keys: Callable[[Counter[object], Counter[object]], bool]
) -> list[StateSpec]:
    """The old operators with the same rows and windows whose keys satisfy a comparison."""
    if not (aggregates(new) or holds_rows(new)):
        return []
    found = [old for old in left if family(old) == family(new) and old.meaning == new.meaning]
    found = [
        old
        for old in found
        if aggregates(old) or (holds_rows(old) and old.unmeasured_properties == new.unmeasured_properties)
    ]
    found = [old for old in found if keys(key_meanings(new), key_meanings(old))]
    return sorted(found, key=lambda old: -shared_fields(old, new))


def _aggregate_alike(old: StateSpec, new: StateSpec) -> bool:
    alike = aggregates(new) and aggregates(old) and family(old) == family(new)
    return alike and key_meanings(old) == key_meanings(new) and old.meaning != new.meaning


def other_condition(old: StateSpec, new: StateSpec) -> bool:
    """True if two aggregations differ only in the condition on their rows."""
    if not _aggregate_alike(old, new) or known_layout(old).retracting or known_layout(new).retracting:
        return False
    return old.meaning_without_filter == new.meaning_without_filter is not None


def only_windows_differ(old: StateSpec, new: StateSpec) -> bool:
    """True if two aggregations differ only in their windows, and both store slices."""
    sliced = old.windows is not None and new.windows is not None
    return _aggregate_alike(old, new) and sliced and old.meaning_without_window == new.meaning_without_window
