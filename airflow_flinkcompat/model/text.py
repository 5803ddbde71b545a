"""Pieces of script text: places, normal forms, and SQL names and literals."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches

from airflow_flinkcompat.lazy import quick_init


@quick_init
@dataclass(frozen=True)
class Span:
    """A range of a script: lines and columns start at 1, and the end is inclusive.

    ``str()`` returns ``source:line:column``.
    """

    source: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


@dataclass(frozen=True)
class NormalForm:
    """A piece of SQL. Comparisons use the normal ``form``; readers see ``text``."""

    form: str = field(repr=False)
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text


def size_text(size: int) -> str:
    """A number of bytes for readers, such as ``3.1 GB``."""
    for unit, bytes in (("GB", 1 << 30), ("MB", 1 << 20)):
        if size >= bytes:
            return f"{size / bytes:.1f} {unit}"
    return f"{size:,} bytes"


def sql_name(name: str) -> str:
    """A name in back-ticks, which Flink SQL accepts with any characters."""
    return "`" + name.replace("`", "``") + "`"


def duckdb_name(name: str) -> str:
    """A name in double quotes, which DuckDB accepts with any characters."""
    return '"' + name.replace('"', '""') + '"'


def sql_text(text: str) -> str:
    """A text as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def misspelling(key: str, known: Collection[str]) -> str:
    """Describe an unknown key that resembles a known one.

    Args:
        key: The key.
        known: All known keys.

    Returns:
        The description, which suggests a known key; "" if the key is known, or resembles none.
    """
    meant = () if key in known else get_close_matches(key, known, 1, 0.8)
    return f"is unknown; did you mean {meant[0]}?" if meant else ""


def join_ddl(files: Iterable[tuple[str, str]]) -> tuple[str, tuple[tuple[str, int], ...]]:
    """Join the DDL of several files into one text, separated by ``;``.

    Args:
        files: The name and content of each file.

    Returns:
        The text, and the name and number of lines of each file. The text of a single file is returned unchanged.
    """
    given = list(files)
    texts = [text.rstrip() for _, text in given[:-1]]
    texts = [text if text.endswith(";") else f"{text}\n;" for text in texts] + [text for _, text in given[-1:]]
    sources = tuple((name, text.count("\n") + 1) for (name, _), text in zip(given, texts, strict=True))
    return "\n".join(texts), sources
