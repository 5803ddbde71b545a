"""Which old field goes on in a new one, and what of them is computed together."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence, Set

from airflow_flinkcompat.exec_graph.layout import CallPart, StateField
from airflow_flinkcompat.exec_graph.layouts.columns import nullable
from airflow_flinkcompat.exec_graph.rewrites.parts import means, words
from airflow_flinkcompat.savepoint.binary_row import FieldForm, field_form

_SIZED = re.compile(r"(?P<name>\w+)(?:\((?P<size>\d+)(?:, (?P<scale>\d+))?\))?(?P<end>(?: NOT NULL)?)")
_INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_GROWING = frozenset({"VARCHAR", "VARBINARY", "DECIMAL"})
"""Types whose values are the same where their greatest length or precision grows."""


def source_of(field: StateField, old: Sequence[StateField]) -> int | None:
    """Which of the old fields goes on in a new one.

    Args:
        field: Of a new row.
        old: The fields of the old row.

    Returns:
        The place of the one that says and stores the same, or holds the same number for another function; None where
        there is none.
    """
    same = next((place for place, each in enumerate(old) if each == field), None)
    if same is None:
        alike = (place for place, each in enumerate(old) if each.meaning == field.meaning)
        same = next((place for place in alike if widens(old[place].type, field.type)), None)
    if same is not None or _content(field) is None:
        return same
    holding = (each for each in enumerate(old) if _content(each[1]) == _content(field) and each[1].type == field.type)
    return next((place for place, each in holding if _exact(each, field, old)), None)


def key_places(old: Sequence[StateField], new: Sequence[StateField]) -> tuple[int, ...] | str:
    """Where the fields of a new key stand in the old one.

    Args:
        old: The fields of the old key.
        new: Those of the new one, all of which the old one has too.

    Returns:
        A place for each, or why the old values are no values of the new key.
    """
    known = means(old)
    places = tuple(known.index(field.meaning) for field in new)
    other = [field for place, field in zip(places, new, strict=True) if not widens(old[place].type, field.type)]
    if other:
        return f"the values of {', '.join(words(other))} are none of its type now"
    # Flink stores NULL among the longer decimals in another way, which a key of NULL would have to follow.
    longer = [field for place, field in zip(places, new, strict=True) if _outgrows_a_word(old[place].type, field.type)]
    return f"{', '.join(words(longer))} may be NULL, and has too many digits now" if longer else places


def _outgrows_a_word(old: str, new: str) -> bool:
    return nullable(new) == new and field_form(old) is FieldForm.WORD and field_form(new) is FieldForm.DECIMAL


def widens(old: str, new: str) -> bool:
    """Whether each value of a type is the same value of another one.

    Args:
        old: A type in Flink's words.
        new: Another one.

    Returns:
        True for equal types, longer integers, texts and decimals, and where NULL comes to be allowed.
    """
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


def count_beside(field: StateField, fields: Sequence[StateField]) -> int | None:
    """Where it stands of how many values a sum is.

    Args:
        field: Of a sum.
        fields: The row that it stands in.

    Returns:
        The place; None where it does not stand there.
    """
    assert isinstance(field.meaning, CallPart)
    wanted = ("count", field.meaning.over)
    return next((place for place, each in enumerate(fields) if _content(each) == wanted), None)


def sum_changes(old: StateField, new: StateField) -> bool:
    """Whether a sum of no values is NULL in one of two fields and 0 in the other."""
    parts = [each.meaning for each in (old, new) if isinstance(each.meaning, CallPart)]
    return len(parts) == 2 and parts[0].null_at_first != parts[1].null_at_first


def _content(field: StateField) -> Hashable:
    return field.meaning.content if isinstance(field.meaning, CallPart) else None


def _exact(old: StateField, new: StateField, fields: Sequence[StateField]) -> bool:
    """A sum of 0 is that of no values where none was counted."""
    assert isinstance(new.meaning, CallPart)
    return not (sum_changes(old, new) and new.meaning.null_at_first) or count_beside(old, fields) is not None


def mixed(
    kept: Sequence[StateField],
    begun: Sequence[StateField],
    jointly_used: Set[frozenset[Hashable]],
    filtering: Set[Hashable],
) -> str:
    """Why outputs above a rewritten operator would be neither of all rows nor of those from now on.

    Args:
        kept: The fields that go on.
        begun: Those that begin now.
        jointly_used: The calls, or columns of stored rows, of which one output each is computed.
        filtering: Those that decide which results go on.

    Returns:
        The reason, "" where there is none.
    """
    of_all, of_later = _calls(kept), _calls(begun)
    for calls in (*jointly_used, *(frozenset({call}) for call in of_all)):
        if calls & of_all and calls & of_later:
            old, new = (", ".join(words(field for field in fields if _is_of(field, calls))) for fields in (kept, begun))
            return f"a metric is computed of {old}, which would go on, and {new}, which would begin now"
    if of_all and filtering & of_later:
        told = ", ".join(words(field for field in begun if _is_of(field, filtering)))
        return f"{told}, which would start empty, decides which results continue"
    return ""


def _calls(fields: Sequence[StateField]) -> set[Hashable]:
    return {each.meaning.call if isinstance(each.meaning, CallPart) else each.meaning for each in fields}


def _is_of(field: StateField, calls: Set[Hashable]) -> bool:
    return (field.meaning.call if isinstance(field.meaning, CallPart) else field.meaning) in calls
