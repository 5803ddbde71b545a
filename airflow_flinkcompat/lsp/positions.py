"""Places of a script as a client of the Language Server Protocol counts them."""

from __future__ import annotations

import re
from bisect import bisect_right

from lsprotocol.types import Position, Range
from pygls.workspace import PositionCodec

_LINE_END = re.compile(r"\r\n|\n|\r")
_BYTE_ORDER_MARK = "\ufeff"


class Positions:
    """Lines and columns of a script's spans, from 1, as positions of the protocol.

    A script has its lines end at a line feed alone, its columns are characters, and a byte order mark is none of them;
    the protocol's lines end at a carriage return as well, and its columns are code units of the encoding (``codec``)
    that client and server agreed on.
    """

    def __init__(self, text: str, codec: PositionCodec) -> None:
        self._codec = codec
        self._text = text
        self._mark = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
        self._script_starts = [self._mark, *(match.end() for match in re.finditer("\n", text))]
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        ends = [*self._starts[1:], len(text)]
        self._lines = [text[start:end] for start, end in zip(self._starts, ends, strict=True)]

    def at(self, offset: int) -> Position:
        """The position of an offset, in characters, in the document."""
        line = bisect_right(self._starts, offset) - 1
        inner = Position(line, offset - self._starts[line])
        return self._codec.position_to_client_units(self._lines, inner)

    def range(self, line: int, column: int, end_line: int, end_column: int | None) -> Range:
        """The range of a place in the script, by lines and columns from 1; the end is inclusive.

        ``end_column`` None: the place ends with its line. A place outside of the document is moved to the nearest one
        inside.
        """
        start = self._offset(line, column)
        _, end_of_line = self._extent(end_line)
        end = end_of_line if end_column is None else self._offset(end_line, end_column + 1)
        return Range(self.at(start), self.at(max(start, end)))

    def _offset(self, line: int, column: int) -> int:
        start, end = self._extent(line)
        return min(start + max(column, 1) - 1, end)

    def _extent(self, line: int) -> tuple[int, int]:
        """The first offset of a script's line, and the one after its last character."""
        index = min(max(line, 1), len(self._script_starts)) - 1
        start = self._script_starts[index]
        last = index + 1 == len(self._script_starts)
        end = len(self._text) if last else self._script_starts[index + 1] - 1
        return start, max(start, end - 1) if not last and self._text[start:end].endswith("\r") else end
