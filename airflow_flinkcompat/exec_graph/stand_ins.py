"""Operator ids of a job whose sinks have stand-ins.

Flink numbers all operators of a job, and derives ids from these numbers. A stand-in may consist of fewer or more
operators than the real sink. So the other operators of the job may have different ids than in the real job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan
from airflow_flinkcompat.exec_graph.from_compiled import CompiledGraph, JobSettings, compiled_graph, sinks_of
from airflow_flinkcompat.exec_graph.kinds import OperatorKind, SinkOperator

_OF_SINKS = (SinkOperator.WRITER, SinkOperator.COMMITTER)


class StandIns(Enum):
    """Kinds of stand-ins for the sinks of a job."""

    IDLE = "the job reads no rows, and sinks that print stay"
    DISCARDING = "one operator, which discards rows"
    STORING = "two operators, which write rows into files"


@dataclass(frozen=True)
class StandInIds:
    """The operator ids of a job with real sinks, and with stand-ins.

    Attributes:
        ids: For each operator of the query, its id with stand-ins, by its real id.
        stand_ins: The ids of the operators of the stand-ins.
    """

    ids: Mapping[str, str]
    stand_ins: Set[str]

    @property
    def differ(self) -> bool:
        """True if an operator of the query has a different id with stand-ins."""
        return any(real != other for real, other in self.ids.items())

    def with_stand_ins(self, id: str) -> str:
        """The id of an operator in the job with stand-ins.

        The job has no operator with the resulting id if ``id`` belongs to a real sink or to a different job.
        """
        return self.ids[id] if id in self.ids else self._unclaimed(id)

    def real(self, id: str) -> str | None:
        """The id of an operator in the job with real sinks; None for an operator of a stand-in."""
        if id in self.stand_ins:
            return None
        return self._real[id] if id in self._real else self._unclaimed(id)

    def all_real(self, ids: Iterable[str]) -> frozenset[str]:
        """The ids in the job with real sinks, without those of stand-ins."""
        return frozenset(real for each in ids if (real := self.real(each)) is not None)

    @cached_property
    def _real(self) -> Mapping[str, str]:
        return {other: real for real, other in self.ids.items()}

    def _unclaimed(self, id: str) -> str:
        """An id that no operator of the job with stand-ins has. The second call returns the first id."""
        other = f"{int(id, 16) ^ (1 << 128) - 1:032x}"
        return id if {id, other}.isdisjoint(self._real.keys() | self.stand_ins) else other


IdsByStandIns = Mapping[StandIns, StandInIds]
"""The operator ids of a job with each kind of stand-ins."""
UNKNOWN_IDS: IdsByStandIns = dict.fromkeys(StandIns, StandInIds({}, frozenset()))
"""Unchanged ids, for a job whose plan is unknown."""


def stand_in_ids(
    plan: CompiledPlan, stateless_sinks: Set[str], printing: Set[str], settings: JobSettings
) -> IdsByStandIns:
    """Derive the operator ids of a job with each kind of stand-ins.

    Args:
        plan: The compiled plan of the job with its real sinks.
        stateless_sinks: The identifiers of sinks that consist of one operator without state.
        printing: The identifiers of sinks that print rows.
        settings: The settings of the job that the plan does not show.

    Returns:
        The ids with stand-ins and the real ids, by kind of the stand-ins.
    """
    real = compiled_graph(plan, stateless_sinks, settings)
    found = {}
    for kind in StandIns:
        replaced = {*sinks_of(plan)} - (printing if kind is StandIns.IDLE else set())
        single = stateless_sinks - replaced | (replaced if kind is not StandIns.STORING else set())
        # A stand-in has no parallelism of its own.
        other = compiled_graph(plan, single, replace(settings, apart=settings.apart - replaced))
        found[kind] = _paired(real, other)
    return found


def _paired(real: CompiledGraph, other: CompiledGraph) -> StandInIds:
    ids: dict[str, str] = {}
    for mine, theirs in zip(real.of, other.of, strict=True):
        counterparts = dict(_of_kinds(other, theirs))
        ids |= {id: counterparts[kind] for kind, id in _of_kinds(real, mine) if kind not in _OF_SINKS}
    return StandInIds(ids, {*other.graph.ids} - {*ids.values()})


def _of_kinds(graph: CompiledGraph, places: tuple[int, ...]) -> Iterator[tuple[OperatorKind, str]]:
    return ((graph.graph.nodes[place].kind, graph.graph.ids[place]) for place in places)
