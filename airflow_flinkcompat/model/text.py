"""Text of a script as values: its place, its normal form, and SQL literals."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from airflow_flinkcompat.lazy import quick_init


@quick_init
@dataclass(frozen=True)
class Span:
    """A range of a script: lines and columns from 1, end inclusive; ``str()`` is ``source:line:column``."""

    source: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


@dataclass(frozen=True)
class NormalForm:
    """A piece of SQL that is compared by its normal form; ``text`` is its form for readers."""

    form: str = field(repr=False)
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text


def sql_name(name: str) -> str:
    """A name in back-ticks, which Flink SQL accepts whatever characters it contains."""
    return "`" + name.replace("`", "``") + "`"


def sql_text(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"


def join_ddl(files: Iterable[tuple[str, str]]) -> tuple[str, tuple[tuple[str, int], ...]]:
    """The DDL of several files as one text, with a ``;`` after each but the last.

    Args:
        files: Content of each file by its name.

    Returns:
        The text, and each name with the number of lines from its file. The text of an only file is returned as it is.
    """
    given = list(files)
    texts = [text.rstrip() for _, text in given[:-1]]
    texts = [text if text.endswith(";") else f"{text}\n;" for text in texts] + [text for _, text in given[-1:]]
    sources = tuple((name, text.count("\n") + 1) for (name, _), text in zip(given, texts, strict=True))
    return "\n".join(texts), sources
