"""What becomes of each state when another job goes on from the savepoint."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_flinkcompat.state.model import JobState, StateSpec


class StateMove(StrEnum):
    """Where a state goes."""

    CARRIED = "it goes to the same operator"
    TAKEN = "it goes to an operator that keeps something else, or nothing"
    GONE = "no operator has its id: the savepoint is refused at submit"
    NEW = "it begins empty"
    NOT_KNOWN = "it cannot be told"


@dataclass(frozen=True)
class MappedState:
    """One state: before, after, and where it goes."""

    move: StateMove
    old: StateSpec | None
    new: StateSpec | None


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
    begins = (MappedState(StateMove.NEW, None, spec) for spec in new.specs if spec.id not in taken or not spec.id)
    return (*found, *begins)


def _mapped(old: StateSpec, new: StateSpec | None, job: JobState) -> MappedState:
    if not old.id:
        return MappedState(StateMove.NOT_KNOWN, old, None)
    if new is not None:
        same = old.kind is new.kind and old.layout == new.layout and old.meaning == new.meaning
        return MappedState(StateMove.CARRIED if same else StateMove.TAKEN, old, new)
    match job.has(old.id):
        case None:
            return MappedState(StateMove.NOT_KNOWN, old, None)
        case True:
            return MappedState(StateMove.TAKEN, old, None)
    return MappedState(StateMove.GONE, old, None)
