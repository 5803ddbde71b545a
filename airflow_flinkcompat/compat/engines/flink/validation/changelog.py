"""Changelog support: the changes that a query emits, and those that its sink accepts.

The check reproduces ``FlinkChangelogModeInferenceProgram`` of Flink's planner. Each operator behaves as in the planner
of Flink 2.3.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from airflow_flinkcompat.compat.changes import settings
from airflow_flinkcompat.compat.engines.flink.ranking import appends_only
from airflow_flinkcompat.compat.engines.flink.validation import Fault
from airflow_flinkcompat.compat.engines.flink.validation.tables import value_format
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import KeyDemand, Known
from airflow_flinkcompat.connectors.registry import FORMATS
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import (
    AggregateKind,
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    OtherKind,
    OtherOperator,
    Output,
    OverOperator,
    RankKind,
    RankOperator,
    Source,
    StatelessSegment,
    segments,
)
from airflow_flinkcompat.plan.program import Pipeline, Program

_OUTER = ("LEFT", "RIGHT", "FULL")


_AS_THEIR_INPUTS = (OtherKind.UNION_ALL, OtherKind.LIMIT)


def changelog_faults(output: Output, pipeline: Pipeline, program: Program, sink: Table) -> Iterator[Fault]:
    """The fault of an INSERT whose results may change, if the sink may not accept changes."""
    if dict(pipeline.settings).get("execution.runtime-mode", "").lower() in ("batch", "automatic"):
        return
    change, takes = changes(output.segment, pipeline, program), takes_changes(sink)
    if change is Known.NO or takes is Known.YES:
        return
    certain = change is Known.YES and takes is Known.NO
    results = "the query updates its results" if change is Known.YES else "the query may update its results"
    if certain:
        taken = f"but sink {sink.name} ({sink.option('connector')}) accepts updates only by a primary key"
        if registry.sink(sink.option("connector")).upserts is Known.NO:
            taken = f"but sink {sink.name} ({sink.option('connector')}) accepts only inserts"
            yield Fault("changing results", f"{results}, {taken}; write them to a sink that accepts updates")
            return
        yield Fault("changing results", f"{results}, {taken}; declare PRIMARY KEY (…) NOT ENFORCED")
        return
    doubted = sink.name if takes is Known.NOT_KNOWN else undescribed_source(output, program)
    message = f"{results}, but sink {sink.name} may not accept updates"
    yield Fault("changing results", message, certain=False, undescribed=doubted)


def undescribed_source(output: Output, program: Program) -> str:
    """The first source table that may or may not emit changes; "" if there is none."""
    read = (each for each in segments(output) if isinstance(each.origin, Source))
    doubted = (each.origin for each in read if _of_source(each, program) is Known.NOT_KNOWN)
    return next((origin.table for origin in doubted if isinstance(origin, Source)), "")


def takes_changes(sink: Table) -> Known:
    """Known.YES if a sink accepts updating results."""
    connector = sink.option("connector")
    facts = registry.sink(connector)
    if facts.updates is Known.YES or (facts.upserts is Known.YES and sink.primary_key):
        return Known.YES
    if name := value_format(sink):
        format = FORMATS.get(name)
        if format is None:
            return Known.NOT_KNOWN
        if format.appends is Known.NO and facts.upserts is Known.NO:
            return Known.YES
    if facts.upserts is Known.NO:
        return facts.updates
    if facts.primary_key is KeyDemand.ALWAYS:  # Flink refuses such a table without a primary key for every result
        return Known.YES
    return Known.NO if facts.primary_key is KeyDemand.FOR_UPDATES else Known.NOT_KNOWN


def changes(segment: StatelessSegment, pipeline: Pipeline, program: Program) -> Known:
    """Known.YES if output rows of a segment may be retracted or updated."""
    match segment.origin:
        case Source():
            return _of_source(segment, program)
        case AggregateOperator() as operator:
            return _of_aggregation(operator, pipeline)
        case RankOperator() as operator:
            return _of_ranking(operator, pipeline, program)
        case JoinOperator() as operator:
            return _of_join(operator, pipeline, program)
        case OverOperator() as operator:
            return changes(operator.segment, pipeline, program)
        case OtherOperator(kind=OtherKind.MATCH_RECOGNIZE):
            return Known.NO
        case OtherOperator(kind=OtherKind.SORT_LIMIT):
            return Known.YES
        case OtherOperator() as operator if operator.kind in _AS_THEIR_INPUTS:
            return _worst(changes(each, pipeline, program) for each in operator.segments)
        case Operator():
            return Known.NOT_KNOWN
    return Known.NO


def _of_source(segment: StatelessSegment, program: Program) -> Known:
    origin = segment.origin
    if appends_only(segment, program) or not isinstance(origin, Source):
        return Known.NO
    table = program.table(origin.table)
    if table is None or origin.hints:
        return Known.NOT_KNOWN
    if registry.source(table.option("connector")).appends is Known.NO:
        return Known.YES
    format = FORMATS.get(value_format(table))
    return Known.YES if format is not None and format.appends is Known.NO else Known.NOT_KNOWN


def _of_aggregation(operator: AggregateOperator, pipeline: Pipeline) -> Known:
    if not operator.windowed:
        return Known.YES
    legacy = operator.kind is AggregateKind.GROUP_WINDOW
    return Known.NOT_KNOWN if legacy and settings.repeating_settings(pipeline) else Known.NO


def _of_ranking(operator: RankOperator, pipeline: Pipeline, program: Program) -> Known:
    if operator.window is not None:
        return Known.NO
    below = changes(operator.segment, pipeline, program)
    first = operator.first == operator.last == 1 and bool(operator.order) and operator.order[0][1]
    if not first or below is Known.YES:
        return Known.YES
    return below if operator.kind is RankKind.DEDUPLICATION else Known.NOT_KNOWN


def _of_join(operator: JoinOperator, pipeline: Pipeline, program: Program) -> Known:
    inputs = [changes(each, pipeline, program) for each in operator.segments]
    match operator.form:
        case JoinForm.WINDOW | JoinForm.INTERVAL:
            return Known.NO
        case JoinForm.LOOKUP | JoinForm.TEMPORAL:
            return inputs[0]
        case JoinForm.REGULAR:
            return Known.YES if operator.join in _OUTER else _worst(inputs)
    return Known.NOT_KNOWN


def _worst(found: Iterable[Known]) -> Known:
    each = set(found)
    return next((known for known in (Known.YES, Known.NOT_KNOWN) if known in each), Known.NO)
