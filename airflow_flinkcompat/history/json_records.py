"""Reader of JSON records in Arrow batches.

Plain records become typed values. All other records keep their bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_flinkcompat.backfill.spark_sql.expressions import spark_type
from airflow_flinkcompat.history import json_scan
from airflow_flinkcompat.plan.types import APPROXIMATE, CHARACTERS, INTEGERS, TIMESTAMPS, DataType
from airflow_flinkcompat.savepoint.compiled import COMPILED, numbers, writable, zeros

_MOST_FIELDS = 60
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_EXPONENTS = {"FLOAT": 15, "DOUBLE": 250}
_MOST_DIGITS = 18


@dataclass(frozen=True)
class JsonRecords:
    """Needed fields of JSON records, by name and type.

    ``separator``: Character between date and time.
    """

    fields: tuple[tuple[str, DataType], ...]
    separator: str

    @classmethod
    def of(cls, fields: Sequence[tuple[str, DataType]], separator: str) -> JsonRecords | None:
        """Return a reader of some fields; None if loops are not compiled or there are too many fields."""
        return cls(tuple(fields), separator) if COMPILED and len(fields) <= _MOST_FIELDS else None

    def schema(self, others: str) -> str:
        """Columns of the batches that :meth:`read` returns."""
        return ", ".join([others, "value BINARY", *(f"v{i} {spark_type(kind)}" for i, (_, kind) in self._numbered)])

    def read(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read records from the last column of each batch, and append columns ``v0`` … with their values.

        The last column then contains only the records that are not plain.
        """
        names = _frozen(np.frombuffer(b"".join(name.encode() for name, _ in self.fields), np.uint8))
        plan, end, required = [], 0, 0
        for i, (name, kind) in self._numbered:
            end += len(name.encode())
            kind_number, *limits = self._plan(kind)
            plan += [kind_number, end, *limits]
            required |= 0 if kind.nullable else 1 << i
        found = [f"v{i}" for i, _ in self._numbered]
        for batch in batches:
            rest, values = self._scanned(batch.column(batch.num_columns - 1), names, numbers(plan), required)
            yield pa.RecordBatch.from_arrays([*batch.columns[:-1], rest, *values], [*batch.schema.names, *found])

    @property
    def _numbered(self) -> Iterable[tuple[int, tuple[str, DataType]]]:
        return enumerate(self.fields)

    def _plan(self, kind: DataType) -> tuple[int, int, int]:
        """Kind and limits of a field for :func:`~airflow_flinkcompat.history.json_scan.scan`."""
        if kind.name in CHARACTERS:
            return json_scan.TEXT, 0, 0
        if kind.name in INTEGERS:
            most = 1 << _BITS[kind.name] - 1
            return json_scan.WHOLE, -most, most - 1
        if kind.name == "DECIMAL":
            precision, scale = kind.parameters
            return json_scan.DECIMAL, min(precision, _MOST_DIGITS) - scale, scale
        if kind.name in APPROXIMATE:
            return json_scan.REAL, _EXPONENTS[kind.name], 0
        if kind.name in TIMESTAMPS:
            zone = json_scan.ZONE if kind.name == "TIMESTAMP_LTZ" else 0
            return json_scan.MOMENT, kind.parameters[0] if kind.parameters else 6, ord(self.separator) | zone
        return (json_scan.BOOLEAN if kind.name == "BOOLEAN" else json_scan.DATE), 0, 0

    def _scanned(self, records: Any, names: Any, plan: Any, required: int) -> tuple[Any, list[Any]]:
        """Records that are not plain, and the values of all others."""
        rows, count = len(records), len(self.fields)
        _, of_offsets, of_content = records.buffers()
        offsets: Any = np.frombuffer(of_offsets, np.int32, rows + 1, records.offset * 4).astype(np.int64)
        content = _frozen(np.frombuffer(of_content or b"", np.uint8))
        plain: Any = np.zeros(rows, np.uint8)
        states: Any = np.zeros(rows * count, np.uint8)
        values: Any = np.zeros(rows * count, np.int64)
        ends: Any = np.zeros(rows * count, np.int64)
        found = 0
        if COMPILED:  # If a worker lacks numba, the strict reader is faster.
            found = json_scan.scan(
                content, offsets, names, plan, count, required, plain, states, values, ends, numbers([0] * 5)
            )
        rest = pa.nulls(rows, pa.binary())
        if found < rows:
            rest = pc.if_else(pa.array(plain == 0), records, rest)
        arrays = []
        for field, (_, kind) in self._numbered:
            first = field * rows
            there = states[first : first + rows] != json_scan.ABSENT
            if kind.name in (*CHARACTERS, *APPROXIMATE):
                size = int((ends - values)[first : first + rows][there].sum())
                begins, texts = zeros(rows + 1), writable(size)
                size = json_scan.copy_texts(content, states, values, ends, first, begins, texts)
                made, buffers = pa.string(), [np.asarray(begins, np.int32), texts[:size]]
            else:
                made, found_values = _typed(kind, values[first : first + rows])
                buffers = [found_values]
            valid = np.packbits(there, bitorder="little")
            array = pa.Array.from_buffers(made, rows, [pa.py_buffer(each) for each in (valid, *buffers)])
            if kind.name in APPROXIMATE:
                array = array.cast(pa.float32() if kind.name == "FLOAT" else pa.float64())
            arrays.append(array)
        return rest, arrays


def _frozen(content: Any) -> Any:
    """Make an array read-only, so that loops are compiled only for read-only arrays."""
    content.flags.writeable = False
    return content


def _typed(kind: DataType, values: Any) -> tuple[Any, Any]:
    """Arrow type of a column, and its content."""
    if kind.name == "DECIMAL":
        return pa.decimal128(*kind.parameters), np.stack([values, values >> 63], axis=1)
    if kind.name == "BOOLEAN":
        return pa.bool_(), np.packbits(values != 0, bitorder="little")
    if kind.name == "DATE":
        return pa.date32(), values.astype(np.int32)
    if kind.name in TIMESTAMPS:
        return pa.timestamp("us", "UTC" if kind.name == "TIMESTAMP_LTZ" else None), values
    bits = _BITS[kind.name]
    return getattr(pa, f"int{bits}")(), values.astype(f"int{bits}")
