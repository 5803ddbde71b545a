"""Where the parts of rewritten states come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateLayout

ROWS: Mapping[str, int] = {"row": 0, "List<row>": 0, "Tuple<row, Int>": 4, "List<Tuple<row, Boolean>>": 1}
"""Forms of values that are rewritten field by field, and how many bytes stand behind each row."""


@dataclass(frozen=True)
class StateRewrite:
    """Where the parts of one named state come from.

    Attributes:
        new: The state as the new operator stores it.
        old: The state of the old operator that it is made of; None: it begins empty.
        fields: For each field of its rows the place of the old field; None: it begins as Flink begins it.
    """

    new: NamedState
    old: NamedState | None
    fields: tuple[int | None, ...] = ()

    @property
    def begun(self) -> Iterator[StateField]:
        """The fields that begin now."""
        return (self.new.row[place] for place, source in enumerate(self.fields) if source is None)

    @property
    def used(self) -> frozenset[StateField]:
        """The fields of the old state that are taken."""
        fields = self.old.row if self.old is not None else ()
        return frozenset(fields[place] for place in self.fields if place is not None)

    @property
    def lost(self) -> Iterator[StateField]:
        """The fields of the old state that are not taken, but those that no script asked for."""
        fields = self.old.row if self.old is not None else ()
        used = self.used
        return (field for field in fields if field not in used and not field.hidden)

    @property
    def adds_counts(self) -> bool:
        """Whether rows may become equal, of which it is counted how often each came."""
        return self.old is not None and self.new.counts_rows and (self.old.row != self.new.row)


def words(fields: Iterable[StateField]) -> tuple[str, ...]:
    """Fields for a reader.

    Args:
        fields: Of stored values.

    Returns:
        The metrics or columns that they are of, each once.
    """
    return tuple(dict.fromkeys(field.words for field in fields))


def begun(states: Iterable[StateRewrite]) -> tuple[StateField, ...]:
    """The fields that begin now.

    Args:
        states: All of an operator.

    Returns:
        The fields, in order.
    """
    return tuple(field for state in states for field in state.begun)


def taken(states: Iterable[StateRewrite]) -> tuple[StateField, ...]:
    """The fields that go on.

    Args:
        states: All of an operator.

    Returns:
        The fields, as the new operator has them, in order.
    """
    found = ((state.new.row, state.fields) for state in states)
    return tuple(field for new, old in found for field, place in zip(new, old, strict=True) if place is not None)


def means(fields: Iterable[StateField]) -> list[object]:
    """What fields say.

    Args:
        fields: Of a stored row.

    Returns:
        The meaning of each, in order.
    """
    return [field.meaning for field in fields]


def stored_fields(layout: StateLayout) -> list[StateField]:
    """All fields of the values that an operator stores.

    Args:
        layout: How it stores them.

    Returns:
        The fields, state by state.
    """
    return [field for state in layout.states for field in state.row]


def by_fields(new: NamedState, before: StateLayout) -> StateRewrite:
    """Rows by their fields.

    Args:
        new: A state that holds rows.
        before: What the old operator stores.

    Returns:
        The state, made of the old one of its name that holds rows in the same way, or rows whose unique key it lacks.
    """
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
"""How rows that are counted are held where they have a unique key, by how their counts are stored."""


def as_it_is(new: NamedState, old: NamedState | None) -> StateRewrite:
    """A whole state.

    Args:
        new: What stands in the new operator.
        old: What the same stands in; None: it begins empty.

    Returns:
        The state, made of the old one.
    """
    places = range(len(new.row))
    return StateRewrite(new, old, tuple(place if old else None for place in places))
