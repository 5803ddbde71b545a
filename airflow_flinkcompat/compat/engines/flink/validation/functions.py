"""Argument types that Flink's validator refuses in calls and casts, by the 2.3.0 planner."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache

from airflow_flinkcompat.compat.engines.flink.validation import Fault
from airflow_flinkcompat.plan.expressions import (
    ACCESSES,
    AggregateCall,
    Expression,
    FunctionCall,
    Literal,
    called,
)
from airflow_flinkcompat.plan.functions import is_built_in
from airflow_flinkcompat.plan.nodes import (
    Aggregate,
    Correlate,
    Filter,
    GroupWindowAggregate,
    Join,
    Node,
    Opaque,
    Over,
    Project,
    Union,
    Values,
    walk_nodes,
)
from airflow_flinkcompat.plan.types import CHARACTERS, INTEGERS, DataType

KIND: Mapping[str, str] = {
    "CHAR": "t",
    "VARCHAR": "t",
    "BINARY": "x",
    "VARBINARY": "x",
    "BOOLEAN": "k",
    "TINYINT": "i",
    "SMALLINT": "i",
    "INT": "i",
    "BIGINT": "b",
    "DECIMAL": "c",
    "FLOAT": "f",
    "DOUBLE": "f",
    "DATE": "d",
    "TIME": "h",
    "TIMESTAMP": "w",
    "TIMESTAMP_LTZ": "z",
    "INTERVAL_DAY_TIME": "v",
    "INTERVAL_YEAR_MONTH": "v",
    "ARRAY": "a",
    "MAP": "m",
    "ROW": "r",
}


_NUMBERS, _WHOLE, _MOMENTS = "ibcf", "ib", "dhwz"


_ANY = "".join(dict.fromkeys(KIND.values()))


_JSON_RESULTS: Mapping[str, tuple[str, ...]] = {
    "JSON_VALUE": ("VARCHAR", "BOOLEAN", "INT", "DOUBLE"),
    "JSON_QUERY": ("VARCHAR", "ARRAY"),
}
"""Types that Flink's code generation supports in the RETURNING clause of these functions."""


_FORMS: Mapping[str, tuple[str, ...]] = {
    "UPPER LOWER INITCAP REVERSE URL_ENCODE URL_DECODE ASCII CHAR_LENGTH CHARACTER_LENGTH UNHEX": ("t",),
    "INSTR": ("t t", "t t ib", "t t ib ib"),
    "STARTSWITH ENDSWITH REGEXP REGEXP_COUNT REGEXP_INSTR REGEXP_SUBSTR ENCODE POSITION ||": ("t t",),
    "LIKE; SIMILAR TO": ("t t", "t t t"),
    "TRIM LTRIM RTRIM BTRIM TO_DATE TO_TIMESTAMP": ("t", "t t"),
    "CONCAT CONCAT_WS": ("t…",),
    "OVERLAY": ("tx t ib", "tx t ib ib"),
    "SUBSTRING SUBSTR": ("t ib", "t ib ib"),
    "LEFT RIGHT REPEAT": ("t ib",),
    "REPLACE TRANSLATE REGEXP_REPLACE CONVERT_TZ": ("t t t",),
    "LPAD RPAD": ("t ib t",),
    "REGEXP_EXTRACT LOCATE": ("t t", "t t ib"),
    "SPLIT_INDEX": ("t tib ib",),
    "PARSE_URL": ("t t", "t t t"),
    "STR_TO_MAP": ("t", "t t t"),
    "MD5 SHA1 SHA224 SHA256 SHA384 SHA512 TO_BASE64 FROM_BASE64": ("tx",),
    "SHA2": ("tx ib",),
    "DECODE": ("x t",),
    "HEX": ("tib",),
    "BIN CHR": ("ib",),
    "IS_DECIMAL IS_DIGIT IS_ALPHA": ("tibcf",),
    "ABS SIGN SQRT LN LOG10 LOG2 EXP SIN COS TAN COT ASIN ACOS ATAN SINH COSH TANH DEGREES RADIANS": (_NUMBERS,),
    "LOG": (_NUMBERS, f"{_NUMBERS} {_NUMBERS}"),
    "POWER": (f"{_NUMBERS} {_NUMBERS}",),
    "ATAN2": ("ibf ibf",),
    "MOD %": ("ibc ibc",),
    "ROUND TRUNCATE": (_NUMBERS, f"{_NUMBERS} i"),
    "FLOOR CEIL CEILING": (f"{_NUMBERS}{_MOMENTS}",),
    "NEG": (f"{_NUMBERS}v",),
    "+": (f"{_NUMBERS} {_NUMBERS}", f"{_MOMENTS} v", "v dhwv"),
    "-": (f"{_NUMBERS} {_NUMBERS}", f"{_MOMENTS}v v"),
    "*": (f"{_NUMBERS} {_NUMBERS}", "ib v", "v ib"),
    "/": (f"{_NUMBERS} {_NUMBERS}",),
    "JSON_EXISTS": ("t t",),
    "JSON_VALUE": (f"{_ANY} t", f"{_ANY} t {_ANY}", f"{_ANY} t {_ANY} {_ANY}"),
    "JSON_QUOTE JSON_UNQUOTE": ("t",),
    "CURRENT_WATERMARK": ("wz",),
    "RAND": ("", "i"),
    "RAND_INTEGER": ("i", "i i"),
    "UUID PI E": ("",),
    "YEAR QUARTER MONTH WEEK DAYOFYEAR DAYOFMONTH DAYOFWEEK": ("dwz",),
    "HOUR MINUTE SECOND": (_MOMENTS,),
    "EXTRACT": (f"{_MOMENTS}v",),
    "TIMESTAMPADD": (f"{_WHOLE} {_MOMENTS}",),
    "TIMESTAMPDIFF": ("dw dw", "z z"),
    "DATE_FORMAT": ("twz t",),
    "FROM_UNIXTIME": (_WHOLE, f"{_WHOLE} t"),
    "UNIX_TIMESTAMP": ("", "t", "t t"),
    "TO_TIMESTAMP_LTZ": (f"{_NUMBERS}t", f"{_NUMBERS} i", "t t", "t t t"),
    "CARDINALITY": ("am",),
    "ARRAY_DISTINCT ARRAY_REVERSE ARRAY_MAX ARRAY_MIN": ("a",),
    "ARRAY_CONTAINS ARRAY_POSITION ARRAY_REMOVE ARRAY_APPEND ARRAY_PREPEND": (f"a {_ANY}",),
    "ARRAY_CONCAT": ("a…",),
    "ARRAY_EXCEPT ARRAY_INTERSECT ARRAY_UNION MAP_FROM_ARRAYS": ("a a",),
    "ARRAY_JOIN": ("a t", "a t t"),
    "ARRAY_SLICE": ("a ib", "a ib ib"),
    "ARRAY_SORT": ("a", "a k", "a k k"),
    "ELT": ("ib tx…",),
    "PRINTF": ("t", f"t {_ANY}…"),
    "IF": (f"k {_ANY} {_ANY}",),
    "IFNULL NULLIF": (f"{_ANY} {_ANY}",),
    "COALESCE": (f"{_ANY}…",),
    "GREATEST LEAST": ("tkibcfdhwzv…",),
    "JSON_STRING": (_ANY,),
    "TYPEOF": (_ANY, f"{_ANY} k"),
    "NOW PROCTIME CURRENT_DATABASE": ("",),
    "MAP_UNION": ("m…",),
    "MAP_KEYS MAP_VALUES MAP_ENTRIES": ("m",),
    "ITEM": (f"a {_WHOLE}", f"mr {_ANY}"),
    "AND OR": ("k…",),
    "NOT; IS TRUE; IS NOT TRUE; IS FALSE; IS NOT FALSE; IS UNKNOWN; IS NOT UNKNOWN": ("k",),
    "SUM AVG STDDEV STDDEV_POP STDDEV_SAMP VARIANCE VAR_POP VAR_SAMP": (_NUMBERS,),
    "MIN MAX": ("tkibcfdhwz",),
    "LISTAGG": ("t", "t t"),
}
"""The argument lists that a function accepts, with the letters of the accepted types by position."""


_MIXED: Mapping[str, str] = {
    **dict.fromkeys(("CASE", "IF", "IN", "ARRAY"), "wz"),
    **dict.fromkeys(("COALESCE", "IFNULL", "GREATEST", "LEAST"), _MOMENTS),
}
"""Functions whose values need one common type, and the types besides numbers that have a common type."""


_TAKE_NULL = frozenset({
    "URL_ENCODE", "URL_DECODE", "UNHEX", "STARTSWITH", "ENDSWITH", "REGEXP_COUNT", "REGEXP_INSTR", "REGEXP_SUBSTR",
    "BTRIM", "TO_TIMESTAMP_LTZ", "PRINTF", "JSON_STRING", "TYPEOF", "COALESCE", "IFNULL", "NULLIF", "ARRAY_CONTAINS",
    "ARRAY_POSITION", "ARRAY_REMOVE", "ARRAY_APPEND", "ARRAY_PREPEND",
})  # fmt: skip
"""Functions of ``_FORMS`` that accept an untyped NULL at some position."""


_REFUSE_NULL = frozenset(["COUNT", "FIRST_VALUE", "LAST_VALUE", "LAG", "LEAD", "IF", "GREATEST", "LEAST"])


_ALL_NULL = frozenset({"CASE", "COALESCE", "IFNULL", "ARRAY"})
"""Functions that accept untyped NULL for some of their values, but not for all."""


_CAST_NULL = "an untyped NULL; write CAST(NULL AS the type)"


_ELEMENTS = ("ARRAY_CONTAINS", "ARRAY_POSITION", "ARRAY_REMOVE", "ARRAY_APPEND", "ARRAY_PREPEND")


_EQUAL = ("=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM", "NULLIF")


_ORDERED = ("<", "<=", ">", ">=")


_CASTS: Mapping[str, str] = {
    "t": "txkibcfdhwz",
    "x": "tx",
    "k": "tkibcf",
    **dict.fromkeys(_NUMBERS, "tkibcf"),
    "d": "tdwz",
    "h": "thwz",
    "w": "tdhwz",
    "z": "tdhwz",
    "a": "ta",
    "m": "tm",
    "r": "tr",
}


_LATE = frozenset({"JSON_EXISTS", "JSON_VALUE", "JSON_QUERY", "TIMESTAMPDIFF", "MIN", "MAX"})


_LATE_CASTS: Mapping[str, str] = {
    **dict.fromkeys(_NUMBERS, "wz"),
    "w": _NUMBERS,
    "z": _NUMBERS,
    "x": _MOMENTS,
    "t": "a",
}


def refused_call(function: str, types: Sequence[DataType], result: DataType) -> str:
    """Reason why Flink refuses the argument types of a call; "" if no reason is known."""
    if [type for type in types if not type.is_known]:
        return ""
    kinds = [_kind(type) for type in types]
    if "?" in kinds:
        return ""
    returned = _JSON_RESULTS.get(function)
    if returned is not None and result.is_known and result.name not in returned:
        return f"{function} cannot return {_type_name(result)}; use {', '.join(returned)}, and CAST the result"
    given = ", ".join(map(_type_name, types))
    if function in ("CAST", "TRY_CAST"):
        taken = result.name not in KIND or KIND[result.name] in _CASTS.get(kinds[0], _ANY)
        return "" if taken else f"{function} cannot convert a {given} to {_type_name(result)}; use a different function"
    if _has_untyped_null(function, kinds):
        return f"{function} is passed {_CAST_NULL}"
    if any(kind not in "k " for kind in _conditions(function, kinds)):
        return (
            f"a condition of {function} is not BOOLEAN: its arguments are ({given}); compare the value with "
            f"another value"
        )
    if function in _MIXED and not _alike(_values(function, kinds), _MIXED[function]):
        return f"the values of {function} have no common type: its arguments are ({given}); CAST them"
    if any(not _comparable(a, b, equal=function in _EQUAL) for a, b in _compared(function, kinds)):
        return f"{function} cannot compare ({given}); CAST one of them"
    if function in _ELEMENTS and len(types) == 2 and types[0].name == "ARRAY":
        inside = [_kind(types[0].elements[0]), kinds[1]]
        return (
            ""
            if "?" in inside or _alike(inside, _MOMENTS)
            else f"{function} does not accept ({given}); CAST the element"
        )
    forms = _forms().get(function)
    if forms is None or any(_takes(form, kinds) for form in forms):
        return ""
    return f"{function} does not accept ({given}); CAST the arguments, or pass the right number of them"


def is_refused_late(function: str, types: Sequence[DataType], result: DataType) -> bool:
    """True if Flink refuses a call when a query is planned, but accepts it in an unused view."""
    kinds = [_kind(type) for type in types]
    if function in ("CAST", "TRY_CAST"):
        return _kind(result) in _LATE_CASTS.get(kinds[0], "")
    pairs = _compared(function, kinds)
    return function in _LATE or any("t" in pair and {*pair} & {*_NUMBERS} for pair in pairs)


def mixed(types: Sequence[DataType]) -> str:
    """Reason why rows of a set operation or of VALUES cannot have these types in one column; else ""."""
    kinds = [_kind(type) for type in types]
    if "?" in kinds or not all(type.is_known for type in types) or _alike(kinds, "wz"):
        return ""
    return f"has no common type: {', '.join(dict.fromkeys(map(_type_name, types)))}; CAST them"


def _has_untyped_null(function: str, kinds: list[str]) -> bool:
    """True if Flink refuses a call because of an untyped NULL."""
    if " " not in kinds:
        return False
    if function in _ALL_NULL:
        return set(_values(function, kinds)) == {" "}
    if function == "NULLIF":
        return kinds[0] == " "
    return function in _REFUSE_NULL or (function in _forms() and function not in _TAKE_NULL)


@cache
def _forms() -> Mapping[str, tuple[tuple[str, ...], ...]]:
    read: dict[str, tuple[tuple[str, ...], ...]] = {}
    for names, forms in _FORMS.items():
        for name in names.split("; ") if ";" in names else names.split():
            read[name] = (*read.get(name, ()), *(tuple(form.split()) for form in forms))
    return read


def _kind(type: DataType) -> str:
    """The letter of a type; " " for NULL, which fits every type; "?" for a type without a letter."""
    return " " if type.name == "NULL" else KIND.get(type.name, "?")


def _takes(form: tuple[str, ...], kinds: list[str]) -> bool:
    if form and form[-1].endswith("…"):  # at least once
        form = (*form, *form[-1:] * (len(kinds) - len(form)))
    return len(form) == len(kinds) and all(
        kind == " " or kind in taken for taken, kind in zip(form, kinds, strict=True)
    )


def _conditions(function: str, kinds: list[str]) -> list[str]:
    return kinds[:-1:2] if function == "CASE" else kinds[:1] if function == "IF" else []


def _values(function: str, kinds: list[str]) -> list[str]:
    match function:
        case "CASE":
            return [*kinds[1:-1:2], *kinds[-1:]]
        case "IF" | "IN":
            return kinds[1:]
    return kinds


def _compared(function: str, kinds: list[str]) -> list[tuple[str, str]]:
    return [(kinds[0], other) for other in kinds[1:]] if function in (*_EQUAL, *_ORDERED, "IN") else []


def _alike(kinds: Iterable[str], together: str) -> bool:
    found = {next((group for group in (_NUMBERS, together) if kind in group), kind) for kind in kinds if kind != " "}
    return len(found) <= 1


def _comparable(left: str, right: str, *, equal: bool) -> bool:
    pair = {left, right}
    if len(pair) == 1 or " " in pair or pair <= set(_NUMBERS) or pair == {"w", "z"}:
        return True
    if "t" in pair:
        (other,) = pair - {"t"}
        return other in f"k{_MOMENTS}" or (not equal and other in _NUMBERS)
    return False


def _type_name(type: DataType) -> str:
    return str(type.with_nullability(True))


_CASTABLE_NUMBERS = frozenset({*INTEGERS, "DECIMAL", "FLOAT", "DOUBLE"})


_FROM: Mapping[str, frozenset[str]] = {
    "VARCHAR": frozenset(CHARACTERS),
    "VARBINARY": frozenset({"BINARY", "VARBINARY"}),
    **{name: frozenset(INTEGERS[: i + 1]) for i, name in enumerate(INTEGERS)},
    "DECIMAL": _CASTABLE_NUMBERS,
    "FLOAT": _CASTABLE_NUMBERS - {"DOUBLE"},
    "DOUBLE": _CASTABLE_NUMBERS,
    "DATE": frozenset({"DATE", "TIMESTAMP"}),
    "TIME": frozenset({"TIME", "TIMESTAMP"}),
    "TIMESTAMP": frozenset({"TIMESTAMP", "TIMESTAMP_LTZ"}),
    "TIMESTAMP_LTZ": frozenset({"TIMESTAMP", "TIMESTAMP_LTZ"}),
}
"""The types that Flink converts to a type without a CAST. Unlisted types accept only themselves."""


def is_implicitly_cast(source: DataType, target: DataType) -> bool | None:
    """True if Flink writes values of one type to a column of another type without a CAST; None if unknown."""
    if not (source.is_known and target.is_known) or "NULL" in (source.name, target.name):
        return None
    if source.elements or target.elements:
        alike = source.name == target.name and len(source.elements) == len(target.elements)
        return alike and all(is_implicitly_cast(a, b) for a, b in zip(source.elements, target.elements, strict=True))
    return source.name in _FROM.get(target.name, {target.name})


_BUILT_IN = "builtin"


def call_faults(root: Node, declared: Collection[str]) -> Iterator[Fault]:
    """Faults in a query's conditions and calls; names in ``declared`` (capitals) hide built-in functions."""
    for node in walk_nodes(root):
        yield from _rows(node)
        calls = _aggregates(node)
        conditions = _node_conditions(node, calls)
        for condition in conditions:
            if condition.type.is_known and condition.type.name not in ("BOOLEAN", "NULL"):
                kind = condition.type.with_nullability(True)
                yield Fault("condition", f"a condition is a {kind}; compare the value with another value")
        for call in calls:
            if call.language == _BUILT_IN:
                yield from _of(call, declared)
        for expression in (*conditions, *_expressions(node, calls)):
            if isinstance(expression, FunctionCall):
                yield from expression_call_faults(expression, declared)


def expression_call_faults(expression: Expression, declared: Collection[str]) -> Iterator[Fault]:
    """Faults that Flink finds in one expression."""
    for call in called(expression):
        yield from _of(call, declared)


def view_call_faults(root: Node, declared: Collection[str]) -> Iterator[Fault]:
    """Faults in calls that Flink refuses in a view's declaration, even if no query reads the view."""
    yield from (fault for fault in call_faults(root, declared) if not fault.late)


def called_functions(root: Node) -> Iterator[str]:
    """The names of the functions that a query calls."""
    for node in walk_nodes(root):
        calls = _aggregates(node)
        yield from (call.function for call in calls)
        for expression in (*_node_conditions(node, calls), *_expressions(node, calls)):
            if isinstance(expression, FunctionCall):
                yield from (call.function for call in called(expression))
        if isinstance(node, Correlate):
            yield node.function


def unknown_function_faults(names: Iterable[str], declared: Collection[str]) -> Iterator[Fault]:
    """Uncertain faults for functions that are neither built in nor declared."""
    for name in dict.fromkeys(names):
        if not (is_built_in(name) or name in (*ACCESSES, "UNNEST") or name.upper() in declared):
            yield Fault(
                f"function {name}",
                f"{name} is not a built-in function, and the script does not declare it",
                certain=False,
            )


def _of(call: FunctionCall | AggregateCall, declared: Collection[str]) -> Iterator[Fault]:
    types = [arg.type for arg in call.args if arg.type.name != "SYMBOL"]
    if call.function not in declared and (why := refused_call(call.function, types, call.type)):
        yield Fault(f"arguments of {call.function}", why, late=is_refused_late(call.function, types, call.type))
    if call.function == "LIKE" and len(call.args) > len(("value", "pattern")) and (why := _escaped(*call.args[1:])):
        yield Fault("escape", why, late=True)


def _rows(node: Node) -> Iterator[Fault]:
    """Faults of columns in a set operation, or in VALUES, whose types have no common type."""
    match node:
        case Union(branches=inputs):
            rows = [[column.type for column in each.schema] for each in inputs]
        case Opaque(inputs=inputs, kind=kind) if kind.startswith(("INTERSECT", "EXCEPT")):
            rows = [[column.type for column in each.schema] for each in inputs]
        case Values():
            rows = [[cell.type for cell in row] for row in node.rows]
        case _:
            return
    what = "VALUES" if isinstance(node, Values) else "a set operation"
    for place, types in enumerate(zip(*rows, strict=False), start=1):
        if why := mixed(types):
            yield Fault("types of rows", f"column {place} of {what} {why}", late="DATE" in why)


def _escaped(pattern: Expression, escape: Expression) -> str:
    """Reason why Flink refuses an ESCAPE; "" if Flink accepts it, or if a part is not a literal."""
    if not (isinstance(escape, Literal) and isinstance(escape.value, str)):
        return ""
    sign = escape.value
    if len(sign) > 1:
        return f"ESCAPE accepts one character, but '{sign}' has {len(sign)}"
    if not sign or not (isinstance(pattern, Literal) and isinstance(pattern.value, str)):
        return ""
    escaped = re.sub(rf"{re.escape(sign)}[_%{re.escape(sign)}]", "", pattern.value)
    return f"'{sign}' in '{pattern.value}' escapes neither _, % nor itself" if sign in escaped else ""


def _node_conditions(node: Node, calls: tuple[AggregateCall, ...]) -> list[Expression]:
    if isinstance(node, Filter | Join):
        return [] if node.condition is None else [node.condition]
    return [call.filter for call in calls if call.filter is not None] if calls else []


def _aggregates(node: Node) -> tuple[AggregateCall, ...]:
    if isinstance(node, Aggregate | GroupWindowAggregate):
        return node.aggregates
    return tuple([each.call for each in node.calls]) if isinstance(node, Over) else ()


def _expressions(node: Node, calls: tuple[AggregateCall, ...]) -> list[Expression]:
    found: list[Expression] = []
    if isinstance(node, Project):
        found += node.expressions
    elif isinstance(node, Aggregate | GroupWindowAggregate):
        found += node.keys
    for call in calls:
        found += call.args
    return found
