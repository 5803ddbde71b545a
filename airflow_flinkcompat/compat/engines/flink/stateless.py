"""Engine ``flink``: stateless queries, judged by the state of their sources and sinks.

The savepoint of a job without stateful operators contains the source positions and the state of the sink's writer, but
no columns, expressions or conditions of the query. Flink refuses the restore only if no operator of the new job has the
operator id of one of these states.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.verdict import UNCHANGED, Verdict, expected, inferred, refused_at_submit, right, unknown
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.registry import is_stateless_sink
from airflow_flinkcompat.exec_graph.diff import diff
from airflow_flinkcompat.exec_graph.from_script import job_state
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.exec_graph.model import NOTHING, Restore, RestoreEffect, StateKind
from airflow_flinkcompat.exec_graph.nodes.sink import written_by_its_key
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import AggregateOperator, JoinForm, JoinOperator, Output, operators, sources
from airflow_flinkcompat.plan.program import Program

OUTPUT = ("ks-stateless-all-read-upper", "ks-stateless-read-added-output", "ks-stateless-computed-read")
_OUTPUT_IN_FILES = ("file-sinks-stateless-column-computed", "file-sinks-stateless-filter-added")
"""Restores with a computed column or an added condition between file sources and file sinks."""
SOURCE_PARTS: Mapping[str, tuple[str, ...]] = {
    "columns": (
        "ks-stateless-unread-end",
        "ks-stateless-unread-middle",
        "ks-stateless-unread-removed",
        "ks-stateless-rename-unread",
        "ks-stateless-read-added-output",
    ),
    "types": ("ks-stateless-type-key-char", "ks-stateless-type-notnull", "ks-stateless-type-unread"),
    "order": ("ks-stateless-column-order",),
    "computed": ("ks-stateless-computed-read", "ks-stateless-all-read-computed-unread", "ks-stateless-proctime-unread"),
    "metadata": ("ks-stateless-all-read-meta-unread", "ks-stateless-meta-read-filter", "ks-stateless-ts-to-metadata"),
    "watermark": ("ks-stateless-watermark-delay", "ks-stateless-wm-removed", "ks-stateless-ts-to-metadata"),
}
"""Restores with a changed part of the source's declaration."""
_OF_AGGREGATIONS: Mapping[str, tuple[str, ...]] = {
    "columns": ("ks-group-unread-end", "ks-group-unread-middle", "ks-tumble-unread-end", "ks-tumble-rename-unread"),
    "types": ("ks-group-type-unread", "ks-tumble-type-unread", "ks-group-unread-end", "ks-tumble-unread-end"),
    "order": ("ks-group-column-order", "ks-tumble-column-order", "ks-tumble-all-read-column-order"),
    "computed": ("ks-group-computed-unread", "ks-group-proctime-unread", "ks-tumble-computed-unread"),
    "metadata": ("ks-group-meta-unread", "ks-tumble-meta-unread"),
    "watermark delay": ("kafka-source-tumble-watermark-delay", "kafka-source-tumble-watermark-delay-p2"),
    "watermark": ("ks-group-wm-added", "ks-group-wm-removed", "ks-group-ts-to-metadata"),
}
"""Restores of an aggregation with a changed part of the source's declaration."""
_CALC_MOVED = ("ks-group-all-read-unread-end", "ks-tumble-every-read-unread-end", "ks-tumble-unread-removed")
SINK_PARTS: Mapping[str, tuple[str, ...]] = {
    "columns": ("sk-stateless-direct-columns-renamed", "sk-stateless-kafka-metadata"),
    "types": ("sk-stateless-print-type",),
    "order": ("sk-stateless-direct-columns-renamed", "sk-stateless-direct-full-columns"),
    "computed": ("sk-stateless-kafka-metadata",),
}
"""Restores with a changed part of the sink's declaration.

A metadata column may need a Calc that casts or reorders.
"""
COLUMN_LIST = ("sk-stateless-print-full-columns", "sk-stateless-direct-full-columns", "sk-stateless-kafka-metadata")
SOURCE_NAME = ("ks-group-table-renamed", "x-source-rename")
LOOKUP = ("sk-stateless-lookup-key", "sk-stateless-lookup-column", "sk-stateless-lookup-inner")
LOOKUP_CAME_OR_WENT = ("sk-stateless-lookup-added", "lj-removed")
NO_STATE = inferred(Outcome.COMPATIBLE, "neither version has an operator with state", ids=UNCHANGED)
_MEASURED_SOURCE = "kafka"
_MEASURED_FILES = ("filesystem", "csv")


def settled(pair: PipelinePair, found: Verdict, *ids: str) -> Verdict:
    """A rule's verdict on a query. If the verdict is unknown, the states of the job decide."""
    return found if found.outcome is not Outcome.UNKNOWN else kept(pair, *ids) or found


def kept(pair: PipelinePair, *ids: str) -> Verdict | None:
    """Verdict on source positions and sink state, if the query stores no rows; else None."""
    sides = (pair.old, pair.old_program), (pair.new, pair.new_program)
    if not all(keeps_no_rows(output, program) for output, program in sides):
        return None
    mapped = mapped_states(pair)
    if isinstance(mapped, Unknown):
        return unknown(mapped.reason)
    return _restored(pair, mapped.stored, ids)


def read_alike(pair: PipelinePair, part: str) -> Verdict | None:
    """Verdict on changed unread columns in the source of an aggregation; None if not measured."""
    top, mapped = pair.new.segment.origin, mapped_states(pair)
    closes = isinstance(top, AggregateOperator) and top.windowed
    if not isinstance(top, AggregateOperator) or not isinstance(mapped, Restore) or (closes and part == "watermark"):
        return None
    if mapped.having(RestoreEffect.REFUSED_AT_SUBMIT):
        note = "a Calc after the source was added or removed, so the aggregation has a different id"
        return refused_at_submit(*_CALC_MOVED, note=note)
    if mapped.differences or part not in _OF_AGGREGATIONS:
        return None
    note = "every operator keeps its id, and the aggregation reads the same columns"
    return right(*_OF_AGGREGATIONS[part], note=note)


def keeps_nothing(pair: PipelinePair) -> Verdict | None:
    """Verdict on a change to a job without any state on both sides; None for jobs with state."""
    sides = (pair.old, pair.old_program), (pair.new, pair.new_program)
    return NO_STATE if all(keeps_no_rows(*side) for side in sides) and mapped_states(pair) == NOTHING else None


def mapped_states(pair: PipelinePair) -> Restore | Unknown:
    """The effect of the change on every state of the query's job."""
    old = job_state(pair.old, pair.old_pipeline, pair.old_program)
    if isinstance(old, Unknown):
        return old
    new = job_state(pair.new, pair.new_pipeline, pair.new_program)
    return new if isinstance(new, Unknown) else diff(old, new)


def _restored(pair: PipelinePair, mapped: Restore, ids: tuple[str, ...]) -> Verdict:
    if any(each.old and each.old.kind is StateKind.OPERATOR for each in mapped.differences):
        return unknown(
            "a lookup may store rows that wait for an answer, but a different lookup would not read these rows"
        )
    if mapped.having(RestoreEffect.REFUSED_AT_SUBMIT):
        return expected(
            "the operators before the sink changed, so the new job has no operator for the state of the sink's writer"
        )
    if mapped.differences:
        return unknown(
            "a Calc may be added or removed before a sink with state: the sink's writer would then have a different id"
        )
    read, written = _tables(pair.new, pair.new_program), _sinks(pair)
    note = "the query itself keeps no state"
    connected = {(each.option("connector"), each.option("format")) for each in read + written}
    if ids == OUTPUT and connected == {_MEASURED_FILES}:
        return right(*_OUTPUT_IN_FILES, note=note)
    of_sinks = (each for table in written for each in registry.sink(table.option("connector")).ids)
    evidence = tuple(dict.fromkeys((*ids, *of_sinks)))
    if [table.option("connector") for table in read[:1]] == [_MEASURED_SOURCE]:
        return right(*evidence, note=note)
    return inferred(Outcome.COMPATIBLE, f"{note}, and the positions fit", ids=evidence)


def _sinks(pair: PipelinePair) -> list[Table]:
    return [table for table in pair.new_program.tables if table.name == pair.new.sink]


def _tables(output: Output, program: Program) -> list[Table]:
    names = [source.table for source in sources(output)]
    return [table for name in names for table in program.tables if table.name == name]


def keeps_no_rows(output: Output, program: Program) -> bool:
    """True if neither the operators of a query nor its sink store rows or results."""
    if any(not isinstance(each, JoinOperator) or each.form is not JoinForm.LOOKUP for each in operators(output)):
        return False
    declared = {table.name: table for table in program.tables if table.declared}
    names = {source.table for source in sources(output)} | ({output.sink} if output.sink else set())
    if not names or not names <= declared.keys():
        return False
    sink = declared.get(output.sink)
    if sink is None or not sink.primary_key or is_stateless_sink(sink.option("connector")):
        return True
    return len(names) == 2 and any(written_by_its_key(output, declared[name], sink) for name in names - {sink.name})
