"""Rows are mapped field by field, held against a reader and a writer of values that share nothing with the product's.

Both are written after the format alone (Flink's ``BinaryRowData``): a byte for the kind of change, a bit for each NULL,
eight bytes for each field, and behind them what does not fit in there.
"""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_flinkcompat.savepoint.binary_row import NULL, FieldForm
from airflow_flinkcompat.savepoint.row_mapping import row_mapping

Value = int | str | Decimal | tuple[int, int] | None
"""A BIGINT, a STRING, a DECIMAL(38, 2), or a TIMESTAMP(9) in milliseconds and the nanoseconds beyond them."""
VALUES = {
    FieldForm.WORD: st.integers(-(1 << 63), (1 << 63) - 1),
    FieldForm.TEXT: st.text(max_size=12),
    FieldForm.DECIMAL: st.integers(-(10**30), 10**30).map(lambda number: Decimal(number).scaleb(-2)),
    FieldForm.TIMESTAMP: st.tuples(st.integers(0, 4_000_000_000_000), st.integers(0, 999_999)),
}


def written(values: list[Value], forms: list[FieldForm], kind: int) -> bytes:
    """The row that Flink's writer makes of these values."""
    first = (len(values) + 8 + 63) // 64 * 8
    bits, words, behind = kind, [], bytearray()
    for place, (value, form) in enumerate(zip(values, forms, strict=True)):
        at = first + 8 * len(values) + len(behind)
        bits |= (value is None) << (place + 8)
        word = 0
        match form:
            case FieldForm.WORD:
                word = int(value or 0) & (1 << 64) - 1  # type: ignore[arg-type]
            case FieldForm.TEXT if value is not None:
                text = str(value).encode()
                if len(text) <= 7:
                    word = int.from_bytes(text.ljust(7, b"\0") + bytes([0x80 | len(text)]), "little")
                else:
                    word = at << 32 | len(text)
                    behind += text + bytes(-len(text) % 8)
            case FieldForm.DECIMAL:
                unscaled = int(Decimal(value or 0).scaleb(2))  # type: ignore[arg-type]
                number = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
                word = at << 32 | (0 if value is None else len(number))
                behind += bytes(16) if value is None else number.ljust(16, b"\0")
            case FieldForm.TIMESTAMP:
                millis, nanos = value or (0, 0)  # type: ignore[misc]
                word = at << 32 | nanos
                behind += millis.to_bytes(8, "little")
        words.append(word.to_bytes(8, "little"))
    return bits.to_bytes(first, "little") + b"".join(words) + bytes(behind)


def read(row: bytes, forms: list[FieldForm]) -> list[Value]:
    """The values of a row."""
    first = (len(forms) + 8 + 63) // 64 * 8
    bits = int.from_bytes(row[:first], "little") >> 8
    found: list[Value] = []
    for place, form in enumerate(forms):
        slot = row[first + 8 * place : first + 8 * place + 8]
        word = int.from_bytes(slot, "little")
        at, low = word >> 32, word & 0xFFFFFFFF
        if bits >> place & 1:
            found.append(None)
        elif form is FieldForm.WORD:
            found.append(int.from_bytes(slot, "little", signed=True))
        elif form is FieldForm.TEXT:
            text = slot[: slot[7] & 0x7F] if slot[7] & 0x80 else row[at : at + low]
            found.append(text.decode())
        elif form is FieldForm.DECIMAL:
            found.append(Decimal(int.from_bytes(row[at : at + low], "big", signed=True)).scaleb(-2))
        else:
            found.append((int.from_bytes(row[at : at + 8], "little"), low))
    return found


@st.composite
def mappings(draw: st.DrawFn) -> tuple[list[FieldForm], list[Value], list[int | None]]:
    """Forms of fields, their values, and which of them a new row has in order; None: a new one, which is NULL."""
    forms = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=draw(st.sampled_from([6, 70]))))
    values = [draw(st.none() | VALUES[form]) for form in forms]
    return forms, values, draw(st.lists(st.none() | st.integers(0, len(forms) - 1), min_size=1, max_size=80))


@given(mappings(), st.integers(0, 3))
@settings(max_examples=300)
def test_a_new_row_has_the_values_of_the_old_one(
    drawn: tuple[list[FieldForm], list[Value], list[int | None]], kind: int
) -> None:
    """Each where the mapping says, whatever stands beside it."""
    forms, values, places = drawn
    row = written(values, forms, kind)
    assert read(row, forms) == values
    made = row_mapping(forms, [NULL if place is None else place for place in places])(row)
    assert read(made, [FieldForm.WORD if place is None else forms[place] for place in places]) == [
        None if place is None else values[place] for place in places
    ]
    assert made[0] == kind
