"""Reader of JSON records in Arrow batches.

pyarrow reads plain records. All other records keep their bytes for the strict reader
(:mod:`~airflow_flinkcompat.backfill.formats.text_reader`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from airflow_flinkcompat.backfill.spark_sql.expressions import spark_type
from airflow_flinkcompat.plan.types import TIMESTAMPS, DataType

# pyarrow crashes if null is the first record, and accepts NaN.
_ODD = r"^\s*(?:[^\s{]|$)|[^\s}]\s*$|[:,\[]\s*-?(?:NaN|Inf)"
_LONG, _LONGEST, _MOST_NESTED, _LONG_NUMBER = 1000, 50_000, 900, "[0-9]{250}"
"""Numbers of bytes and of nested values below the limits of Spark's parser.

These are 1000 characters in a number, 1000 levels, and 50,000 characters in a name.
"""
_FEW = 500
"""Greatest number of records that one rejected record takes to the strict reader."""
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?"
_TYPES = {
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "BOOLEAN": pa.bool_(),
}


@dataclass(frozen=True)
class JsonRecords:
    """Needed fields of JSON records, by name and type.

    ``separator``: Character between date and time.
    """

    fields: tuple[tuple[str, DataType], ...]
    separator: str

    def schema(self, others: str) -> str:
        """Columns of the batches that :meth:`read` returns."""
        values = (f"v{i} {spark_type(kind)}" for i, (_, kind) in enumerate(self.fields))
        return ", ".join([others, "value BINARY", *values])

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read records from the last column of each batch, and append columns ``v0`` … with their values.

        The last column then contains only the records that are not plain. A large batch may become several.
        """
        for batch in batches:
            try:
                plain, values = self._values(batch.column(batch.num_columns - 1))
            except pa.ArrowInvalid:
                half = batch.num_rows // 2
                if batch.num_rows > _FEW:
                    yield from self.read([batch.slice(0, half), batch.slice(half)])
                    continue
                plain = pa.repeat(False, batch.num_rows)
                values = [pa.nulls(batch.num_rows, _stored(kind)) for _, kind in self.fields]
            *others, records = batch.columns
            names = [*batch.schema.names, *(f"v{i}" for i, _ in enumerate(values))]
            yield pa.RecordBatch.from_arrays([*others, _where(pc.invert(plain), records), *values], names)

    def _values(self, records: Any) -> tuple[Any, list[Any]]:
        """Flags of the plain records, and the values of each field."""
        text = records.cast(pa.string())
        size = pc.binary_length(text)
        long = pc.if_else(pc.greater(size, _LONG), text, "")
        nested = pc.add(pc.count_substring(long, "{"), pc.count_substring(long, "["))
        odd = pc.or_(pc.match_substring_regex(text, _ODD), pc.match_substring_regex(long, _LONG_NUMBER))
        odd = pc.or_(odd, pc.or_(pc.greater(nested, _MOST_NESTED), pc.greater(size, _LONGEST)))
        plain = pc.invert(odd)
        columns = self._parsed(pc.if_else(odd, "{}", text))
        for column, (_, kind) in zip(columns, self.fields, strict=True):
            if _read(kind) == pa.string():
                plain = pc.and_(plain, pc.fill_null(pc.match_substring_regex(column, self._notation(kind)), True))
            if not kind.nullable:
                plain = pc.and_(plain, pc.is_valid(column))
        kinds = (kind for _, kind in self.fields)
        return plain, [_converted(_where(plain, column), kind) for column, kind in zip(columns, kinds, strict=True)]

    def _parsed(self, text: Any) -> list[Any]:
        """Fields of objects. Each text begins and ends with a brace, so it contains at least one object."""
        content = pc.binary_join(pa.ListArray.from_arrays([0, len(text)], text), "\n")[0].as_buffer().to_pybytes()
        schema = pa.schema([(name, _read(kind)) for name, kind in self.fields])
        found = json.read_json(
            pa.py_buffer(content + b"\n"),
            json.ReadOptions(use_threads=False, block_size=len(content) + 1),
            json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
        found.validate(full=True)  # pyarrow reads 12345 as DECIMAL(6, 2) with seven digits.
        if found.num_rows != len(text):
            raise pa.ArrowInvalid("a record contains several objects")
        return [column.combine_chunks() for column in found.columns]

    def _notation(self, kind: DataType) -> str:
        """Pattern of the plain texts of a type."""
        if kind.name == "DATE":
            return f"^{_DATE}$"
        if kind.name in TIMESTAMPS:
            return f"^{_DATE}{self.separator}{_TIME}{'Z' if kind.name == 'TIMESTAMP_LTZ' else ''}$"
        return r"^(?:[^\[{]|$)"  # The strict reader does not distinguish other texts from nested values.


def _where(flags: Any, values: Any) -> Any:
    return pc.if_else(flags, values, pa.scalar(None, values.type))


def _read(kind: DataType) -> Any:
    """Type of a field for pyarrow, which multiplies decimals without a check for an overflow of 128 bits."""
    return pa.decimal256(*kind.parameters) if kind.name == "DECIMAL" else _TYPES.get(kind.name, pa.string())


def _stored(kind: DataType) -> Any:
    """Type of a column of values."""
    if kind.name == "DECIMAL":
        return pa.decimal128(*kind.parameters)
    if kind.name == "DATE":
        return pa.date32()
    if kind.name in TIMESTAMPS:
        return pa.timestamp("us", "UTC" if kind.name == "TIMESTAMP_LTZ" else None)
    return _read(kind)


def _converted(column: Any, kind: DataType) -> Any:
    if kind.name in TIMESTAMPS:
        precision = kind.parameters[0] if kind.parameters else 6
        column = pc.utf8_slice_codeunits(pc.utf8_rtrim(column, "Z"), 0, 20 + precision if precision else 19)
        column = column.cast(pa.timestamp("us"))
    return column.cast(_stored(kind))
