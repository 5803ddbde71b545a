"""The exec graph of a job with the state of its operators, and the effects of a restore."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum

from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan
from airflow_flinkcompat.exec_graph.from_planner import CONNECTOR_BASES, PlannedOperator, SubmittedJob
from airflow_flinkcompat.exec_graph.layout import StateLayout, Unknown
from airflow_flinkcompat.exec_graph.operator_ids import StreamGraph
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.model import Consequence


class RestoreEffect(StrEnum):
    """Effect of a restore from a plain or migrated savepoint on one state, worst first."""

    REFUSED_AT_SUBMIT = "no operator has its id: the savepoint is refused at submit"
    REFUSED_AT_RESTORE = "its operator stores something else: the restore fails"
    SILENTLY_WRONG = "its operator stores alike and means something else"
    NOT_MIGRATABLE = "cannot be kept"
    DROPPED = "dropped"
    UNKNOWN = "unknown"
    EMPTY = "begins empty"
    COMPUTED = "computed from history"
    REWRITTEN = "rewritten field by field"
    MOVED = "carried to another identity"
    RIGHT = "carried as it is"

    @property
    def consequence(self) -> Consequence | None:
        """The consequence for the whole restore; None if this effect alone does not decide it."""
        return _CONSEQUENCES.get(self)


_CONSEQUENCES = {
    RestoreEffect.REFUSED_AT_SUBMIT: Consequence.REFUSED_AT_SUBMIT,
    RestoreEffect.REFUSED_AT_RESTORE: Consequence.REFUSED_AT_RESTORE,
    RestoreEffect.SILENTLY_WRONG: Consequence.SILENTLY_WRONG,
    RestoreEffect.DROPPED: Consequence.SILENTLY_WRONG,
}
FAILING_EFFECTS = frozenset(_CONSEQUENCES)
"""Effects of restores in which the state does not fit the operator."""
LAYOUT, MEANING, UNSURE = RestoreEffect.REFUSED_AT_RESTORE, RestoreEffect.SILENTLY_WRONG, RestoreEffect.UNKNOWN
"""Effects of a facet that differs: on the layout, on the meaning, or possibly harmless."""
MERGING_WINDOWS = "window state"
"""Facet of state with merging windows. The restore of such state fails although all serializers fit."""
Facets = dict[tuple[RestoreEffect, str], Hashable]
"""The facets of an operator, by effect of a difference and by name."""


class StateKind(StrEnum):
    """The owner of a state."""

    POSITIONS = "positions of a source"
    OPERATOR = "state of an operator"
    SINK = "state of a sink"


@dataclass(frozen=True)
class StateSpec:
    """The state of one operator of a job.

    Attributes:
        kind: The owner of the state.
        name: The operator's name in compiled plans; for a source or sink, its table.
        id: The operator id under which Flink stores the state; "" if unknown.
        layout: The layout of keyed state; None if there is no keyed state or its layout is not known.
        meaning: Facts that determine the content of the fields, such as windows and input rows.
        unmeasured_properties: Facts that may also determine the content of the fields. If these facts differ between
            two jobs, the effect is unknown.
        further_ids: The ids of other operators of a sink: the writer after a materializer, and committers.
        meaning_without_filter: An aggregation's meaning without the conditions on its input rows.
        windows: An aggregation's windows, if they are stored in slices by event time.
        meaning_without_window: An aggregation's meaning without its windows.
        co_dependent_calls: Sets of aggregate calls from which one output value is computed.
        filtering_calls: The aggregate calls that filter the results.
        reads: A source's rows, its options, and the operators that read it.
        sinks: The names of the sinks downstream, if a compiled plan shows them.
        rows: The input rows of an operator, if a compiled plan shows them.
        outputs: Sink columns, each with the meanings of the operator's columns from which it is computed.
        compiled: The compiled plan and the position of the operator's node; None without a compiled plan.
        facets: The facets that determine the state.
        conditions: The conditions of ``facets.toml`` that the node meets.
        planned: The operator that Flink's planner would submit; None without a planner.
    """

    kind: StateKind
    name: str
    id: str = ""
    layout: StateLayout | Unknown | None = None
    meaning: Hashable = None
    unmeasured_properties: Hashable = None
    further_ids: tuple[str, ...] = ()
    meaning_without_filter: Hashable = field(default=None, compare=False)
    windows: SlicedWindow | None = field(default=None, compare=False)
    meaning_without_window: Hashable = field(default=None, compare=False)
    co_dependent_calls: frozenset[frozenset[Hashable]] = field(default=frozenset(), compare=False)
    filtering_calls: frozenset[Hashable] = field(default=frozenset(), compare=False)
    reads: Hashable = field(default=None, compare=False)
    sinks: frozenset[str] = field(default=frozenset(), compare=False)
    rows: Hashable = field(default=None, compare=False)
    outputs: frozenset[tuple[str, frozenset[Hashable]]] = field(default=frozenset(), compare=False)
    compiled: tuple[CompiledPlan, int] | None = field(default=None, compare=False, repr=False)
    facets: Facets = field(default_factory=dict, compare=False, repr=False)
    conditions: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    planned: PlannedOperator | None = field(default=None, compare=False, repr=False)

    @property
    def operator(self) -> str:
        """The kind of the exec node; without a compiled plan, the name of the state."""
        return self.compiled[0].nodes[self.compiled[1]].kind if self.compiled else self.name

    @property
    def description(self) -> str:
        """Flink's description of the exec node; "" without a compiled plan."""
        return self.compiled[0].nodes[self.compiled[1]].description if self.compiled else ""


@dataclass(frozen=True)
class ExecGraph:
    """The operators of a job with the state that they keep.

    Attributes:
        graphs: The possible operator graphs; several if Flink's plan is uncertain.
        specs: The states of the operators, sources first.
        bare_sinks: The stateless sinks of a compiled plan.
        sinks: The names of all sinks in a compiled plan.
        symbols: The table of meanings that both jobs of a diff share; None without facets to compare.
        submitted: The job that Flink's planner would submit; None without a planner.
    """

    graphs: tuple[StreamGraph, ...]
    specs: tuple[StateSpec, ...]
    bare_sinks: tuple[StateSpec, ...] = ()
    sinks: tuple[str, ...] = ()
    symbols: Symbols | None = field(default=None, compare=False, repr=False)
    submitted: SubmittedJob | None = field(default=None, compare=False, repr=False)

    def has_operator(self, operator_id: str) -> bool | None:
        """True if an operator of the job has this id; None if that is uncertain."""
        if self.submitted is not None:
            return any(each.id == operator_id for each in self.submitted.operators)
        found = {operator_id in graph.ids for graph in self.graphs}
        return found.pop() if len(found) == 1 else None


@dataclass(frozen=True)
class StateEffect:
    """The effect of a restore on one state.

    Attributes:
        effect: The effect.
        operator: The operator that keeps the state.
        facets: The facets that differ, in Flink's words.
        before: A description of the old operator.
        after: A description of the new operator.
        sinks: The sinks downstream of the operator, if known.
        evidence: Restores that returned the right rows although these facets differed.
        message: A sentence about the effect; "" if the facets are enough.
        old: The state of the old job, if it was derived.
        new: The state of the new job, if it was derived.
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

    @property
    def id(self) -> str:
        """The id of the operator in the old job, or else in the new job; "" if unknown."""
        spec = self.old or self.new
        return "" if spec is None else spec.id

    @property
    def is_of_connector(self) -> bool:
        """True if a connector keeps the state, so that Flink's planner does not read it."""
        spec = self.old or self.new
        return spec is not None and spec.planned is not None and spec.planned.basis in CONNECTOR_BASES


@dataclass(frozen=True)
class Restore:
    """The effects of a plain restore, one for each state or each group of facets that differ."""

    states: tuple[StateEffect, ...] = ()

    @property
    def worst_effect(self) -> RestoreEffect:
        """The worst effect; ``RIGHT`` if nothing is stored."""
        found = (each.effect for each in self.states)
        return min(found, key=tuple(RestoreEffect).index, default=RestoreEffect.RIGHT)

    @property
    def stored(self) -> Restore:
        """The effects on states of the old job, without states that only the new job has."""
        return Restore(tuple(each for each in self.states if each.effect is not RestoreEffect.EMPTY))

    @property
    def refusal(self) -> StateEffect | None:
        """The effect for which Flink refuses the savepoint; None if Flink refuses nothing."""
        refused = RestoreEffect.REFUSED_AT_SUBMIT, RestoreEffect.REFUSED_AT_RESTORE
        return next(iter(self.having(*refused)), None)

    @property
    def differences(self) -> tuple[StateEffect, ...]:
        """Every effect except ``RIGHT``."""
        return tuple(each for each in self.states if each.effect is not RestoreEffect.RIGHT)

    def having(self, *effects: RestoreEffect) -> tuple[StateEffect, ...]:
        """The states with one of these effects."""
        return tuple(each for each in self.states if each.effect in effects)


NOTHING = Restore()
"""The restore of a job that stores nothing."""
