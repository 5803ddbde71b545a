"""Text of a script as values: where it stands, what it says however it is written, and how SQL writes any text."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_flinkcompat.quick_init import quick_init


@quick_init
@dataclass(frozen=True)
class Span:
    """A range of a script, 1-based lines and columns, the end inclusive. ``str()`` is ``source:line:column``."""

    source: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


@dataclass(frozen=True)
class NormalForm:
    """A piece of SQL that is compared by its normal form; ``text`` is what a reader sees of it."""

    form: str = field(repr=False)
    text: str = field(compare=False)

    def __str__(self) -> str:
        return self.text


def sql_name(name: str) -> str:
    """A name as Flink SQL takes it, whatever it is."""
    return "`" + name.replace("`", "``") + "`"


def sql_text(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
