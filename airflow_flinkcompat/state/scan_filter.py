"""Columns and key groups that the filter of a scan needs, so that a query reads no others.

Key groups are only skipped. Arrow still applies the filter to the rows of the other key groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from airflow_flinkcompat.savepoint.batches import StoredColumn
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import NULL, Field, field_writer, split_type, write_row
from airflow_flinkcompat.savepoint.keyed_state import key_group

_MOST_KEYS = 10_000
"""Number of keys above which a filter does not select key groups."""
_METADATA = "-- schema metadata --\n"
_MICROS = 6
Values = Mapping[str, Sequence[pa.Scalar]]


@dataclass(frozen=True)
class ScanFilter:
    """A filter in Arrow's form.

    ``columns``: the columns that it uses. ``values``: the only values with which it can be true, for columns that it
    limits to a list of values.
    """

    columns: frozenset[str]
    values: Values

    @classmethod
    def read(cls, expression: pc.Expression) -> ScanFilter:
        """Read an expression.

        Arrow serializes it as calls in prefix notation, in the metadata of a record batch with the literals.
        """
        _, (serialized,) = expression.__reduce__()
        batch = pyarrow.ipc.open_file(serialized).get_batch(0)
        _, _, calls = batch.schema.to_string(show_schema_metadata=True, truncate_metadata=False).partition(_METADATA)
        columns, results = set(), [[]]  # type: tuple[set[str], list[list[object]]]
        for line in calls.splitlines():
            kind, _, quoted = line.partition(": ")
            text = quoted[1:-1]
            match kind:
                case "call":
                    results.append([])
                case "end":
                    arguments = results.pop()
                    results[-1].append(_limits(text, arguments))
                case "literal" | "options":
                    results[-1].append(batch.column(int(text))[0])
                case _:
                    results[-1].append(text)
                    columns.add(text)
        ((found,),) = results
        return cls(frozenset(columns), found if isinstance(found, dict) else {})

    def key_groups(self, key: Sequence[StoredColumn], max_parallelism: int) -> frozenset[int] | None:
        """Key groups of the keys that the filter allows; None if it does not limit all columns of the key.

        ``key``: the columns of the key, in the order of the fields of the stored key.
        """
        if not key or any(column.name not in self.values for column in key):
            return None
        if prod(len(self.values[column.name]) for column in key) > _MOST_KEYS:
            return None
        try:
            fields = [list(_fields(self.values[column.name], column.type)) for column in key]
        except (SavepointUnreadable, pa.ArrowInvalid):
            return None
        return frozenset(key_group(write_row(row), max_parallelism) for row in product(*fields))


def _limits(function: str, arguments: list[object]) -> Values:
    """Limits that a call sets. An argument is a column's name, a literal, options, or limits."""
    match function, arguments:
        case "and_kleene", [dict() as one, dict() as other]:
            return {**one, **other}
        case "or_kleene", [dict() as one, dict() as other]:
            return {name: [*one[name], *other[name]] for name in one.keys() & other.keys()}
        case "equal", [str() as name, pa.Scalar() as value]:
            return {name: [value]}
        case "is_in", [str() as name, pa.StructScalar() as options]:
            return {name: list(options["value_set"].values)}
        case "is_null", [str() as name, pa.StructScalar() as options] if not options["nan_is_null"].as_py():
            return {name: [pa.scalar(None)]}
        case "if_else", [dict(), dict() as limits, pa.BooleanScalar() as otherwise] if not otherwise.is_valid:
            return limits
    return {}


def _fields(values: Iterable[pa.Scalar], type: str) -> Iterator[Field]:
    """Stored fields of all values that equal one of the values. Raises if the form of the type is unknown."""
    root, precision, _ = split_type(type)
    moment = root.startswith("TIMESTAMP")
    if moment and precision is not None and precision > _MICROS:
        raise SavepointUnreadable(f"columns of the type {type} lack the last digits of the stored values")
    stored = field_writer(type)
    for value in values:
        if not value.is_valid:
            yield stored(None)
            yield NULL  # Flink's writers differ in the bytes of a NULL decimal or timestamp
        elif moment:
            yield stored(value.cast(pa.timestamp("us", value.type.tz)).value)
        elif root == "TIME":
            yield stored(value.cast(pa.time32("ms")).value)
        elif root == "DATE":
            yield stored(value.value)
        elif root in ("FLOAT", "DOUBLE") and value.as_py() == 0:
            yield stored(0.0)
            yield stored(-0.0)
        else:
            yield stored(value.as_py())
