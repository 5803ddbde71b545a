"""Rewritten state: the old field that supplies the value of each new field."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from airflow_flinkcompat.exec_graph.layout import CallPart, NamedState, StateField, StateLayout, nullable
from airflow_flinkcompat.savepoint.binary_row import FieldForm, field_form


@dataclass(frozen=True)
class StateRewrite:
    """The origin of one named state and of each of its fields.

    Attributes:
        new: The state of the new operator.
        old: The old state from which the new state is made; None if the new state begins empty.
        fields: For each field of the new rows, the position of the old field; None for Flink's initial value.
    """

    new: NamedState
    old: NamedState | None
    fields: tuple[int | None, ...] = ()

    @property
    def new_fields(self) -> Iterator[StateField]:
        """The fields of the new state without an old value, except constants that are added to whole old rows."""
        fields = (self.new.row[place] for place, source in enumerate(self.fields) if source is None)
        whole = self.old is not None and self.used == {*self.old.row}
        return (field for field in fields if not (whole and field.begins is None and field.constant is not None))

    @property
    def used(self) -> frozenset[StateField]:
        """The fields of the old state that the new state reuses."""
        fields = self.old.row if self.old is not None else ()
        spreads = (spread_places(field, fields) for field in self.new.row) if fields else ()
        places = {*self.fields, *(place for found in spreads if found for place in found)} - {None}
        return frozenset(fields[place] for place in places if place is not None)

    @property
    def dropped_fields(self) -> Iterator[StateField]:
        """The fields of the old state whose content the new state does not reuse, except hidden fields."""
        fields = self.old.row if self.old is not None else ()
        used = self.used
        contents = {_content(field) for field in used} - {None}
        return (field for field in fields if not (field in used or field.hidden or _content(field) in contents))

    @property
    def adds_counts(self) -> bool:
        """True if rows with a stored count may become equal, so that their counts must be added."""
        return self.old is not None and self.new.counts_rows and (self.old.row != self.new.row)


def words(fields: Iterable[StateField]) -> tuple[str, ...]:
    """The distinct texts of fields, for messages."""
    return tuple(dict.fromkeys(field.words for field in fields))


def new_fields(states: Iterable[StateRewrite]) -> tuple[StateField, ...]:
    """The fields of new states without an old value."""
    return tuple(field for state in states for field in state.new_fields)


def reused_fields(states: Iterable[StateRewrite]) -> tuple[StateField, ...]:
    """The fields of new states with an old value."""
    found = ((state.new.row, state.fields) for state in states)
    return tuple(field for new, old in found for field, place in zip(new, old, strict=True) if place is not None)


def means(fields: Iterable[StateField]) -> list[object]:
    """The meanings of fields."""
    return [field.meaning for field in fields]


def stored_fields(layout: StateLayout) -> list[StateField]:
    """All fields of the values that an operator stores."""
    return [field for state in layout.states for field in state.row]


def by_fields(new: NamedState, before: StateLayout) -> StateRewrite:
    """Rewrite stored rows field by field."""
    old = next((state for state in before.states if state.name == new.name and _holds_rows_of(state, new)), None)
    if old is None:
        return StateRewrite(new, None, (None,) * len(new.row))
    known = {field: place for place, field in enumerate(old.row)}
    return StateRewrite(new, old, tuple(known.get(field) for field in new.row))


def _holds_rows_of(old: NamedState, new: NamedState) -> bool:
    if new.counts_rows and old.value.form in (_COUNTED.get(new.value.form), new.value.form):
        return old.kind is new.kind
    return (old.kind, old.value.form, old.map_key) == (new.kind, new.value.form, new.map_key)


_COUNTED = {"Int": "row", "Tuple<Int, Int>": "Tuple<row, Int>"}
"""The form of rows with a unique key, by the form of counters for rows without a unique key."""


def as_it_is(new: NamedState, old: NamedState | None) -> StateRewrite:
    """Reuse a whole state unchanged."""
    places = range(len(new.row))
    return StateRewrite(new, old, tuple(place if old else None for place in places))


_SIZED = re.compile(r"(?P<name>\w+)(?:\((?P<size>\d+)(?:, (?P<scale>\d+))?\))?(?P<end>(?: NOT NULL)?)")
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_GROWING = frozenset({"VARCHAR", "VARBINARY", "DECIMAL", "TIME"})
"""Types whose values stay the same when the length or precision grows."""


def source_of(field: StateField, old: Sequence[StateField]) -> int | None:
    """The position of the old field that a new field reuses; None if there is none."""
    same = next((place for place, each in enumerate(old) if each == field), None)
    if same is None:
        alike = (place for place, each in enumerate(old) if each.meaning == field.meaning)
        same = next((place for place in alike if widens(old[place].type, field.type)), None)
    if same is None and (spread := spread_places(field, old)):
        return spread[0]
    if same is not None or _content(field) is None:
        return same
    holding = (each for each in enumerate(old) if _content(each[1]) == _content(field) and each[1].type == field.type)
    return next((place for place, each in holding if _exact(each, field, old)), None)


def key_places(old: Sequence[StateField], new: Sequence[StateField]) -> tuple[int, ...] | str:
    """The positions of the new key's fields in the old key, or the reason why the old key does not fit."""
    known = means(old)
    places = tuple(known.index(field.meaning) for field in new)
    other = [field for place, field in zip(places, new, strict=True) if not widens(old[place].type, field.type)]
    if other:
        return f"the old values of {', '.join(words(other))} do not fit the new type"
    # Flink stores a NULL differently in long decimals, so a NULL key would have to be rewritten.
    longer = [field for place, field in zip(places, new, strict=True) if _outgrows_a_word(old[place].type, field.type)]
    return (
        f"{', '.join(words(longer))} may be NULL, and the new type has too many digits for a stored NULL"
        if longer
        else places
    )


def _outgrows_a_word(old: str, new: str) -> bool:
    return nullable(new) == new and field_form(old) is FieldForm.WORD and field_form(new) is FieldForm.DECIMAL


def widens(old: str, new: str) -> bool:
    """True if every value of one type is the same value in the other type."""
    if nullable(new) == new:
        old = nullable(old)
    if old == new:
        return True
    before, after = _SIZED.fullmatch(old), _SIZED.fullmatch(new)
    if before is None or after is None or before["end"] != after["end"]:
        return False
    names = before["name"], after["name"]
    if set(names) <= set(_INTEGERS):
        return _INTEGERS.index(names[0]) <= _INTEGERS.index(names[1])
    sized = names[0] == names[1] and names[0] in _GROWING and before["scale"] == after["scale"]
    return sized and int(before["size"] or 0) <= int(after["size"] or 0)


_SUMMED_EXACTLY = frozenset({"BIGINT", "DOUBLE"})
"""Types of sums from which a spread is computed. Squares of narrower integers may have overflowed."""


def spread_places(field: StateField, old: Sequence[StateField]) -> tuple[int, int, int] | None:
    """The positions of the sum of squares, the sum and the count from which a spread is computed.

    Flink 2.3 stores number, mean and spread for STDDEV and VAR functions; earlier versions store the three others.
    """
    meaning = field.meaning
    if not isinstance(meaning, CallPart) or meaning.part != "spread":
        return None
    parts = [(place, each, each.meaning) for place, each in enumerate(old) if isinstance(each.meaning, CallPart)]
    squares = [place for place, each, of in parts if of.part == "sum" and of.square_of == meaning.over]
    sums = [place for place, each, of in parts if of.part == "sum" and of.over == meaning.over]
    counts = [place for place, each, of in parts if of.part == "count" and of.over == meaning.over]
    if not (squares and sums and counts):
        return None
    types = {nullable(old[place].type) for place in (squares[0], sums[0])}
    return (squares[0], sums[0], counts[0]) if len(types) == 1 and types <= _SUMMED_EXACTLY else None


def count_position(field: StateField, fields: Sequence[StateField]) -> int | None:
    """The position of the count that belongs to a sum; None without a count."""
    assert isinstance(field.meaning, CallPart)
    wanted = ("count", field.meaning.over)
    return next((place for place, each in enumerate(fields) if _content(each) == wanted), None)


def sum_changes(old: StateField, new: StateField) -> bool:
    """True if a sum without values is NULL in one of two fields and 0 in the other."""
    parts = [each.meaning for each in (old, new) if isinstance(each.meaning, CallPart)]
    return len(parts) == 2 and parts[0].null_at_first != parts[1].null_at_first


def _content(field: StateField) -> Hashable:
    return field.meaning.content if isinstance(field.meaning, CallPart) else None


def _exact(old: StateField, new: StateField, fields: Sequence[StateField]) -> bool:
    """True if a sum of 0 can be distinguished from a sum without values."""
    assert isinstance(new.meaning, CallPart)
    return not (sum_changes(old, new) and new.meaning.null_at_first) or count_position(old, fields) is not None


def mixing_refusal(
    kept: Sequence[StateField],
    begun: Sequence[StateField],
    co_dependent_calls: Set[frozenset[Hashable]],
    filtering_calls: Set[Hashable],
) -> str:
    """The reason why outputs would mix old and new metrics; "" if they would not."""
    of_all, of_later = _calls(kept), _calls(begun)
    for calls in (*co_dependent_calls, *(frozenset({call}) for call in of_all)):
        if calls & of_all and calls & of_later:
            old, new = (", ".join(words(field for field in fields if _is_of(field, calls))) for fields in (kept, begun))
            return f"a metric combines {old}, which would resume, and {new}, which would start empty"
    if of_all and filtering_calls & of_later:
        filtering = ", ".join(words(field for field in begun if _is_of(field, filtering_calls)))
        return f"{filtering}, which would start empty, decides which results are emitted"
    return ""


def _calls(fields: Sequence[StateField]) -> set[Hashable]:
    return {each.meaning.call if isinstance(each.meaning, CallPart) else each.meaning for each in fields}


def _is_of(field: StateField, calls: Set[Hashable]) -> bool:
    return (field.meaning.call if isinstance(field.meaning, CallPart) else field.meaning) in calls
