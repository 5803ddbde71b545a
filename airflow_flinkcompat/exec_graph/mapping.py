"""What becomes of each state when another job goes on from the savepoint as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_flinkcompat.exec_graph.layout import LayoutUnknown, NamedState, StateLayout
from airflow_flinkcompat.exec_graph.model import JobState, StateSpec


class RestoreEffect(StrEnum):
    """Where a state goes."""

    CARRIED = "it goes to the same operator"
    SILENTLY_WRONG = "it goes to an operator that stores alike and means something else"
    REFUSED = "it goes to an operator that stores something else: the job fails at its restore"
    WRONG_OPERATOR = "it goes to an operator that keeps something else, or nothing"
    UNCLAIMED = "no operator has its id: the savepoint is refused at submit"
    NEW = "it begins empty"
    NOT_KNOWN = "it is not known"


BAD_MOVES = (RestoreEffect.UNCLAIMED, RestoreEffect.WRONG_OPERATOR, RestoreEffect.REFUSED, RestoreEffect.SILENTLY_WRONG)
"""What a plain restore makes of a state that does not fit, the earliest end first.

Of the measured changes of which both sides are told each ended so (``tests/exec_graph/test_mapping.py``).
"""


@dataclass(frozen=True)
class MappedState:
    """One state: before, after, and where it goes."""

    move: RestoreEffect
    old: StateSpec | None
    new: StateSpec | None


def worst_move(mapped: Iterable[MappedState]) -> RestoreEffect:
    """How a plain restore ends, by what becomes of each state.

    Args:
        mapped: What :func:`diff` found.

    Returns:
        The first of :data:`BAD_MOVES` that befalls a state of the old job; else ``NOT_KNOWN`` where that is so of one,
        and ``CARRIED`` where every state goes on.
    """
    moves = {each.move for each in mapped if each.old is not None}
    return next((move for move in (*BAD_MOVES, RestoreEffect.NOT_KNOWN) if move in moves), RestoreEffect.CARRIED)


def diff(old: JobState, new: JobState) -> tuple[MappedState, ...]:
    """What Flink makes of every state of the old job, and of those that only the new one has.

    Args:
        old: What the deployed job keeps.
        new: What the proposed job would keep.

    Returns:
        A line for each state of the old job, then for those that begin empty.
    """
    known = {spec.id: spec for spec in new.specs if spec.id}
    found = [_mapped(spec, known.get(spec.id) if spec.id else None, new) for spec in old.specs]
    taken = {spec.id for spec in old.specs}
    begins = (MappedState(RestoreEffect.NEW, None, spec) for spec in new.specs if spec.id not in taken or not spec.id)
    return (*found, *begins)


def _mapped(old: StateSpec, new: StateSpec | None, job: JobState) -> MappedState:
    if not old.id:
        return MappedState(RestoreEffect.NOT_KNOWN, old, None)
    if new is not None:
        return MappedState(_met(old, new), old, new)
    match job.has_operator(old.id):
        case None:
            return MappedState(RestoreEffect.NOT_KNOWN, old, None)
        case True:
            return MappedState(RestoreEffect.WRONG_OPERATOR, old, None)
    return MappedState(RestoreEffect.UNCLAIMED, old, None)


def _met(old: StateSpec, new: StateSpec) -> RestoreEffect:
    """What an operator makes of a state under its id."""
    if old.kind is not new.kind or (old.layout is None) != (new.layout is None):
        return RestoreEffect.WRONG_OPERATOR
    if isinstance(old.layout, LayoutUnknown) or isinstance(new.layout, LayoutUnknown):
        return RestoreEffect.NOT_KNOWN
    if isinstance(old.layout, StateLayout) and isinstance(new.layout, StateLayout):
        if not _readable(old.layout, new.layout):
            return RestoreEffect.REFUSED
        if _meant(old.layout) != _meant(new.layout):
            return RestoreEffect.SILENTLY_WRONG
    if old.meaning != new.meaning:
        return RestoreEffect.SILENTLY_WRONG
    return RestoreEffect.CARRIED if old.unverified == new.unverified else RestoreEffect.NOT_KNOWN


def _readable(old: StateLayout, new: StateLayout) -> bool:
    """Whether the serializers of the key and of every state that both have are the same, a time to live aside."""
    left, right = old.stored, new.stored
    before, after = _by_name(left.states), _by_name(right.states)
    return left.key == right.key and all(before[name] == after[name] for name in before.keys() & after.keys())


def _meant(layout: StateLayout) -> tuple[object, ...]:
    return layout.key, _by_name(layout.states), layout.timers


def _by_name(states: Iterable[NamedState]) -> Mapping[str, NamedState]:
    # A time to live that comes or goes is taken over or not by line and backend; plans name it beside.
    return {state.name: replace(state, time_to_live=False) for state in states}
