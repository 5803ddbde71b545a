"""Csv files that DuckDB splits and reads as Spark does: those without quotes, in which every field is plain.

A field that either might read in a way of its own is an error, after which Spark reads all: spaces around a number,
seven digits of a second's fraction, a line with a field too many.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from airflow_flinkcompat.backfill.connectors.files.spec import FileSource
from airflow_flinkcompat.backfill.duckdb.file_schema import NotEligible, floored, kind_of, listed, path_of, text
from airflow_flinkcompat.backfill.formats.text import CsvFormat
from airflow_flinkcompat.plan.types import INTEGERS, Column, DataType

_DELIMITERS = ",;|"
_SUFFIXES = ("", ".csv", ".txt")  # by others Spark takes a file for a compressed one
_LOOK = 1 << 16  # bytes of each file that are looked at before it is read
_NO_TEXT = "\x01"  # stands for NULL to DuckDB's reader, which has to be told of something
_NAMES = {
    b"\r": "a carriage return", b"\0": "a byte 0", _NO_TEXT.encode(): "a byte 1",
    "\ufeff".encode(): "a byte order mark",
}  # fmt: skip
_DAY = "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_SHAPES = {
    **dict.fromkeys(INTEGERS, "[+-]?[0-9]+"),
    "DATE": _DAY,
    "TIMESTAMP": f"{_DAY} (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:[.][0-9]{{1,6}})?",
}


@dataclass(frozen=True)
class CsvFiles:
    """Csv files with these ``columns``, in order."""

    files: tuple[str, ...]
    format: CsvFormat
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, source: FileSource, format: CsvFormat) -> CsvFiles:
        """Raises :class:`NotEligible` for a format that both may read differently."""
        if format.ignore_parse_errors:
            raise NotEligible("lines that do not parse are left out")
        if format.delimiter not in _DELIMITERS:
            raise NotEligible(f"the fields are delimited by {format.delimiter!r}")
        files = listed(source.place)
        for name in (Path(path_of(file)).name for file in files):
            if Path(name).suffix not in _SUFFIXES:
                raise NotEligible(f"{name} may be compressed")
        return cls(files, format, source.stored)

    @property
    def forbidden(self) -> tuple[bytes, ...]:
        return (*((self.format.quote.encode(),) if self.format.quote else ()), *_NAMES)

    @property
    def relation(self) -> str:
        options = {
            "columns": "{" + ", ".join(f"'f{i}': 'VARCHAR'" for i in range(len(self.columns))) + "}",
            "delim": text(self.format.delimiter), "quote": "''", "escape": "''", "nullstr": text(_NO_TEXT),
            "header": "false", "auto_detect": "false", "strict_mode": "true", "compression": "'none'",
            "hive_partitioning": "false",
        }  # fmt: skip
        return f"read_csv([{{files}}], {', '.join(f'{name} = {value}' for name, value in options.items())})"

    @cached_property
    def _beginnings(self) -> tuple[tuple[str, int, bytes], ...]:
        """Name, size and first bytes of each file."""
        found = []
        for path in (Path(path_of(file)) for file in self.files):
            with path.open("rb") as file:
                found.append((path.name, path.stat().st_size, file.read(_LOOK)))
        return tuple(found)

    @cached_property
    def rows(self) -> float:
        return sum(size * max(1, first.count(b"\n")) // len(first) for _, size, first in self._beginnings if first)

    def check(self, columns: Iterable[Column], time: Column) -> None:
        for column in (*columns, time):
            if column.type.name not in (*_SHAPES, "DECIMAL", "VARCHAR"):
                raise NotEligible(f"column {column.name} is {column.type} as text")
        for name, _, first in self._beginnings:
            for each in self.forbidden:
                if each in first:
                    raise NotEligible(f"there is {_NAMES.get(each, 'a quote')} in {name}")

    def value(self, column: Column) -> str:
        kind, field = column.type, f"f{self.columns.index(column)}"
        given = field if self.format.null_literal is None else f"nullif({field}, {text(self.format.null_literal)})"
        if kind.name == "VARCHAR":
            return given
        shape = _SHAPES.get(kind.name) or f"[+-]?[0-9]+(?:[.][0-9]{{0,{kind.parameters[1]}}})?"
        value = f"CAST({field} AS {kind_of(column)})"
        if kind.name == "TIMESTAMP":
            value = f"make_timestamp({_cut(value, kind)})"
        unclear = f"CAST(error('a field of column {self.columns.index(column)} is not plain') AS {kind_of(column)})"
        return (
            f"CASE WHEN {given} IS NULL THEN NULL WHEN regexp_full_match({field}, {text(shape)}) THEN {value} "
            f"ELSE {unclear} END"
        )

    def micros(self, time: Column) -> str:
        return f"epoch_us({self.value(time)})"


def _cut(time: str, kind: DataType) -> str:
    """Microseconds of a time with the digits of its type, the others cut off."""
    return floored(f"epoch_us({time})", 10 ** (6 - kind.parameters[0]))
