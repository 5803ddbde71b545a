"""Rows built from other rows field by field, with a plan compiled once for all rows of a state.

Fields in words alone are copied in stretches; variable parts are copied field by field. Null fields are worked out once
for each pattern of null bits. :mod:`~airflow_flinkcompat.savepoint.binary_row` does the same slowly, one field at a
time.
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
"""Number of remembered patterns of null bits."""
_ROOM = {FieldForm.DECIMAL: DECIMAL_ROOM, FieldForm.TIMESTAMP: TIMESTAMP_ROOM}

RowChange = Callable[[bytes], bytes]


def row_mapping(forms: Sequence[FieldForm], fields: Sequence[int | Field]) -> RowChange:
    """Compile the construction of new rows from old ones, both as stored without their length.

    ``fields``: for each field of a new row the place of the old one, or the field itself. The result raises
    SavepointUnreadable if a row is shorter than its fields require.
    """
    variable = [
        place
        for place, field in enumerate(fields)
        if (forms[field] is not FieldForm.WORD if isinstance(field, int) else field.variable_part is not None)
    ]
    if variable:
        whole = [fields[place] for place in variable] == _variable_fields(forms)
        return (_with_whole_tail if whole else _with_tail)(forms, fields, variable)
    return WordMapping(forms, fields)


def _variable_fields(forms: Sequence[FieldForm]) -> list[int]:
    """Positions of old fields that may have a variable part."""
    return [place for place, form in enumerate(forms) if form is not FieldForm.WORD]


class _Heads(dict[bytes, bytes]):
    """The first bytes of new rows, the kind of change and the null bits, by those of old ones."""

    def __init__(self, arity: int, fields: Sequence[int | Field]) -> None:
        super().__init__()
        self.old = null_bytes(arity)
        self._fields = fields

    def __missing__(self, old: bytes) -> bytes:
        if len(old) < self.old:
            raise SavepointUnreadable(f"a row of {len(old)} bytes is too short for its null bits")
        bits = int.from_bytes(old, "little")
        new = bits & 0xFF
        for place, field in enumerate(self._fields, 8):
            new |= (bits >> (8 + field) & 1 if isinstance(field, int) else field.null) << place
        if len(self) >= _PATTERNS:
            self.clear()
        made = self[old] = new.to_bytes(null_bytes(len(self._fields)), "little")
        return made


class WordMapping:
    """Builder of rows of fixed-size fields from ranges of old rows.

    Attributes:
        sizes: Bytes of an old and a new row if all rows have one size; else None.
        head: Length of the first bytes of an old row.
        heads: First bytes of new rows by those of old ones.
        added: Bytes that follow an old row's words when ranges are picked.
        pick: Picks the words of a new row, in pieces, from those of an old one followed by ``added``.
    """

    def __init__(self, forms: Sequence[FieldForm], fields: Sequence[int | Field]) -> None:
        self.heads = _Heads(len(forms), fields)
        self.head = null_bytes(len(forms))
        self._end = self.head + _WORD * len(forms)
        self._arity = len(forms)
        size = null_bytes(len(fields)) + _WORD * len(fields)
        self.sizes = (self._end, size) if not _variable_fields(forms) else None
        self.added = b"".join(field.word for field in fields if not isinstance(field, int))
        number = iter(range(len(forms), len(forms) + len(fields)))
        sources = [field if isinstance(field, int) else next(number) for field in fields]
        # Adjacent words are one stretch.
        runs = [list(run) for _, run in groupby(enumerate(sources), lambda each: each[1] - each[0])]
        slices = [slice(_WORD * run[0][1], _WORD * (run[-1][1] + 1)) for run in runs]
        # A getter of a single stretch would not return a tuple.
        self.pick: Callable[[bytes], tuple[bytes, ...]] = itemgetter(*slices, *[slice(0, 0)] * max(0, 2 - len(slices)))

    def __call__(self, row: bytes) -> bytes:
        if len(row) < self._end or (self.sizes is not None and len(row) != self._end):
            raise SavepointUnreadable(f"a row of {len(row)} bytes is too short for {self._arity} fields")
        picked = self.pick(row[self.head : self._end] + self.added)
        return self.heads[row[: self.head]] + b"".join(picked)


def _with_whole_tail(forms: Sequence[FieldForm], fields: Sequence[int | Field], variable: Sequence[int]) -> RowChange:
    """Rows whose variable parts keep their order: only their offset changes."""
    heads, unpack, pack, pick, added, (begin, end, first) = _words(forms, fields)
    moved = (first - end) << 32
    parts = [(place, _part(forms, fields[place])[0]) for place in variable]

    def change(row: bytes) -> bytes:
        size = len(row)
        if size < end:
            raise SavepointUnreadable(f"a row of {size} bytes is too short for {len(forms)} fields")
        words = list(pick(unpack(row, begin) + added))
        words.pop()
        for place, room in parts:
            word = words[place]
            if _LOW < word < _INLINE:
                if (word >> 32) + (room or word & _LOW) > size:
                    raise SavepointUnreadable("a field of a row begins or ends after the row")
                words[place] = word + moved
        return b"".join((heads[row[:begin]], pack(*words), row[end:]))

    return change


def _with_tail(forms: Sequence[FieldForm], fields: Sequence[int | Field], variable: Sequence[int]) -> RowChange:
    """Rows whose variable parts are reassembled."""
    heads, unpack, pack, pick, added, (begin, end, first) = _words(forms, fields)
    parts = [(place, *_part(forms, fields[place])) for place in variable]

    def change(row: bytes) -> bytes:
        if len(row) < end:
            raise SavepointUnreadable(f"a row of {len(row)} bytes is too short for {len(forms)} fields")
        words = list(pick(unpack(row, begin) + added))
        words.pop()
        at, tail = first, []
        for place, room, own_part in parts:
            word = words[place]
            if own_part is None:
                start = word >> 32
                # In its word, or null without room in the variable part.
                if not start or (word & _INLINE and not room):
                    continue
                low = word & _LOW
                size = room or low + -low % _WORD
                stored = row[start : start + size]
                if len(stored) != size:
                    raise SavepointUnreadable("a field of a row begins or ends after the row")
            else:
                stored = own_part
                size = len(own_part)
            words[place] = word & _LOW | at << 32
            at += size
            tail.append(stored)
        return b"".join((heads[row[:begin]], pack(*words), *tail))

    return change


def _words(forms: Sequence[FieldForm], fields: Sequence[int | Field]) -> Any:
    """Heads, word reader and writer, word picker (with an extra word, for a tuple), added words, places."""
    added = tuple(int.from_bytes(field.word, "little") for field in fields if not isinstance(field, int))
    number = iter(range(len(forms), len(forms) + len(added)))
    sources = [field if isinstance(field, int) else next(number) for field in fields]
    begin = null_bytes(len(forms))
    return (
        _Heads(len(forms), fields),
        struct.Struct(f"<{len(forms)}Q").unpack_from,
        struct.Struct(f"<{len(fields)}Q").pack,
        itemgetter(*sources, sources[0]),
        added,
        (begin, begin + _WORD * len(forms), null_bytes(len(fields)) + _WORD * len(fields)),
    )


def _part(forms: Sequence[FieldForm], field: int | Field) -> tuple[int, bytes | None]:
    """Size of an old field's variable part, 0 if its word states it; content of a new one."""
    return (_ROOM.get(forms[field], 0), None) if isinstance(field, int) else (0, field.variable_part)
