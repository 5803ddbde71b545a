"""Generous comparison of expressions that Flink's planner may simplify to the same expression.

Flink's planner simplifies many spellings to one expression, and not every spelling was measured. This module treats far
more spellings as equal than ``plan/origins.py``. If two expressions are equal by this module but different by
``plan/origins.py``, their equality is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Set
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from typing import Any

from airflow_flinkcompat.compat.changes.boundary_rows import (
    TIME_ATTRIBUTES,
    WHOLE,
    Variable,
    equal_conditions,
    equal_contributions,
    equal_values,
)
from airflow_flinkcompat.compat.changes.differences import operator_parts, output_parts
from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.changes.query_form import never_null
from airflow_flinkcompat.lazy import cached_property
from airflow_flinkcompat.plan.expressions import (
    FLIPPED,
    AggregateCall,
    Expression,
    FunctionCall,
    Leaf,
    Literal,
    transform,
)
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinOperator,
    Operator,
    Output,
    OverOperator,
    operators,
    sources,
)
from airflow_flinkcompat.plan.origins import OperatorColumn, PassedOutput, SourceColumn, leaves
from airflow_flinkcompat.plan.program import Program
from airflow_flinkcompat.plan.types import BIGINT, UNKNOWN, DataType

Form = Hashable
TRUE, NULL = ("constant", True), ("constant", None)
_NAMES = {
    "%": "MOD", "SUBSTR": "SUBSTRING", "CHARACTER_LENGTH": "CHAR_LENGTH", "CEILING": "CEIL", "POW": "POWER",
    "IFNULL": "COALESCE", "UNNEST WITH ORDINALITY": "UNNEST", "||": "CONCAT", "IF": "CASE", "STDDEV_SAMP": "STDDEV",
    "VAR_SAMP": "VARIANCE", "GROUPING_ID": "GROUPING",
}  # fmt: skip
_COMMUTE = frozenset({"+", "*", "=", "<>", "AND", "OR"})
_CHAINED = frozenset({"+", "*", "AND", "OR", "CONCAT", "COALESCE"})
_DEFAULTS = {"JSON_ARRAYAGG": ("constant", "ABSENT ON NULL"), "JSON_OBJECTAGG": ("constant", "NULL ON NULL")}
"""The ON NULL clause that Flink applies to an aggregate function without this clause."""
_PARTS = {"DAY": "DAYOFMONTH", "DOW": "DAYOFWEEK", "DOY": "DAYOFYEAR"}
_MILLISECONDS = {"DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000}


def may_be_same_operator(pair: OperatorPair) -> bool:
    """True if an operator differs only in expressions that Flink may simplify to the same expression."""
    pipeline = pair.pipeline
    if any(pipeline.steps):
        return False  # the Table API keeps input columns of an operator that SQL drops
    if pipeline.removed or pipeline.added:  # the operator may be paired with a wrong operator
        return may_be_same_query(pipeline)
    if not pair.differences:
        return False
    old, new = _Forms(pipeline.old, pipeline.old_program), _Forms(pipeline.new, pipeline.new_program)
    for each in pair.differences:  # most changes return here, without comparing the equal parts
        if each.part.startswith(_COMBINED) or each.before is None or each.after is None:
            continue
        if old.part_with_form(each.part, each.before) != new.part_with_form(each.part, each.after):
            return False
    return _operator(pair.old, old) == _operator(pair.new, new)


def may_be_same_query(pair: PipelinePair) -> bool:
    """True if a query differs only in spellings of expressions and in a DISTINCT over distinct rows."""
    sides = (pair.old, pair.old_program), (pair.new, pair.new_program)
    (old, before), (new, after) = ((output, _Forms(output, program)) for output, program in sides)
    kept = [[_operator(each, forms) for each in operators(output) if not _distinct_already(each)]
            for output, forms in ((old, before), (new, after))]  # fmt: skip
    if not pair.changed or any(pair.steps) or kept[0] != kept[1]:
        return False
    if pair.removed or pair.added:
        return bool(kept[0])
    parts = [{key: forms.part_with_form(key, value) for key, value in output_parts(output).items()}
             for output, forms in ((old, before), (new, after))]  # fmt: skip
    return parts[0] == parts[1]


def _distinct_already(operator: Operator) -> bool:
    """True if an operator is a DISTINCT over an aggregation, whose rows may already be distinct."""
    if not isinstance(operator, AggregateOperator) or operator.aggregates or operator.window is not None:
        return False
    return isinstance(operator.segment.origin, AggregateOperator) and not operator.segment.filters


_COMBINED = ("all columns", "grouping sets", "key order", "row of input ")
"""Parts that :func:`_operator` combines into one form."""


def _operator(operator: Operator, forms: _Forms) -> Mapping[str, Form | _EvaluatedPart]:
    parts = {key: forms.part_with_form(key, value) for key, value in operator_parts(operator).items()}
    if isinstance(operator, OverOperator):
        del parts["all columns"]  # the part "row" of an OVER operator contains the stored columns
    if isinstance(operator, AggregateOperator) and operator.grouping_sets == frozenset({(frozenset(operator.keys), 1)}):
        parts["grouping sets"] = None
    if isinstance(operator, AggregateOperator) and any(isinstance(key, Literal) for key in operator.keys):
        places = [place for place, key in enumerate(operator.keys) if not isinstance(key, Literal)]
        parts["key order"] = tuple(
            places.index(key) if isinstance(key, int) else key
            for key in operator.key_order
            if not isinstance(key, int) or key in places
        )
    if isinstance(operator, JoinOperator):  # a key may be computed upstream of the join or in the join
        keys = {forms.form(side) for pair in operator.keys for side in pair}
        for i, row in enumerate(operator.rows):
            columns = ((column, forms.form(OperatorColumn(i, column, type=UNKNOWN))) for column in row)
            kept = tuple(form for column, form in columns if form not in keys or not isinstance(column, FunctionCall))
            parts[f"row of input {i + 1}"] = kept
    return parts


_EVALUATED = ("keys", "aggregates", "condition", "columns")


@dataclass(frozen=True, eq=False)
class _EvaluatedPart:
    """A part of an operator; parts are equal if their forms are, or if no boundary row distinguishes them."""

    name: str
    value: Any
    form: Form
    forms: _Forms

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _EvaluatedPart):
            return NotImplemented
        return self.form == other.form or self._evaluates_as(other)

    def _evaluates_as(self, other: _EvaluatedPart) -> bool:
        old, new = self.value, other.value
        sides = (self.forms.variable, other.forms.variable)
        if self.name == "aggregates":
            pairs = zip(old, new, strict=False)
            return len(old) == len(new) and all(
                self.forms.form(one) == other.forms.form(another) or equal_contributions(one, another, sides)
                for one, another in pairs
            )
        if self.name in ("keys", "columns"):
            if not all(isinstance(each, Literal | FunctionCall | Leaf) for each in (*old, *new)):
                return False  # join keys are pairs, not expressions
            return equal_values((old, sides[0]), (new, sides[1]))
        conditions = [tuple(each) if isinstance(each, frozenset) else (each,) for each in (old, new)]
        if None in conditions[0] or None in conditions[1]:
            return False
        return equal_conditions((conditions[0], sides[0]), (conditions[1], sides[1]))


@dataclass(frozen=True)
class _Forms:
    """Computes the forms of the expressions on one side."""

    output: Output
    program: Program

    @cached_property
    def types(self) -> Mapping[str, DataType]:
        """Types of columns whose name has only one type among the tables that the query reads."""
        read = {source.table for source in sources(self.output)}
        columns = [column for table in self.program.tables if table.name in read for column in table.columns]
        declared = {(column.name, column.type.with_nullability(True)) for column in columns}
        named = Counter(name for name, _ in declared)
        return {name: type for name, type in declared if named[name] == 1}

    @cached_property
    def never_null(self) -> Set[str]:
        return never_null(self.output, self.program)

    def part_with_form(self, part: str, value: Any) -> Form | _EvaluatedPart:
        """The form of a part; the part with its form if boundary rows may decide the comparison."""
        form = self._part_form(part, value)
        return _EvaluatedPart(part, value, form, self) if part in _EVALUATED or part.startswith("filters") else form

    def variable(self, leaf: Leaf) -> Variable | None:
        """The input column that a leaf refers to; None if an operator computes the value."""
        below: Any = leaf
        while isinstance(below, OperatorColumn):
            below = getattr(below.output, "column", below.output)
        if isinstance(below, AggregateCall) and below.function == "COUNT":
            return Variable(self.form(leaf), BIGINT, nullable=False)
        if isinstance(below, SourceColumn):
            type = self.types.get(below.column, UNKNOWN)
            return Variable(self.form(leaf), type, below.column not in self.never_null)
        return None

    def _part_form(self, part: str, value: Any) -> Form:
        """The form of a part, without constant keys and without conditions that are always true."""
        if part == "keys":
            return tuple(dict.fromkeys(self.form(key) for key in value if not isinstance(key, Literal)))
        if part == "row":
            return tuple(dict.fromkeys(map(self.form, value)))
        if part.startswith("filters"):
            return frozenset(_flat("AND", map(self.form, value))) - {TRUE}
        return self.form(value)

    def form(self, value: Any) -> Form:
        """The common form of all spellings of a value."""
        match value:
            case Literal():
                return _constant_form(value)
            case FunctionCall():
                return self._call(value)
            case AggregateCall():
                return self._aggregate(value)
            case tuple():
                return tuple(map(self.form, value))
            case frozenset():
                return frozenset(map(self.form, value))
            case SourceColumn():
                return value.source, value.column
        if is_dataclass(value) and not isinstance(value, type):
            compared = (each.name for each in fields(value) if each.compare and each.name != "type")
            return (type(value).__name__, *(self.form(getattr(value, name)) for name in compared))
        return value  # type: ignore[no-any-return]

    def _call(self, call: FunctionCall) -> Form:
        function, args = _NAMES.get(call.function, call.function), [self.form(arg) for arg in call.args]
        inputs = {leaf.operator if isinstance(leaf, OperatorColumn) else None for leaf in leaves(call)}
        if len(inputs) == 1 and None not in inputs:  # computed over the input's output or within the input
            return OperatorColumn.__name__, *inputs, self.form(transform(call, _of_input))
        if function == "CAST" and len(args) > 1 and self._keeps_type(call.args[0], args[1]):
            return args[0]
        if function == "IS NOT NULL" and self._is_never_null(call.args[0]):
            return TRUE
        if function == "COALESCE" and call.args and self._is_never_null(call.args[0]):
            return args[0]
        return _call_form(function, args)

    def _keeps_type(self, part: Any, target: Form) -> bool:
        """True if a CAST may have no effect: to the type of the column, or between integer types."""
        if isinstance(part, Literal):
            return part.type.name in WHOLE and target in {("constant", name) for name in WHOLE}
        type = self.types.get(part.column) if isinstance(part, SourceColumn) else None
        return type is not None and type.name not in TIME_ATTRIBUTES and target == ("constant", str(type))

    def _is_never_null(self, part: Any) -> bool:
        while isinstance(part, OperatorColumn) and isinstance(part.output, PassedOutput):
            part = part.output.column
        return isinstance(part, SourceColumn) and part.column in self.never_null

    def _counts_every_row(self, part: Any) -> bool:
        """True if COUNT counts every row with this argument."""
        if isinstance(part, FunctionCall):
            return bool(part.args) and all(map(self._counts_every_row, part.args))
        return part.value is not None if isinstance(part, Literal) else self._is_never_null(part)

    def _aggregate(self, call: AggregateCall) -> Form:
        function, args = _NAMES.get(call.function, call.function), [self.form(arg) for arg in call.args]
        condition = TRUE if call.filter is None else self.form(call.filter)
        if function == "COUNT" and not call.distinct and all(map(self._counts_every_row, call.args)):
            args = []
        if len(args) == 1 and isinstance(args[0], tuple):
            match args[0]:
                case ("CASE", when, then, ("constant", None)) if condition == TRUE:
                    args, condition = [then], when
                case ("CAST", value, ("constant", str(target))) if function == "SUM" and target.startswith("DECIMAL"):
                    args = [("CAST", value, target.rpartition(",")[2])]
        if args[-1:] == [_DEFAULTS.get(function)]:
            args = args[:-1]
        if args and condition == ("IS NOT NULL", args[0]):
            condition = TRUE  # aggregates ignore NULL
        distinct = call.distinct and function not in ("MAX", "MIN")
        return (function, *args, distinct, condition, call.language, call.order_by)


def _of_input(leaf: Expression) -> Expression:
    """The column in the input of the operator."""
    return leaf.output if isinstance(leaf, OperatorColumn) else leaf


def _constant_form(literal: Literal) -> Form:
    """The form of a constant: integers by value, other numbers with their type and scale."""
    value = literal.value
    if isinstance(value, int) and not isinstance(value, bool) and literal.type.name in WHOLE:
        return "constant", Decimal(value)
    if literal.type.name.startswith("TIMESTAMP") and isinstance(value, str) and "." in value:
        return "constant", value.rstrip("0").rstrip(".")
    return "constant", value if value is None or isinstance(value, bool | str) else f"{literal.type.name} {value}"


def _flat(function: str, args: Iterable[Form]) -> Iterable[Form]:
    for arg in args:
        if isinstance(arg, tuple) and arg[:1] == (function,):
            [*inner] = arg[1] if function in ("AND", "OR") else arg[1:]
            yield from _flat(function, inner)
        else:
            yield arg


def _call_form(function: str, args: list[Form]) -> Form:
    """The form of a call, equal for all calls that may have the same meaning."""
    if function == "CASE" and len(args) == 3:
        match args:
            case [("IS NULL", tested), default, value] | [("IS NOT NULL", tested), value, default] if value == tested:
                return _call_form("COALESCE", [value, default])
    if (found := _equivalent_form(function, args)) is not None:
        return found
    if function in (">", ">="):
        return (FLIPPED[function], *reversed(args))
    return _flattened_form(function, args)


def _equivalent_form(function: str, args: list[Form]) -> Form | None:
    """The form of a call that is equivalent to a different function or to a default argument; else None."""
    match function, args:
        case "EXTRACT", [("constant", str(part)), value, _]:
            return _PARTS.get(part, part), value
        case "NULLIF", [value, other]:
            return _call_form("CASE", [_call_form("=", [value, other]), NULL, value])
        case "TIMESTAMPADD", [("constant", str(unit)), ("constant", Decimal() as count), value]:
            length = count * _MILLISECONDS.get(unit, 0)
            return _flattened_form("+", [value, ("constant", f"INTERVAL_DAY_TIME {length}")]) if length else None
        case "TRIM", [("constant", "BOTH"), ("constant", " "), value, _]:
            return "TRIM", value
        case "JSON_VALUE", [*inner, ("constant", "RETURNING STRING")]:
            return ("JSON_VALUE", *inner)
    return None


def _flattened_form(function: str, args: list[Form]) -> Form:
    if function in _CHAINED:
        args = [*_flat(function, args)]
    if function in ("AND", "OR"):
        return function, frozenset(args)
    return (function, *(sorted(args, key=repr) if function in _COMMUTE else args))
