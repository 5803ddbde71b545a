"""A job of one query as its script declares it, and the reasons why its operators are uncertain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import CannotLower
from airflow_flinkcompat.model import FunctionDeclaration
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import ACCESSES, Expression, FunctionCall, Literal, walk
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import Output, StatelessSegment
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn, PassedOutput, SourceColumn, leaves
from airflow_flinkcompat.plan.program import Pipeline, Program

ENFORCER, INSERTER, WRITER, COMMITTER = "constraint-enforcer", "timestamp-inserter", "sink", "committer"


SCAN, WATERMARK, CALC, LOCAL, GLOBAL, GROUP, LOOKUP = (
    ExecKind.TABLE_SOURCE_SCAN, ExecKind.WATERMARK_ASSIGNER, ExecKind.CALC, ExecKind.LOCAL_WINDOW_AGGREGATE,
    ExecKind.GLOBAL_WINDOW_AGGREGATE, ExecKind.GROUP_AGGREGATE, ExecKind.LOOKUP_JOIN,
)  # fmt: skip
STATEFUL = (GLOBAL, GROUP)


_REPLANS = ("table.optimizer.", "table.exec.mini-batch.", "table.exec.emit.", "table.exec.uid.", "pipeline.operator-",
            "table.exec.legacy-", "table.exec.simplify-", "table.exec.source.cdc-", "table.exec.sink.rowtime-inserter",
            "table.exec.sink.keyed-shuffle", "table.exec.sink.nested-constraint",
            "table.exec.async-lookup.key-ordered")  # fmt: skip
"""Settings that may decide which operators there are, or which ids they have."""


OperatorKinds = tuple[str, ...]


PossibleChains = tuple[OperatorKinds, ...]


@dataclass(frozen=True)
class PlannedJob:
    """The job of one query: as its operators see it, as it stands in its script, and the script."""

    output: Output
    pipeline: Pipeline
    program: Program

    def table(self, name: str) -> Table:
        found = next((table for table in self.program.tables if table.name == name), None)
        if found is None or not found.declared:
            raise CannotLower(f"table {name} is not declared", place=name)
        return found

    @property
    def settings(self) -> Mapping[str, str]:
        return dict(self.pipeline.settings)


def check_planning(job: PlannedJob) -> None:
    """Raises CannotLower where the query is planned with others, or settings decide about its operators."""
    alone = [p for p in job.program.pipelines if p.statement_set == job.pipeline.statement_set is not None]
    if len(alone) > 1:
        raise CannotLower("several queries of one statement set are planned together")
    if job.pipeline.steps:
        raise CannotLower("queries of the Table API are planned otherwise")
    for key in job.settings:
        if key.startswith(_REPLANS):
            raise CannotLower(f"{key} may decide about operators")
    if (
        job.settings.get("pipeline.operator-chaining.enabled", job.settings.get("pipeline.operator-chaining"))
        == "false"
    ):
        raise CannotLower("no operators are chained")
    if job.settings.get("execution.runtime-mode", "streaming").lower() != "streaming":
        raise CannotLower("a batch job keeps nothing")


def connector_words(table: Table) -> str:
    connector = table.option("connector")
    return f"connector {connector}" if connector else "a catalog's own connector"


def mentions(hints: Iterable[tuple[str, str]], *words: str) -> bool:
    return any(word in text.lower() for _, text in hints for word in words)


def check_no_operators(segment: StatelessSegment) -> None:
    """Raises CannotLower where a stateless stretch holds more than a Calc."""
    if segment.functions:
        raise CannotLower("table functions are operators of their own")
    if segment.window_filters:
        raise CannotLower("conditions on window fields are planned as operators of their own")


def check_functions(job: PlannedJob, parts: Iterable[Expression]) -> None:
    """Whether a Calc calls all functions: a Python or asynchronous one is an operator of its own."""
    called = {part.function for whole in parts for part in walk(whole) if isinstance(part, FunctionCall)}
    declared = {each.name.lower(): each for each in job.program.functions}
    for name in sorted(called - ACCESSES):
        if functions.lookup(name) is not None:
            continue
        match declared.get(name.lower()):
            case FunctionDeclaration(kind="scalar", language="java" | "scala"):
                continue
            case FunctionDeclaration(language="python"):
                raise CannotLower(f"the Python function {name} is an operator of its own")
        remedy = f"say what it is, for instance --function {name}=scalar:java"
        raise CannotLower(f"whether {name} is an operator of its own, as a Python function is, is not told: {remedy}")


def shown_output(column: Expression) -> object:
    if not isinstance(column, OperatorColumn):
        return None
    return column.output.key if isinstance(column.output, KeyOutput) else column.output


_TESTS = frozenset({"IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE"})


_MAY_BE_THE_COLUMN = frozenset({
    "CAST", "TRY_CAST", "COALESCE", "IFNULL", "CASE", "IF", "NULLIF", "+", "-", "*", "/", "AND", "OR", "NOT",
})  # fmt: skip
"""Calls that come to one of their columns where types or constants are such: ``CAST(b AS BIGINT)``, ``b + 0``."""


def decided(condition: Expression, *tables: Table) -> bool:
    """Whether a condition may hold of every row or of none, whatever they are."""
    if not any(isinstance(_passed(leaf), SourceColumn) for leaf in leaves(condition)):
        return True
    never_null = {column.name for table in tables for column in table.columns if not column.type.nullable}
    return any(_decided(part, never_null) for part in walk(condition) if isinstance(part, FunctionCall))


def _decided(call: FunctionCall, never_null: set[str]) -> bool:
    tested = map(_passed, call.args) if call.function in _TESTS else ()
    if any(isinstance(part, SourceColumn) and part.column in never_null for part in tested):
        return True
    if any(isinstance(part, Literal) and (part.value is None or part.value == "%") for part in call.args):
        return True
    return len(call.args) > 1 and len(set(call.args)) < len(call.args) and call.function != "CASE"


def _passed(part: Expression) -> Expression:
    """The column of a table that an operator below hands on as it is."""
    while isinstance(part, OperatorColumn) and isinstance(part.output, PassedOutput):
        part = part.output.column
    return part


def contradictory(conditions: Iterable[Expression]) -> bool:
    """Whether one of several conditions may be the opposite of another."""
    every = set(conditions)
    return any(isinstance(part, FunctionCall) and part.function == "NOT" and part.args[0] in every for part in every)


def at_least(wanted: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """What is wanted of an input, after all that the planner may simplify."""
    return tuple(_column(part) for part in wanted)


def _column(part: Expression) -> Expression:
    if not isinstance(part, FunctionCall) or part.function not in _MAY_BE_THE_COLUMN:
        return part
    columns = [leaf for leaf in leaves(part) if isinstance(leaf, SourceColumn)]
    return columns[0] if columns else part
