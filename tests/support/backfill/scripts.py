"""Scripts and data the backfill tests share: the bids of the window documentation and a builder around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

from airflow_flinkcompat.backfill import BackfillRequest, BackfillResult
from airflow_flinkcompat.model import JobSpec

Run = Callable[..., BackfillResult]

BIDS = """\
2020-04-15 08:05:00,4.00,C
2020-04-15 08:07:00,2.00,A
2020-04-15 08:09:00,5.00,D
2020-04-15 08:11:00,3.00,B
2020-04-15 08:13:00,1.00,E
2020-04-15 08:17:00,6.00,F
"""
BID_COLUMNS = (
    "bidtime TIMESTAMP(3), price DECIMAL(10, 2), item STRING, WATERMARK FOR bidtime AS bidtime - INTERVAL '1' SECOND"
)
TUMBLE = "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL '10' MINUTES))"

SUM_COLUMNS = "window_start TIMESTAMP(3), window_end TIMESTAMP(3), total DECIMAL(38, 2)"
SUM = f"SELECT window_start, window_end, SUM(price) FROM {TUMBLE} GROUP BY window_start, window_end"
FIRST = '"2020-04-15 08:00:00","2020-04-15 08:10:00",11'
SECOND = '"2020-04-15 08:10:00","2020-04-15 08:20:00",1E+1'


def table(name: str, columns: str, place: str | Path, format: str = "csv", **options: str) -> str:
    """CREATE TABLE on files; keyword arguments are options with ``_`` for ``-`` and ``__`` for ``.``."""
    given = {"connector": "filesystem", "path": str(place), "format": format}
    given |= {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    return f"CREATE TABLE {name} ({columns}) WITH ({pairs})"


def filled(name: str, columns: str, place: Path, rows: Iterable[str]) -> str:
    """CREATE TABLE on a new folder with one csv file of these lines, where nothing stands for NULL."""
    place.mkdir()
    (place / "rows.csv").write_text("".join(rows), encoding="utf-8")
    return table(name, columns, place, csv__null_literal="")


def script(*statements: str) -> str:
    """Statements as one script."""
    return ";\n".join(statements) + ";\n"


def bids(query: str, columns: str, source: str | Path = "/history", sink: str | Path = "/results") -> str:
    """A script that writes a query over the table ``bid`` into the table ``results``."""
    return script(table("bid", BID_COLUMNS, source), table("results", columns, sink), f"INSERT INTO results {query}")


def lines(place: Path) -> list[str]:
    """All lines of all visible files of a folder, sorted."""
    return sorted(
        line
        for file in place.rglob("*")
        if file.is_file() and not file.name.startswith((".", "_"))
        for line in file.read_text(encoding="utf-8").splitlines()
    )


def requested(text: str, **given: Any) -> BackfillRequest:
    """A request for a script: what of ``given`` is a field of the job goes to the job."""
    of_job = {name: given.pop(name) for name in [each.name for each in fields(JobSpec)] if name in given}
    return BackfillRequest(JobSpec(text, **of_job), **given)
