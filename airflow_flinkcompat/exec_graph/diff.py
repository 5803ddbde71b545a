"""The diff of two exec graphs: the effect of a restore on each stored state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan
from airflow_flinkcompat.exec_graph.facets import WAITING, differing_facets, facet_effects, rows_about
from airflow_flinkcompat.exec_graph.from_planner import CONNECTOR_BASES, PlannedOperator
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout, Unknown
from airflow_flinkcompat.exec_graph.model import (
    LAYOUT,
    MEANING,
    MERGING_WINDOWS,
    UNSURE,
    ExecGraph,
    Restore,
    RestoreEffect,
    StateEffect,
    StateSpec,
)

CHAIN = ("operators up to it",)
"""The facet of a stateful operator whose id does not exist in the new job."""
_DEFAULT_MAX_PARALLELISM = 128
"""Flink's default maximum parallelism for a job with a parallelism of at most 85."""
_FILE_SINK = "org.apache.flink.connector.file.table.stream."
"""Package of Flink's file sink operators, whose state does not depend on columns."""


def diff(old: ExecGraph, new: ExecGraph, *, restored: bool = False) -> Restore:
    """Compare the states of two jobs by operator id, then by content, and return each effect.

    ``restored`` is True if Flink restored the new job from a savepoint of the old job and refused nothing. A refusal
    is returned without other effects, because Flink then reads no state.
    """
    for refusal in _refusals(old, new):
        return Restore((replace(refusal, effect=RestoreEffect.UNKNOWN) if restored else refusal,))
    return Restore(tuple(_effects(old, new, old.specs, restored=restored)))


def operator_effects(old: ExecGraph, new: ExecGraph) -> tuple[StateEffect, ...]:
    """The worst effect on each stateful operator of two submitted jobs, also next to a refused operator."""
    refused = {each.id: each for each in _refusals(old, new)}
    kept = [spec for spec in old.specs if spec.id not in refused]
    found = {spec.id: [refused.get(spec.id, _right(spec))] for spec in (*old.specs, *new.specs)}
    for effect in _effects(old, new, kept):
        if effect.id in found:
            found[effect.id].append(effect)
    order = tuple(RestoreEffect).index
    return tuple(min(each, key=lambda effect: order(effect.effect)) for each in found.values())


def _right(spec: StateSpec) -> StateEffect:
    return StateEffect(RestoreEffect.RIGHT, spec.name, old=spec)


def _effects(
    old: ExecGraph, new: ExecGraph, specs: Sequence[StateSpec], *, restored: bool = False
) -> Iterator[StateEffect]:
    """Effects on accepted states of the old job (``specs``), and on states of the new job."""
    stored, found = {spec.id for spec in old.specs if spec.id}, {spec.id: spec for spec in new.specs if spec.id}
    pairs = [(spec, found[spec.id]) for spec in specs if spec.id in found]
    yield from (_new_operator_effect(spec, new) for spec in new.specs if spec.id not in stored)
    yield from _other_number_of_sinks(old, new)
    yield from (_unread(spec, new, restored=restored) for spec in specs if spec.id not in found)
    bare = zip(old.bare_sinks, new.bare_sinks, strict=False)
    yield from _compared((*pairs, *bare), old, new, restored=restored)


def diff_jobs(
    jobs: Sequence[tuple[ExecGraph, ExecGraph]], numbers: tuple[int, int], *, restored: bool = False
) -> Restore:
    """Compare two scripts job by job; ``jobs`` is empty if their numbers of jobs differ."""
    if not jobs and any(numbers):
        texts = f"{numbers[0]} jobs", f"{numbers[1]} jobs"
        return Restore((StateEffect(RestoreEffect.REFUSED_AT_SUBMIT, "script", ("number of jobs",), *texts),))
    return Restore(tuple(effect for job in jobs for effect in diff(*job, restored=restored).states))


def _refusals(old: ExecGraph, new: ExecGraph) -> Iterator[StateEffect]:
    """Yield Flink's refusals in the order of its checks: first at submit, then at the restore."""
    for spec in old.specs:
        if spec.id and new.has_operator(spec.id) is False:
            stored = {each.id for each in old.specs}
            other = next((each for each in new.specs if each.id not in stored), None)
            message = f"the new job has no operator with the id of {spec.name} ({spec.id}), which keeps state"
            yield StateEffect(
                RestoreEffect.REFUSED_AT_SUBMIT, spec.operator, CHAIN, _path(spec), _path(other), new.sinks,
                message=message, old=spec,
            )  # fmt: skip
    if new.submitted is None:
        return
    operators = {each.id: each for each in new.submitted.operators}
    kept = [(spec, spec.planned) for spec in old.specs if spec.planned is not None and spec.planned.id in operators]
    for spec, each in kept:
        stored_maximum = each.max_parallelism if each.max_parallelism > 0 else _DEFAULT_MAX_PARALLELISM
        wanted = operators[each.id].max_parallelism
        if wanted not in (stored_maximum, 0, -1):  # without an explicit maximum, Flink uses the savepoint's
            message = f"the maximum parallelism of {each.name} changes from {stored_maximum} to {wanted}"
            yield StateEffect(RestoreEffect.REFUSED_AT_SUBMIT, each.name, message=message, old=spec)
    for spec, each in kept:
        if chain := new.submitted.restores.get(each.id):
            migration = any(one["class"].endswith("StateMigrationException") for one in chain)
            why = "has a different layout, which Flink does not migrate" if migration else chain[-1]["message"][:300]
            message = f"the stored state of {each.name} {why}"
            yield StateEffect(RestoreEffect.REFUSED_AT_RESTORE, each.name, message=message, old=spec)


def _new_operator_effect(spec: StateSpec, job: ExecGraph) -> StateEffect:
    """The effect on a new operator: its state is empty, so it lacks all past rows (measured)."""
    facets = ("a new operator, which begins without state",)
    evidence = tuple(each for row in rows_about(spec.operator, "new") for each in row.evidence)
    return StateEffect(
        RestoreEffect.EMPTY, spec.operator, facets, "no such operator", spec.description, job.sinks, evidence,
        f"{spec.name} begins without state", new=spec,
    )  # fmt: skip


def _unread(spec: StateSpec, job: ExecGraph, *, restored: bool) -> StateEffect:
    """The effect on state that no new operator reads; Flink does not refuse such state (measured).

    If Flink restored the job, the effect is unknown, because only the savepoint shows if the state exists.
    """
    known = spec.id and job.has_operator(spec.id) and not restored
    effect = RestoreEffect.DROPPED if known else RestoreEffect.UNKNOWN
    message = ""
    if job.submitted is not None:
        other = next(each for each in job.submitted.operators if each.id == spec.id)
        message = f"{spec.name} keeps state, but {other.name}, which has the same id, keeps none"
    facets = ("the new operator with the same id keeps no state",)
    texts = spec.description, "no such state"
    return StateEffect(effect, spec.operator, facets, *texts, job.sinks, message=message, old=spec)


def _other_number_of_sinks(old: ExecGraph, new: ExecGraph) -> Iterator[StateEffect]:
    if len(old.bare_sinks) != len(new.bare_sinks):
        before, after = (f"{len(job.bare_sinks)} sinks without state" for job in (old, new))
        evidence = tuple(each for row in rows_about("sink", "number") for each in row.evidence)
        yield StateEffect(RestoreEffect.UNKNOWN, "sink", ("number",), before, after, new.sinks, evidence)


def _compared(
    pairs: Iterable[tuple[StateSpec, StateSpec]], old: ExecGraph, new: ExecGraph, *, restored: bool
) -> Iterator[StateEffect]:
    changed: set[int] = set()
    for one, other in pairs:
        if one.planned is not None and other.planned is not None:
            effects = _by_registered_states(one.planned, other.planned)
            yield from (replace(each, old=one, new=other) for each in effects)
        else:
            yield from _by_facets(one, other, new, changed, restored=restored)


def _by_facets(
    one: StateSpec, other: StateSpec, job: ExecGraph, changed: set[int], *, restored: bool
) -> Iterator[StateEffect]:
    """Compare two counterparts, and add the nodes downstream of a difference to ``changed``."""
    assert job.symbols is not None
    differing = differing_facets(one, other, job.symbols)
    if one.compiled and other.compiled:
        (before, _), (after, place) = one.compiled, other.compiled
        if place in changed:  # an upstream operator already differs
            differing = [key for key in differing if key[0] is LAYOUT]
        if before.version != after.version:  # each Flink version writes different keys
            differing = [key if {*one.facets} & {*other.facets} & {key} else (UNSURE, key[1]) for key in differing]
    elif isinstance(one.layout, Unknown) or isinstance(other.layout, Unknown):
        differing = [(UNSURE, "layout")]
    if not restored:
        differing = _by_serializers(differing, one.layout, other.layout)
    texts = one.description, other.description
    for effect, facets, evidence in facet_effects(one, other, differing, restored=restored):
        found = RestoreEffect.UNKNOWN if WAITING in other.conditions else effect
        yield StateEffect(found, other.operator, facets, *texts, job.sinks, evidence, old=one, new=other)
    if not differing:
        yield StateEffect(RestoreEffect.RIGHT, other.operator, (), *texts, job.sinks, old=one, new=other)
    if other.compiled and any(effect in (LAYOUT, MEANING) for effect, _ in differing):
        changed |= _above(*other.compiled)


def _by_serializers(
    differing: list[tuple[RestoreEffect, str]],
    old: StateLayout | Unknown | None,
    new: StateLayout | Unknown | None,
) -> list[tuple[RestoreEffect, str]]:
    """Decide by two known layouts if the restore fails or silently misreads the state."""
    if not (isinstance(old, StateLayout) and isinstance(new, StateLayout)):
        return differing
    if _readable(old, new):
        return [
            (MEANING if effect is LAYOUT and name != MERGING_WINDOWS else effect, name) for effect, name in differing
        ]
    fails = any(effect is LAYOUT for effect, _ in differing)
    return [(LAYOUT if effect is MEANING and not fails else effect, name) for effect, name in differing]


def _by_registered_states(one: PlannedOperator, other: PlannedOperator) -> Iterator[StateEffect]:
    """Compare the states that two operators register when the planner starts them."""

    def effect(found: RestoreEffect, message: str) -> StateEffect:
        return StateEffect(found, other.name, message=message)

    if one.states is None or other.states is None:
        if (one.kind, one.component) != (other.kind, other.component):
            names = other.component or other.kind, one.component or one.kind
            yield effect(RestoreEffect.DROPPED, f"{one.name}: {names[0]} replaces {names[1]}")
        if other.basis not in CONNECTOR_BASES and not other.kind.startswith(_FILE_SINK):
            yield effect(RestoreEffect.UNKNOWN, f"{other.name}: its state is unknown")
        return
    for name in sorted(one.states.keys() | other.states.keys()):
        if name not in other.states:
            yield effect(RestoreEffect.DROPPED, f"{one.name}: state {name} is no longer read")
        elif name not in one.states:
            yield effect(RestoreEffect.EMPTY, f"{other.name}: state {name} begins empty")
        elif one.states[name] != other.states[name]:
            yield effect(RestoreEffect.UNKNOWN, f"{other.name}: state {name} has different options")


def _readable(old: StateLayout, new: StateLayout) -> bool:
    """True if the keys and all common states have equal serializers."""
    left, right = old.stored, new.stored
    before, after = _by_name(left.states), _by_name(right.states)
    return left.key == right.key and all(before[name] == after[name] for name in before.keys() & after.keys())


def _by_name(states: Iterable[NamedState]) -> Mapping[str, NamedState]:
    # Ignore an added or removed time to live: its effect depends on the Flink version and the state backend, and a
    # rule judges it.
    return {state.name: replace(state, time_to_live=False) for state in states}


def _above(plan: CompiledPlan, place: int) -> set[int]:
    found: set[int] = set()
    waiting = [place]
    while waiting:
        for reader in plan.readers[waiting.pop()]:
            if reader not in found:
                found.add(reader)
                waiting.append(reader)
    return found


def _path(spec: StateSpec | None) -> str:
    """The kinds of the nodes from the sources to an operator, as text."""
    if spec is None or spec.compiled is None:
        return "no such operator"
    plan, operator = spec.compiled

    def upto(place: int) -> str:
        node = plan.nodes[place]
        below = [upto(each) for each in node.inputs]
        if not below:
            return node.kind
        return f"{below[0] if len(below) == 1 else '(' + ' | '.join(below) + ')'} > {node.kind}"

    return upto(operator)
