"""Rows as text for a terminal, and in files: CSV, JSON, Parquet and Arrow."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

Write = Callable[[pa.RecordBatch], object]


def text_table(rows: pa.Table) -> str:
    """Format rows as a text table with aligned columns."""
    names = rows.schema.names
    cells = [[_cell(value) for value in _values(column)] for column in rows.columns]
    widths = [max(map(len, (name, *column))) for name, column in zip(names, cells, strict=True)]

    def line(values: tuple[str, ...]) -> str:
        return "  ".join(value.ljust(width) for value, width in zip(values, widths, strict=True)).rstrip()

    return "\n".join(
        [line(tuple(names)), line(tuple("-" * width for width in widths)), *map(line, zip(*cells, strict=True))]
    )


def json_rows(rows: pa.RecordBatch | pa.Table) -> Iterator[str]:
    """Format each row as a JSON object."""
    columns = [_values(column) for column in rows.columns]
    for values in zip(*columns, strict=True):
        yield _json(dict(zip(rows.schema.names, values, strict=True)))


def write_rows(rows: pa.RecordBatchReader, style: str, output: Path | None) -> None:
    """Write rows to a file, or to standard output without one. ``style``: csv, json, parquet or arrow.

    If the rows cannot be read or written, an existing file remains unchanged.
    """
    with _opened(output) as file, _writer(rows.schema, style, file) as write:
        for batch in rows:
            write(batch)


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        return
    target = output.resolve()
    if target.exists() and not target.is_file():  # a pipe or a device
        with target.open("wb") as file:
            yield file
        return
    part = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with part.open("wb") as file:
            yield file
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _writer(schema: pa.Schema, style: str, file: BinaryIO) -> Iterator[Write]:
    if style == "csv":
        from pyarrow.csv import CSVWriter

        with CSVWriter(file, _flat(schema.empty_table()).schema) as csv:
            yield lambda batch: csv.write_table(_flat(pa.Table.from_batches([batch])))
    elif style == "parquet":
        from pyarrow.parquet import ParquetWriter

        with ParquetWriter(file, schema) as parquet:
            yield parquet.write_batch
    elif style == "arrow":
        from pyarrow.ipc import new_stream

        with new_stream(file, schema) as arrow:
            yield arrow.write_batch
    else:
        yield lambda batch: file.write("".join(f"{row}\n" for row in json_rows(batch)).encode())


def _flat(rows: pa.Table) -> pa.Table:
    """Rows with text in place of bytes, nested values and moments, which CSV cannot contain."""
    for place, column in enumerate(rows.schema):
        values, type = rows.column(place), column.type
        if pa.types.is_timestamp(type) or pa.types.is_date32(type):
            texts = _moments(values)
        elif pa.types.is_binary(type) or pa.types.is_nested(type) or pa.types.is_interval(type):
            cells = [None if value is None else _cell(value) for value in _values(values)]
            texts = pa.array(cells, pa.string())
        else:
            continue
        rows = rows.set_column(place, column.name, texts)
    return rows


def _moments(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Moments as text. The greatest and the least number of a type are infinite."""
    bits = 32 if pa.types.is_date32(column.type) else 64
    numbers, texts = column.cast(f"int{bits}"), column.cast(pa.string())
    last = (1 << bits - 1) - 1
    for number, text in ((last, "infinity"), (-last, "-infinity")):
        texts = pc.if_else(pc.equal(numbers, number), text, texts)
    return texts


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Values in Python, or as text if Python cannot represent them, such as dates after the year 9999."""
    if pa.types.is_interval(column.type):
        return [None if value is None else _duration(*value) for value in column.to_pylist()]
    if pa.types.is_decimal(column.type) and column.type.scale == 0:  # such as a SUM of BIGINT
        return [None if value is None else int(value) for value in column.to_pylist()]
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except (OverflowError, ValueError):
        return list(map(_value, column))


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        if isinstance(scalar, pa.ListScalar):
            return list(map(_value, scalar.values))
        if isinstance(scalar, pa.StructScalar):
            return {name: _value(each) for name, each in scalar.items()}
        return _moments(pa.chunked_array([pa.array([scalar])]))[0].as_py()


def _duration(months: int, days: int, nanoseconds: int) -> str:
    """An interval in ISO 8601, such as ``P1M2DT3H4M5.5S``, with a sign for each negative part."""
    sign = "-" if nanoseconds < 0 else ""
    minutes, rest = divmod(abs(nanoseconds), 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{rest // 10**9}.{rest % 10**9:09}".rstrip("0").rstrip(".")
    date = "".join(f"{number}{unit}" for number, unit in ((months, "M"), (days, "D")) if number)
    parts = ((hours, f"{hours}H"), (minutes, f"{minutes}M"), (rest, f"{seconds}S"))
    time = "".join(f"{sign}{text}" for number, text in parts if number)
    return f"P{date}T{time}" if time else f"P{date}" if date else "PT0S"


def _cell(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return value.hex()
        case list() | dict():
            return _json(value)
    return str(value).replace("\n", "\\n")


def _json(value: Any) -> str:
    try:
        return json.dumps(value, default=_cell, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), default=_cell)


def _finite(value: Any) -> Any:
    """A value in which texts replace the numbers that JSON lacks."""
    match value:
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {key: _finite(each) for key, each in value.items()}
        case list() | tuple():
            return [_finite(each) for each in value]
    return value
