"""Windows and aggregations straight from their definitions, in plain Python; shares no code with the package.

Times are milliseconds since 1970-01-01, negative before. Rows are tuples in the order of the columns of
:class:`Event`; rows of a query begin with (window_start, window_end).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Event(NamedTuple):
    """A row of the source; ``nr`` tells apart rows that are otherwise equal."""

    ts: int | None
    nr: int
    k: str | None
    f: bool | None
    v: int | None


Bounds = tuple[int, int]
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Windows:
    """A windowing function; ``keys`` are the columns a SESSION is partitioned by."""

    kind: str
    size: int
    slide: int = 0
    offset: int = 0
    keys: tuple[str, ...] = ()

    def of(self, events: Iterable[Event]) -> list[tuple[Bounds, Event]]:
        """Every event in every window it belongs to; events without a time belong to none."""
        timed = [event for event in events if event.ts is not None]
        if self.kind == "SESSION":
            return self._sessions(timed)
        return [(window, event) for event in timed for window in self._around(event.ts or 0)]

    def _around(self, ts: int) -> list[Bounds]:
        """All windows that hold a time, found by trying every window near it."""
        step = self.slide if self.kind == "HOP" else self.size
        lengths = range(self.slide, self.size + 1, self.slide) if self.kind == "CUMULATE" else [self.size]
        reach = (self.size + abs(self.offset)) // step + 2
        starts = [(ts // step + number) * step + self.offset for number in range(-reach, reach + 1)]
        windows = [(start, start + length) for start in starts for length in lengths]
        return [(start, end) for start, end in windows if start <= ts < end]

    def _sessions(self, events: Sequence[Event]) -> list[tuple[Bounds, Event]]:
        """Each event spans [time, time + gap]; what touches is one session."""
        groups: dict[Row, list[Event]] = defaultdict(list)
        for event in events:
            groups[tuple(getattr(event, key) for key in self.keys)].append(event)
        found: list[tuple[Bounds, Event]] = []
        for group in groups.values():
            session: list[Event] = []
            for event in sorted(group, key=lambda one: one.ts or 0):
                if session and (event.ts or 0) > (session[-1].ts or 0) + self.size:
                    found += self._closed(session)
                    session = []
                session.append(event)
            found += self._closed(session)
        return found

    def _closed(self, session: list[Event]) -> list[tuple[Bounds, Event]]:
        bounds = (session[0].ts or 0, (session[-1].ts or 0) + self.size)
        return [(bounds, event) for event in session]


def inside(window: Bounds, from_: int | None, to: int | None) -> bool:
    """Whether a window lies wholly in [from, to)."""
    return (from_ is None or window[0] >= from_) and (to is None or window[1] <= to)


# --- aggregates: NULLs are left out, integers are Java's --------------------------------------------------------------


def _int32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def _sum(values: list[int]) -> int | None:
    return _int32(sum(values)) if values else None


def _average(values: list[int]) -> int | None:
    """Cut towards zero; the sum has 64 bits, which small data does not reach."""
    if not values:
        return None
    quotient = abs(sum(values)) // len(values)
    return quotient if sum(values) >= 0 else -quotient


_FUNCTIONS: dict[str, Callable[[list[Any]], int | str | None]] = {
    "COUNT": len,
    "SUM": _sum,
    "AVG": _average,
    "MIN": lambda values: min(values, default=None),
    "MAX": lambda values: max(values, default=None),
}


@dataclass(frozen=True)
class Aggregate:
    """``function([DISTINCT] column) [FILTER (WHERE column_of_booleans)]``; without a column it counts rows."""

    function: str
    column: str | None = None
    distinct: bool = False
    filter: str | None = None

    @property
    def sql(self) -> str:
        inner = ("DISTINCT " if self.distinct else "") + (self.column or "*")
        return f"{self.function}({inner})" + (f" FILTER (WHERE {self.filter})" if self.filter else "")

    @property
    def type(self) -> str:
        return "BIGINT" if self.function == "COUNT" else "STRING" if self.column == "k" else "INT"

    def of(self, events: Iterable[Event]) -> int | str | None:
        kept = [event for event in events if self.filter is None or getattr(event, self.filter)]
        if self.column is None:
            return len(kept)
        values = [value for event in kept if (value := getattr(event, self.column)) is not None]
        return _FUNCTIONS[self.function](list(set(values)) if self.distinct else values)


@dataclass(frozen=True)
class Having:
    """Keeps groups whose aggregate, by its position, compares so with a number; not those where it is NULL."""

    position: int
    sign: str
    number: int

    def keeps(self, row: Row) -> bool:
        value = row[self.position]
        return value is not None and (value > self.number if self.sign == ">" else value <= self.number)


@dataclass(frozen=True)
class TopN:
    """The first rows of each window (and key) by one column; ``exact``: then by what tells them apart, against ties."""

    count: int
    column: str
    descending: bool
    key: str | None
    exact: bool


@dataclass(frozen=True)
class Query:
    """What a query asks of windows: rows as they are, or an aggregation when there are aggregates, then a Top-N.

    ``above`` keeps windowed rows with a number over 0, ``below`` does so before there are windows.
    """

    windows: Windows
    keys: tuple[str, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    having: Having | None = None
    top: TopN | None = None
    above: bool = False
    below: bool = False
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        named = (*self.keys, *(f"a{i}" for i in range(len(self.aggregates)))) if self.aggregates else Event._fields
        object.__setattr__(self, "names", ("window_start", "window_end", *named))

    @property
    def breakers(self) -> tuple[str, ...]:
        """The columns that tell apart any two rows of a window."""
        return self.keys if self.aggregates else ("nr",)

    def candidates(self, events: Sequence[Event], from_: int | None = None, to: int | None = None) -> list[Row]:
        """All rows before the Top-N."""
        given = [event for event in events if not self.below or _positive(event)]
        found = [
            (window, event)
            for window, event in self.windows.of(given)
            if inside(window, from_, to) and (not self.above or _positive(event))
        ]
        if not self.aggregates:
            return [(*window, *event) for window, event in found]
        groups: dict[Row, list[Event]] = defaultdict(list)
        for window, event in found:
            groups[(*window, *(getattr(event, key) for key in self.keys))].append(event)
        rows = [(*key, *(one.of(group) for one in self.aggregates)) for key, group in groups.items()]
        return [row for row in rows if self.having is None or self.having.keeps(row[2 + len(self.keys) :])]

    def differs(self, found: list[Row], events: Sequence[Event], from_: int | None, to: int | None) -> str:
        """What is wrong with the rows found, in words; empty when they are right."""
        candidates = self.candidates(events, from_, to)
        if self.top is None:
            return _unequal(Counter(found), Counter(candidates))
        if strangers := Counter(found) - Counter(candidates):
            return f"no rows of the query: {dict(strangers)}"
        best = [row for group in self._ranked(candidates).values() for row in group[: self.top.count]]
        if self.top.exact:
            return _unequal(Counter(found), Counter(best))
        # Among rows that tie, any will do.
        return _unequal(Counter(map(self._place, found)), Counter(map(self._place, best)))

    def _place(self, row: Row) -> Row:
        """What decides a row's rank and where: its window, key, and the value in the order."""
        assert self.top is not None
        at = self.names.index
        return (*row[:2], None if self.top.key is None else row[at(self.top.key)], row[at(self.top.column)])

    def _ranked(self, rows: list[Row]) -> dict[Row, list[Row]]:
        assert self.top is not None
        groups: dict[Row, list[Row]] = defaultdict(list)
        for row in rows:
            groups[self._place(row)[:3]].append(row)
        for group in groups.values():
            for name in reversed(self.breakers):
                group.sort(key=lambda row: _low_null(row[self.names.index(name)]))
            place = self.names.index(self.top.column)
            group.sort(key=lambda row: _low_null(row[place]), reverse=self.top.descending)
        return groups


def _positive(event: Event) -> bool:
    return event.v is not None and event.v > 0


def _low_null(value: Any) -> tuple[bool, Any]:
    """NULL is lower than all values."""
    return (value is not None, 0 if value is None else value)


def _unequal(found: Counter[Row], wanted: Counter[Row]) -> str:
    return "" if found == wanted else f"too much: {dict(found - wanted)}; missing: {dict(wanted - found)}"
