"""Where the parts of rewritten states come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from airflow_flinkcompat.state.layout import NamedState, StateField, StateLayout

ROWS = frozenset({"row", "List<row>"})
"""Forms of values that are rewritten field by field."""


@dataclass(frozen=True)
class StateRewrite:
    """Where the parts of one named state come from.

    Attributes:
        new: The state as the new operator stores it.
        old: The state of the old operator that it is made of; None: it begins empty.
        fields: For each field of a stored value the place of the old field; None: it begins as Flink begins it.
    """

    new: NamedState
    old: NamedState | None
    fields: tuple[int | None, ...] = ()

    @property
    def begun(self) -> Iterator[StateField]:
        """The fields that begin now."""
        return (self.new.value.fields[place] for place, source in enumerate(self.fields) if source is None)

    @property
    def lost(self) -> Iterator[StateField]:
        """The fields of the old state that are not taken."""
        fields = enumerate(self.old.value.fields) if self.old is not None else ()
        return (field for place, field in fields if place not in self.fields)


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
    found = ((state.new.value.fields, state.fields) for state in states)
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
    return [field for state in layout.states for field in state.value.fields]


def by_fields(new: NamedState, before: StateLayout) -> StateRewrite:
    """Rows by their fields.

    Args:
        new: A state whose values are rows.
        before: What the old operator stores.

    Returns:
        The state, made of the first old one that holds rows in the same way.
    """
    alike = (state for state in before.states if (state.value.form, state.kind) == (new.value.form, new.kind))
    old = next((state for state in alike if state.map_key == new.map_key), None)
    if old is None:
        return StateRewrite(new, None, (None,) * len(new.value.fields))
    known = {field: place for place, field in enumerate(old.value.fields)}
    return StateRewrite(new, old, tuple(known.get(field) for field in new.value.fields))


def as_it_is(new: NamedState, old: NamedState | None) -> StateRewrite:
    """A whole state.

    Args:
        new: What stands in the new operator.
        old: What the same stands in; None: it begins empty.

    Returns:
        The state, made of the old one.
    """
    places = range(len(new.value.fields))
    return StateRewrite(new, old, tuple(place if old else None for place in places))
