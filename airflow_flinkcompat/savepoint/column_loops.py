"""Compiled loops that copy one column of stored rows and arrays."""

from __future__ import annotations

from airflow_flinkcompat.savepoint.compiled import compiled, copy, little32

NOT_ROWS = -31
"""Error code for a value whose form differs from the form that its serializer states."""
_LONGEST_INLINE = 7


@compiled
def field_words(source: memoryview, rows: list[int], head: int, field: int, out: memoryview, nulls: memoryview) -> None:
    """Copy the eight bytes and the NULL bit of one field from each row."""
    for number in range(len(rows)):
        row = rows[number]
        word = row + head + 8 * field
        copy(source, word, word + 8, out, 8 * number)
        nulls[number] = source[row + ((8 + field) >> 3)] >> (field & 7) & 1


@compiled
def element_counts(source: memoryview, begins: list[int], sizes: list[int], width: int, counts: list[int]) -> int:
    """Read the number of elements of each array; returns the sum, or an error code."""
    total = 0
    for number in range(len(begins)):
        if sizes[number] < 4:
            return NOT_ROWS
        count = little32(source, begins[number])
        if 4 + (count + 31) // 32 * 4 + width * count > sizes[number]:
            return NOT_ROWS
        counts[number] = count
        total += count
    return total


@compiled
def copy_elements(
    source: memoryview,
    begins: list[int],
    sizes: list[int],
    counts: list[int],
    width: int,
    arrays: list[int],
    ends: list[int],
    words: memoryview,
    nulls: memoryview,
) -> None:
    """Copy the fixed part and the NULL bit of each element; find begin and end of its array."""
    to = 0
    for number in range(len(begins)):
        begin, count = begins[number], counts[number]
        element = begin + 4 + (count + 31) // 32 * 4
        for place in range(count):
            copy(source, element, element + width, words, 8 * to)
            nulls[to] = source[begin + 4 + (place >> 3)] >> (place & 7) & 1
            arrays[to], ends[to] = begin, begin + sizes[number]
            element += width
            to += 1


@compiled
def big_endian_longs(source: memoryview, begins: list[int], size: int, out: memoryview) -> None:
    """Convert big-endian signed integers to little-endian integers of eight bytes."""
    for number in range(len(begins)):
        begin, to = begins[number], 8 * number
        fill = 0xFF if source[begin] & 0x80 else 0
        for place in range(8):
            out[to + place] = source[begin + size - 1 - place] if place < size else fill


@compiled
def variable_parts(
    rows: list[int],
    ends: list[int],
    words: memoryview,
    nulls: memoryview,
    inline: bool,
    begins: list[int],
    sizes: list[int],
) -> int:
    """Find the variable part of one field in each row; returns the total size, or an error code."""
    total = 0
    for number in range(len(rows)):
        low, high = little32(words, 8 * number), little32(words, 8 * number + 4)
        if nulls[number]:
            sizes[number] = 0
        elif inline and high >= 1 << 31:
            if high >> 24 & 0x7F > _LONGEST_INLINE:
                return NOT_ROWS
            sizes[number] = -(high >> 24 & 0x7F)
            total += high >> 24 & 0x7F
        else:
            begins[number], sizes[number] = rows[number] + high, low
            if begins[number] + low > ends[number]:
                return NOT_ROWS
            total += low
    return total


@compiled
def concatenated_texts(
    source: memoryview, words: memoryview, begins: list[int], sizes: list[int], offsets: list[int], out: memoryview
) -> None:
    """Concatenate texts; a negative size marks a text in the eight bytes of its field."""
    to = 0
    for number in range(len(sizes)):
        size = sizes[number]
        if size < 0:
            copy(words, 8 * number, 8 * number - size, out, to)
            to -= size
        else:
            copy(source, begins[number], begins[number] + size, out, to)
            to += size
        offsets[number + 1] = to


@compiled
def little_endian_decimals(source: memoryview, begins: list[int], sizes: list[int], out: memoryview) -> None:
    """Convert big-endian decimals to little-endian decimals of sixteen bytes."""
    for number in range(len(sizes)):
        begin, size, to = begins[number], sizes[number], 16 * number
        fill = 0xFF if size > 0 and source[begin] & 0x80 else 0
        for place in range(16):
            out[to + place] = source[begin + size - 1 - place] if place < size else fill


@compiled
def fixed_parts(
    rows: list[int], ends: list[int], words: memoryview, nulls: memoryview, size: int, begins: list[int]
) -> int:
    """Find the variable part of one field, whose size is fixed, in each row; returns 0 or an error code."""
    for number in range(len(rows)):
        if not nulls[number]:
            begins[number] = rows[number] + little32(words, 8 * number + 4)
            if begins[number] + size > ends[number]:
                return NOT_ROWS
    return 0


@compiled
def gather_parts(source: memoryview, begins: list[int], size: int, out: memoryview) -> None:
    """Concatenate parts of equal size."""
    for number in range(len(begins)):
        copy(source, begins[number], begins[number] + size, out, size * number)
