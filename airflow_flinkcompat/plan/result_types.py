"""Result types of Flink's operators and functions: decimals, common types and aggregates.

Every rule maps argument types to a result type and never raises. The result is UNKNOWN if the argument types do not
determine it. The sources are Flink's ``LogicalTypeMerging`` (decimals, sums, averages) and Calcite's least
restrictive type. The rules were compared with a Flink 2.3 planner.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from airflow_flinkcompat.plan.types import (
    APPROXIMATE,
    BIGINT,
    CHARACTERS,
    DOUBLE,
    INTEGERS,
    INTERVAL_DAY_TIME,
    INTERVAL_YEAR_MONTH,
    STRING,
    TIMESTAMPS,
    UNKNOWN,
    DataType,
    decimal,
)

Types = tuple[DataType, ...]
ResultType = Callable[[Types], DataType]

MAX_PRECISION = 38
_INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_INTERVALS = (INTERVAL_DAY_TIME.name, INTERVAL_YEAR_MONTH.name)


def any_nullable(types: Sequence[DataType]) -> bool:
    """True if an argument may be NULL, which makes the result of a strict function nullable."""
    return any(t.nullable for t in types)


def strict(result: DataType) -> ResultType:
    """A fixed type that is nullable if an argument is nullable."""
    return lambda types: result.with_nullability(any_nullable(types))


def nullable(result: DataType) -> ResultType:
    """A fixed type that is always nullable."""
    return lambda types: result.with_nullability(True)


def not_null(result: DataType) -> ResultType:
    """A fixed type that is never nullable."""
    return lambda types: result.with_nullability(False)


def unknown(types: Types) -> DataType:
    """UNKNOWN, for functions whose type does not depend on argument types alone."""
    return UNKNOWN


def argument(position: int) -> ResultType:
    """The type of one argument, nullable if any argument is nullable."""

    def rule(types: Types) -> DataType:
        if position >= len(types):
            return UNKNOWN
        return types[position].with_nullability(any_nullable(types))

    return rule


def nullable_first(types: Types) -> DataType:
    """The type of the first argument, always nullable."""
    return types[0].with_nullability(True) if types else UNKNOWN


# --- decimals ---------------------------------------------------------------------------------------------------------


def adjust(precision: int, scale: int) -> DataType:
    """The decimal type of a precision and scale; beyond 38 digits the scale is reduced, but not below six."""
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    return decimal(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), min(scale, 6)))


def as_decimal(data_type: DataType) -> tuple[int, int] | None:
    """The precision and scale of an exact numeric type; None for other types."""
    if data_type.name == "DECIMAL" and len(data_type.parameters) == 2:
        return data_type.parameters[0], data_type.parameters[1]
    digits = _INTEGER_DIGITS.get(data_type.name)
    return None if digits is None else (digits, 0)


def _add(p1: int, s1: int, p2: int, s2: int) -> DataType:
    scale = max(s1, s2)
    return adjust(max(p1 - s1, p2 - s2) + scale + 1, scale)


def _multiply(p1: int, s1: int, p2: int, s2: int) -> DataType:
    return adjust(p1 + p2 + 1, s1 + s2)


def _divide(p1: int, s1: int, p2: int, s2: int) -> DataType:
    scale = max(6, s1 + p2 + 1)
    return adjust(p1 - s1 + s2 + scale, scale)


def _modulo(p1: int, s1: int, p2: int, s2: int) -> DataType:
    scale = max(s1, s2)
    return adjust(min(p1 - s1, p2 - s2) + scale, scale)


def round_decimal(data_type: DataType, digits: int) -> DataType:
    """The type of ROUND(decimal, digits): one more digit before the point, and ``digits`` after it."""
    exact = as_decimal(data_type)
    if exact is None or data_type.name != "DECIMAL":
        return data_type
    precision, scale = exact
    if digits >= scale:
        return data_type
    if digits < 0:
        rounded = decimal(min(MAX_PRECISION, 1 + precision - scale), 0)
    else:
        rounded = decimal(1 + precision - scale + digits, digits)
    return rounded.with_nullability(data_type.nullable)


# --- numbers ----------------------------------------------------------------------------------------------------------


def _numeric(left: DataType, right: DataType, exact: Callable[[int, int, int, int], DataType]) -> DataType:
    names = {left.name, right.name}
    if names <= set(INTEGERS):
        return DataType(max(names, key=INTEGERS.index))
    if names & set(APPROXIMATE):
        others = names - set(APPROXIMATE)
        if not others <= {*INTEGERS, "DECIMAL"}:
            return UNKNOWN
        if exact is _common_decimal and "FLOAT" in names and names & {"DECIMAL", "DOUBLE"}:
            return UNKNOWN  # CASE, IF and COALESCE treat this mixture differently
        if "DECIMAL" in others:
            return DOUBLE
        # The first FLOAT or DOUBLE determines the result.
        return (left if left.name in APPROXIMATE else right).with_nullability(True)
    first, second = as_decimal(left), as_decimal(right)
    return exact(*first, *second) if first and second else UNKNOWN


def _arithmetic(exact: Callable[[int, int, int, int], DataType]) -> ResultType:
    def rule(types: Types) -> DataType:
        if len(types) != 2:
            return UNKNOWN
        result = _numeric(types[0], types[1], exact)
        return result.with_nullability(any_nullable(types)) if result.is_known else UNKNOWN

    return rule


def _with_time(sign: str, numbers: ResultType) -> ResultType:
    """Rule for ``+`` and ``-``, which can also add intervals to dates, times and timestamps."""

    def rule(types: Types) -> DataType:
        if len(types) != 2:
            return UNKNOWN
        left, right = types
        moment = (*TIMESTAMPS, "DATE", "TIME", *_INTERVALS)
        if right.name in _INTERVALS and left.name in moment:
            return left.with_nullability(any_nullable(types))
        if sign == "+" and left.name in _INTERVALS and right.name in moment:
            return right.with_nullability(any_nullable(types))
        return numbers(types)

    return rule


def multiply(types: Types) -> DataType:
    """Type of ``*``: numbers follow Flink's decimal rule; an interval times a number stays an interval."""
    for first, second in (types, types[::-1]) if len(types) == 2 else ():
        if first.name in _INTERVALS and as_decimal(second):
            return first.with_nullability(any_nullable(types))
    return _arithmetic(_multiply)(types)


add = _with_time("+", _arithmetic(_add))
subtract = _with_time("-", _arithmetic(_add))
divide = _arithmetic(_divide)


def modulo(types: Types) -> DataType:
    """Type of ``%`` and MOD: decimals follow the modulo rule; otherwise the type of the divisor."""
    if len(types) != 2:
        return UNKNOWN
    exact = [as_decimal(t) for t in types]
    if all(e is not None and e[1] == 0 for e in exact):
        return types[1].with_nullability(any_nullable(types))
    return _arithmetic(_modulo)(types)


def whole_number(types: Types) -> DataType:
    """Type of FLOOR and CEIL: a decimal loses its scale; other types (FLOOR(timestamp TO unit)) remain."""
    if not types:
        return UNKNOWN
    if types[0].name == "DECIMAL":
        return decimal(types[0].parameters[0], 0).with_nullability(any_nullable(types))
    return types[0].with_nullability(any_nullable(types))


# --- common types -----------------------------------------------------------------------------------------------------


def _widest(left: DataType, right: DataType) -> DataType:
    if left.name == "NULL":
        return right
    if right.name == "NULL":
        return left
    if left.with_nullability(True) == right.with_nullability(True):
        return left
    if left.name in CHARACTERS and right.name in CHARACTERS and left.parameters and right.parameters:
        return DataType("VARCHAR", (max(left.parameters[0], right.parameters[0]),))
    if left.name == right.name and left.name in (*TIMESTAMPS, "TIME", "BINARY", "VARBINARY"):
        return max(left, right, key=lambda t: t.parameters)
    return _numeric(left, right, _common_decimal)


def _common_decimal(p1: int, s1: int, p2: int, s2: int) -> DataType:
    scale = max(s1, s2)
    return decimal(min(MAX_PRECISION, max(p1 - s1, p2 - s2) + scale), scale)


def common_type(types: Sequence[DataType]) -> DataType:
    """The least restrictive common type, nullable if one of ``types`` is; UNKNOWN if there is none."""
    if not types or not all(t.is_known for t in types):
        return UNKNOWN
    result = reduce(_widest, types)
    return result.with_nullability(any_nullable(types) or result.name == "NULL") if result.is_known else UNKNOWN


def coalesce(types: Types) -> DataType:
    """Type of COALESCE: the common type, nullable only if every argument is nullable."""
    result = common_type(types)
    return result.with_nullability(all(t.nullable for t in types)) if result.is_known else UNKNOWN


def case(types: Types) -> DataType:
    """Type of CASE with (condition, value) pairs and ELSE: the common type of the values."""
    return common_type((*types[1:-1:2], *types[-1:])) if len(types) % 2 else common_type((*types[1::2], _NULL))


_NULL = DataType("NULL")


def if_else(types: Types) -> DataType:
    """Type of IF(condition, value, otherwise)."""
    result = common_type(types[1:]) if len(types) == 3 else UNKNOWN
    if result.name in TIMESTAMPS and len({t.parameters for t in types[1:] if t.name != "NULL"}) > 1:
        return UNKNOWN  # IF has the precision of its first value and truncates the other value
    return result.with_nullability(True) if result.is_known else UNKNOWN


def concatenation(types: Types) -> DataType:
    """Type of ``||``: the lengths add up; CHAR only if both sides are CHAR."""
    if not types or not all(t.name in CHARACTERS and t.parameters for t in types):
        return STRING.with_nullability(any_nullable(types)) if types else UNKNOWN
    length = min(STRING.parameters[0], sum(t.parameters[0] for t in types))
    name = "CHAR" if all(t.name == "CHAR" for t in types) else "VARCHAR"
    return DataType(name, (length,), nullable=any_nullable(types))


def varying(types: Types) -> DataType:
    """Type of functions that shorten a string: VARCHAR with the length of the first argument."""
    if not types or types[0].name not in CHARACTERS:
        return UNKNOWN
    return DataType("VARCHAR", types[0].parameters, nullable=any_nullable(types))


def nullable_varying(types: Types) -> DataType:
    """Like :func:`varying`, but always nullable."""
    result = varying(types)
    return result.with_nullability(True) if result.is_known else UNKNOWN


# --- aggregates -------------------------------------------------------------------------------------------------------


def total(types: Types) -> DataType:
    """Type of SUM: the argument's type (an INT can overflow); DECIMAL(p, s) becomes DECIMAL(38, s)."""
    if len(types) != 1 or not types[0].is_known:
        return UNKNOWN
    if types[0].name == "DECIMAL":
        return decimal(MAX_PRECISION, types[0].parameters[1]).with_nullability(types[0].nullable)
    return types[0]


def average(types: Types) -> DataType:
    """Type of AVG: the argument's type (an INT truncates); DECIMAL(p, s) becomes DECIMAL(38, max(6, s))."""
    if len(types) != 1 or not types[0].is_known:
        return UNKNOWN
    if types[0].name == "DECIMAL":
        return decimal(MAX_PRECISION, max(6, types[0].parameters[1])).with_nullability(types[0].nullable)
    return types[0]


def total0(types: Types) -> DataType:
    """Type of SUM0: like SUM, but never nullable."""
    result = total(types)
    return result.with_nullability(False) if result.is_known else UNKNOWN


count: ResultType = not_null(BIGINT)
