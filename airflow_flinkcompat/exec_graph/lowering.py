"""The interface of a node family, and helpers that lower a script's query to exec nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar

from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind, OperatorKind
from airflow_flinkcompat.exec_graph.layout import CannotLower, StateLayout, Unknown, stored_as
from airflow_flinkcompat.exec_graph.model import Facets
from airflow_flinkcompat.exec_graph.rewriting import StateRewrite
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols
from airflow_flinkcompat.model import FunctionDeclaration
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.conditions import split_conjuncts
from airflow_flinkcompat.plan.expressions import ACCESSES, Expression, FunctionCall, Literal, called
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import Output, StatelessSegment
from airflow_flinkcompat.plan.origins import (
    KeyOutput,
    OperatorColumn,
    PassedOutput,
    SourceColumn,
    describe,
    leaves,
    window_field,
)
from airflow_flinkcompat.plan.program import Pipeline, Program
from airflow_flinkcompat.plan.types import UNKNOWN, DataType, TimeAttribute

_TIMES = {"TIMESTAMP": "TIMESTAMP_WITHOUT_TIME_ZONE", "TIMESTAMP_LTZ": "TIMESTAMP_WITH_LOCAL_TIME_ZONE"}
LEAVES_COLUMNS = frozenset({"<", "<=", ">", ">=", "<>", "IS NOT NULL"})
"""Comparisons that fix no column to a constant; the planner moves constant columns (measured)."""
LIVES = {True: {"ttl": "1 ms"}, False: {"ttl": "0 ms"}}


@dataclass(frozen=True)
class Lowered:
    """The exec node that Flink plans for a logical operator.

    Attributes:
        node: The exec node.
        inputs: The columns that the node reads, in the order in which Flink stores them.
    """

    node: ExecNode
    inputs: tuple[ColumnMeanings, ...]


Layout = StateLayout | Unknown | None
T = TypeVar("T")


@dataclass(frozen=True)
class NodeFamily:
    """The functions for one family of stateful exec nodes; None for an unsupported function.

    Attributes:
        kinds: The kinds of the nodes in the family.
        meaning: Returns the facets of a node.
        layout: Returns the layout of a node's keyed state.
        rewrite: Rewrites the old states into the new states, or returns the reason why the result would be wrong.
        lower: Lowers a logical operator to its exec node.
    """

    kinds: tuple[ExecKind, ...]
    meaning: Callable[..., Facets]
    layout: Callable[[ExecNode, Sequence[ColumnMeanings], Symbols], Layout] | None = None
    rewrite: Callable[[StateLayout, StateLayout], tuple[StateRewrite, ...] | str] | None = None
    lower: Callable[..., Lowered] | None = None


def of_one_input(
    of_input: Callable[[ExecNode, ColumnMeanings, Symbols], T],
) -> Callable[[ExecNode, Sequence[ColumnMeanings], Symbols], T]:
    return lambda node, inputs, symbols: of_input(node, inputs[0], symbols)


def require_certain_columns(segments: Iterable[StatelessSegment]) -> None:
    for condition in (condition for segment in segments for condition in segment.filters):
        if not isinstance(condition, FunctionCall) or condition.function not in LEAVES_COLUMNS:
            raise CannotLower("a condition on the input may make a column of the stored rows a constant")


def stored_columns(
    row: Sequence[Expression],
    types: Sequence[DataType],
    symbols: Symbols,
    times: Mapping[Any, TimeAttribute],
    side: int = 0,
) -> ColumnMeanings:
    """The columns of a stored row; raise CannotLower if the position of a computed column is unknown."""
    bounds = {place for place, column in enumerate(row) if window_field(column)}
    if any(not isinstance(column, SourceColumn) and place not in bounds for place, column in enumerate(row)):
        raise CannotLower("the position of a computed column in a stored row is unknown")
    return ColumnMeanings(
        tuple(symbols.of("column", side, column) for column in row),
        tuple(map(describe, row)),
        tuple(
            _time_attribute(type, times[column])
            if column in times and type.name in _TIMES
            else stored_as(type.with_nullability(type.nullable and place not in bounds))
            for place, (column, type) in enumerate(zip(row, types, strict=True))
        ),
        symbols.of("rows", side),
    )


def _time_attribute(type: DataType, clock: TimeAttribute) -> str:
    """A time attribute in the notation of compiled plans."""
    by_event = clock is TimeAttribute.ROWTIME
    return json.dumps({"type": _TIMES[type.name], "nullable": by_event, "precision": 3, "kind": clock.name})


SCAN, WATERMARK, CALC, LOCAL, GLOBAL, GROUP, LOOKUP = (
    ExecKind.TABLE_SOURCE_SCAN, ExecKind.WATERMARK_ASSIGNER, ExecKind.CALC, ExecKind.LOCAL_WINDOW_AGGREGATE,
    ExecKind.GLOBAL_WINDOW_AGGREGATE, ExecKind.GROUP_AGGREGATE, ExecKind.LOOKUP_JOIN,
)  # fmt: skip
STATEFUL = (GLOBAL, GROUP)
_REPLANS = ("table.optimizer.", "table.exec.mini-batch.", "table.exec.emit.", "table.exec.uid.", "pipeline.operator-",
            "table.exec.legacy-", "table.exec.simplify-", "table.exec.source.cdc-", "table.exec.sink.rowtime-inserter",
            "table.exec.sink.keyed-shuffle", "table.exec.sink.nested-constraint",
            "table.exec.async-lookup.key-ordered")  # fmt: skip
"""Settings that may change the operators of a plan or their ids."""
OperatorKinds = tuple[OperatorKind, ...]
PossibleChains = tuple[OperatorKinds, ...]


@dataclass(frozen=True)
class PlannedJob:
    """The job of one query, with the output, the pipeline and the whole program."""

    output: Output
    pipeline: Pipeline
    program: Program

    def table(self, name: str) -> Table:
        found = self.program.table(name)
        if found is None or not found.declared:
            raise CannotLower(f"table {name} is not declared", place=name)
        return found

    @property
    def settings(self) -> Mapping[str, str]:
        return dict(self.pipeline.settings)


def check_planning(job: PlannedJob) -> None:
    """Raise CannotLower if other queries share the plan, or a setting may change its operators."""
    alone = [p for p in job.program.pipelines if p.statement_set == job.pipeline.statement_set is not None]
    if len(alone) > 1:
        raise CannotLower("several queries of one statement set are planned together")
    if job.pipeline.steps:
        raise CannotLower("queries of the Table API have different plans")
    settings = job.settings
    for key in settings:
        if key.startswith(_REPLANS):
            raise CannotLower(f"{key} may change the operators")
    if settings.get("pipeline.operator-chaining.enabled", settings.get("pipeline.operator-chaining")) == "false":
        raise CannotLower("operator chaining is disabled")
    if settings.get("execution.runtime-mode", "streaming").lower() != "streaming":
        raise CannotLower("a batch job keeps no state")


def connector_words(table: Table) -> str:
    connector = table.option("connector")
    return f"connector {connector}" if connector else "a catalog's own connector"


def mentions(hints: Iterable[tuple[str, str]], *words: str) -> bool:
    return any(word in text.lower() for _, text in hints for word in words)


def check_no_operators(segment: StatelessSegment) -> None:
    """Raise CannotLower if a stateless segment needs more than a Calc."""
    if segment.functions:
        raise CannotLower("table functions are separate operators")
    if segment.window_filters:
        raise CannotLower("conditions on window fields are separate operators")


def check_functions(job: PlannedJob, parts: Iterable[Expression]) -> None:
    """Raise CannotLower if a function may be a separate operator, like a Python function."""
    names = {call.function for call in called(*parts)}
    declared = {each.name.lower(): each for each in job.program.functions}
    for name in sorted(names - ACCESSES):
        if functions.lookup(name) is not None:
            continue
        match declared.get(name.lower()):
            case FunctionDeclaration(kind="scalar", language="java" | "scala"):
                continue
            case FunctionDeclaration(language="python"):
                raise CannotLower(f"the Python function {name} is a separate operator")
        remedy = f"declare it, for instance --function {name}=scalar:java"
        raise CannotLower(f"{name} may be a separate operator, like a Python function: {remedy}")


def shown_output(column: Expression) -> object:
    if not isinstance(column, OperatorColumn):
        return None
    return column.output.key if isinstance(column.output, KeyOutput) else column.output


_TESTS = frozenset({"IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT TRUE", "IS FALSE", "IS NOT FALSE"})
_MAY_BE_THE_COLUMN = frozenset({
    "CAST", "TRY_CAST", "COALESCE", "IFNULL", "CASE", "IF", "NULLIF", "+", "-", "*", "/", "AND", "OR", "NOT",
})  # fmt: skip
"""Calls that the planner may reduce to one of their columns, such as ``b + 0``."""


def decided(condition: Expression, *tables: Table) -> bool:
    """True if the planner may recognize a condition as always true or always false."""
    if not any(isinstance(_origin_column(leaf), SourceColumn) for leaf in leaves(condition)):
        return True
    never_null = {column.name for table in tables for column in table.columns if not column.type.nullable}
    return any(_decided(call, never_null) for call in called(condition))


def _decided(call: FunctionCall, never_null: set[str]) -> bool:
    tested = map(_origin_column, call.args) if call.function in _TESTS else ()
    if any(isinstance(part, SourceColumn) and part.column in never_null for part in tested):
        return True
    if any(isinstance(part, Literal) and (part.value is None or part.value == "%") for part in call.args):
        return True
    return len(call.args) > 1 and len(set(call.args)) < len(call.args) and call.function != "CASE"


def _origin_column(part: Expression) -> Expression:
    """The table column that upstream operators pass on unchanged as this expression."""
    while isinstance(part, OperatorColumn) and isinstance(part.output, PassedOutput):
        part = part.output.column
    return part


def contradictory(conditions: Iterable[Expression]) -> bool:
    """True if conditions may exclude each other, or contain an OR that may always be true."""
    every = set(conditions)
    negated = {part: _negated(part) for part in every}
    ors = [parts for part, parts in negated.items() if isinstance(part, FunctionCall) and part.function == "OR"]
    return any(map(every.issuperset, negated.values())) or _no_value_left(every) or any(map(contradictory, ors))


def _negated(part: Expression) -> tuple[Expression, ...]:
    return split_conjuncts(FunctionCall("NOT", (part,), part.type if isinstance(part, FunctionCall) else UNKNOWN))


def _no_value_left(conditions: Iterable[Expression]) -> bool:
    """True if there may be no value that satisfies all comparisons with constants."""
    bounds: dict[Expression, dict[str, list[object]]] = {}
    for part in conditions:
        match part:
            case FunctionCall("=" | "<" | "<=" | ">" | ">=" as sign, (value, Literal(value=constant))):
                bounds.setdefault(value, {"=": [], "<": [], ">": []})[sign[0]].append(constant)
    for of_value in bounds.values():
        equal, above, below = of_value["="], of_value[">"], of_value["<"]
        numbers = [each for each in (*above, *below) if isinstance(each, int | float | Decimal)]
        if equal and (len(equal) > 1 or above or below):
            return True
        if above and below and len(numbers) < len(above) + len(below):
            return True
        if above and below and max(numbers[: len(above)]) >= min(numbers[len(above) :]):
            return True
    return False


def at_least(wanted: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """The expressions after every simplification that the planner may apply."""
    return tuple(_column(part) for part in wanted)


def _column(part: Expression) -> Expression:
    if not isinstance(part, FunctionCall) or part.function not in _MAY_BE_THE_COLUMN:
        return part
    columns = [leaf for leaf in leaves(part) if isinstance(leaf, SourceColumn)]
    return columns[0] if columns else part
