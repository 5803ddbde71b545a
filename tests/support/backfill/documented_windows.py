"""The tables Flink's documentation prints, as cases: a query over the bids, and the rows it gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from airflow_flinkcompat.testing.fixture_cases import split

FILE = Path(__file__).parents[2] / "fixtures" / "backfill" / "windows.sql"
_TYPES = {"price": "DECIMAL(10, 2)", "total": "DECIMAL(38, 2)", "item": "STRING"}


@dataclass(frozen=True)
class DocumentedQuery:
    """A query over ``bid``, the columns of its sink, and the rows as the sink's csv holds them."""

    title: str
    query: str
    columns: str
    rows: list[list[str]]


def _field(name: str, text: str) -> str:
    """Times are printed without what is zero at their end, and numbers with all digits after the point."""
    if name == "item":
        return text
    if name in _TYPES:
        return {"10.00": "1E+1"}.get(text, text.removesuffix(".00"))
    return text if text.count(":") == 2 else f"{text}:00"


def _cases() -> Iterator[DocumentedQuery]:
    _, *sections = split(FILE.read_text(encoding="utf-8"), FILE.name, ("case", "printed"))
    for case, printed in zip(sections[::2], sections[1::2], strict=True):
        assert (case.name, printed.name) == ("case", "printed"), case.line
        grid = [[field.strip() for field in line.strip("| ").split("|")] for _, line in printed.lines if line.strip()]
        header, *rows = grid
        columns = ", ".join(f"{name} {_TYPES.get(name, 'TIMESTAMP(3)')}" for name in header)
        fields = [[_field(name, text) for name, text in zip(header, row, strict=True)] for row in rows]
        yield DocumentedQuery(case.title, case.text, columns, fields)


DOCUMENTED = tuple(_cases())
