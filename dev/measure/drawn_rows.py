"""Drawn pairs of queries whose operator stores rows, for ``python -m dev.measure layouts``: rankings and joins."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

_Query = TypeVar("_Query")

COLUMNS = {
    "a": "STRING", "b": "BIGINT", "c": "INT NOT NULL", "d": "DECIMAL(10, 2)", "e": "DOUBLE", "f": "VARCHAR(20)",
    "g": "BIGINT NOT NULL", "h": "DATE", "i": "STRING NOT NULL",
}  # fmt: skip
KEYS = "abcdfghi"
CONDITIONS = ("", "", "", "c > 3", "b IS NOT NULL", "a = 'x'", "a = 'x' AND c > 3")
WINDOWS = (
    "TUMBLE(TABLE {}, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
    "HOP(TABLE {}, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '5' MINUTE)",
    "CUMULATE(TABLE {}, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '10' MINUTE)",
)
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


@dataclass(frozen=True)
class DrawnRows:
    """One query whose operator stores rows.

    Attributes:
        form: ``rank``, ``join``, ``interval`` or ``window join``.
        shown: The columns of the result.
        keys: Of the partition, or of the join.
        order: What a ranking is ordered by.
        last: The last rank.
        number: Whether the rank is shown.
        condition: On the rows below, "" without one.
        window: The window function with a place for its table, "" without a window.
        join: How it joins.
        time_to_live: Whether state has one.
    """

    form: str
    shown: tuple[str, ...]
    keys: tuple[str, ...]
    order: str
    last: int
    number: bool
    condition: str
    window: str
    join: str
    time_to_live: bool

    @property
    def script(self) -> str:
        """The query over its tables."""
        query = self._rank() if self.form == "rank" else self._join()
        return f"{_table('t')}{_table('u')}{query};\n"

    @property
    def settings(self) -> dict[str, str]:
        """The job's."""
        return {"table.exec.state.ttl": "1 h"} if self.time_to_live else {}

    def _rows(self, table: str) -> str:
        where = f" WHERE {self.condition}" if self.condition else ""
        if self.window:
            return f"(SELECT * FROM TABLE({self.window.format(table)}){where})"
        return f"(SELECT * FROM {table}{where})" if where else table

    def _rank(self) -> str:
        partition = (*self.keys, *(("window_start", "window_end") if self.window else ()))
        by = f"PARTITION BY {', '.join(partition)} " if partition else ""
        ranked = f"SELECT *, ROW_NUMBER() OVER ({by}ORDER BY {self.order}) AS n FROM {self._rows('t')}"
        shown = ", ".join((*self.shown, *(["n"] if self.number else [])))
        return f"SELECT {shown} FROM ({ranked}) WHERE n <= {self.last}"

    def _join(self) -> str:
        left, right = self._rows("t"), self._rows("u")
        equal = [f"l.{key} = r.{key}" for key in self.keys]
        if self.form == "interval":
            equal.append("l.ts BETWEEN r.ts - INTERVAL '1' MINUTE AND r.ts + INTERVAL '2' MINUTE")
        if self.form == "window join":
            equal += ["l.window_start = r.window_start", "l.window_end = r.window_end"]
        half = (len(self.shown) + 1) // 2
        shown = [f"l.{name}" for name in self.shown[:half]] + [f"r.{name} AS r_{name}" for name in self.shown[half:]]
        return f"SELECT {', '.join(shown)} FROM {left} AS l {self.join} {right} AS r ON {' AND '.join(equal)}"


def _table(name: str) -> str:
    columns = ", ".join(f"{column} {type}" for column, type in COLUMNS.items())
    return (
        f"CREATE TABLE {name} ({columns}, ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts) WITH "
        f"('connector' = 'filesystem', 'path' = 'file:///{name}', 'format' = 'csv', "
        "'source.monitor-interval' = '1 s');\n"
    )


def _drawn(draw: random.Random) -> DrawnRows:
    form = draw.choice(["rank", "rank", "join", "join", "interval", "window join"])
    windowed = form == "window join" or (form == "rank" and draw.random() < 0.3)
    order = draw.choice(["ts", "ts DESC", "pt", "pt DESC", "b", "b DESC", "c DESC, a", "d, e DESC", "g"])
    keys = tuple(draw.sample(KEYS, draw.randint(1, 2) if form != "rank" else draw.randint(0, 3)))
    shown = tuple(draw.sample("abcdefghi", draw.randint(1, 5)))
    last = draw.choice([1, 1, 2, 5])
    window = draw.choice(WINDOWS) if windowed else ""
    condition, join = draw.choice(CONDITIONS), draw.choice(JOINS)
    number = form == "rank" and draw.random() < 0.3
    return DrawnRows(form, shown, keys, order, last, number, condition, window, join, draw.random() < 0.2)


def _changed(draw: random.Random, old: DrawnRows) -> DrawnRows:
    match draw.randint(0, 5):
        case 0:
            return replace(old, shown=tuple(dict.fromkeys((*old.shown, draw.choice("abcdefghi")))))
        case 1:
            return replace(old, shown=old.shown[::-1])
        case 2:
            return replace(old, keys=old.keys[::-1])
        case 3:
            return replace(old, last=old.last + 1)
        case 4:
            return replace(old, time_to_live=not old.time_to_live)
    return replace(old, condition=draw.choice(CONDITIONS))


def drawn_pairs(
    count: int, seed: int, drawn: Callable[[random.Random], _Query], changed: Callable[[random.Random, _Query], _Query]
) -> Iterator[tuple[_Query, _Query]]:
    """Pairs of queries.

    Args:
        count: How many.
        seed: The same gives the same.
        drawn: Draws a query.
        changed: Draws a change of it.

    Yields:
        A query, and a changed one.
    """
    draw = random.Random(seed)
    for _ in range(count):
        old = drawn(draw)
        yield old, changed(draw, old)


def row_pairs(count: int, seed: int) -> Iterator[tuple[DrawnRows, DrawnRows]]:
    """Pairs of queries that store rows, as :func:`drawn_pairs` draws them."""
    return drawn_pairs(count, seed, _drawn, _changed)
