"""Places of a script as positions of the protocol."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lsprotocol.types import Position, PositionEncodingKind, Range
from pygls.workspace import PositionCodec

from airflow_flinkcompat.lsp.messages import Positions
from airflow_flinkcompat.sql.script import Places

UTF_16 = PositionCodec(PositionEncodingKind.Utf16)
ENCODINGS = {
    PositionEncodingKind.Utf8: ("utf-8", 1),
    PositionEncodingKind.Utf16: ("utf-16-le", 2),
    PositionEncodingKind.Utf32: ("utf-32-le", 4),
}
# Line ends of both kinds, what Python alone takes for one, and characters of one, two and four bytes.
TEXTS = st.text(st.sampled_from("a;\n\r\u2028\x0c\x0bä€😀 '"), max_size=30)


def read_back(text: str, place: Range, encoding: PositionEncodingKind) -> str:
    """The text of a range, read as a client does: by lines of the protocol and code units."""
    name, width = ENCODINGS[encoding]
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)

    def before(at: Position) -> str:
        units = lines[at.line].encode(name)[: at.character * width]
        return "".join(lines[: at.line]) + units.decode(name)

    return text[len(before(place.start)) : len(before(place.end))]


@pytest.mark.parametrize("encoding", list(ENCODINGS))
@given(text=TEXTS, data=st.data())
def test_a_client_marks_what_the_span_is_of(encoding: PositionEncodingKind, text: str, data: st.DataObject) -> None:
    """Of every piece of a script that does not end within a line end, as no token does."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    piece = text[start:end]
    if not piece or piece[0] in "\r\n" or piece[-1] in "\r\n":
        return
    span = Places(text, "a.sql").span(start, end)
    found = Positions(text, PositionCodec(encoding)).range(span.line, span.column, span.end_line, span.end_column)
    assert read_back(text, found, encoding) == piece


@given(TEXTS, *(st.integers(-2, 40) for _ in range(4)))
@example("", 1, 1, 1, 1)
def test_any_place_is_drawn_into_the_document(text: str, line: int, column: int, end_line: int, end: int) -> None:
    found = Positions(text, UTF_16).range(line, column, end_line, end)
    assert (found.start.line, found.start.character) <= (found.end.line, found.end.character)
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    for each in (found.start, found.end):
        assert each.character <= len(lines[each.line].encode("utf-16-le")) // 2


def test_where_only_the_beginning_is_known_the_line_is_marked() -> None:
    assert Positions("SELECT\r\n  1;\r\n", UTF_16).range(2, 3, 2, None) == Range(Position(1, 2), Position(1, 4))


def test_a_byte_order_mark_is_of_the_document_and_not_of_the_script() -> None:
    """What decodes a script drops it, the client counts it."""
    found = Positions("\ufeffSELECT 1;\nSELECT 2;", UTF_16)
    assert found.range(1, 1, 1, 6) == Range(Position(0, 1), Position(0, 7))
    assert found.range(2, 1, 2, 6) == Range(Position(1, 0), Position(1, 6))
