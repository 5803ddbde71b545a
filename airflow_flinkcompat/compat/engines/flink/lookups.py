"""Engine ``flink``: asynchronous lookup joins, which store the rows that wait for an answer.

The savepoint contains the queue with the serializer of the input row, even if the queue is empty (measured).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TypeGuard

from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.changes.query_form import OPTIONS, hint_options
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import LookupSupport
from airflow_flinkcompat.exec_graph.nodes.lookup_join import computed_in_front
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    Output,
    Source,
    operators,
    segments,
)
from airflow_flinkcompat.plan.program import Program

MAY_WAIT = (
    "this lookup may be asynchronous and store rows that wait for an answer: its connector, lookup.async and the "
    "LOOKUP hint do not determine the mode"
)
_OPTION = "lookup.async"


class LookupMode(StrEnum):
    """Mode of a lookup join: one row at a time, or several concurrent rows that wait in a queue."""

    SYNCHRONOUS = "synchronous"
    ASYNCHRONOUS = "asynchronous"
    NOT_KNOWN = "not known"


STRATEGY = "table.optimizer.non-deterministic-update.strategy"
"""With ``TRY_RESOLVE``, a lookup for changing rows stores its results (Flink's page on lookup joins)."""


def is_lookup(operator: object) -> bool:
    """True if an operator is a lookup join."""
    return isinstance(operator, JoinOperator) and operator.form is JoinForm.LOOKUP


def keeps_nothing(operator: Operator, output: Output, program: Program) -> bool:
    """True if an operator is a lookup join that certainly stores no state."""
    resolved = any(dict(each.settings).get(STRATEGY, "").upper() == "TRY_RESOLVE" for each in program.pipelines)
    return is_lookup(operator) and not resolved and mode(operator, output, program) is LookupMode.SYNCHRONOUS


def from_windows(operator: object) -> TypeGuard[JoinOperator]:
    """True if an operator is a lookup join over a windowed aggregation, which only emits inserts."""
    if not isinstance(operator, JoinOperator) or not is_lookup(operator):
        return False
    below = operator.segments[0].origin
    return isinstance(below, AggregateOperator) and below.windowed


def mode(operator: Operator, output: Output, program: Program) -> LookupMode:
    """The lookup mode of a join by its connector, its table's options and the LOOKUP hint."""
    looked_up = operator.segments[1].origin
    table = program.table(looked_up.table) if isinstance(looked_up, Source) else None
    if table is None or not isinstance(looked_up, Source):
        return LookupMode.NOT_KNOWN
    support = registry.lookup(table.option("connector")).support
    if support is LookupSupport.SYNCHRONOUS:
        return LookupMode.SYNCHRONOUS
    given = dict(hint_options(looked_up.hints, OPTIONS)).get(_OPTION, table.option(_OPTION))
    if support is LookupSupport.BY_OPTION:
        return _mode_of_values({given or "false"})
    asked = {value for key, value in _hinted(output) if key == "async"}
    if asked and sum(map(is_lookup, operators(output))) > 1:
        return LookupMode.NOT_KNOWN  # the hint may be for a different lookup join
    return _mode_of_values(asked | ({given} if given else set()))


def modes(pair: OperatorPair) -> tuple[LookupMode, LookupMode]:
    """The lookup mode of a join on the old and on the new side."""
    pipeline = pair.pipeline
    return mode(pair.old, pipeline.old, pipeline.old_program), mode(pair.new, pipeline.new, pipeline.new_program)


def possible_modes(pair: OperatorPair) -> tuple[tuple[LookupMode, LookupMode], ...]:
    """The possible pairs of old and new lookup mode of a join.

    Even if the connector is unknown, both sides have the same mode if nothing changed that may determine the mode. If
    no possible pair is known, the result is empty.
    """
    found = modes(pair)
    if LookupMode.NOT_KNOWN not in found:
        return (found,)
    pipeline = pair.pipeline
    sides = (pair.old, pipeline.old, pipeline.old_program), (pair.new, pipeline.new, pipeline.new_program)
    old, new = (_deciding(*side) for side in sides)
    known = LookupMode.SYNCHRONOUS, LookupMode.ASYNCHRONOUS
    return tuple((each, each) for each in known) if old == new is not None else ()


def _deciding(operator: Operator, output: Output, program: Program) -> tuple[object, ...] | None:
    """Facts that may decide the lookup mode; None if the table is not declared."""
    looked_up = operator.segments[1].origin
    table = program.table(looked_up.table) if isinstance(looked_up, Source) else None
    if table is None or not table.declared or not isinstance(looked_up, Source):
        return None
    return table.option("connector"), table.option(_OPTION), looked_up.hints, tuple(_hinted(output))


def computes_alike(pair: OperatorPair) -> bool:
    """True if both sides compute the same columns before a lookup join, which stores them."""
    sides = (pair.old, pair.pipeline.old), (pair.new, pair.pipeline.new)
    old, new = (
        computed_in_front(each, output.segment.filters) if isinstance(each, JoinOperator) else None
        for each, output in sides
    )
    return old == new


def modes_of_unpaired(pair: PipelinePair) -> tuple[frozenset[LookupMode], frozenset[LookupMode]]:
    """The modes of the removed and of the added lookup joins in a query."""
    return (
        frozenset(mode(each, pair.old, pair.old_program) for each in pair.removed if is_lookup(each)),
        frozenset(mode(each, pair.new, pair.new_program) for each in pair.added if is_lookup(each)),
    )


def _mode_of_values(values: set[str]) -> LookupMode:
    match {value.lower() for value in values}:
        case said if said == {"true"}:
            return LookupMode.ASYNCHRONOUS
        case said if said == {"false"}:
            return LookupMode.SYNCHRONOUS
    return LookupMode.NOT_KNOWN


def _hinted(output: Output) -> Iterator[tuple[str, str]]:
    for segment in segments(output):
        yield from hint_options(segment.hints, "LOOKUP")
