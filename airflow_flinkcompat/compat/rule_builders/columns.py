"""What a source's column is used for, and what another type of it means to stored state."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from typing import Any

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.references import stateless_expressions
from airflow_flinkcompat.compat.engines.flink.lookups import LookupMode, is_lookup, mode
from airflow_flinkcompat.compat.rule import Verdict, documented, inferred, measured
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.expressions import AggregateCall
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinForm,
    JoinOperator,
    Operator,
    Output,
    operators,
    sources,
)
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn, PassedOutput, SourceColumn, leaves
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import DataType


class Use(Enum):
    """What becomes of a column: part of a grouping key or a stored row, what a metric adds up, or anything else."""

    STORED = "stored"
    WINDOW_COUNT = "a windowed COUNT"
    WINDOW_SUM = "a windowed SUM"
    WINDOW_MAX = "a windowed MAX"
    SUM = "a running SUM"
    MAX = "a running MAX"
    IN_FLIGHT = "a row that may wait for the answer of an asynchronous lookup"
    OTHER = "other"


def uses(change: Change, table: str, column: str) -> frozenset[Use]:
    """What either side makes of a column of a table; one of the same name in another table of the query counts too."""
    return frozenset(
        use
        for pair in change.pipelines
        for output, program in ((pair.old, pair.old_program), (pair.new, pair.new_program))
        if table in {source.table for source in sources(output)}
        for use in _uses(output, program, column)
    )


def _uses(output: Output, program: Program, column: str) -> Iterator[Use]:
    passed_on = (leaf for value in stateless_expressions(output) for leaf in leaves(value))
    if any(isinstance(leaf, SourceColumn) and leaf.column == column for leaf in passed_on):
        yield Use.OTHER
    for operator in operators(output):
        if isinstance(operator, AggregateOperator):
            places: list[tuple[Use, tuple[Any, ...]]] = [(Use.STORED, operator.keys)]
            places += [
                (_use(call, operator), call.args if call.filter is None else (*call.args, call.filter))
                for call in operator.aggregates
            ]
        else:
            places = [(_use_of_row(operator), operator.expressions)]
            if is_lookup(operator) and mode(operator, output, program) is LookupMode.ASYNCHRONOUS:
                places.append((Use.IN_FLIGHT, operator.rows[0]))  # type: ignore[attr-defined]
        yield from (use for use, parts in places if any(column in _columns(part) for part in parts))


def _columns(value: Any) -> set[str]:
    """The columns of tables below a value, also through what operators below hand up: its type follows theirs."""
    found: set[str] = set()
    for leaf in leaves(value):
        match leaf:
            case SourceColumn():
                found.add(leaf.column)
            case OperatorColumn(output=KeyOutput(key=below) | PassedOutput(column=below)):
                found |= _columns(below)
            case OperatorColumn(output=AggregateCall(args=args)):
                found |= {column for arg in args for column in _columns(arg)}
            case OperatorColumn(output=below):
                found |= _columns(below)
    return found


SUMS = frozenset({Use.SUM, Use.WINDOW_SUM})
MAXIMA = frozenset({Use.MAX, Use.WINDOW_MAX})
RUNNING = frozenset({Use.SUM, Use.MAX})
"""Inputs of aggregations without a window: what was measured of them was measured on 2.3 alone."""


def _use(call: AggregateCall, operator: AggregateOperator) -> Use:
    """What was measured: an input that is a bare column."""
    bare = call.filter is None and not call.distinct and all(isinstance(arg, SourceColumn) for arg in call.args)
    if not bare or (operator.window is not None and not operator.windowed):
        return Use.OTHER
    if operator.windowed:
        windowed = {"COUNT": Use.WINDOW_COUNT, "SUM": Use.WINDOW_SUM, "MAX": Use.WINDOW_MAX}
        return windowed.get(call.function, Use.OTHER)
    return {"SUM": Use.SUM, "MAX": Use.MAX}.get(call.function, Use.OTHER)


def _use_of_row(operator: Operator) -> Use:
    """A join that may be a lookup stores nothing of its input."""
    lookup = isinstance(operator, JoinOperator) and operator.kind in (JoinForm.LOOKUP, JoinForm.JOIN)
    return Use.OTHER if lookup else Use.STORED


ON_VVR = documented(
    Outcome.INCOMPATIBLE, "Source table page (its summary): a field changes what a stateful operator stores"
)
REFUSED = Consequence.REFUSED_AT_RESTORE
NOT_NULL = ("types-sum-argument-not-null", "types-max-argument-not-null")
NOT_NULL_RUNNING = ("ga-input-notnull", "ga-max-notnull")
"""The same over all rows instead of a window; such state was measured on one line only."""


def retyped_on_vvr(found: frozenset[Use]) -> Verdict:
    """What another type means for such uses; the pages show changed computations, never a changed type."""
    if Use.STORED in found:
        return ON_VVR
    return inferred(Outcome.UNKNOWN, "the row on changed fields shows another computation; types are on no page")


def retyped_on_flink(old: DataType, new: DataType, found: frozenset[Use]) -> Verdict:
    """As measured; by the law, key and row types must be equal, lengths and nullability included."""
    if Use.STORED in found:
        return measured(
            Outcome.INCOMPATIBLE,
            "ga-key-notnull",
            "types-key-length",
            "rj-key-notnull",
            "dd-rd-notnull",
            consequence=REFUSED,
        )
    if Use.IN_FLIGHT in found:
        return measured(Outcome.INCOMPATIBLE, "al-stateless-idle-type", consequence=REFUSED)
    same = replace(old, nullable=True) == replace(new, nullable=True)
    if found == {Use.WINDOW_COUNT}:
        return measured(Outcome.COMPATIBLE, "types-count-argument")
    if same and found and found <= SUMS | MAXIMA:
        return measured(Outcome.COMPATIBLE, *(NOT_NULL_RUNNING if found & RUNNING else NOT_NULL))
    if found and found <= MAXIMA and old.name == new.name == "VARCHAR" and old.nullable == new.nullable:
        return measured(Outcome.COMPATIBLE, "ga-max-varchar-len" if found & RUNNING else "types-max-argument-length")
    if found and found <= SUMS and old.name == new.name == "DECIMAL" and old.parameters[1:] == new.parameters[1:]:
        return measured(
            Outcome.COMPATIBLE, "ga-sum-decimal-prec" if found & RUNNING else "types-sum-argument-precision"
        )
    if found & (SUMS | MAXIMA) and not same:
        return measured(
            Outcome.INCOMPATIBLE,
            "x-source-b-int",
            "types-sum-argument-wider",
            "ga-max-decimal-prec",
            consequence=REFUSED,
        )
    return inferred(Outcome.UNKNOWN, "another type of this use was not measured")
