"""Two compiled plans side by side: chain, layout and meaning of everything that keeps state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence

from airflow_flinkcompat.connectors.facts import ColumnIdentity
from airflow_flinkcompat.exec_graph.diff import Restore, RestoreEffect, StateEffect
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan
from airflow_flinkcompat.exec_graph.facets import Aspect, FacetRow, rows_about
from airflow_flinkcompat.exec_graph.from_compiled import DEFAULTS, CompiledState, JobSettings, compiled_state, job_state
from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.layout import CallPart, StateLayout
from airflow_flinkcompat.exec_graph.model import ExecGraph
from airflow_flinkcompat.exec_graph.nodes import layout
from airflow_flinkcompat.exec_graph.nodes.lookup_join import lookup_identifier
from airflow_flinkcompat.exec_graph.nodes.sink import keeps_rows, sink_identifier
from airflow_flinkcompat.exec_graph.states import CompiledOperator
from airflow_flinkcompat.exec_graph.symbols import Symbols

QUERY_SINK = "flinkcompat_query"
"""The sink in front of which a bare query is planned; it keeps nothing."""
CHAIN = ("operators up to it",)
"""What differs where an operator that keeps state has no counterpart."""
_EFFECTS = {
    Aspect.LAYOUT: RestoreEffect.REFUSED_AT_RESTORE,
    Aspect.MEANING: RestoreEffect.SILENTLY_WRONG,
    Aspect.OTHER: RestoreEffect.UNKNOWN,
}
"""The effect of a facet that differs, where the table of facets knows none."""
_INDEPENDENT, _BARE = "independent of columns", "nothing in front"
"""Conditions of the table of facets on sinks: columns decide about no state, and no materializer stands in front."""


def compare_plans(
    old: Sequence[CompiledPlan],
    new: Sequence[CompiledPlan],
    stateless_sinks: frozenset[str] = frozenset(),
    identities: Mapping[str, ColumnIdentity] | None = None,
    column_independent: frozenset[str] = frozenset(),
    restored: bool = False,
    waiting: frozenset[str] = frozenset(),
) -> Restore:
    """Compare the compiled plans of two scripts, job by job."""
    jobs = _jobs(old, new)
    if not jobs and (old or new):
        numbers = f"{len(old)} jobs", f"{len(new)} jobs"
        return Restore((StateEffect(RestoreEffect.REFUSED_AT_SUBMIT, "script", ("number of jobs",), *numbers),))
    tables = _names([one for one, _ in jobs], [other for _, other in jobs])

    def read(plan: CompiledPlan, symbols: Symbols) -> CompiledState:
        return compiled_state(plan, symbols, tables, stateless_sinks, identities, waiting=waiting)

    return Restore(
        tuple(
            effect
            for one, other in jobs
            for effect in _compare(one, other, read, stateless_sinks, column_independent, restored, waiting)
        )
    )


def job_states(
    old: Sequence[CompiledPlan],
    new: Sequence[CompiledPlan],
    stateless_sinks: frozenset[str] = frozenset(),
    renamed: Mapping[str, str] | None = None,
    identities: Mapping[str, ColumnIdentity] | None = None,
    settings: tuple[JobSettings, JobSettings] = (DEFAULTS, DEFAULTS),
) -> tuple[tuple[ExecGraph, ExecGraph], ...]:
    """What each job keeps before and after, told with one table of meanings."""
    jobs = _jobs(old, new)
    known = {name: new for new, of in (renamed or {}).items() for name in (new, of)}
    tables = {**_names([one for one, _ in jobs], [other for _, other in jobs], known), **known}

    def states(job: tuple[CompiledPlan, CompiledPlan]) -> tuple[ExecGraph, ExecGraph]:
        symbols = Symbols()
        before, after = (
            job_state(compiled_state(plan, symbols, tables, stateless_sinks, identities, side), symbols)
            for plan, side in zip(job, settings, strict=True)
        )
        return before, after

    return tuple(map(states, jobs))


def _jobs(old: Sequence[CompiledPlan], new: Sequence[CompiledPlan]) -> list[tuple[CompiledPlan, CompiledPlan]]:
    """The jobs of both sides by the sinks they write to; in order where that does not tell, none where neither does.

    Jobs that only come, or only go, leave the others as they are.
    """
    left, right = ({sinks_of(plan): plan for plan in side} for side in (old, new))
    told_apart = len(left) == len(old) and len(right) == len(new)
    if told_apart and (left.keys() <= right.keys() or right.keys() <= left.keys()):
        return [(plan, right[sinks]) for sinks, plan in left.items() if sinks in right]
    return list(zip(old, new, strict=True)) if len(old) == len(new) else []


def sinks_of(plan: CompiledPlan) -> tuple[str, ...]:
    """The tables a job writes to, as its plan names them."""
    return tuple(dict.fromkeys(sink_identifier(node) for node in plan.nodes if node.kind is ExecKind.SINK))


def sources_of(plans: Iterable[CompiledPlan]) -> list[str]:
    """The tables that jobs read by scans, as their plans name them."""
    scans = (node for plan in plans for node in plan.nodes if node.kind is ExecKind.TABLE_SOURCE_SCAN)
    return list(dict.fromkeys(node.config["scanTableSource"]["table"]["identifier"] for node in scans))


def _names(old: Sequence[CompiledPlan], new: Sequence[CompiledPlan], known: Collection[str] = ()) -> dict[str, str]:
    """Source tables that only one side knows, paired in their order: a renamed table is judged where it is declared.

    Both of a pair are called by the new name, as the new script calls it, of which state may be computed from history.
    """
    found: dict[str, str] = {}
    for tables in (sources_of, _lookups_of):
        left, right = tables(old), tables(new)
        gone = [each for each in left if each not in {*right, *known}]
        come = [each for each in right if each not in {*left, *known}]
        found |= {name: after for before, after in zip(gone, come, strict=False) for name in (before, after)}
    return found


def _lookups_of(plans: Iterable[CompiledPlan]) -> list[str]:
    nodes = (node for plan in plans for node in plan.nodes if node.kind is ExecKind.LOOKUP_JOIN)
    return list(dict.fromkeys(map(lookup_identifier, nodes)))


def _compare(
    old: CompiledPlan,
    new: CompiledPlan,
    read: Callable[[CompiledPlan, Symbols], CompiledState],
    stateless_sinks: frozenset[str],
    column_independent: frozenset[str],
    restored: bool,
    waiting: frozenset[str],
) -> Iterator[StateEffect]:
    symbols = Symbols()
    sides = [read(plan, symbols) for plan in (old, new)]
    sinks = sinks_of(new)
    known = [{number: operator for number, operator in side.operators if operator.keeps} for side in sides]
    if gone := known[0].keys() - set(sides[1].graph.ids):
        lost = next(operator for number, operator in known[0].items() if number in gone)
        made = next((operator for number, operator in known[1].items() if number not in known[0]), None)
        what = CHAIN
        effect = RestoreEffect.UNKNOWN if restored else RestoreEffect.REFUSED_AT_SUBMIT
        yield StateEffect(effect, lost.node.kind, what, _path(old, lost), _path(new, made), sinks)
        return
    for number, operator in known[1].items():
        if number not in known[0]:
            # Nothing is refused: what it would have gathered is missing, which is right for some kinds only (measured).
            what = ("a new operator, which begins without state",)
            seen = _evidence(operator.node.kind, "new")
            texts = "no such operator", operator.node.description
            yield StateEffect(RestoreEffect.EMPTY, operator.node.kind, what, *texts, sinks, seen)
    sinks_aside = [[each for _, each in found if not each.keeps] for found in (side.operators for side in sides)]
    if len(sinks_aside[0]) != len(sinks_aside[1]):
        before, after = (f"{len(side)} sinks that keep nothing" for side in sinks_aside)
        evidence = _evidence("sink", "number")
        yield StateEffect(RestoreEffect.UNKNOWN, "sink", ("number",), before, after, sinks, evidence)
    for number in known[0].keys() - known[1].keys():
        # Nothing is refused either: the state is handed to an operator that does not look at it (measured). Whether
        # anything is stored Flink itself knows better.
        what = ("what stands in its place keeps nothing",)
        node = known[0][number].node
        effect = RestoreEffect.UNKNOWN if restored else RestoreEffect.SILENTLY_WRONG
        yield StateEffect(effect, node.kind, what, node.description, "no such state", sinks)
    pairs = [(before, known[1][number]) for number, before in known[0].items() if number in known[1]]
    independent = stateless_sinks | column_independent
    changed: set[int] = set()
    for one, other in (*pairs, *zip(*sinks_aside, strict=False)):
        apart = _apart(one, other, symbols)
        if other.node.place in changed:  # what is below differs already
            apart = [key for key in apart if key[0] is Aspect.LAYOUT]
        if old.version != new.version:  # each line writes keys of its own
            apart = [key if {*one.facets} & {*other.facets} & {key} else (Aspect.OTHER, key[1]) for key in apart]
        texts = one.node.description, other.node.description
        surely = other.node.kind is not ExecKind.LOOKUP_JOIN or lookup_identifier(other.node) not in waiting
        for effect, facets, evidence in _weighed(one, other, apart, independent, restored):
            found = effect if surely else RestoreEffect.UNKNOWN
            yield StateEffect(found, other.node.kind, facets, *texts, sinks, evidence)
        if not apart:
            yield StateEffect(RestoreEffect.RIGHT, other.node.kind, (), *texts, sinks)
        if any(aspect in (Aspect.LAYOUT, Aspect.MEANING) for aspect, _ in apart):
            changed |= _above(new, other.node.place)


def _aggregate(*operators: CompiledOperator) -> bool:
    return all(Trait.AGGREGATES in each.node.kind.traits for each in operators)


def _weighed(
    one: CompiledOperator,
    other: CompiledOperator,
    apart: Sequence[tuple[Aspect, str]],
    independent: frozenset[str],
    restored: bool,
) -> Iterator[tuple[RestoreEffect, tuple[str, ...], tuple[str, ...]]]:
    """The facets that differ by the effect that the table of facets gives them, with the restores that are right."""
    aspects = {found for found, _ in apart}
    for aspect in (Aspect.LAYOUT, Aspect.MEANING, Aspect.OTHER):
        if aspect is Aspect.MEANING and Aspect.LAYOUT in aspects and not restored:
            continue  # the restore fails first, so that no row comes of the other meaning
        rows = {name: _row(one, other, (found, name), independent) for found, name in apart if found is aspect}
        effects = {name: RestoreEffect.UNKNOWN if row is None else row.effect for name, row in rows.items()}
        wrong = tuple(name for name, each in effects.items() if each is RestoreEffect.SILENTLY_WRONG)
        either = tuple(name for name, each in effects.items() if each is RestoreEffect.UNKNOWN)
        # Flink has read the state: another layout by the plan alone is not known to matter.
        effect = RestoreEffect.UNKNOWN if aspect is Aspect.LAYOUT and restored else _EFFECTS[aspect]
        yield from (
            (each, what, ()) for each, what in ((RestoreEffect.SILENTLY_WRONG, wrong), (effect, either)) if what
        )
        for name, row in rows.items():
            if row is not None and row.effect is RestoreEffect.RIGHT:
                yield RestoreEffect.UNKNOWN, (name,), row.evidence


def _apart(one: CompiledOperator, other: CompiledOperator, symbols: Symbols) -> list[tuple[Aspect, str]]:
    """The facets that differ; without those of accumulators that hold the same numbers in the same order."""
    keys = dict.fromkeys((*one.facets, *other.facets))
    apart = [key for key in keys if one.facets.get(key) != other.facets.get(key)]
    if _ROWS_BELOW in apart and _fewer_keys(one, other, symbols):
        apart.remove(_ROWS_BELOW)
    if any(key in _OF_ACCUMULATORS for key in apart) and _aggregate(one, other):
        stored = [_contents(each, symbols) for each in (one, other)]
        if stored[0] is not None and stored[0] == stored[1]:
            return [key for key in apart if key not in _OF_ACCUMULATORS]
    return apart


def _fewer_keys(one: CompiledOperator, other: CompiledOperator, symbols: Symbols) -> bool:
    """Whether an aggregation reads fewer rows for a condition on its keys alone: the other keys keep what they have."""
    keys = other.facets.get((Aspect.MEANING, "keys"))
    if not _aggregate(one, other) or not isinstance(keys, tuple):
        return False
    before, after = (each.facets[_ROWS_BELOW] for each in (one, other))
    if not (isinstance(before, int) and isinstance(after, int)):
        return False
    more = symbols.narrowed(after, before)
    known = frozenset(each for each in keys if isinstance(each, int))
    return bool(more) and all(symbols.columns_of(each) <= known for each in more or ())


_ROWS_BELOW = (Aspect.MEANING, "rows below")
_OF_ACCUMULATORS = frozenset(
    (
        (Aspect.LAYOUT, "accumulators"),
        (Aspect.LAYOUT, "retraction"),
        (Aspect.MEANING, "aggregates"),
        (Aspect.OTHER, "argument types"),
    )
)


def _contents(operator: CompiledOperator, symbols: Symbols) -> Hashable:
    """What stands in each field of an aggregation's states; None where that is not known."""
    stored = layout(operator.node, operator.inputs, symbols)
    if not isinstance(stored, StateLayout):
        return None
    fields = [
        (state, each)
        for state in stored.states
        for each in (*(state.map_key.fields if state.map_key else ()), *state.value.fields)
    ]
    if any(each.meaning is None for _, each in fields):
        return None
    return tuple((state.name, state.kind, state.namespace, each.type, _content(each.meaning)) for state, each in fields)


def _content(meaning: Hashable) -> Hashable:
    """The number that a field holds, whatever call it belongs to; a sum begins with NULL or with 0."""
    if isinstance(meaning, CallPart) and meaning.content is not None:
        return meaning.content, meaning.null_at_first
    return meaning


def _row(
    one: CompiledOperator, other: CompiledOperator, key: tuple[Aspect, str], independent: frozenset[str]
) -> FacetRow | None:
    """The row of the table about a facet that differs; what it asks of the node is asked where the facet is made."""
    aspect, name = key
    kind = other.node.kind
    if aspect is Aspect.LAYOUT or (aspect is Aspect.MEANING and kind != ExecKind.SINK):
        return None
    bare = kind == ExecKind.SINK and not any(map(keeps_rows, (one.node, other.node)))
    met = {_BARE: bare, _INDEPENDENT: bare and sink_identifier(other.node) in independent}
    return next(
        (
            row
            for row in rows_about(kind, name)
            if row.speaks_of(one.facets.get(key), other.facets.get(key))
            and (not isinstance(row.when, str) or met.get(row.when, True))
        ),
        None,
    )


def _evidence(operator: str, facet: str) -> tuple[str, ...]:
    return tuple(each for row in rows_about(operator, facet) for each in row.evidence)


def _above(plan: CompiledPlan, place: int) -> set[int]:
    found: set[int] = set()
    waiting = [place]
    while waiting:
        for reader in plan.readers[waiting.pop()]:
            if reader not in found:
                found.add(reader)
                waiting.append(reader)
    return found


def _path(plan: CompiledPlan, operator: CompiledOperator | None) -> str:
    """The kinds from the sources up to an operator."""
    if operator is None:
        return "no such operator"

    def upto(place: int) -> str:
        node = plan.nodes[place]
        below = [upto(each) for each in node.inputs]
        if not below:
            return node.kind
        return f"{below[0] if len(below) == 1 else '(' + ' | '.join(below) + ')'} > {node.kind}"

    return upto(operator.node.place)
