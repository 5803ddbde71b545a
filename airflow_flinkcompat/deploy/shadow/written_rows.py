"""Changes that a script wrote into its stand-in sinks, from files in the format ``debezium-json``."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import duckdb
from upath import UPath

from airflow_flinkcompat.model.text import sql_text
from airflow_flinkcompat.savepoint.store import place

_DECIMAL = re.compile(r"\b(DECIMAL|DEC|NUMERIC)\b", re.IGNORECASE)
_NESTED = re.compile(r"(ROW|ARRAY|MAP|MULTISET)\b", re.IGNORECASE)
_PART = re.compile(r"part-.*-(\d+)-(\d+)")
_LARGEST_LINE = 128 << 20
_ESCAPED_IN_PATHS = re.compile(r"[\x00-\x1f\"#%'*/:=?\\\x7f{\[\]^]")
_MARK = "\x01"
"""A character that JSON never contains unescaped."""
_TEXT = r'"(?:[^"\\]|\\.)*"'
_TEXTS_OR_NUMBER = rf'({_TEXT}(?:[^"0-9-]*{_TEXT})*)|(-?[0-9][-+.0-9eE]*)'


def column(position: int) -> str:
    """The name of a column in DuckDB, where names of users could clash."""
    return f"c{position}"


@dataclass(frozen=True)
class WrittenRows:
    """The changes of one sink; ``columns``: Flink's type of each column to read.

    ``partitions``: columns whose values are only in the paths of files. ``inexact``: columns that are compared with a
    tolerance. ``nested``: :func:`has_nested_numbers` of the columns of both scripts.
    """

    columns: Mapping[str, str]
    folder: str
    partitions: Collection[str] = ()
    inexact: Collection[str] = ()
    nested: bool = False

    def read(self, connection: duckdb.DuckDBPyConnection, table: str) -> int:
        """Read the changes into a table, in the order of each writer. Return their number.

        The table has a column ``c0``, ``c1``, … of texts for each column, and ``deleted`` and ``writer``.
        """
        names = "".join(f"{column(position)} VARCHAR, " for position in range(len(self.columns)))
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {table} ({names}deleted BOOLEAN, writer UBIGINT)")
        if not self.folder or not (files := _files(root := place(self.folder))):
            return 0
        if files[0].protocol not in ("", "file"):
            connection.register_filesystem(files[0].fs)
        inside = f"substr(filename, {len(_address(root)) + 1})"
        values = "".join(f"{self._value(*each, inside)}, " for each in enumerate(self.columns))
        connection.execute(
            # a subtask writes the rows of a key in order, but into a folder for each partition
            f"INSERT INTO {table} SELECT {values}row[1] = 'd', hash(regexp_replace(filename, '[0-9]+$', '')) FROM ("
            f"SELECT json_extract_string({self._line()}, [{', '.join(map(sql_text, self._paths()))}]) AS row, filename "
            "FROM read_ndjson_objects(?, filename = true, hive_partitioning = false, "
            f"maximum_object_size = {_LARGEST_LINE}))",
            [list(map(_address, files))],
        )
        ((count,),) = connection.execute(f"SELECT count(*) FROM {table}").fetchall()
        return int(count)

    def _paths(self) -> list[str]:
        escaped = [name.replace("~", "~0").replace("/", "~1") for name in self.columns]
        return ["/op", *(f"/{image}/{name}" for image in ("before", "after") for name in escaped)]

    def _value(self, position: int, name: str, inside: str) -> str:
        """SQL of a value; ``inside`` is SQL of the path of the row's file in the folder of the sink."""
        if name in self.partitions:
            folder = re.escape(_ESCAPED_IN_PATHS.sub(lambda match: f"%{ord(match[0]):02X}", name))
            return f"nullif(regexp_extract({inside}, {sql_text(f'/{folder}=([^/]*)/')}, 1), '')"
        before = position + 2
        value = f"row[CASE row[1] WHEN 'd' THEN {before} ELSE {before + len(self.columns)} END]"
        if name in self._decimals():
            value = f"CASE WHEN contains({value}, '.') THEN rtrim(rtrim({value}, '0'), '.') ELSE {value} END"
        return value

    def _decimals(self) -> list[str]:
        return [name for name, kind in self.columns.items() if is_decimal(kind) and name not in self.inexact]

    def _line(self) -> str:
        """SQL of a line in which decimals are texts, because DuckDB parses each JSON number as a double."""
        line = "json::VARCHAR"
        if self.nested:
            marked = _replaced(line, _TEXTS_OR_NUMBER, rf"\1{_MARK}\2{_MARK}")
            # a later scale of the same number adds zeros
            short = _replaced(marked, rf"(\.[0-9]*?)0+{_MARK}", rf"\1{_MARK}")
            for old, new in ((f".{_MARK}", _MARK), (_MARK * 2, ""), (_MARK, '"')):
                short = f"replace({short}, {sql_text(old)}, {sql_text(new)})"
            return short
        if names := [re.escape(json.dumps(name, ensure_ascii=False)) for name in self._decimals()]:
            return _replaced(line, rf"({'|'.join(names)}):(-?[0-9.]+)", r'\1:"\2"')
        return line


def _replaced(text: str, pattern: str, new: str) -> str:
    return f"regexp_replace({text}, {sql_text(pattern)}, {sql_text(new)}, 'g')"


def is_decimal(kind: str) -> bool:
    """True if a type is a decimal."""
    return bool(_DECIMAL.match(kind))


def has_nested_numbers(kinds: Collection[str]) -> bool:
    """True if columns of these types have decimals, and one is ROW, ARRAY, MAP or MULTISET.

    All numbers are then read as texts, because a field in a column can have the name of another column.
    """
    return any(map(_DECIMAL.search, kinds)) and any(map(_NESTED.match, kinds))


def _address(file: UPath) -> str:
    """The address of a file in DuckDB."""
    return file.path if file.protocol in ("", "file") else str(file)


def _files(root: UPath) -> list[UPath]:
    """The files of a sink in the order in which each subtask wrote them; none without a folder."""
    if not root.exists():
        return []
    numbered = [(match, file) for file in root.glob("**/*") if (match := _PART.fullmatch(file.name))]
    return [file for _, file in sorted(numbered, key=lambda each: (int(each[0][1]), int(each[0][2]), str(each[1])))]
