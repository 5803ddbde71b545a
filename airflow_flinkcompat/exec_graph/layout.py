"""How the state of an operator is laid out: named states, their keys, fields in order, and what each field says."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from airflow_flinkcompat.plan.column_lineage import Composition
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind


class StateNamespace(StrEnum):
    """What a state is told apart by, beside the key."""

    NONE = "nothing"
    WINDOW_END = "end of a window or slice"
    WINDOW = "window"


class Begins(StrEnum):
    """What stands in a field before any row came."""

    NULL = "no value"
    ZERO = "0"
    EMPTY_VIEW = "a map that holds nothing"
    NO_SPREAD = "number, mean and spread of no values"


class Merges(StrEnum):
    """What is left of the values of two keys that become one."""

    ADDED = "their sum"
    LEAST = "the lesser"
    GREATEST = "the greater"


def call_parts(over: Hashable) -> tuple[tuple[Any, ...], bool, Any]:
    """The arguments of a call, whether they are distinct, and its filter; ``over`` as :class:`CallPart` has it."""
    assert isinstance(over, tuple)
    parts = dict(over)
    return tuple(parts.get("argList") or ()), bool(parts.get("distinct")), parts.get("filterArg")


@dataclass(frozen=True)
class CallPart:
    """What a field of an accumulator says: one part of what a call computes.

    Attributes:
        function: As compiled plans name it, without version and signs.
        over: Arguments, DISTINCT and filter.
        part: Which part, such as ``sum`` and ``count`` of an average.
    """

    function: str
    over: Hashable
    part: str

    @property
    def call(self) -> Hashable:
        """The call of which it is a part."""
        return self.function, self.over

    @property
    def content(self) -> Hashable:
        """Equal of parts that hold the same number, whatever function they belong to; None of others."""
        return (self.part, self.over) if self.part in ("sum", "count") else None

    @property
    def null_at_first(self) -> bool:
        """Whether a sum is NULL, and not 0, as long as no value came."""
        return (self.function, self.part) == ("SUM", "sum")


@dataclass(frozen=True)
class StateField:
    """One field of a stored row, or a stored value.

    Attributes:
        type: In Flink's words, such as ``BIGINT NOT NULL``.
        meaning: What it says; equal values say the same. None where nobody told, as in a savepoint.
        words: The same for a reader, such as ``SUM(b)``.
        begins: What stands in it at first; None where that was not measured.
        merges: What is left of two of its values where keys become one; None where they do not say it.
        sources: The columns that it is computed of, where somebody told.
        hidden: Whether Flink keeps it beside what a script asks for.
        composition: What it is computed of, down to the columns of tables; None where nobody told.
    """

    type: str
    meaning: Hashable = None
    words: str = field(default="", compare=False)
    begins: Begins | None = field(default=None, compare=False)
    merges: Merges | None = field(default=None, compare=False)
    sources: frozenset[Hashable] = field(default=frozenset(), compare=False)
    hidden: bool = field(default=False, compare=False)
    composition: Composition | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Stored:
    """How a key or a value is stored.

    Attributes:
        form: Its serializers, ``row`` for a row and ``value`` for a column by itself, such as ``List<row>``.
        fields: Of all its rows and values, in order.
    """

    form: str
    fields: tuple[StateField, ...] = ()


@dataclass(frozen=True)
class NamedState:
    """One named state of an operator.

    Attributes:
        name: As the operator registers it.
        kind: What it holds for a key and a namespace.
        value: What is stored; of a map the value, of a list the whole list.
        map_key: Of a map.
        namespace: What tells it apart beside the key.
        time_to_live: Whether each value carries when it was last used.
        retracting: Whether rows are taken back from it, each found again by its columns.
    """

    name: str
    kind: KeyedStateKind
    value: Stored
    map_key: Stored | None = None
    namespace: StateNamespace = StateNamespace.NONE
    time_to_live: bool = False
    retracting: bool = field(default=False, compare=False)

    @property
    def counts_rows(self) -> bool:
        """Whether it holds how often each row came: the rows are a map's keys, each with a number or two."""
        return self.map_key is not None and self.value.form in ("Int", "Tuple<Int, Int>")

    @property
    def counts_matches(self) -> bool:
        """Whether it keeps with each row of one side of a join how many rows it matched."""
        return self.value.form in ("Tuple<Int, Int>", "Tuple<row, Int>")

    @property
    def row(self) -> tuple[StateField, ...]:
        """The fields of the rows that it holds, or of what it holds in place of rows."""
        return self.map_key.fields if self.map_key is not None and self.counts_rows else self.value.fields


@dataclass(frozen=True)
class StateLayout:
    """All that an operator keeps by key.

    Attributes:
        key: The key.
        states: By name, in no order that matters.
        timers: The name of its timer service, "" without one.
        retracting: Whether rows are taken back from it.
        carried_only: Whether it can only be carried as it is, because no rewriting of such state was measured.
    """

    key: tuple[StateField, ...]
    states: tuple[NamedState, ...]
    timers: str = ""
    retracting: bool = field(default=False, compare=False)
    carried_only: bool = field(default=False, compare=False)

    def with_compositions(self, told: Callable[[Hashable], Composition | None]) -> StateLayout:
        """The same with what each field is computed of."""

        def fields(row: tuple[StateField, ...]) -> tuple[StateField, ...]:
            return tuple(replace(each, composition=told(each.meaning)) for each in row)

        def state(each: NamedState) -> NamedState:
            key = each.map_key and Stored(each.map_key.form, fields(each.map_key.fields))
            return replace(each, value=Stored(each.value.form, fields(each.value.fields)), map_key=key)

        return replace(self, key=fields(self.key), states=tuple(map(state, self.states)))

    @property
    def stored(self) -> StateLayout:
        """The same without meanings, states by name: equal where Flink stores the same."""
        states = sorted(map(_without_meaning, self.states), key=lambda state: state.name)
        return StateLayout(_types(self.key), tuple(states), self.timers)


@dataclass(frozen=True)
class Unknown:
    """An answer that is not certain, in place of an operator, its layout, or the state of a job.

    Attributes:
        reason: Why, as the end of a sentence.
        place: The table, operator or exec node that the reason is about; "" for the whole query.
    """

    reason: str
    place: str = field(default="", compare=False)

    def at(self, place: str) -> Unknown:
        """The same about a place, unless it names one."""
        return self if self.place else replace(self, place=place)


class CannotLower(Exception):
    """Raised inside a derivation that ends early; ``unknown`` is its answer."""

    def __init__(self, reason: str, place: str = "") -> None:
        super().__init__(reason)
        self.unknown = Unknown(reason, place)


def _without_meaning(state: NamedState) -> NamedState:
    key = state.map_key and Stored(state.map_key.form, _types(state.map_key.fields))
    return replace(state, value=Stored(state.value.form, _types(state.value.fields)), map_key=key)


def _types(fields: tuple[StateField, ...]) -> tuple[StateField, ...]:
    return tuple(StateField(each.type) for each in fields)
