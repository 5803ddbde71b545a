"""The layout of an operator's state: named states, keys, and fields with their types and meanings."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from airflow_flinkcompat.plan.column_lineage import Composition
from airflow_flinkcompat.plan.types import MAX_LENGTH, DataType
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, RowFraming


class StateNamespace(StrEnum):
    """Namespace of a state. The key and the namespace together identify a value."""

    NONE = "nothing"
    WINDOW_END = "end of a window or slice"
    WINDOW = "window"

    @property
    def size(self) -> int:
        """Number of bytes that the namespace occupies in a stored key."""
        return {StateNamespace.NONE: 1, StateNamespace.WINDOW_END: 8, StateNamespace.WINDOW: 16}[self]


class Begins(StrEnum):
    """Content of a field before the first row."""

    NULL = "no value"
    ZERO = "0"
    EMPTY_VIEW = "an empty map"
    NO_SPREAD = "number, mean and spread of no values"


class Merges(StrEnum):
    """Merge of a field's values when two keys become one."""

    ADDED = "their sum"
    LEAST = "the lesser"
    GREATEST = "the greater"


def call_parts(over: Hashable) -> tuple[tuple[Any, ...], bool, Any]:
    """Split a call into its arguments, True for DISTINCT, and its filter."""
    assert isinstance(over, tuple)
    parts = dict(over)
    return tuple(parts.get("argList") or ()), bool(parts.get("distinct")), parts.get("filterArg")


@dataclass(frozen=True)
class CallPart:
    """The meaning of an accumulator field: one part of the result of a call.

    Attributes:
        function: The function's name in compiled plans, without version and special characters.
        over: The arguments, DISTINCT and filter of the call.
        part: The part, such as ``sum`` or ``count`` of an average.
        square_of: For a call over the squares of an expression, the call's input without the squaring; else None.
    """

    function: str
    over: Hashable
    part: str
    square_of: Hashable = field(default=None, compare=False)

    @property
    def call(self) -> Hashable:
        """The call to which this part belongs."""
        return self.function, self.over

    @property
    def content(self) -> Hashable:
        """The sum or count that the field stores, equal for all functions; None for other parts."""
        return (self.part, self.over) if self.part in ("sum", "count") else None

    @property
    def null_at_first(self) -> bool:
        """True if a sum is NULL before the first value; False if it is 0."""
        return (self.function, self.part) == ("SUM", "sum")


@dataclass(frozen=True)
class StateField:
    """A field of a stored row, or a single stored value.

    Attributes:
        type: The SQL type, such as ``BIGINT NOT NULL``.
        meaning: The meaning of the field; fields with equal meanings store the same values. None if the meaning is
            unknown, as for the fields in a savepoint's headers.
        words: The meaning of the field as text for users, such as ``SUM(b)``.
        begins: The initial value of the field; None if it was not measured.
        merges: The merge of two values when their keys become one; None if the values alone do not determine the
            result.
        sources: The columns from which the field is computed, if known.
        hidden: True if Flink stores the field in addition to everything that the script requests.
        composition: The table columns from which the field is computed, and how; None if unknown.
        constant: The integer that the query stores in each row of this column; None for other columns.
    """

    type: str
    meaning: Hashable = None
    words: str = field(default="", compare=False)
    begins: Begins | None = field(default=None, compare=False)
    merges: Merges | None = field(default=None, compare=False)
    sources: frozenset[Hashable] = field(default=frozenset(), compare=False)
    hidden: bool = field(default=False, compare=False)
    composition: Composition | None = field(default=None, compare=False)
    constant: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Stored:
    """The stored form of a key or a value.

    Attributes:
        form: The serializers, such as ``List<row>``; ``row`` means a row, and ``value`` a single column.
        fields: The fields of all rows and values, in order.
    """

    form: str
    fields: tuple[StateField, ...] = ()


_ROWS = {"row": 0, "List<row>": 0, "Tuple<row, Int>": 4, "List<Tuple<row, Boolean>>": 1}
"""Forms of values that contain rows, with the number of bytes after each row."""
FLAG, STAMP = 1, 8
"""Number of bytes of a map's NULL flag, and of the last access time of a value with a state TTL."""


@dataclass(frozen=True)
class NamedState:
    """A named state of an operator.

    Attributes:
        name: The name under which the operator registers the state.
        kind: The content for one key and namespace: value, map or list.
        value: The stored value: the value of a map entry, or the whole list.
        map_key: The stored key of a map entry; None if the state is not a map.
        namespace: The namespace that separates values with the same key.
        time_to_live: True if each value stores its last access time.
        retracting: True if the state receives retractions. A retraction finds its row by the values of the
            columns.
    """

    name: str
    kind: KeyedStateKind
    value: Stored
    map_key: Stored | None = None
    namespace: StateNamespace = StateNamespace.NONE
    time_to_live: bool = False
    retracting: bool = field(default=False, compare=False)

    @property
    def framing(self) -> RowFraming:
        """The form of the rows in a value; NONE if the value contains no rows."""
        form = self.value.form
        if form not in _ROWS:
            return RowFraming.NONE
        if self.kind is KeyedStateKind.LIST:
            return RowFraming.SEPARATED
        return RowFraming.COUNTED if form.startswith("List") else RowFraming.ONE

    @property
    def trailing(self) -> int:
        """The number of bytes after each row of a value."""
        return _ROWS.get(self.value.form, 0)

    @property
    def content_begin(self) -> int:
        """The offset of a value's content, which follows the NULL flag and the last access time."""
        return (FLAG if self.kind is KeyedStateKind.MAP else 0) + (STAMP if self.time_to_live else 0)

    @property
    def counts_rows(self) -> bool:
        """True if the state counts equal rows: a map from each row to one or two numbers."""
        return self.map_key is not None and self.value.form in ("Int", "Tuple<Int, Int>")

    @property
    def counts_matches(self) -> bool:
        """True if the state of a join side stores the number of matches with each row."""
        return self.value.form in ("Tuple<Int, Int>", "Tuple<row, Int>")

    @property
    def row(self) -> tuple[StateField, ...]:
        """The fields of the stored rows, which are map keys if the state counts equal rows."""
        return self.map_key.fields if self.map_key is not None and self.counts_rows else self.value.fields


@dataclass(frozen=True)
class StateLayout:
    """The keyed state of an operator.

    Attributes:
        key: The fields of the key.
        states: The named states, in any order.
        timers: The name of the timer service; "" without timers.
        retracting: True if the operator receives retractions.
        carried_only: True if state can only be carried unchanged, because no rewriting of this state was
            measured.
    """

    key: tuple[StateField, ...]
    states: tuple[NamedState, ...]
    timers: str = ""
    retracting: bool = field(default=False, compare=False)
    carried_only: bool = field(default=False, compare=False)

    def with_compositions(self, composition_of: Callable[[Hashable], Composition | None]) -> StateLayout:
        """Add the composition of each field to the layout."""

        def fields(row: tuple[StateField, ...]) -> tuple[StateField, ...]:
            return tuple(replace(each, composition=composition_of(each.meaning)) for each in row)

        def state(each: NamedState) -> NamedState:
            key = each.map_key and Stored(each.map_key.form, fields(each.map_key.fields))
            return replace(each, value=Stored(each.value.form, fields(each.value.fields)), map_key=key)

        return replace(self, key=fields(self.key), states=tuple(map(state, self.states)))

    @property
    def stored(self) -> StateLayout:
        """The layout without meanings, sorted by name; equal layouts store the same bytes."""
        states = sorted(map(_without_meaning, self.states), key=lambda state: state.name)
        return StateLayout(_types(self.key), tuple(states), self.timers)


@dataclass(frozen=True)
class Unknown:
    """The answer "unknown", in place of an operator, a layout, or the state of a job.

    Attributes:
        reason: The reason why the answer is unknown, as the end of a sentence.
        place: The table, operator or exec node that causes the answer; "" for the whole query.
    """

    reason: str
    place: str = field(default="", compare=False)

    def at(self, place: str) -> Unknown:
        """Return this answer with a place, unless it already has a place."""
        return self if self.place else replace(self, place=place)


class CannotLower(Exception):
    """Raised to end a derivation with the result ``unknown``."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.unknown = Unknown(reason, place)


def _without_meaning(state: NamedState) -> NamedState:
    key = state.map_key and Stored(state.map_key.form, _types(state.map_key.fields))
    return replace(state, value=Stored(state.value.form, _types(state.value.fields)), map_key=key)


def _types(fields: tuple[StateField, ...]) -> tuple[StateField, ...]:
    return tuple(StateField(each.type) for each in fields)


VALUE, MAP = KeyedStateKind.VALUE, KeyedStateKind.MAP
USER_TIMERS, WINDOW_TIMERS = "user-timers", "window-timers"
LONG = Stored("Long")
_NOT_NULL = " NOT NULL"
_WORDS = {"TIMESTAMP_WITHOUT_TIME_ZONE": "TIMESTAMP", "TIMESTAMP_WITH_LOCAL_TIME_ZONE": "TIMESTAMP_LTZ"}
_ZONED = re.compile(r"\bTIMESTAMP\((\d)\) WITH LOCAL TIME ZONE")


def stored_type(written: Any) -> str:
    """Convert a type of a compiled plan to SQL notation; a time attribute becomes a plain timestamp."""
    if isinstance(written, str):
        return (
            stored_type(json.loads(written)) if written.startswith("{") else _ZONED.sub(r"TIMESTAMP_LTZ(\1)", written)
        )
    null = "" if written.get("nullable", True) else _NOT_NULL
    match written["type"]:
        case "TIMESTAMP_WITHOUT_TIME_ZONE" | "TIMESTAMP_WITH_LOCAL_TIME_ZONE" as kind:
            return f"{_WORDS[kind]}({written['precision']}){null}"
        case "ROW":
            fields = (f"`{field['name']}` {stored_type(field['fieldType'])}" for field in written["fields"])
            return f"ROW<{', '.join(fields)}>{null}"
    return json.dumps(written, sort_keys=True)


def nullable(type: str) -> str:
    """A type without NOT NULL."""
    return type.removesuffix(_NOT_NULL)


def column_field(type: str, meaning: Hashable, name: str) -> StateField:
    """A state field for a column. The column is NULL in rows that were stored before it existed."""
    return StateField(type, meaning, name, begins=None if type.endswith(_NOT_NULL) else Begins.NULL)


_WIDE = {"STRING": f"VARCHAR({MAX_LENGTH})", "BYTES": f"VARBINARY({MAX_LENGTH})"}
_PLAIN = frozenset(
    {"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP",
     "TIMESTAMP_LTZ", "CHAR", "VARCHAR", "STRING", "BYTES"}
)  # fmt: skip


def stored_as(type: DataType) -> str:
    """The text of a type as state stores it, such as VARCHAR(2147483647) for STRING."""
    if type.name not in _PLAIN or not type.is_known:
        raise CannotLower(f"the stored form of {type} is unknown")
    text = str(type)
    word = text.partition(" ")[0]
    return text.replace(word, _WIDE[word], 1) if word in _WIDE else text
