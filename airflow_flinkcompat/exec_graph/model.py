"""What a job keeps, whoever tells it: the plan of its script or one that Flink compiled."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum

from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan
from airflow_flinkcompat.exec_graph.layout import StateLayout, Unknown
from airflow_flinkcompat.exec_graph.operator_ids import StreamGraph
from airflow_flinkcompat.exec_graph.windows import SlicedWindow


class StateKind(StrEnum):
    """Who keeps a state."""

    POSITIONS = "positions of a source"
    OPERATOR = "state of an operator"
    SINK = "state of a sink"


@dataclass(frozen=True)
class StateSpec:
    """What one operator of a job keeps.

    Attributes:
        kind: Who keeps it.
        name: The operator in the words of compiled plans; of a source or sink its table.
        id: The id under which Flink stores it; "" where it is not known.
        layout: How what is kept by key is stored; None of what keeps nothing by key, or where nobody said.
        meaning: What decides beside the fields what stands in them, such as windows and the rows that come in.
        unverified: What may decide it too: the same where it is equal, not known where it differs.
        further_ids: The ids of further operators of a sink: the writer after a materializer, and those that commit.
        meaning_without_filter: Of an aggregation its meaning without the conditions on the rows that come in.
        windows: Of an aggregation its windows, where they are kept in slices of event time.
        meaning_without_window: Of an aggregation its meaning without which windows they are.
        jointly_used: Of an aggregation the calls of which one output each is computed.
        filtering: The calls that decide which of its results go on.
        reads: Of a source the rows it reads, with all options, and what it feeds.
        sinks: The names of the tables that rows of it come to, as far as a compiled plan tells them.
        rows: Of an operator the rows that come in, as far as a compiled plan tells them.
        outputs: Columns of sinks, each with the meanings of the operator's columns that it is computed of.
        compiled: The compiled plan that holds it and the place of its node there; None where there is none.
    """

    kind: StateKind
    name: str
    id: str = ""
    layout: StateLayout | Unknown | None = None
    meaning: Hashable = None
    unverified: Hashable = None
    further_ids: tuple[str, ...] = ()
    meaning_without_filter: Hashable = field(default=None, compare=False)
    windows: SlicedWindow | None = field(default=None, compare=False)
    meaning_without_window: Hashable = field(default=None, compare=False)
    jointly_used: frozenset[frozenset[Hashable]] = field(default=frozenset(), compare=False)
    filtering: frozenset[Hashable] = field(default=frozenset(), compare=False)
    reads: Hashable = field(default=None, compare=False)
    sinks: frozenset[str] = field(default=frozenset(), compare=False)
    rows: Hashable = field(default=None, compare=False)
    outputs: frozenset[tuple[str, frozenset[Hashable]]] = field(default=frozenset(), compare=False)
    compiled: tuple[CompiledPlan, int] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ExecGraph:
    """What a job keeps.

    Attributes:
        graphs: Its operators. Several where it is not certain which of them Flink plans.
        specs: What they keep, sources first.
    """

    graphs: tuple[StreamGraph, ...]
    specs: tuple[StateSpec, ...]

    def has_operator(self, operator_id: str) -> bool | None:
        """Whether an operator of the job has an id."""
        found = {operator_id in graph.ids for graph in self.graphs}
        return found.pop() if len(found) == 1 else None
