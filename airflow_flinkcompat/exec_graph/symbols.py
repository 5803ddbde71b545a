"""Symbols: equal numbers for columns or rows of two compiled plans that have the same meaning.

Each distinct value has one number (hash-consing), so comparing deep plans takes linear time.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_flinkcompat.exec_graph.layout import StateField, Stored, column_field, stored_type
from airflow_flinkcompat.plan.column_lineage import Composition, together
from airflow_flinkcompat.plan.functions import ANEW_FOR_EACH_ROW

Symbol = int
_BOUNDS = ("window_start", "window_end", "window_time")
_PROPERTIES = {"WindowStart": "window_start", "WindowEnd": "window_end", "Rowtime": "window_time"}
"""Window bounds and the event time of a window, by their names in the JSON of an aggregation."""


def _named_part(key: str, configured: object) -> Hashable:
    """Find the value of a key at any depth of a configuration; None if the key is missing."""
    if not isinstance(configured, tuple | list):
        return None
    if len(configured) == 2 and configured[0] == key:
        found: Hashable = configured[1]
        return found
    return next((found for part in configured if (found := _named_part(key, part)) is not None), None)


def _called(internal: str) -> str:
    """The plain name of a function: CASE for ``$CASE$1``."""
    return internal.strip("$").rpartition("$")[0] or internal.strip("$")


_EITHER_WAY = frozenset({"$AND$1", "$OR$1", "$=$1", "$<>$1", "$+$1", "$*$1"})
_MIRRORED = {"$<$1": "$>$1", "$<=$1": "$>=$1"}
_CASE, _COALESCE = "$CASE$1", "$COALESCE$1"
_WIDENS = frozenset({"$=$1", "$<>$1", "$>$1", "$>=$1", "$<$1", "$<=$1", "$SEARCH$1", _CASE, _COALESCE})
_INTEGERS = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT"})
_EXACT_IN_FLOAT = 2**24


class Symbols:
    """A table of numbers for values. Equal values have equal numbers."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, Symbol] = {}
        self._values: list[tuple[Hashable, ...]] = []
        self._compositions: dict[Symbol, Composition | None] = {}

    def of(self, *parts: Hashable) -> Symbol:
        number = self._numbers.setdefault(parts, len(self._values))
        if number == len(self._values):
            self._values.append(parts)
        return number

    def number(self, value: Symbol | tuple[Hashable, ...]) -> Symbol:
        """The number of a value; a number is returned unchanged."""
        return value if isinstance(value, int) else self.of(*value)

    def columns_of(self, value: Symbol | tuple[Hashable, ...]) -> frozenset[Hashable]:
        """The columns from which an expression is computed; a value of unknown shape is returned unchanged."""
        parts = self._values[value] if isinstance(value, int) else value
        match parts:
            case ("call", _, tuple() as operands, *_) if operands:
                return frozenset().union(*(self.columns_of(operand) for operand, _ in operands))
            case ("literal" | "constant", *_):
                return frozenset()
        return frozenset({value})

    def is_decided_by(self, value: Symbol | tuple[Hashable, ...], columns: frozenset[Hashable]) -> bool:
        """True if an expression is deterministic and depends only on these columns."""
        if value in columns:
            return True
        parts = self._values[value] if isinstance(value, int) else value
        match parts:
            case ("call", str() as name, tuple() as operands, *_) if name and _called(name) not in ANEW_FOR_EACH_ROW:
                computed = [each for each, _ in operands if self._values[each][0] != "literal"]
                return bool(computed) and all(self.is_decided_by(each, columns) for each in computed)
        return False

    def composition(self, value: Hashable) -> Composition | None:
        """The composition of a column, traced through all operators to the tables."""
        if not isinstance(value, int):
            return self._composed(value) if isinstance(value, tuple) else None
        if value not in self._compositions:
            self._compositions[value] = self._composed(self._values[value])
        return self._compositions[value]

    def _composed(self, parts: tuple[Hashable, ...]) -> Composition | None:
        match parts:
            case ("column" | "metadata", *_):
                return Composition(frozenset({parts}))
            case ("call", str() as name, tuple() as operands, *_):
                called = Composition(functions=frozenset({_called(name)}))
                return together([called, *(self.composition(operand) for operand, _ in operands)])
            case ("literal", str() as written, *_):
                return Composition(literals=frozenset({str(json.loads(written))}))
            case ("from", _, int() as column):
                return self.composition(column)
            case ("from", _, ((str(), _), *_) as call):
                return self.composition_of_call(call)
            case ("window field", int() as window, int() as place) if place < len(_BOUNDS):
                return self._of_window(self._values[window], _BOUNDS[place])
            case ("from", int() as op, str() as property) if property in _PROPERTIES:
                windowing = [each for each in self._values[op][1:] if isinstance(each, tuple) and each[0] == "window"]
                return self._of_window(windowing, _PROPERTIES[property])
            case ("of union", _, tuple() as of_inputs):
                return together(map(self.composition, of_inputs))
        return None

    def _of_window(self, window: object, bound: str) -> Composition | None:
        """The composition of a window bound: the time attribute of its rows."""
        time = _named_part("timeAttributeIndex", window)
        return together([Composition(functions=frozenset({bound})), self.composition(time)])

    def composition_of_call(self, call: Hashable) -> Composition | None:
        """The composition of an aggregate call."""
        assert isinstance(call, tuple)
        parts = dict(call)
        condition = parts.get("filterArg")
        name = parts.get("internalName")
        called = Composition(functions=frozenset({_called(name)} if isinstance(name, str) else ()))
        over = [*(parts.get("argList") or ()), *([] if condition is None else [condition])]
        return together([called, *map(self.composition, over)])

    def filtered(self, rows: Symbol, conditions: frozenset[Symbol]) -> Symbol:
        """The rows that meet all conditions; consecutive filters become one."""
        match self._values[rows]:
            case ("filtered", int(below), frozenset() as earlier):
                return self.of("filtered", below, earlier | conditions)
        return self.of("filtered", rows, conditions) if conditions else rows

    def normalized(self, rows: Symbol, operator: Symbol) -> Symbol:
        """The rows with complete updates and deletions, without repeated rows."""
        return self.of("normalized", rows, operator)

    def before_normalization(self, rows: Symbol) -> Symbol:
        """The rows of the source, if a ChangelogNormalize completes them."""
        match self._values[rows]:
            case ("normalized", int(below), _):
                return below
        return rows

    def root(self, value: Symbol) -> Symbol | None:
        """The expression that a product multiplies by itself; None for other expressions."""
        match self._values[value]:
            case ("call", "$*$1", ((int(one), str()), (int(other), str())), *_) if one == other:
                return one
        return None

    def integer(self, value: Symbol) -> int | None:
        """The value of an integer literal; None for other expressions."""
        match self._values[value]:
            case ("literal", str() as written, str() as kind, *_) if kind in _INTEGERS:
                found = json.loads(written)
                return found if isinstance(found, int) else None
        return None

    def narrowed(self, rows: Symbol, below: Symbol) -> frozenset[Symbol] | None:
        """The conditions that reduce ``below`` to ``rows``; None if no filter relates them."""
        match self._values[rows], self._values[below]:
            case ("filtered", int(one), frozenset() as more), ("filtered", int(other), frozenset() as fewer):
                return more - fewer if one == other and more > fewer else None
            case ("filtered", int(one), frozenset() as more), _:
                return more if one == below else None
        return None

    def is_true(self, value: Symbol | tuple[Hashable, ...]) -> bool:
        """True if an expression is the literal TRUE."""
        return isinstance(value, int) and self._values[value][:2] == ("literal", "true")

    def meaning_without_filter(self, rows: Symbol) -> Symbol:
        """The rows without their filter, which is in a Calc or pushed into the source."""
        match self._values[rows]:
            case ("filtered", int(below), frozenset()):
                return below
        return rows


@dataclass(frozen=True)
class ColumnMeanings:
    """The meaning of a node's output: its rows, and its columns with names and types.

    ``before`` and ``window`` are the inputs and the window of a local aggregation, to which its global aggregation
    refers. ``at_window_end`` is True if all rows are emitted at the end of their window. ``appends`` is True if rows
    are certainly only added.
    """

    symbols: tuple[Symbol, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: Symbol
    before: ColumnMeanings | None = field(default=None, repr=False)
    window: Hashable = None
    at_window_end: bool = False
    appends: bool = False

    def at(self, place: int) -> Symbol | tuple[str, int]:
        """The meaning of a column by position; a position beyond the columns stands for a constant."""
        return self.symbols[place] if 0 <= place < len(self.symbols) else ("place", place)

    def named(self, name: str) -> Symbol | tuple[str, str]:
        return self.symbols[self.names.index(name)] if name in self.names else ("name", name)


def joined(inputs: Sequence[ColumnMeanings]) -> ColumnMeanings:
    """The columns of all inputs as numbered in join conditions, with the row meaning of the first input."""
    return ColumnMeanings(
        tuple(symbol for each in inputs for symbol in each.symbols),
        tuple(name for each in inputs for name in each.names),
        tuple(kind for each in inputs for kind in each.types),
        inputs[0].rows,
    )


def expression(rex: Mapping[str, Any], columns: ColumnMeanings, symbols: Symbols) -> Symbol:
    """The meaning of an expression, with references resolved and commutative operands sorted."""
    match rex.get("kind"):
        case "INPUT_REF":
            return symbols.number(columns.at(rex["inputIndex"]))
        case "LITERAL":
            return symbols.of("literal", json.dumps(rex.get("value"), sort_keys=True), plain(rex.get("type")),
                              frozen({k: v for k, v in rex.items() if k not in ("kind", "value", "type")}))  # fmt: skip
        case "FIELD_ACCESS" if rex.get("expr", {}).get("kind") == "CORREL_VARIABLE":
            return symbols.number(columns.named(rex["name"]))
        case "CALL" if rex.get("internalName") == "$REINTERPRET$1":  # it converts a column to a time attribute
            return expression(rex["operands"][0], columns, symbols)
        case "CALL":
            return _call(rex, columns, symbols)
    return symbols.of("expression", rex.get("name"), resolved(rex, columns, symbols, inside=True))


def _call(rex: Mapping[str, Any], columns: ColumnMeanings, symbols: Symbols) -> Symbol:
    name, parts = _one_spelling(rex.get("internalName", ""), list(rex.get("operands", ())))
    if name in _WIDENS:
        parts = [_without_width(each) for each in parts]
    # The result of a call may depend on operand types, such as CAST(1 AS STRING) and CAST(1.0 AS STRING).
    operands: list[Hashable] = [(expression(each, columns, symbols), plain(each.get("type"))) for each in parts]
    rest = {k: v for k, v in rex.items() if k not in ("kind", "operands", "type", "internalName", "syntax")}
    if name in _MIRRORED:
        name, operands = _MIRRORED[name], operands[::-1]
    if name in _EITHER_WAY:
        operands = sorted(operands, key=repr)
    # Only the result type of a CAST shows its target type.
    return symbols.of("call", name, tuple(operands), plain(rex.get("type")), resolved(rest, columns, symbols))


def _one_spelling(name: str, operands: list[Any]) -> tuple[str, list[Any]]:
    """Use one name for all names of the same function."""
    match name, operands:
        case "$IF$1", [_, _, _]:
            return _CASE, operands
        case "$IFNULL$1", [_, _]:
            return _COALESCE, operands
    return name, operands


def _without_width(operand: Mapping[str, Any]) -> Mapping[str, Any]:
    """A literal without the length of its type, because comparisons widen to the longer type."""
    if operand.get("kind") != "LITERAL":
        return operand
    kind, value = plain(operand.get("type")), operand.get("value")
    if kind in _INTEGERS and isinstance(value, int) and abs(value) <= _EXACT_IN_FLOAT:
        return {**operand, "type": "INTEGER"}
    if kind.startswith(("CHAR(", "VARCHAR(")) and not any(map(_ends_blank, _texts(operand))):
        return {**operand, "type": "TEXT"}
    return operand


def _texts(literal: Mapping[str, Any]) -> list[Any]:
    """The values of a literal, which may be a set of ranges."""
    ranges = literal.get("sarg", {}).get("ranges", ())
    return [literal.get("value"), *(end.get("value") for each in ranges for end in each.values())]


def _ends_blank(text: Any) -> bool:
    return isinstance(text, str) and text.endswith(" ")


def conjuncts(rex: Mapping[str, Any], columns: ColumnMeanings, symbols: Symbols) -> frozenset[Symbol]:
    """Split a condition into conjuncts."""
    if rex.get("kind") == "CALL" and rex.get("internalName") == "$AND$1":
        return frozenset().union(*(conjuncts(each, columns, symbols) for each in rex["operands"]))
    return frozenset({expression(rex, columns, symbols)})


_PLACE_FIELDS = frozenset(
    ("grouping", "argList", "filterArg", "uniqueKeys", "partitionKeys", "orderKey", "timeAttributeIndex", "windowStart",
     "windowEnd", "sliceEnd", "partition_key_indices", "inputUpsertKey", "index", "fields", "fieldIndex",
     "rowtimeFieldIndex", "leftKeys", "rightKeys", "leftTimeIndex", "rightTimeIndex", "leftTimeAttributeIndex",
     "rightTimeAttributeIndex", "primaryKeys", "leftUpsertKeys", "rightUpsertKeys")
)  # fmt: skip
"""Configuration fields that contain positions of input columns."""
_NO_MEANING = frozenset(("name", "fieldName", "alias", "approximate", "syntax"))
"""Configuration fields that contain a display name or an unresolved name."""


def resolved(value: Any, columns: ColumnMeanings, symbols: Symbols, *, inside: bool = False) -> Hashable:
    """Resolve the positions and expressions of a configuration, and drop default values."""
    if isinstance(value, Mapping):
        if not inside and value.get("kind") in ("INPUT_REF", "LITERAL", "CALL", "FIELD_ACCESS"):
            return expression(value, columns, symbols)
        return tuple(
            (key, _places(part, columns, symbols) if key in _PLACE_FIELDS else resolved(part, columns, symbols))
            for key, part in sorted(value.items())
            if key not in _NO_MEANING and not _default(part)
        )
    if isinstance(value, list):
        return tuple(resolved(part, columns, symbols) for part in value)
    return value if isinstance(value, Hashable) else repr(value)


def _places(value: Any, columns: ColumnMeanings, symbols: Symbols) -> Hashable:
    if isinstance(value, list):
        return tuple(_places(part, columns, symbols) for part in value)
    if isinstance(value, Mapping):  # a sort key contains its position and its order
        return resolved(value, columns, symbols)
    if isinstance(value, int) and not isinstance(value, bool):
        return None if value < 0 else columns.at(value)
    return frozen(value)


def _default(value: Any) -> bool:
    """True if a value is a default that some Flink versions do not write."""
    return value is None or value is False or value == [] or value == {}


def frozen(value: Any) -> Hashable:
    """Convert JSON to a hashable value."""
    return json.dumps(value, sort_keys=True) if isinstance(value, Mapping | list) else value


def plain(kind: Any) -> str:
    """A type as text, without nullability."""
    if isinstance(kind, Mapping):
        return json.dumps({key: part for key, part in kind.items() if key != "nullable"}, sort_keys=True)
    return str(kind).removesuffix(" NOT NULL")


def columns(read: ColumnMeanings, places: Iterable[int]) -> tuple[StateField, ...]:
    """State fields for the columns at these positions."""
    return tuple(column_field(stored_type(read.types[place]), read.at(place), read.names[place]) for place in places)


def row(read: ColumnMeanings, form: str = "row") -> Stored:
    """The stored form of a whole input row."""
    return Stored(form, columns(read, range(len(read.types))))
