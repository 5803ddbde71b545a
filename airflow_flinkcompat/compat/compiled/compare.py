"""Two compiled plans side by side: chain, layout and meaning of everything that keeps state."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_flinkcompat.compat.compiled.nodes import VIRTUAL, CompiledPlan, Node, PlanError
from airflow_flinkcompat.compat.compiled.states import (
    Aspect,
    CompiledOperator,
    enforcers,
    operators,
    sink_identifier,
)
from airflow_flinkcompat.compat.compiled.symbols import Symbol, Symbols

QUERY_SINK = "flinkcompat_query"
"""The sink in front of which a bare query is planned; it keeps nothing."""


@dataclass(frozen=True)
class PlanDifference:
    """What the plans of one job say differently of an operator that keeps state; before and after in Flink's words."""

    aspect: Aspect
    operator: str
    what: tuple[str, ...]
    before: str
    after: str
    sinks: tuple[str, ...] = ()


def compare_plans(
    old: Sequence[CompiledPlan], new: Sequence[CompiledPlan], stateless_sinks: frozenset[str] = frozenset()
) -> tuple[PlanDifference, ...]:
    """Every difference between the plans of two scripts, job by job.

    Args:
        old: The plans of the deployed script, one for each job, in order.
        new: The plans of the proposed script, likewise.
        stateless_sinks: Identifiers of sink tables whose connector keeps no state, as they stand in the plans.

    Returns:
        The differences; none where chain, layout and meaning are equal.

    Raises:
        PlanError: An operator is not written as the measured versions write it.
    """
    jobs = _jobs(old, new)
    if not jobs and (old or new):
        return (PlanDifference(Aspect.CHAIN, "script", ("number of jobs",), f"{len(old)} jobs", f"{len(new)} jobs"),)
    tables = _names([one for one, _ in jobs], [other for _, other in jobs])
    return tuple(difference for one, other in jobs for difference in _compare(one, other, tables, stateless_sinks))


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
    """The tables a job writes to, as its plan names them.

    Args:
        plan: The plan of one job.

    Returns:
        The distinct identifiers of its sink tables.
    """
    return tuple(dict.fromkeys(sink_identifier(node) for node in plan.nodes if node.kind == "sink"))


def _identifiers(plans: Iterable[CompiledPlan]) -> list[str]:
    scans = (node for plan in plans for node in plan.nodes if node.kind == "table-source-scan")
    return list(dict.fromkeys(node.config["scanTableSource"]["table"]["identifier"] for node in scans))


def _names(old: Sequence[CompiledPlan], new: Sequence[CompiledPlan]) -> dict[str, str]:
    """Source tables that only one side knows, by their order: a renamed table is judged where it is declared."""
    left, right = _identifiers(old), _identifiers(new)
    gone = [each for each in left if each not in right]
    come = [each for each in right if each not in left]
    return {name: f"renamed {i}" for side in (gone, come) for i, name in enumerate(side)}


def _compare(
    old: CompiledPlan, new: CompiledPlan, tables: dict[str, str], stateless_sinks: frozenset[str]
) -> Iterable[PlanDifference]:
    symbols = Symbols()
    try:
        sides = [(plan, operators(plan, symbols, tables, stateless_sinks)) for plan in (old, new)]
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise PlanError(f"an operator of the compiled plan is written in an unknown way ({error!r})") from None
    sinks = sinks_of(new)
    chains = [_chains(plan, found, symbols) for plan, found in sides]
    known = [dict(side) for side in chains]
    if any(chain not in known[1] for chain in known[0]):
        yield _other_chain(sides[0], sides[1], chains, sinks)
        return
    for chain, operator in known[1].items():
        if chain not in known[0]:
            # Nothing is refused: what it would have gathered is missing, which is right for some kinds only (measured).
            what = ("a new operator, which begins without state",)
            yield PlanDifference(
                Aspect.OTHER, operator.node.kind, what, "no such operator", operator.node.description, sinks
            )
    changed: set[int] = set()
    sinks_aside = [[each for each in found if not each.keeps] for _, found in sides]
    if len(sinks_aside[0]) != len(sinks_aside[1]):
        before, after = (f"{len(side)} sinks that keep nothing" for side in sinks_aside)
        yield PlanDifference(Aspect.OTHER, "sink", ("number",), before, after, sinks)
    pairs = [(before, known[1][chain]) for chain, before in known[0].items()]
    for one, other in (*pairs, *zip(*sinks_aside, strict=False)):
        keys = dict.fromkeys((*one.facets, *other.facets))
        apart = [key for key in keys if one.facets.get(key) != other.facets.get(key)]
        if other.node.place in changed:  # what is below differs already
            apart = [key for key in apart if key[0] is Aspect.LAYOUT]
        for aspect in (Aspect.LAYOUT, Aspect.MEANING, Aspect.OTHER):
            if what := tuple(name for found, name in apart if found is aspect):
                texts = one.node.description, other.node.description
                yield PlanDifference(aspect, other.node.kind, what, *texts, sinks)
        if any(aspect in (Aspect.LAYOUT, Aspect.MEANING) for aspect, _ in apart):
            changed |= _above(new, other.node.place)


def _above(plan: CompiledPlan, place: int) -> set[int]:
    found: set[int] = set()
    waiting = [place]
    while waiting:
        for reader in plan.readers[waiting.pop()]:
            if reader not in found:
                found.add(reader)
                waiting.append(reader)
    return found


def _chains(
    plan: CompiledPlan, found: Sequence[CompiledOperator], symbols: Symbols
) -> list[tuple[Symbol, CompiledOperator]]:
    """Every stateful operator with what identifies it, in the order Flink numbers operators.

    An operator's id is a hash of how many operators were visited before it, of its chained readers and of its inputs
    (Flink's StreamGraphHasherV2). Here the kinds visited before stand in for their number, so that a kind that
    Flink makes several operators of is told apart.
    """
    by_place = {operator.node.place: operator for operator in found}
    chain: dict[int, Symbol] = {}
    visited = symbols.of("visited")
    ordered: list[tuple[Symbol, CompiledOperator]] = []
    for place in _order(plan):
        node = plan.nodes[place]
        kind = (node.kind, _distribution(node), _in_front(plan, node, by_place))
        chain[place] = symbols.of(
            "chain", visited, kind, len(plan.readers[place]), tuple(chain[each] for each in node.inputs)
        )
        if node.kind not in VIRTUAL:
            visited = symbols.of("visited", visited, kind)
        if place in by_place and by_place[place].keeps:
            ordered.append((chain[place], by_place[place]))
    return ordered


def _order(plan: CompiledPlan) -> Iterable[int]:
    """Breadth first from the sources; a node comes once all its inputs have come."""
    waiting = deque(node.place for node in plan.nodes if not node.inputs)
    seen = set(waiting)
    done: set[int] = set()
    while waiting:
        place = waiting.popleft()
        if not done.issuperset(plan.nodes[place].inputs):
            seen.discard(place)  # an input that comes later brings it back
            continue
        done.add(place)
        yield place
        for reader in plan.readers[place]:
            if reader not in seen:
                seen.add(reader)
                waiting.append(reader)


def _in_front(plan: CompiledPlan, node: Node, operators: Mapping[int, CompiledOperator]) -> Hashable:
    """Of a sink, what it is made of: operators stand in front of it, and one that keeps state is several itself."""
    if node.kind != "sink":
        return None
    return operators[node.place].keeps, enforcers(node, plan.nodes[node.inputs[0]].types)


def _distribution(node: Node) -> str:
    properties = node.config.get("inputProperties") or ()
    return " ".join(str(each.get("requiredDistribution", {}).get("type")) for each in properties)


def _other_chain(
    old: tuple[CompiledPlan, list[CompiledOperator]],
    new: tuple[CompiledPlan, list[CompiledOperator]],
    chains: Sequence[list[tuple[Symbol, CompiledOperator]]],
    sinks: tuple[str, ...],
) -> PlanDifference:
    """The first operator whose state finds no operator to go to, and how both sides get there."""
    known = [{chain for chain, _ in side} for side in chains]
    lost = next((o for chain, o in chains[0] if chain not in known[1]), None)
    made = next((o for chain, o in chains[1] if chain not in known[0]), None)
    named = lost or made
    return PlanDifference(
        Aspect.CHAIN,
        named.node.kind if named else "script",
        ("operators up to it",),
        _path(old[0], lost),
        _path(new[0], made),
        sinks,
    )


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
