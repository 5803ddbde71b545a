"""Exec graph of a compiled plan: its operators with their ids and their state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from airflow_flinkcompat.connectors.facts import ColumnIdentity
from airflow_flinkcompat.exec_graph.exec_node import (
    ROWTIME,
    CompiledPlan,
    ExecNode,
    PlanError,
    call_function,
    time_attribute,
)
from airflow_flinkcompat.exec_graph.facets import BARE, COLUMN_INDEPENDENT, WAITING
from airflow_flinkcompat.exec_graph.kinds import ExecKind, OperatorKind, SinkOperator, Trait
from airflow_flinkcompat.exec_graph.layout import CallPart, StateLayout, Unknown
from airflow_flinkcompat.exec_graph.model import LAYOUT, MEANING, UNSURE, ExecGraph, StateKind, StateSpec
from airflow_flinkcompat.exec_graph.nodes import layout
from airflow_flinkcompat.exec_graph.nodes.accumulators import call_over
from airflow_flinkcompat.exec_graph.nodes.lookup_join import lookup_identifier
from airflow_flinkcompat.exec_graph.nodes.sink import (
    enforces,
    has_rowtime,
    keeps_rows,
    sink_identifier,
    waits_for_watermarks,
)
from airflow_flinkcompat.exec_graph.operator_ids import StreamGraph, StreamNode
from airflow_flinkcompat.exec_graph.outputs import Columns, column_uses, columns_of_call, outputs_of
from airflow_flinkcompat.exec_graph.states import CompiledOperator, operators
from airflow_flinkcompat.exec_graph.streams import is_sort_by_arrival
from airflow_flinkcompat.exec_graph.symbols import Symbols, joined
from airflow_flinkcompat.exec_graph.windows import meaning_without_window, sliced_window
from airflow_flinkcompat.plan.column_lineage import Composition, together

_SCAN = ExecKind.TABLE_SOURCE_SCAN
QUERY_SINK = "flinkcompat_query"
"""Table name of the stateless sink that this package adds to plan queries without INSERT."""


@dataclass(frozen=True)
class JobSettings:
    """Settings of a job that its compiled plan does not show.

    Attributes:
        chained: True if operators may be chained into one task (``pipeline.operator-chaining.enabled``). Operator
            ids depend on this setting (measured: settings-chaining-off).
        apart: The identifiers of tables whose parallelism differs from the job's parallelism. The operators of such a
            table are not chained to an adjacent operator (measured: unchained-tumble-having-p2).
        expires: True if idle state expires (``table.exec.state.ttl``). Plans do not show the time to live of every
            operator.
    """

    chained: bool = True
    apart: Set[str] = frozenset()
    expires: bool = False


DEFAULTS = JobSettings()


@dataclass(frozen=True)
class PlanFacts:
    """Facts about two scripts that compiled plans do not show; tables have the plans' identifiers.

    Attributes:
        stateless_sinks: Sinks without state.
        column_independent_sinks: Sinks whose state remains valid if the columns of their table change.
        identities: For each source, the rule that matches its columns between the two scripts.
        renamed: The old name of each renamed source table, by its new name.
        waiting: Tables whose lookups may be asynchronous.
        settings: The settings of the old job and of the new job.
    """

    stateless_sinks: Set[str] = frozenset()
    column_independent_sinks: Set[str] = frozenset()
    identities: Mapping[str, ColumnIdentity] | None = None
    renamed: Mapping[str, str] = field(default_factory=dict)
    waiting: Set[str] = frozenset()
    settings: tuple[JobSettings, JobSettings] = (DEFAULTS, DEFAULTS)


def job_graphs(
    old: Sequence[CompiledPlan], new: Sequence[CompiledPlan], facts: PlanFacts | None = None
) -> tuple[tuple[ExecGraph, ExecGraph], ...]:
    """Pairs of old and new exec graphs, one for each job; each pair shares one table of meanings.

    Jobs are paired by their sinks, or else in order. The result is empty if the jobs cannot be paired in either way.
    If jobs are only added or only removed, the other jobs are still paired.
    """
    facts = facts or PlanFacts()
    jobs = _paired(old, new)
    known = {name: after for after, before in facts.renamed.items() for name in (after, before)}
    tables = {**_table_names([one for one, _ in jobs], [other for _, other in jobs], known), **known}

    def graphs(job: tuple[CompiledPlan, CompiledPlan]) -> tuple[ExecGraph, ExecGraph]:
        symbols = Symbols()
        before, after = (
            job_state(
                compiled_state(plan, symbols, tables, facts.stateless_sinks, facts.identities, settings, facts.waiting),
                symbols,
                facts,
            )
            for plan, settings in zip(job, facts.settings, strict=True)
        )
        return before, after

    return tuple(map(graphs, jobs))


def _paired(old: Sequence[CompiledPlan], new: Sequence[CompiledPlan]) -> list[tuple[CompiledPlan, CompiledPlan]]:
    left, right = ({sinks_of(plan): plan for plan in side} for side in (old, new))
    distinct = len(left) == len(old) and len(right) == len(new)
    if distinct and (left.keys() <= right.keys() or right.keys() <= left.keys()):
        return [(plan, right[sinks]) for sinks, plan in left.items() if sinks in right]
    return list(zip(old, new, strict=True)) if len(old) == len(new) else []


def sinks_of(plan: CompiledPlan) -> tuple[str, ...]:
    """The identifiers of the tables that a job writes to, as in its plan."""
    return tuple(dict.fromkeys(sink_identifier(node) for node in plan.nodes if node.kind is ExecKind.SINK))


def sources_of(plans: Iterable[CompiledPlan]) -> list[str]:
    """The identifiers of the tables that jobs scan, as in their plans."""
    return list(dict.fromkeys(_scanned(node) for plan in plans for node in plan.nodes if node.kind is _SCAN))


def lookups_of(plans: Iterable[CompiledPlan]) -> list[str]:
    """The identifiers of the tables that jobs look up, as in their plans."""
    nodes = (node for plan in plans for node in plan.nodes if node.kind is ExecKind.LOOKUP_JOIN)
    return list(dict.fromkeys(map(lookup_identifier, nodes)))


def _table_names(old: Sequence[CompiledPlan], new: Sequence[CompiledPlan], known: Collection[str]) -> dict[str, str]:
    """Pair source tables that only one script reads, in order, because they may be renamed tables.

    Both tables of a pair get the name in the new script, because history may supply the state of the new job.
    """
    found: dict[str, str] = {}
    for tables in (sources_of, lookups_of):
        left, right = tables(old), tables(new)
        gone = [each for each in left if each not in {*right, *known}]
        come = [each for each in right if each not in {*left, *known}]
        found |= {name: after for before, after in zip(gone, come, strict=False) for name in (before, after)}
    return found


@dataclass(frozen=True, eq=False)
class CompiledGraph:
    """The operators of a compiled plan.

    Attributes:
        graph: The graph of all operators.
        of: For each node of the plan, the positions of its operators in the graph; empty for a node that becomes
            an edge.
    """

    graph: StreamGraph
    of: tuple[tuple[int, ...], ...]

    def id_of(self, node: ExecNode) -> str:
        """The id under which Flink stores the state of a node."""
        places = self.of[node.place]
        kinds = [self.graph.nodes[place].kind for place in places]
        held = next(
            (kinds.index(kind) for kind in (SinkOperator.MATERIALIZER, SinkOperator.WRITER) if kind in kinds), -1
        )
        return self.graph.ids[places[held]]


def compiled_graph(
    plan: CompiledPlan, stateless_sinks: Set[str] = frozenset(), settings: JobSettings = DEFAULTS
) -> CompiledGraph:
    """Derive the operators of a compiled plan, in the order in which Flink creates them."""
    made: list[StreamNode] = []
    of: list[tuple[int, ...]] = []
    out: list[tuple[tuple[int, bool], ...]] = []
    for node in plan.nodes:
        edges = tuple(edge for place in node.inputs for edge in out[place])
        first = len(made)
        for kind, chained in _operators(plan, node, stateless_sinks, settings.apart):
            chained = chained and settings.chained
            if len(made) > first:
                made.append(StreamNode(kind, (len(made) - 1,), chained))
            else:
                inputs = tuple(place for place, _ in edges)
                made.append(StreamNode(kind, inputs, chained and len(edges) == 1 and edges[0][1]))
        of.append(tuple(range(first, len(made))))
        if len(made) > first:
            out.append(((len(made) - 1, not (node.kind == _SCAN and _scanned(node) in settings.apart)),))
        else:  # a node without an operator becomes edges from its inputs
            out.append(tuple((place, chained and node.kind is not ExecKind.EXCHANGE) for place, chained in edges))
    return CompiledGraph(StreamGraph(tuple(made)), tuple(of))


def _operators(
    plan: CompiledPlan, node: ExecNode, stateless_sinks: Set[str], apart: Set[str]
) -> Iterator[tuple[OperatorKind, bool]]:
    """Yield the operators of a node, each with True if it may be chained to the previous operator."""
    if node.kind in (ExecKind.EXCHANGE, ExecKind.UNION) or is_sort_by_arrival(node):
        return
    if node.kind is ExecKind.MATCH:
        if _by_event_time(node, plan.nodes[node.inputs[0]]):
            yield SinkOperator.INSERTER, True
        yield node.kind, True
    elif node.kind is ExecKind.SINK:
        alone = sink_identifier(node) in apart
        if enforces(node):
            yield SinkOperator.ENFORCER, True
        if keeps_rows(node):
            if waits := waits_for_watermarks(node):
                yield SinkOperator.ASSIGNER, False
            yield SinkOperator.MATERIALIZER, waits
            alone = False  # the operators after the materializer have its parallelism
        if has_rowtime(plan.nodes[node.inputs[0]].types):
            yield SinkOperator.INSERTER, not alone
            alone = False
        yield SinkOperator.WRITER, not alone
        if sink_identifier(node) not in stateless_sinks:
            yield SinkOperator.COMMITTER, True
    else:
        yield node.kind, True


def _by_event_time(match: ExecNode, below: ExecNode) -> bool:
    order: Any = match.config.get("matchSpec", {}).get("orderBy", {}).get("fields") or ()
    return bool(order) and time_attribute(below.types[order[0]["index"]]) == ROWTIME


@dataclass(frozen=True, eq=False)
class CompiledState:
    """The stateful operators of a compiled plan, with their ids.

    Attributes:
        graph: The graph of all operators of the plan.
        plan: The compiled plan.
        operators: The stateful operators and all sinks, with their ids, in the order in which Flink hashes them.
    """

    plan: CompiledPlan
    graph: StreamGraph
    operators: tuple[tuple[str, CompiledOperator], ...]

    @cached_property
    def stateful_downstream(self) -> tuple[frozenset[CompiledOperator], ...]:
        """For each node of the plan, the stateful operators and sinks downstream of it."""
        of_nodes = {operator.node.place: operator for _, operator in self.operators}
        stateful_downstream: list[set[CompiledOperator]] = [set() for _ in self.plan.nodes]
        for node in reversed(self.plan.nodes):  # inputs precede their readers
            of_node = {of_nodes[node.place]} if node.place in of_nodes else set()
            for place in node.inputs:
                stateful_downstream[place] |= stateful_downstream[node.place] | of_node
        return tuple(map(frozenset, stateful_downstream))


def compiled_state(
    plan: CompiledPlan,
    symbols: Symbols,
    tables: Mapping[str, str],
    stateless_sinks: Set[str],
    identities: Mapping[str, ColumnIdentity] | None = None,
    settings: JobSettings = DEFAULTS,
    waiting: Set[str] = frozenset(),
) -> CompiledState:
    """Derive the stateful operators of a compiled plan and their ids."""
    if settings.expires:
        plan = replace(plan, nodes=tuple(map(_with_time_to_live, plan.nodes)))
    try:
        made = compiled_graph(plan, stateless_sinks, settings)
        found = operators(plan, symbols, tables, frozenset(stateless_sinks), identities, waiting)
    except PlanError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
        raise PlanError(f"an operator of the compiled plan has an unknown form ({error!r})") from None
    hashed = {place: number for number, place in enumerate(made.graph.order)}
    found.sort(key=lambda operator: hashed[made.of[operator.node.place][0]])
    return CompiledState(plan, made.graph, tuple((made.id_of(operator.node), operator) for operator in found))


def _with_time_to_live(node: ExecNode) -> ExecNode:
    """Add a time to live to a node whose JSON never shows one."""
    lives = {"state": [{"ttl": "of the job"}]}
    return replace(node, config={**node.config, **lives}) if Trait.HIDES_TTL in node.kind.traits else node


def _scanned(scan: ExecNode) -> str:
    return str(scan.config["scanTableSource"]["table"]["identifier"])


_NAMES: Mapping[StateKind, Callable[[ExecNode], str]] = {
    StateKind.POSITIONS: _scanned,
    StateKind.SINK: sink_identifier,
    StateKind.OPERATOR: lambda operator: operator.kind,
}
_IN_LAYOUT = frozenset(("keys", "aggregates", "stored columns", "leftUpsertKeys", "rightUpsertKeys"))
"""Facets that the layout of a state already describes."""


def job_state(compiled: CompiledState, symbols: Symbols, facts: PlanFacts | None = None) -> ExecGraph:
    """The exec graph of a job with the state of its operators."""
    facts = facts or PlanFacts()
    specs = [
        (each.keeps, replace(_spec(id, each, symbols, compiled), conditions=_conditions(each, facts)))
        for id, each in compiled.operators
    ]
    return ExecGraph(
        (compiled.graph,),
        tuple(spec for keeps, spec in specs if keeps),
        tuple(spec for keeps, spec in specs if not keeps),
        sinks_of(compiled.plan),
        symbols,
    )


def _conditions(operator: CompiledOperator, facts: PlanFacts) -> frozenset[str]:
    node = operator.node
    if node.kind is ExecKind.LOOKUP_JOIN:
        return frozenset({WAITING} if lookup_identifier(node) in facts.waiting else ())
    if node.kind is not ExecKind.SINK:
        return frozenset()
    bare = () if keeps_rows(node) else (BARE,)
    independent = sink_identifier(node) in {*facts.stateless_sinks, *facts.column_independent_sinks}
    return frozenset((*bare, COLUMN_INDEPENDENT) if independent else bare)


def _kind(node: ExecNode) -> StateKind:
    return {_SCAN: StateKind.POSITIONS, ExecKind.SINK: StateKind.SINK}.get(node.kind, StateKind.OPERATOR)


def _spec(number: str, operator: CompiledOperator, symbols: Symbols, compiled: CompiledState) -> StateSpec:
    node = operator.node
    kind = _kind(node)
    stored = layout(node, operator.inputs, symbols)
    if isinstance(stored, StateLayout):
        stored = stored.with_compositions(partial(_composition, symbols))
    # A known layout of a sink describes each column; an unknown layout describes nothing.
    said = _IN_LAYOUT | ({"declaration"} if isinstance(stored, StateLayout) else set())
    means = {MEANING}
    if isinstance(stored, Unknown) or (stored is None and kind is StateKind.OPERATOR):
        said, means = frozenset(), {MEANING, LAYOUT}
    meaning, unmeasured_properties = (
        tuple((name, value) for (effect, name), value in operator.facets.items() if effect in of and name not in said)
        for of in (means, {UNSURE})
    )
    name = _NAMES[kind](node)
    further = _after_in_sink(number, compiled.graph) if kind is StateKind.SINK else ()
    spec = StateSpec(kind, name, number, stored, meaning, unmeasured_properties, further)
    stateful_downstream = compiled.stateful_downstream[node.place]
    spec = replace(
        spec,
        sinks=frozenset(sink_identifier(each.node) for each in stateful_downstream if each.node.kind is ExecKind.SINK),
        rows=operator.facets.get((MEANING, "rows below")),
        compiled=(compiled.plan, node.place),
        facets=operator.facets,
    )
    if kind is StateKind.POSITIONS:
        options = node.config["scanTableSource"]["table"].get("resolvedTable", {}).get("options", {})
        above = Counter(
            (_NAMES[_kind(each.node)](each.node), each.facets.get((MEANING, "rows below")))
            for each in stateful_downstream
        )
        spec = replace(spec, reads=(operator.rows, frozenset(options.items()), frozenset(above.items())))
    if Trait.AGGREGATES in node.kind.traits:
        spec = _with_what_may_change(spec, operator, symbols)
    if node.kind is ExecKind.OVER_AGGREGATE or Trait.AGGREGATES in node.kind.traits:
        return _with_outputs(spec, operator, symbols, compiled.plan)
    return _with_columns(spec, operator, compiled.plan) if kind is StateKind.OPERATOR and operator.inputs else spec


def _composition(symbols: Symbols, meaning: Hashable) -> Composition | None:
    """The table columns from which a field with this meaning is computed."""
    match meaning:
        case CallPart():
            return symbols.composition_of_call(meaning.over)
        case (("distinct", tuple(users)), _):
            return together(symbols.composition_of_call(over) for _, over in users)
    return symbols.composition(meaning)


def _with_what_may_change(spec: StateSpec, operator: CompiledOperator, symbols: Symbols) -> StateSpec:
    """Add the meaning of an aggregation without its filter, and without its window."""

    def meaning(changed: str, change: Callable[[Hashable], Hashable]) -> Hashable:
        return tuple(
            (name, change(value) if name == changed else value)
            for (effect, name), value in operator.facets.items()
            if effect is MEANING and name not in _IN_LAYOUT
        )

    return replace(
        spec,
        meaning_without_filter=meaning(
            "rows below", lambda rows: symbols.meaning_without_filter(rows) if isinstance(rows, int) else rows
        ),
        windows=sliced_window(operator.facets[MEANING, "window"]),
        meaning_without_window=meaning("window", meaning_without_window),
    )


def _with_outputs(spec: StateSpec, operator: CompiledOperator, symbols: Symbols, plan: CompiledPlan) -> StateSpec:
    """Add to an operator the sets of aggregate calls from which one value is computed."""
    node, read = operator.node, operator.inputs[0].before or operator.inputs[0]
    over = node.config.get("overSpec")
    # An OVER outputs its input columns, then its calls. An aggregation outputs its keys, then its calls.
    first = len(read.types) if over else len(node.config["grouping"])
    asked = [call for group in over["groups"] for call in group["aggCalls"]] if over else node.config["aggCalls"]
    calls = {first + place: (call_function(call), call_over(call, read, symbols)) for place, call in enumerate(asked)}
    spec = _with_computed(spec, node, calls, plan)
    if not over:  # an aggregation stores no rows
        return spec
    columns: dict[int, Set[Hashable]] = {place: {symbol} for place, symbol in enumerate(read.symbols)}
    columns |= {first + place: {read.at(each) for each in columns_of_call(call)} for place, call in enumerate(asked)}
    return _with_sink_columns(spec, node, columns, plan)


def _with_columns(spec: StateSpec, operator: CompiledOperator, plan: CompiledPlan) -> StateSpec:
    """Add to an operator with stored rows the sets of columns from which one value is computed."""
    meanings = dict(enumerate(joined(operator.inputs).symbols))
    spec = _with_computed(spec, operator.node, meanings, plan)
    return _with_sink_columns(spec, operator.node, {place: {each} for place, each in meanings.items()}, plan)


def _with_sink_columns(
    spec: StateSpec, node: ExecNode, meanings: Mapping[int, Set[Hashable]], plan: CompiledPlan
) -> StateSpec:
    """Add each sink column with the stored columns from which it is computed."""
    outputs = (
        (name, frozenset[Hashable]().union(*(meanings.get(place, frozenset()) for place in columns)))
        for name, columns in outputs_of(plan, node)
    )
    return replace(spec, outputs=frozenset((name, of) for name, of in outputs if of))


def _with_computed(spec: StateSpec, node: ExecNode, meanings: Mapping[int, Hashable], plan: CompiledPlan) -> StateSpec:
    """Add the stored values that downstream operators combine into one value or use as a filter."""

    def of(columns: Columns) -> frozenset[Hashable]:
        return frozenset(meanings[place] for place in columns if place in meanings)

    co_dependent_calls, filtering_calls = column_uses(plan, node)
    return replace(spec, co_dependent_calls=frozenset(map(of, co_dependent_calls)), filtering_calls=of(filtering_calls))


def _after_in_sink(holder: str, graph: StreamGraph) -> tuple[str, ...]:
    """The ids of the writer and committers after the operator with a sink's state."""
    found: list[str] = []
    waiting = [graph.ids.index(holder)]
    while waiting:
        for reader in graph.readers[waiting.pop(0)]:
            waiting.append(reader)
            if graph.nodes[reader].kind is not SinkOperator.INSERTER:
                found.append(graph.ids[reader])
    return tuple(found)
