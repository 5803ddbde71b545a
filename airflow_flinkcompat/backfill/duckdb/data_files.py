"""Facts about a table's files that DuckDB needs to read the same values as Spark."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from urllib.parse import unquote, urlsplit

from airflow_flinkcompat.backfill.connectors.delta import DeltaSource
from airflow_flinkcompat.backfill.connectors.delta_spark import delta_version
from airflow_flinkcompat.backfill.connectors.files import FileSource
from airflow_flinkcompat.backfill.connectors.iceberg import IcebergSource
from airflow_flinkcompat.backfill.connectors.iceberg_spark import iceberg_snapshot
from airflow_flinkcompat.backfill.connectors.registry import reader
from airflow_flinkcompat.backfill.formats.text import CsvFormat
from airflow_flinkcompat.backfill.spark import pin
from airflow_flinkcompat.model.text import duckdb_name, sql_text
from airflow_flinkcompat.plan.types import INTEGERS, Column, DataType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# DuckDB types by Flink type. If a file stores this type, DuckDB and Spark read equal values.
_KINDS = {
    "TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INTEGER", "BIGINT": "BIGINT", "BOOLEAN": "BOOLEAN",
    "VARCHAR": "VARCHAR", "DATE": "DATE", "TIMESTAMP": "TIMESTAMP",
}  # fmt: skip


class NotEligible(Exception):
    """Spark's own operators must compute an aggregation. The message is the reason."""


class DataFiles(Protocol):
    """Files of a table. ``files`` are URIs in Spark's notation. Files with equal URIs have equal content."""

    @property
    def files(self) -> tuple[str, ...]: ...

    @property
    def relation(self) -> str:
        """DuckDB SQL for a FROM clause that reads the rows. ``{files}`` stands for the list of paths."""

    @property
    def forbidden(self) -> tuple[bytes, ...]:
        """Bytes that DuckDB and Spark may interpret differently."""

    @property
    def rows(self) -> float:
        """Approximate number of rows in all files."""

    def check(self, columns: Iterable[Column], time: Column) -> None:
        """Raise :class:`NotEligible` if columns or the event time are not stored as required."""

    def value(self, column: Column) -> str:
        """DuckDB SQL for a column's value. The SQL fails if Spark's value may differ."""

    def micros(self, time: Column) -> str:
        """DuckDB SQL for the event time in microseconds."""


@dataclass(frozen=True)
class ParquetFiles:
    """Parquet files with columns by name. ``ids``: Field ids by column name, as stored in the files."""

    files: tuple[str, ...]
    ids: tuple[tuple[str, int], ...] | None = None
    relation: ClassVar[str] = "read_parquet([{files}], hive_partitioning = false)"
    forbidden: ClassVar[tuple[bytes, ...]] = ()

    @cached_property
    def _columns(self) -> tuple[dict[str, str], ...]:
        import duckdb

        with duckdb.connect(config={"threads": 1}) as connection:
            found = []
            for file in self.files:
                rows = connection.sql(f"DESCRIBE SELECT * FROM {filled_in(self.relation, [file])}").fetchall()
                found.append({str(row[0]): str(row[1]) for row in rows})
            return tuple(found)

    @cached_property
    def rows(self) -> float:
        import duckdb

        with duckdb.connect(config={"threads": 1}) as connection:
            query = filled_in("SELECT sum(num_rows) FROM parquet_file_metadata([{files}])", self.files)
            return int(connection.sql(query).fetchall()[0][0])

    def check(self, columns: Iterable[Column], time: Column) -> None:
        # The event time is only read as microseconds, so its type may have a zone. A value must have the exact type.
        kinds: dict[str, tuple[str, ...]] = {column.name: (kind_of(column),) for column in columns}
        kinds[time.name] = ("TIMESTAMP", *(() if time.name in kinds else ("TIMESTAMP WITH TIME ZONE",)))
        for file, found in zip(self.files, self._columns, strict=True):
            names = [name.lower() for name in found]
            for name, wanted in kinds.items():
                if found.get(name) not in wanted or names.count(name.lower()) != 1:
                    held = found.get(name, "missing")
                    raise NotEligible(f"column {name} is {held} in {Path(path_of(file)).name}, not {wanted[0]}")
        if self.ids is not None:
            self._check_ids(kinds, dict(self.ids))

    def _check_ids(self, names: Iterable[str], ids: dict[str, int]) -> None:
        import duckdb

        with duckdb.connect(config={"threads": 1}) as connection:
            query = filled_in("SELECT name, field_id FROM parquet_schema([{files}])", self.files)
            found = set(connection.sql(query).fetchall())
        for name in names:
            if {number for each, number in found if each == name} != {ids[name]}:
                raise NotEligible(f"column {name} had a different name when some files were written")

    def value(self, column: Column) -> str:
        return duckdb_name(column.name)

    def micros(self, time: Column) -> str:
        micros, precision = f"epoch_us({duckdb_name(time.name)})", time.type.parameters[0]
        if precision >= 6:
            return micros
        finer = f"CAST(error('a time is more precise than {time.type}') AS BIGINT)"  # Spark also fails on this time.
        return f"CASE WHEN {micros} % {10 ** (6 - precision)} <> 0 THEN {finer} ELSE {micros} END"


def kind_of(column: Column) -> str:
    """DuckDB type of a column. Raises :class:`NotEligible` if values may differ from Spark's values."""
    if column.type.name == "DECIMAL":
        return "DECIMAL({},{})".format(*column.type.parameters)
    try:
        return _KINDS[column.type.name]
    except KeyError:
        raise NotEligible(f"column {column.name} has the type {column.type}") from None


def filled_in(query: str, files: Iterable[str]) -> str:
    return query.replace("{files}", ", ".join(sql_text(path_of(file)) for file in files))


def path_of(file: str) -> str:
    """Path of a file from its URI. Raises :class:`NotEligible` if the file is not on this machine."""
    address = urlsplit(file)
    if address.scheme != "file":
        raise NotEligible(f"the files are in {address.scheme}, which DuckDB does not read here")
    path = unquote(address.path)
    if any(letter in path for letter in "*?["):
        raise NotEligible("DuckDB would interpret a file name as a pattern")
    return path


def listed(place: str) -> tuple[str, ...]:
    """URIs of the files that Spark finds in a folder: at any depth, without hidden and empty files."""
    root = Path(path_of(place))
    found = [root] if root.is_file() else []
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not _hidden(name)]
        if any(Path(folder, name).is_symlink() for name in inner):
            raise NotEligible(f"the folder {root.name} contains links to other folders")
        found += [Path(folder, name) for name in names if not _hidden(name)]
    files = tuple(path.as_uri() for path in sorted(found) if path.stat().st_size)
    if not files:
        raise NotEligible("there are no rows")
    return files


def _hidden(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def floored(micros: str, length: int, offset: int = 0) -> str:
    """DuckDB SQL that rounds a time down to a multiple of a length.

    In DuckDB, a remainder may be negative.
    """
    return f"{micros} - ((({micros} - {offset}) % {length}) + {length}) % {length}"


_DELIMITERS = ",;|"
_SUFFIXES = ("", ".csv", ".txt")  # Spark may treat files with other suffixes as compressed.
_LOOK = 1 << 16  # Number of bytes of each file that are checked before it is read.
_NO_TEXT = "\x01"  # Text that represents NULL, because DuckDB's reader requires such a text.
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
    """Plain CSV files with the given ``columns`` in order, which DuckDB and Spark split in the same way.

    If a field could be read differently, DuckDB fails, and Spark reads all rows instead. Examples of such fields are
    spaces around a number, seven fractional digits of a second, and a line with too many fields.
    """

    files: tuple[str, ...]
    format: CsvFormat
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, source: FileSource, format: CsvFormat) -> CsvFiles:
        """CSV files of a source; raises :class:`NotEligible` if DuckDB may read its format differently."""
        if format.ignore_parse_errors:
            raise NotEligible("lines that cannot be parsed are skipped")
        if format.delimiter not in _DELIMITERS:
            raise NotEligible(f"fields are separated by {format.delimiter!r}")
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
            "delim": sql_text(self.format.delimiter), "quote": "''", "escape": "''", "nullstr": sql_text(_NO_TEXT),
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
                raise NotEligible(f"column {column.name} of type {column.type} is stored as text")
        for name, _, first in self._beginnings:
            for each in self.forbidden:
                if each in first:
                    raise NotEligible(f"{name} contains {_NAMES.get(each, 'a quote')}")

    def value(self, column: Column) -> str:
        kind, field = column.type, f"f{self.columns.index(column)}"
        content = (
            field if self.format.null_literal is None else f"nullif({field}, {sql_text(self.format.null_literal)})"
        )
        if kind.name == "VARCHAR":
            return content
        shape = _SHAPES.get(kind.name) or f"[+-]?[0-9]+(?:[.][0-9]{{0,{kind.parameters[1]}}})?"
        value = f"CAST({field} AS {kind_of(column)})"
        if kind.name == "TIMESTAMP":
            value = f"make_timestamp({_cut(value, kind)})"
        unclear = f"CAST(error('a field of column {self.columns.index(column)} is not plain') AS {kind_of(column)})"
        return (
            f"CASE WHEN {content} IS NULL THEN NULL WHEN regexp_full_match({field}, {sql_text(shape)}) THEN {value} "
            f"ELSE {unclear} END"
        )

    def micros(self, time: Column) -> str:
        return f"epoch_us({self.value(time)})"


def _cut(time: str, kind: DataType) -> str:
    """DuckDB SQL for a time in microseconds, truncated to the precision of its type."""
    return floored(f"epoch_us({time})", 10 ** (6 - kind.parameters[0]))


def data_files(session: SparkSession, source: DeltaSource | IcebergSource) -> ParquetFiles:
    """Files of a table.

    Raises :class:`NotEligible` if the files do not contain exactly the rows of the table.
    """
    reader(session, source).rows()  # This line raises the error for a table with unsuitable columns.
    place = source.place if isinstance(source, DeltaSource) else source.location
    found = pin(session, ("data files", place), lambda: _found(session, source))
    if isinstance(found, str):
        raise NotEligible(found)
    return found


def _found(session: SparkSession, source: DeltaSource | IcebergSource) -> ParquetFiles | str:
    try:
        return _delta(session, source) if isinstance(source, DeltaSource) else _iceberg(session, source)
    except NotEligible as reason:
        return str(reason)


def _delta(session: SparkSession, source: DeltaSource) -> ParquetFiles:
    from pyspark.sql import DataFrame

    jvm: Any = session._jvm
    version, _ = delta_version(session, source.place)
    log: Any = jvm.org.apache.spark.sql.delta.DeltaLog
    snapshot = log.forTableWithSnapshot(session._jsparkSession, source.place)._2()
    if snapshot.version() != version:
        raise NotEligible("the table was changed after the start of the run")
    for field in json.loads(snapshot.metadata().schemaString())["fields"]:
        if set(field["metadata"]) - {"comment"}:  # Column mapping, text lengths and generated columns.
            raise NotEligible(f"Delta stores column {field['name']} in a special format")
    added = DataFrame(snapshot.allFiles().toDF(), session).selectExpr("path", "deletionVector IS NOT NULL").collect()
    if any(row[1] for row in added):
        raise NotEligible("some rows of the files are deleted")
    return _parquet(path if ":" in path else f"{source.place}/{path}" for path, _ in added)


def _iceberg(session: SparkSession, source: IcebergSource) -> ParquetFiles:
    jvm: Any = session._jvm
    name, snapshot = source.location.identifier, iceberg_snapshot(session, source.location)
    if snapshot is None:
        raise NotEligible("there are no rows")
    files = session.sql(f"SELECT content, file_format, file_path FROM {name}.files VERSION AS OF {snapshot}").collect()
    if any(row.content != 0 for row in files):
        raise NotEligible("some rows of the files are deleted")
    if any(row.file_format != "PARQUET" for row in files):
        raise NotEligible("some files are not Parquet files")
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, name)
    schema = table.schemas().get(table.snapshot(snapshot).schemaId())
    found = {column.name: schema.findField(column.name) for column in source.columns}
    ids = tuple((each, field.fieldId()) for each, field in found.items() if field is not None)
    return _parquet((_uri(row.file_path) for row in files), ids)


def _uri(path: str) -> str:
    """URI of a path that Iceberg stores: plain, or with the prefix ``file:``."""
    plain = path.removeprefix("file:")
    if ":" in plain or "%" in plain:
        raise NotEligible("the files are not on this machine, or their names are ambiguous")
    return Path("/" + plain.lstrip("/")).as_uri()


def _parquet(files: Iterable[str], ids: tuple[tuple[str, int], ...] | None = None) -> ParquetFiles:
    found = tuple(sorted(files))
    if not found:
        raise NotEligible("there are no rows")
    return ParquetFiles(found, ids)
