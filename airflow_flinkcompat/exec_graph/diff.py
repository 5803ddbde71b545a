"""The diff of two jobs: how each stored state ends when the new job starts from the old one's savepoint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout, Unknown
from airflow_flinkcompat.exec_graph.model import ExecGraph, StateSpec
from airflow_flinkcompat.model import Consequence


class RestoreEffect(StrEnum):
    """How a state ends in a plain restore, the worst first."""

    REFUSED_AT_SUBMIT = "no operator has its id: the savepoint is refused at submit"
    REFUSED_AT_RESTORE = "its operator stores something else: the job fails at its restore"
    SILENTLY_WRONG = "its operator stores alike and means something else"
    DROPPED = "its operator keeps something else, or nothing"
    UNKNOWN = "unknown"
    EMPTY = "it begins empty"
    RIGHT = "it is read as it was written"

    @property
    def consequence(self) -> Consequence | None:
        """The end of the whole restore; None where the effect alone does not decide it."""
        return _CONSEQUENCES.get(self)


_CONSEQUENCES = {
    RestoreEffect.REFUSED_AT_SUBMIT: Consequence.REFUSED_AT_SUBMIT,
    RestoreEffect.REFUSED_AT_RESTORE: Consequence.REFUSED_AT_RESTORE,
    RestoreEffect.SILENTLY_WRONG: Consequence.SILENTLY_WRONG,
}
_ORDER = tuple(RestoreEffect)
BAD_EFFECTS = frozenset((*_CONSEQUENCES, RestoreEffect.DROPPED))
"""The effects on state that does not fit.

Measured changes of which scripts alone show both jobs ended so (``tests/exec_graph/test_diff.py``).
"""


@dataclass(frozen=True)
class StateEffect:
    """The effect of a restore on one state.

    Attributes:
        effect: How it ends.
        operator: The operator that keeps it.
        facets: The facets of the operator that differ, in Flink's words.
        before: The old operator.
        after: The new one.
        sinks: The sinks that the operator leads to, where the diff knows them.
        evidence: Restores that ended right although these facets differed.
        message: A sentence on it, "" where the facets say enough.
        old: The state of the old job, where it was derived.
        new: That of the new one.
    """

    effect: RestoreEffect
    operator: str = ""
    facets: tuple[str, ...] = ()
    before: str = ""
    after: str = ""
    sinks: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    message: str = ""
    old: StateSpec | None = None
    new: StateSpec | None = None


@dataclass(frozen=True)
class Restore:
    """The effects of a plain restore, one for each state or group of facets that differs."""

    states: tuple[StateEffect, ...] = ()

    @property
    def worst(self) -> RestoreEffect:
        """The worst effect; ``RIGHT`` where nothing is stored."""
        return min((each.effect for each in self.states), key=_ORDER.index, default=RestoreEffect.RIGHT)

    @property
    def stored(self) -> Restore:
        """The effects on what the old job has stored, without states that only the new one has."""
        return Restore(tuple(each for each in self.states if each.effect is not RestoreEffect.EMPTY))

    @property
    def differences(self) -> tuple[StateEffect, ...]:
        """Every effect but ``RIGHT``."""
        return tuple(each for each in self.states if each.effect is not RestoreEffect.RIGHT)

    def having(self, *effects: RestoreEffect) -> tuple[StateEffect, ...]:
        """The states with one of these effects."""
        return tuple(each for each in self.states if each.effect in effects)


NOTHING = Restore()
"""The restore of a job that stores nothing."""


def diff(old: ExecGraph, new: ExecGraph) -> Restore:
    """Compare the states of two jobs by operator id, layout and meaning.

    Args:
        old: What the deployed job keeps.
        new: What the proposed job would keep.

    Returns:
        The effect on each state of the old job, then those that begin empty.
    """
    known = {spec.id: spec for spec in new.specs if spec.id}
    taken = {spec.id for spec in old.specs}
    found = [_effect(spec, known.get(spec.id) if spec.id else None, new) for spec in old.specs]
    empty = (
        StateEffect(RestoreEffect.EMPTY, spec.name, new=spec)
        for spec in new.specs
        if spec.id not in taken or not spec.id
    )
    return Restore((*found, *empty))


def _effect(old: StateSpec, new: StateSpec | None, job: ExecGraph) -> StateEffect:
    if not old.id:
        effect = RestoreEffect.UNKNOWN
    elif new is not None:
        effect = _met(old, new)
    else:
        known = {None: RestoreEffect.UNKNOWN, True: RestoreEffect.DROPPED, False: RestoreEffect.REFUSED_AT_SUBMIT}
        effect = known[job.has_operator(old.id)]
    return StateEffect(effect, old.name, old=old, new=new)


def _met(old: StateSpec, new: StateSpec) -> RestoreEffect:
    """The effect of an operator on a state under its id."""
    if old.kind is not new.kind or (old.layout is None) != (new.layout is None):
        return RestoreEffect.DROPPED
    if isinstance(old.layout, Unknown) or isinstance(new.layout, Unknown):
        return RestoreEffect.UNKNOWN
    if isinstance(old.layout, StateLayout) and isinstance(new.layout, StateLayout):
        if not _readable(old.layout, new.layout):
            return RestoreEffect.REFUSED_AT_RESTORE
        if _meant(old.layout) != _meant(new.layout):
            return RestoreEffect.SILENTLY_WRONG
    if old.meaning != new.meaning:
        return RestoreEffect.SILENTLY_WRONG
    return RestoreEffect.RIGHT if old.unverified == new.unverified else RestoreEffect.UNKNOWN


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
