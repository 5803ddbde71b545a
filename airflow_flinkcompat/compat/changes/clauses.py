"""Where in a script a difference stands: the expressions that one side alone has, not the whole operator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.model import Span


def clause_spans(differences: Iterable[Difference]) -> tuple[Span | None, Span | None]:
    """The places of some differences in both scripts."""
    pairs = [(each.before, each.after) for each in differences]
    old = place_of(each for before, after in pairs for each in _own(before, after))
    return old, place_of(each for before, after in pairs for each in _own(after, before))


def place_of(values: Iterable[Any]) -> Span | None:
    """From the first to the last place of some values."""
    found = [span for value in values for span in _spans(value)]
    if len(found) == 1:
        return found[0]  # as it is: its lines are worked out where they are shown
    if len({span.source for span in found}) != 1:
        return None
    first = min(found, key=lambda span: (span.line, span.column))
    last = max(found, key=lambda span: (span.end_line, span.end_column))
    return Span(first.source, first.line, first.column, last.end_line, last.end_column)


def _own(value: Any, other: Any) -> Iterable[Any]:
    """The members that the other value has not; of the same members in another order those that moved."""
    if not (isinstance(value, tuple | frozenset) and isinstance(other, tuple | frozenset)):
        return (value,)
    added = [each for each in value if each not in other]
    if added or isinstance(value, frozenset) or len(value) != len(other):
        return added
    return [one for one, another in zip(value, other, strict=True) if one != another]


def _spans(value: Any) -> Iterator[Span]:
    """The widest places of what a value is made of."""
    if isinstance(value, tuple | frozenset):
        for each in value:
            yield from _spans(each)
    elif is_dataclass(value) and not isinstance(value, Span):
        own = getattr(value, "span", None)
        if own is not None:
            yield own
            return
        for each in fields(value):
            if each.compare:
                yield from _spans(getattr(value, each.name))
