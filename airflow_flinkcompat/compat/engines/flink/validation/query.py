"""All faults of an INSERT and its tables, and the faults that a new version adds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airflow_flinkcompat.compat.engines.flink.validation import Fault
from airflow_flinkcompat.compat.engines.flink.validation.changelog import changelog_faults
from airflow_flinkcompat.compat.engines.flink.validation.columns import (
    column_faults,
    output_time_faults,
    temporal_join_faults,
    time_faults,
    view_time_faults,
)
from airflow_flinkcompat.compat.engines.flink.validation.conflicts import conflict_faults
from airflow_flinkcompat.compat.engines.flink.validation.functions import (
    call_faults,
    called_functions,
    unknown_function_faults,
    view_call_faults,
)
from airflow_flinkcompat.compat.engines.flink.validation.tables import (
    declaration_faults,
    declared_expressions,
    faults_of_table,
)
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan.expressions import called
from airflow_flinkcompat.plan.nodes import Join, Scan
from airflow_flinkcompat.plan.operators import Output
from airflow_flinkcompat.plan.program import Pipeline, Program

_HINTS_ALLOWED = "table.dynamic-table-options.enabled"


@dataclass(frozen=True)
class Query:
    """One INSERT: its pipeline, its resolved output, its program, and the line of Flink that plans it."""

    pipeline: Pipeline
    output: Output
    program: Program
    line: str | None = None


def faults(query: Query) -> tuple[Fault, ...]:
    """All reasons why Flink refuses a query or may refuse it; none if the script alters tables."""
    if _alters(query.program):
        return ()
    return tuple(dict.fromkeys(_faults(query)))


def of_declarations(program: Program) -> Iterator[tuple[Fault, Span | None]]:
    """Faults of views and unused tables, each with its place."""
    if _alters(program):
        return
    declared = frozenset(each.name.upper() for each in program.functions)
    names = {each: list(called_functions(node)) for each, node in program.view_plans}
    unused = [table for table in program.tables if table.name not in program.used_tables]
    for table in unused:
        yield from ((fault, table.span) for fault in declaration_faults(table, declared))
        names[table.name] = [call.function for call in called(*declared_expressions(table))]
    for _, node in program.view_plans:
        yield from ((fault, node.span) for fault in (*view_call_faults(node, declared), *view_time_faults(node)))
    # Separate rules cover unknown functions in queries.
    if not any(names.values()):
        return
    used = {name for pipeline in program.pipelines for name in called_functions(pipeline.sink.input)}
    spans = {table.name: table.span for table in unused} | {name: node.span for name, node in program.view_plans}
    for where, found in names.items():
        for fault in unknown_function_faults((name for name in found if name not in used), declared):
            yield fault, spans[where]


def _alters(program: Program) -> bool:
    return any(each.kind == "Alter" and each.subject[0] == "TABLE" for each in program.other_statements)


def added_faults(old: Query, new: Query) -> tuple[Fault, ...]:
    """The faults of a new version that its old version lacks.

    The old version runs despite its faults, so equal faults of the new version are left out. A certain fault that
    depends on Flink's line is never left out.
    """
    found = faults(new)
    before = faults(old) if found else ()
    return tuple(
        fault
        for fault in found
        if (fault.by_line and fault.certain)
        or not any(each.kind == fault.kind and (each.certain or not fault.certain) for each in before)
    )


def _faults(query: Query) -> Iterator[Fault]:
    sink = query.pipeline.sink
    nodes = sink.nodes
    scans = [node for node in nodes if isinstance(node, Scan) and not (node.hints and _other_options(node.hints))]
    declared = frozenset(each.name.upper() for each in query.program.functions)
    hinted = len(scans) < sum(isinstance(node, Scan) for node in nodes) or _other_options(sink.hints)
    if hinted and dict(query.pipeline.settings).get(_HINTS_ALLOWED, "true").lower() == "false":
        yield Fault(
            "hint", f"an OPTIONS hint is not allowed if '{_HINTS_ALLOWED}' is false; remove the hint or the setting"
        )
    for table in dict.fromkeys([scan.table for scan in scans]):
        yield from faults_of_table(table, declared, query.line, sink=False)
    yield from call_faults(sink.input, declared)
    if any(isinstance(node, Join) for node in nodes):
        yield from temporal_join_faults(sink.input)
    yield from time_faults(query.pipeline)
    if sink.table is None or not sink.table.declared:
        return
    yield from output_time_faults(query.pipeline, query.output)
    yield from column_faults(sink)
    if not _other_options(sink.hints):
        yield from faults_of_table(sink.table, declared, query.line, sink=True)
        yield from changelog_faults(query.output, query.pipeline, query.program, sink.table)
        yield from conflict_faults(query.output, query.pipeline, query.program, sink.table, query.line)


def _other_options(hints: tuple[tuple[str, str], ...]) -> bool:
    """True if a hint overrides options of a table."""
    return any(name.upper() == "OPTIONS" for name, _ in hints)
