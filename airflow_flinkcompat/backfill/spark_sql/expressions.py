"""Translation of a plan's expressions to Spark SQL, either exactly or not at all.

The column at index i of a relation is always named ``c{i}``, so that names of the script do not have to follow Spark's
rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from airflow_flinkcompat.backfill.result import Untranslatable
from airflow_flinkcompat.backfill.spark_sql import localtime, regexes
from airflow_flinkcompat.backfill.spark_sql.translations import (
    BRANCHES,
    ERROR,
    PARTS,
    Translation,
    distinguished,
    ordered,
    translations_of,
)
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, InputRef, Literal
from airflow_flinkcompat.plan.result_types import as_decimal
from airflow_flinkcompat.plan.types import (
    APPROXIMATE,
    BIGINT,
    BOOLEAN,
    CHARACTERS,
    INTEGERS,
    MAX_LENGTH,
    UNKNOWN,
    DataType,
)

_SPARK_TYPES = {
    **{name: name for name in (*INTEGERS, "FLOAT", "DOUBLE", "BOOLEAN", "DATE")},
    "CHAR": "STRING",
    "VARCHAR": "STRING",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_LTZ": "TIMESTAMP_LTZ",
    "NULL": "STRING",
}
_CLASSES = {
    **dict.fromkeys(INTEGERS, "integer"),
    "DECIMAL": "decimal",
    "DOUBLE": "double",
    "FLOAT": "float",
    "CHAR": "text",
    "VARCHAR": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMP_LTZ": "ltz",
    "INTERVAL_DAY_TIME": "days",
    "INTERVAL_YEAR_MONTH": "months",
    "NULL": "null",
}
# Letters of Java's date patterns that Flink and Spark format in the same way for all timestamps. Characters that are
# not letters may stand between these letters.
_FORMAT = re.compile(r"(?:yyyy|MM|dd|HH|mm|ss|SSS|[^A-Za-z'\[\]{}#])*")
_JSON_PATH = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*)+")
_DAY = 86_400_000  # Milliseconds of a day.
_REMEDY = "remove it from the backfilled script, or compute these rows with Flink in batch mode"


def spark_type(data_type: DataType) -> str | None:
    """Spark SQL type that can store the values of a Flink type; None if Spark has no such type."""
    if data_type.name == "DECIMAL":
        return f"DECIMAL({data_type.parameters[0]}, {data_type.parameters[1]})"
    if data_type.name in ("TIMESTAMP", "TIMESTAMP_LTZ") and data_type.parameters and data_type.parameters[0] > 6:
        return None  # Spark stores only microseconds.
    return _SPARK_TYPES.get(data_type.name)


def quoted(text: str) -> str:
    """A Spark SQL string literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"


def typed(expression: Expression) -> Expression:
    """Derive the result types that depend on constants of the expression, such as the digits of ROUND."""
    if not isinstance(expression, FunctionCall):
        return expression
    args = tuple(typed(arg) for arg in expression.args)
    result = expression.type if expression.type.is_known else functions.call_type(expression.function, args)
    return replace(expression, args=args, type=result)


def references(expressions: Sequence[Expression]) -> frozenset[int]:
    """Indexes of all input columns that expressions use."""
    found: set[int] = set()
    pending = list(expressions)
    while pending:
        part = pending.pop()
        if isinstance(part, InputRef):
            found.add(part.index)
        elif isinstance(part, FunctionCall):
            pending += part.args
    return frozenset(found)


def aggregate_references(call: AggregateCall) -> frozenset[int]:
    """Indexes of all input columns that an aggregate call uses."""
    return references((*call.args, *(() if call.filter is None else (call.filter,))))


def read_by(keys: Sequence[Expression], calls: Iterable[AggregateCall]) -> frozenset[int]:
    """Indexes of all input columns that an aggregation uses."""
    return references(keys).union(*(aggregate_references(call) for call in calls))


def scalar(expression: Expression) -> str:
    """Spark SQL for a scalar expression; raises :class:`Untranslatable` with its place in the script."""
    return _scalar(typed(expression))


def grouped(expression: Expression) -> str:
    """Spark SQL for an expression that groups, distinguishes or partitions rows."""
    return _grouped(typed(expression))


def _grouped(expression: Expression) -> str:
    text = _scalar(expression)
    return distinguished(text) if expression.type.name in APPROXIMATE else text


def _scalar(expression: Expression) -> str:
    if isinstance(expression, InputRef):
        return f"c{expression.index}"
    if isinstance(expression, Literal):
        return _literal(expression)
    if not isinstance(expression, FunctionCall):
        raise Untranslatable(f"{type(expression).__name__} is not a value that Spark can compute", expression.span)
    return _call(expression)


def _literal(literal: Literal) -> str:
    value, kind = literal.value, literal.type
    if value is None:
        return f"CAST(NULL AS {spark_type(kind)})" if kind.name != "NULL" and spark_type(kind) else "NULL"
    if kind.name in CHARACTERS:
        return quoted(str(value))
    if kind.name == "BOOLEAN":
        return "TRUE" if value else "FALSE"
    if kind.name in INTEGERS or kind.name in ("DECIMAL", "DOUBLE", "FLOAT"):
        written = f"{value:f}" if isinstance(value, Decimal) else repr(value)
        return f"CAST('{written}' AS {spark_type(kind)})"
    if kind.name == "DATE":
        return f"DATE {quoted(str(value))}"
    if kind.name == "TIMESTAMP":
        return f"TIMESTAMP_NTZ {quoted(str(value))}"
    if kind.name == "INTERVAL_DAY_TIME" and isinstance(value, int):
        sign = "-" if value < 0 else ""
        return f"INTERVAL '{sign}{abs(value) // 1000}.{abs(value) % 1000:03d}' SECOND"
    if kind.name == "INTERVAL_YEAR_MONTH" and isinstance(value, int):
        return f"INTERVAL '{value}' MONTH"
    raise Untranslatable(f"a constant of type {kind} has no exact translation to Spark; {_REMEDY}", literal.span)


_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def _negated(condition: Expression) -> Expression | None:
    """Move a NOT into its condition, as Flink's planner does; None if the NOT cannot be moved.

    Spark's planner would simplify the original NOT inexactly for numbers that may be NaN.
    """
    if not isinstance(condition, FunctionCall):
        return None
    if condition.function in ("AND", "OR"):
        other = "OR" if condition.function == "AND" else "AND"
        parts = tuple(_negated(arg) or FunctionCall("NOT", (arg,), arg.type, arg.span) for arg in condition.args)
        return replace(condition, function=other, args=parts)
    opposite = _OPPOSITE.get(condition.function)
    return None if opposite is None else replace(condition, function=opposite)


def _call(call: FunctionCall) -> str:
    if call.function == "NOT" and (inside := _negated(call.args[0])) is not None:
        return _scalar(inside)
    if call.function in localtime.CALLS:
        return localtime.translated(call, _scalar(call.args[0]))
    spec = functions.lookup(call.function)
    if spec is None:
        raise Untranslatable(f"the function {call.function} cannot run in Spark; {_REMEDY}", call.span)
    if (shape := BRANCHES.get(spec.name)) is not None:
        return _branches(call, shape)
    if (reason := regexes.reason_against(call)) is not None:
        raise Untranslatable(f"{call.function} has no exact translation to Spark: {reason}; {_REMEDY}", call.span)
    translations = translations_of(spec)
    chosen = _choose(translations, call.args, call.type)
    if chosen is None:
        raise _no_translation(call.function, bool(translations), call)
    return _fill(chosen, call.args, call.type)


def _no_translation(name: str, known: bool, call: FunctionCall | AggregateCall) -> Untranslatable:
    if not known:
        return Untranslatable(f"{name} has no exact translation to Spark; {_REMEDY}", call.span)
    types = ", ".join(str(arg.type) for arg in call.args if arg.type.name != "SYMBOL")
    into = f" to {call.type}" if name in ("CAST", "TRY_CAST") else ""
    constants = [str(arg.value) for arg in call.args if isinstance(arg, Literal) and arg.value is not None]
    among = f" and the constant {', '.join(constants)}" if constants and not into else ""
    return Untranslatable(
        f"{name} of {types or 'nothing'}{into}{among} has no exact translation to Spark; {_REMEDY}", call.span
    )


def _branches(call: FunctionCall, shape: str) -> str:
    args = call.args
    if shape == "case":
        parts = [
            f"WHEN {_scalar(args[i])} THEN {converted(args[i + 1], call.type)}" for i in range(0, len(args) - 1, 2)
        ]
        return f"(CASE {' '.join(parts)} ELSE {converted(args[-1], call.type)} END)"
    if shape == "if" and len(args) == 3:
        return f"IF({_scalar(args[0])}, {converted(args[1], call.type)}, {converted(args[2], call.type)})"
    return f"coalesce({', '.join(converted(arg, call.type) for arg in args)})"


def converted(expression: Expression, target: DataType) -> str:
    """Convert an expression to a type with Flink's implicit rules. Texts keep their length."""
    expression = typed(expression)
    if not target.is_known:
        raise Untranslatable(f"the type of this expression is unknown; {_REMEDY}", expression.span)
    if {expression.type.name, target.name} <= set(CHARACTERS) or _plain(expression.type) == _plain(target):
        return _scalar(expression)
    return _call(FunctionCall("CAST", (expression,), target, expression.span))


def _plain(data_type: DataType) -> DataType:
    return replace(data_type, nullable=True)


Part = Callable[[str, str], str]
"""Function that returns Spark SQL for a part of an aggregate.

The arguments are the name of the part in PARTS, and SQL that computes the part from rows.
"""


def _over_rows(name: str, text: str) -> str:
    return text


def aggregate(call: AggregateCall, others: Sequence[AggregateCall] = (), part: Part = _over_rows) -> str:
    """Spark SQL for an aggregate call. Raises :class:`Untranslatable` with the place in the script.

    ``others``: All aggregate calls that are computed together. If the calls include SUM and COUNT of the same values,
    Flink's planner may compute AVG as their quotient. If the sum of integers overflows, this quotient is not the
    average, so the SQL then raises an error.
    """
    text = _without_overflow(call, _aggregate(call, part), part)
    kind = call.args[0].type.name if len(call.args) == 1 else ""
    if call.function != "AVG" or kind not in INTEGERS or kind == "BIGINT":
        return text
    other_calls = {other.function for other in others if other.args == call.args}
    if not {"SUM", "COUNT"} <= other_calls:
        return text
    total = part("sum", _part("sum", [scalar(call.args[0])], call))
    message = (
        f"{ERROR}AVG depends on Flink's planner if SUM and COUNT of the same values are also computed and the sum "
        f"does not fit into {kind}"
    )
    return f"IF({total} <> CAST({total} AS {kind}), raise_error({quoted(message)}), {text})"


EXACT_SUM = 28
"""Largest precision of a DECIMAL whose sum cannot overflow. A sum has ten more digits than its values."""


def _without_overflow(call: AggregateCall, text: str, part: Part) -> str:
    """Make a sum fail if an intermediate value may overflow.

    On overflow, Spark would return NULL, and Flink restarts the sum.

    The check adds absolute values, so the order of rows has no effect. The check reserves one digit for sums that are
    merged later.
    """
    kind = typed(call.args[0]).type if len(call.args) == 1 else UNKNOWN
    if call.function not in ("SUM", "AVG") or kind.name != "DECIMAL" or kind.parameters[0] <= EXACT_SUM:
        return text
    size = part("sum", _part("sum", [f"abs(CAST({scalar(call.args[0])} AS DOUBLE))"], replace(call, distinct=False)))
    message = (
        f"{ERROR}the sum in {call.function} of {kind} may exceed {38 - kind.parameters[1]} digits, and Flink "
        "restarts a sum at the row that overflows; compute these rows with Flink"
    )
    return f"IF({size} >= 1e{37 - kind.parameters[1]}, raise_error({quoted(message)}), {text})"


def _part(name: str, args: Sequence[str], call: AggregateCall) -> str:
    condition = "" if call.filter is None else f" FILTER (WHERE {scalar(call.filter)})"
    return PARTS[name][0].format(*args, distinct="DISTINCT " if call.distinct else "", filter=condition)


def _aggregate(call: AggregateCall, part: Part) -> str:
    args = tuple(typed(arg) for arg in call.args)
    call = replace(call, args=args, type=call.type if call.type.is_known else UNKNOWN)
    spec = functions.lookup(call.function) if call.language == "builtin" else None
    if spec is None:
        raise Untranslatable(f"the aggregate {call.function} cannot run in Spark; {_REMEDY}", call.span)
    if call.order_by:
        raise Untranslatable(f"{call.function} with ORDER BY has no exact translation to Spark; {_REMEDY}", call.span)
    result = call.type if call.type.is_known else spec.result_type(tuple(arg.type for arg in args))
    translations = translations_of(spec)
    chosen = _choose(translations, args, result)
    if chosen is None or (call.distinct and not args):
        raise _no_translation(call.function, bool(translations), call)
    texts = [_aggregated(arg, call) for arg in args]
    used = [name for name in PARTS if f"{{{name}}}" in chosen.spark]
    return _fill(chosen, args, result, {name: part(name, _part(name, texts, call)) for name in used})


def _aggregated(arg: Expression, call: AggregateCall) -> str:
    if call.distinct:
        return _grouped(arg)
    text = _scalar(arg)
    return ordered(text) if arg.type.name == "DOUBLE" and call.function in ("MIN", "MAX") else text


def _choose(translations: Sequence[Translation], args: Sequence[Expression], result: DataType) -> Translation | None:
    for translation in translations:
        if _fits(translation, args, result):
            return translation
    return None


def _fits(translation: Translation, args: Sequence[Expression], result: DataType) -> bool:
    takes = translation.takes
    repeated = bool(takes) and takes[-1].endswith("*")
    if len(args) != len(takes) and not (repeated and len(args) >= len(takes)):
        return False
    for position, arg in enumerate(args):
        wanted = takes[min(position, len(takes) - 1)].rstrip("*").split("|")
        if not any(kind in wanted for kind in _classes(arg)):
            return False
    return translation.gives == "any" or any(
        kind in translation.gives.split("|") for kind in _result_classes(result, args)
    )


def _classes(arg: Expression) -> Iterator[str]:
    yield "any"
    kind = _CLASSES.get(arg.type.name)
    # An interval must be a constant. A column whose type Spark cannot store has no class.
    if kind is not None and (isinstance(arg, Literal) if kind in ("days", "months") else spark_type(arg.type)):
        yield kind
        if arg.type.name in ("TINYINT", "SMALLINT", "INT"):
            yield "int"
        if kind == "decimal" and arg.type.parameters[1] <= 6:
            yield "decimal6"
    if isinstance(arg, Literal):
        yield from _constant_classes(arg)


def _constant_classes(arg: Literal) -> Iterator[str]:
    value = arg.value
    if arg.type.name == "SYMBOL":
        yield str(value).strip().upper()
    elif isinstance(value, str) and arg.type.name in CHARACTERS:
        yield "constant"
        if value:
            yield "some"
        if "\\" not in value:
            yield "pattern" if "_" in value else "simple"
        if _JSON_PATH.fullmatch(value):
            yield "json-path"
        if _FORMAT.fullmatch(value) and value:
            yield "format"
    elif isinstance(value, int) and not isinstance(value, bool):
        yield f"={value}"
        yield "constant-number"
        if _CLASSES.get(arg.type.name) == "days" and value % _DAY == 0:
            yield "whole-days"
        if value >= 1:
            yield "position"
        if value >= 0:
            yield "digits"


def _result_classes(result: DataType, args: Sequence[Expression]) -> Iterator[str]:
    if spark_type(result) is None:
        return
    kind = _CLASSES.get(result.name)
    if kind == "text" and result.name == "VARCHAR":
        yield "string" if result.parameters == (MAX_LENGTH,) else "varchar"
    elif kind == "timestamp":
        if args and args[0].type.name == "TIMESTAMP" and args[0].type.parameters <= result.parameters:
            yield "same-or-finer"
        if result.parameters and result.parameters[0] >= 3:
            yield "milliseconds"
        yield kind
    elif kind not in (None, "text"):
        yield str(kind)
        if kind == "decimal" and result.parameters[0] > result.parameters[1]:
            yield "roomy"


def _as_decimal(arg: Expression, text: str) -> str:
    exact = as_decimal(arg.type)
    return text if exact is None or arg.type.name == "DECIMAL" else f"CAST({text} AS DECIMAL({exact[0]}, {exact[1]}))"


def _regex(pattern: Expression) -> str:
    """Convert a LIKE pattern to Flink's regular expression, in which ``_`` does not match a line end."""
    return quoted(f"\\A{_escaped(pattern, {'_': '.', '%': '(?s:.*)'})}\\z")


def _escaped(constant: Expression, parts: Mapping[str, str]) -> str:
    """Escape a constant text for a regular expression, but replace each character that is in ``parts``."""
    text = str(constant.value) if isinstance(constant, Literal) else ""
    return "".join(parts.get(c, c if c.isalnum() or not c.isascii() else f"\\{c}") for c in text)


def _end(data_type: DataType) -> int:
    """Length of the text ``yyyy-MM-dd HH:mm:ss[.fraction]`` at a type's precision."""
    precision = data_type.parameters[0] if data_type.name == "TIMESTAMP" and data_type.parameters else 0
    return 20 + precision if precision else 19


def _fill(
    translation: Translation, args: Sequence[Expression], result: DataType, parts: Mapping[str, str] | None = None
) -> str:
    texts = ["" if arg.type.name == "SYMBOL" else _scalar(arg) for arg in args]
    first = args[0].type if args else BIGINT
    values: dict[str, object] = {
        **{f"d{i}": _as_decimal(arg, texts[i]) for i, arg in enumerate(args)},
        "args": ", ".join(texts),
        "rest": ", ".join(texts[1:]),
        "drest": ", ".join(_as_decimal(arg, text) for arg, text in zip(args[1:], texts[1:], strict=True)),
        "and": " AND ".join(texts),
        "or": " OR ".join(texts),
        "unknown": " OR ".join(f"{text} IS NULL" for text in texts),
        "type": spark_type(result if result.is_known else BOOLEAN),
        "length": result.parameters[0] if result.parameters else 0,
        "end": _end(result),
        "end0": _end(first),
        **({"regex1": _regex(args[1])} if len(args) == 2 else {}),
        **({"plain1": quoted(_escaped(args[1], {}))} if len(args) == 3 else {}),
        "scale0": first.parameters[1] if first.name == "DECIMAL" else 0,
        **(parts or {}),
    }
    return translation.spark.format(*texts, **values)
