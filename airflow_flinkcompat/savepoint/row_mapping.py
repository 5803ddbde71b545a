"""Rows made of other rows field by field, put together once for all rows of a state.

What a row holds in its words alone is copied in stretches; what stands behind the words is copied field by field. Which
fields are null is worked out once for each pattern of null bits. :mod:`~airflow_flinkcompat.savepoint.binary_row` says
the same slowly, one field at a time.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import DECIMAL_ROOM, TIMESTAMP_ROOM, Field, FieldForm, null_bytes

_WORD = 8
_INLINE = 1 << 63
_LOW = 0xFFFFFFFF
_PATTERNS = 4096
"""How many patterns of null bits are remembered."""
_ROOM = {FieldForm.DECIMAL: DECIMAL_ROOM, FieldForm.TIMESTAMP: TIMESTAMP_ROOM}

RowChange = Callable[[bytes], bytes]


def row_mapping(forms: Sequence[FieldForm], fields: Sequence[int | Field]) -> RowChange:
    """What makes new rows of old ones.

    Args:
        forms: Of the fields of an old row, in order.
        fields: For each field of a new row the place of the old one, or what stands in it.

    Returns:
        A function over a row as it is stored, without its length. It raises ``SavepointUnreadable`` where a row is
        shorter than its fields say.
    """
    heads = _Heads(len(forms), fields)
    behind = [
        place
        for place, field in enumerate(fields)
        if (forms[field] is not FieldForm.WORD if isinstance(field, int) else field.behind is not None)
    ]
    return _with_tail(forms, fields, behind, heads) if behind else _of_words(forms, fields, heads)


class _Heads(dict[bytes, bytes]):
    """The first bytes of new rows, the kind of change and the null bits, by those of old ones."""

    def __init__(self, arity: int, fields: Sequence[int | Field]) -> None:
        super().__init__()
        self.old = null_bytes(arity)
        self._fields = fields

    def __missing__(self, old: bytes) -> bytes:
        if len(old) < self.old:
            raise SavepointUnreadable(f"a row of {len(old)} bytes has no null bits")
        bits = int.from_bytes(old, "little")
        new = bits & 0xFF
        for place, field in enumerate(self._fields, 8):
            new |= (bits >> (8 + field) & 1 if isinstance(field, int) else field.null) << place
        if len(self) >= _PATTERNS:
            self.clear()
        made = self[old] = new.to_bytes(null_bytes(len(self._fields)), "little")
        return made


def _of_words(forms: Sequence[FieldForm], fields: Sequence[int | Field], heads: _Heads) -> RowChange:
    begin, end = heads.old, heads.old + _WORD * len(forms)
    exact = all(form is FieldForm.WORD for form in forms)
    added = b"".join(field.word for field in fields if not isinstance(field, int))
    # Stretches of old words with the added ones behind them: neighbours are one slice.
    number = iter(range(len(added) // _WORD))
    sources = [field if isinstance(field, int) else len(forms) + next(number) for field in fields]
    runs = [list(run) for _, run in groupby(enumerate(sources), lambda each: each[1] - each[0])]
    slices = [slice(begin + _WORD * run[0][1], begin + _WORD * (run[-1][1] + 1)) for run in runs]
    pick: Callable[[bytes], Any] = itemgetter(*slices) if slices else lambda row: b""
    one = len(slices) < 2

    def change(row: bytes) -> bytes:
        if len(row) < end or (exact and len(row) != end):
            raise SavepointUnreadable(f"a row of {len(row)} bytes does not hold {len(forms)} fields")
        picked = pick((row if exact else row[:end]) + added)
        return heads[row[:begin]] + (picked if one else b"".join(picked))

    return change


def _with_tail(
    forms: Sequence[FieldForm], fields: Sequence[int | Field], behind: Sequence[int], heads: _Heads
) -> RowChange:
    begin, end = heads.old, heads.old + _WORD * len(forms)
    unpack, pack = struct.Struct(f"<{len(forms)}Q").unpack_from, struct.Struct(f"<{len(fields)}Q").pack
    added = tuple(int.from_bytes(field.word, "little") for field in fields if not isinstance(field, int))
    number = iter(range(len(forms), len(forms) + len(added)))
    sources = [field if isinstance(field, int) else next(number) for field in fields]
    pick: Callable[[tuple[int, ...]], Any] = itemgetter(*sources, sources[0])  # two at least, so that it is a tuple
    first = null_bytes(len(fields)) + _WORD * len(fields)
    parts = [(place, *_part(forms, fields[place])) for place in behind]

    def change(row: bytes) -> bytes:
        if len(row) < end:
            raise SavepointUnreadable(f"a row of {len(row)} bytes holds no {len(forms)} fields")
        words = list(pick(unpack(row, begin) + added))
        words.pop()
        at, tail = first, []
        for place, room, given in parts:
            word = words[place]
            if given is None:
                start = word >> 32
                # In its word, or null without room behind.
                if not start or (word & _INLINE and not room):
                    continue
                low = word & _LOW
                size = room or low + -low % _WORD
                stored = row[start : start + size]
                if len(stored) != size:
                    raise SavepointUnreadable("a field of a row begins or ends behind the row")
            else:
                stored = given
                size = len(given)
            words[place] = word & _LOW | at << 32
            at += size
            tail.append(stored)
        return b"".join((heads[row[:begin]], pack(*words), *tail))

    return change


def _part(forms: Sequence[FieldForm], field: int | Field) -> tuple[int, bytes | None]:
    """How much room an old field takes behind the words, 0 where it says so itself; what stands in a new one."""
    return (_ROOM.get(forms[field], 0), None) if isinstance(field, int) else (0, field.behind)
