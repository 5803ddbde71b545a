"""Drawn pairs of jobs with two stacked operators, of which the lower, the upper or both are changed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from dev.measure.pairs import Pair, Side
from dev.measure.progress import HELD_BACK

_FILES = "'connector' = 'filesystem', 'path' = 'file://DATA/{}', 'format' = 'csv', 'source.monitor-interval' = '100 ms'"
TABLES = {
    "orders": "a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts",
    "untimed": "a STRING, b BIGINT, c STRING, d BIGINT",
    "clicks": "a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts",
    "untimed_clicks": "k STRING, tv BIGINT, tc STRING, tw BIGINT",
    "timed_clicks": "k STRING, tv BIGINT, tc STRING, tw BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts",
    "lefts": "id STRING, k STRING, lv BIGINT, lc STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts",
    "rights": "id STRING, k STRING, rv BIGINT, rc STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts",
    "untimed_lefts": "id STRING, k STRING, lv BIGINT, lc STRING",
    "untimed_rights": "id STRING, k STRING, rv BIGINT, rc STRING",
    "untimed_thirds": "id STRING, k STRING, tv BIGINT, tc STRING",
}
_ORDERS = "a AS k, c AS g, b AS v, d AS w, {x} AS x"
_JOINED = "SELECT l.k AS k, r.rc AS g, l.lv AS v, r.rv AS w, {x} AS x"
_X = ("d * 2", "b + d", "d * d")
_WHERE = ("b > 2", "b > 4", "d < 6", "a <> 'y'", "b > 2 AND d < 6")
_CALLS = ("MAX(d)", "SUM(d)", "COUNT(DISTINCT c)", "MIN(b)", "AVG(d)")
_WINDOWS = (
    "TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
    "TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '2' MINUTE)",
    "HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '1' MINUTE)",
    "CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '2' MINUTE)",
)
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


@dataclass(frozen=True)
class Kind:
    """An operator with its parameters.

    Attributes:
        query: The query, with a place for each parameter.
        choices: The values of each parameter.
        needs: What an upper operator asks of the rows below: "" nothing, ``time`` or ``windows``.
        gives: What a lower operator hands up beside its columns.
        orders: Whether a lower operator reads orders, whose keys are those of clicks.
    """

    query: str
    choices: Mapping[str, Sequence[str]]
    needs: str = ""
    gives: frozenset[str] = frozenset()
    orders: bool = True


_TIME, _OF_WINDOWS = frozenset({"time"}), frozenset({"time", "windows"})
LOWERS = {
    "filter": Kind(f"SELECT {_ORDERS}, ts FROM orders WHERE {{where}}", {"where": _WHERE, "x": _X}, gives=_TIME),
    "union": Kind(
        f"SELECT {_ORDERS}, ts FROM orders WHERE {{where}} UNION ALL SELECT {_ORDERS}, ts FROM clicks{{more}}",
        {"where": _WHERE, "x": _X, "more": ("", " WHERE d > 1")},
        gives=_TIME,
    ),
    "group": Kind(
        "SELECT a AS k, MAX(c) AS g, {f}(b) AS v, COUNT(*) AS w, {x} AS x FROM untimed WHERE {where} GROUP BY {key}",
        {"where": _WHERE, "x": _CALLS, "f": ("SUM", "MAX"), "key": ("a", "a", "a, d")},
    ),
    "distinct": Kind(
        "SELECT DISTINCT a AS k, c AS g, b AS v, {w} AS w, {x} AS x FROM untimed WHERE {where}",
        {"where": _WHERE, "x": ("1", "b + 1"), "w": ("b", "d")},
    ),
    "join": Kind(
        f"{_JOINED} FROM untimed_lefts AS l {{join}} untimed_rights AS r ON l.k = r.k{{and}}{{where}}",
        {
            "join": _JOINS,
            "and": ("", " AND r.rv > 10 * l.lv", " AND r.rv <= 10 * l.lv", " AND l.lc = 'u'"),
            "where": ("", " WHERE l.lv > 10", " WHERE r.rv > 100"),
            "x": ("l.lv + r.rv", "r.rv * 2", "l.lv * 2"),
        },
        orders=False,
    ),
    "semi-join": Kind(
        "SELECT l.k AS k, lc AS g, lv AS v, lv + 1 AS w, {x} AS x FROM untimed_lefts AS l WHERE {exists} "
        "(SELECT 1 FROM untimed_rights AS r WHERE r.k = l.k{and})",
        {"exists": ("EXISTS", "NOT EXISTS"), "and": ("", " AND r.rv > 100"), "x": ("lv * 2", "lv * lv")},
        orders=False,
    ),
    "interval join": Kind(
        f"{_JOINED}, l.ts AS ts FROM lefts AS l {{join}} rights AS r ON l.k = r.k "
        "AND l.ts BETWEEN r.ts - INTERVAL '{n}' SECOND AND r.ts + INTERVAL '1' MINUTE{and}",
        {
            "join": ("JOIN", "LEFT JOIN", "FULL JOIN"),
            "n": ("10", "40"),
            "and": ("", " AND r.rv > 10 * l.lv", " AND r.rv <= 10 * l.lv"),
            "x": ("l.lv + r.rv", "r.rv * 2"),
        },
        orders=False,
    ),
    "top-n": Kind(
        f"SELECT k, g, v, w, x FROM (SELECT {_ORDERS}, ROW_NUMBER() OVER (PARTITION BY {{key}} ORDER BY {{order}}) "
        "AS rn FROM untimed WHERE {where}) WHERE rn <= {n}",
        {"where": _WHERE, "x": _X, "key": ("a", "a", "c"), "order": ("b DESC, d", "d DESC, b", "b, d"), "n": "123"},
    ),
    "top groups": Kind(
        "SELECT k, g, v, w, x FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY {order}) AS rn FROM "
        "(SELECT a AS k, MAX(c) AS g, SUM(b) AS v, COUNT(*) AS w, {x} AS x FROM untimed WHERE {where} GROUP BY a)) "
        "WHERE rn <= {n}",
        {"where": _WHERE, "x": _CALLS, "order": ("v DESC, k", "w DESC, k", "v, k"), "n": "123"},
    ),
    "deduplicate": Kind(
        f"SELECT k, g, v, w, x FROM (SELECT {_ORDERS}, ROW_NUMBER() OVER (PARTITION BY {{key}} ORDER BY ts {{order}}) "
        "AS rn FROM orders WHERE {where}) WHERE rn = 1",
        {"where": _WHERE, "x": _X, "key": ("a", "a", "c"), "order": ("DESC", "DESC", "ASC")},
    ),
    "window": Kind(
        "SELECT a AS k, MAX(c) AS g, {f}(b) AS v, COUNT(*) AS w, {x} AS x, window_start, window_end, window_time AS ts "
        "FROM TABLE({window}) WHERE {where} GROUP BY a, window_start, window_end, window_time",
        {"where": _WHERE, "x": _CALLS, "f": ("SUM", "MAX"), "window": _WINDOWS},
        gives=_OF_WINDOWS,
    ),
    "window top-n": Kind(
        f"SELECT k, g, v, w, x, window_start, window_end FROM (SELECT {_ORDERS}, window_start, window_end, "
        "ROW_NUMBER() OVER (PARTITION BY window_start, window_end{key} ORDER BY {order}) AS rn "
        "FROM TABLE({window}) WHERE {where}) WHERE rn <= {n}",
        {
            "where": _WHERE, "x": _X, "key": ("", ", a"), "order": ("b DESC, d", "d DESC, b"), "n": "123",
            "window": _WINDOWS[:2],
        },
        gives=frozenset({"windows"}),
    ),
    "top windows": Kind(
        "SELECT k, g, v, w, x, window_start, window_end FROM (SELECT *, ROW_NUMBER() OVER "
        "(PARTITION BY window_start, window_end ORDER BY {order}) AS rn FROM "
        "(SELECT a AS k, MAX(c) AS g, SUM(b) AS v, COUNT(*) AS w, {x} AS x, window_start, window_end "
        "FROM TABLE({window}) WHERE {where} GROUP BY a, window_start, window_end)) WHERE rn <= {n}",
        {"where": _WHERE, "x": _CALLS, "order": ("v DESC, k", "w DESC, k"), "n": "123", "window": _WINDOWS[:2]},
        gives=frozenset({"windows"}),
    ),
    "over": Kind(
        "SELECT a AS k, c AS g, {f}(b) OVER (PARTITION BY {key} ORDER BY ts{frame}) AS v, d AS w, {x} AS x, ts "
        "FROM orders WHERE {where}",
        {
            "where": _WHERE, "x": _X, "key": ("a", "a", "c"), "f": ("SUM", "MAX"),
            "frame": ("", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", " ROWS BETWEEN 2 PRECEDING AND CURRENT ROW"),
        },
        gives=_TIME,
    ),
}  # fmt: skip
"""The operators over tables: each hands up ``k``, ``g``, ``v``, ``w`` and ``x``."""

_METRIC = ("", "", ", MAX(x) AS m", ", SUM(x) AS m", ", SUM(w) AS m", ", COUNT(DISTINCT v) AS m")
_MORE = ("", "", ", x AS m", ", w AS m")
_KEEPS = ("", "", " WHERE v > 3", " WHERE g <> 'z'")
_RANKED = (
    "SELECT k, g, v{m} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {order}) AS r FROM t{where})"
)
UPPERS = {
    "group": Kind(
        "SELECT {key}, COUNT(*) AS n, SUM(v) AS s{m} FROM t{where} GROUP BY {key}",
        {"key": ("k", "g"), "m": _METRIC, "where": _KEEPS},
    ),
    "group extremes": Kind(
        "SELECT {key}, MAX(v) AS n, MIN(w) AS s{m} FROM t{where} GROUP BY {key}",
        {"key": ("k", "g"), "m": _METRIC, "where": _KEEPS},
    ),
    "distinct": Kind("SELECT DISTINCT k, v{m} FROM t{where}", {"m": _MORE, "where": _KEEPS}),
    "join": Kind(
        "SELECT t.k, v, tv{m} FROM t {join} {side} AS u ON t.k = u.k{and}",
        {"join": _JOINS, "m": ("", ", tc AS m", ", x AS m"), "and": ("", " AND tv > v")},
    ),
    "top-n": Kind(
        _RANKED + " WHERE r <= {n}",
        {"key": ("k", "g"), "order": ("v DESC, w, x", "w DESC, v, x"), "n": "112", "m": _MORE, "where": _KEEPS},
    ),
    "deduplicate": Kind(
        _RANKED + " WHERE r = 1",
        {"key": ("k", "g"), "order": ("ts DESC", "ts DESC", "ts"), "m": _MORE, "where": _KEEPS},
        needs="time",
    ),
    "window": Kind(
        "SELECT {key}, COUNT(*) AS n, SUM(v) AS s{m}, window_start FROM "
        "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '{n}' MINUTE)){where} GROUP BY {key}, window_start, window_end",
        {"key": ("k", "g"), "n": ("2", "4"), "m": _METRIC[:-1], "where": _KEEPS},
        needs="time",
    ),
    "same windows": Kind(
        "SELECT window_end, COUNT(*) AS n, SUM(v) AS s{m} FROM t{where} GROUP BY window_start, window_end",
        {"m": _METRIC[:-1], "where": _KEEPS},
        needs="windows",
    ),
    "over": Kind(
        "SELECT {key}, v, SUM(w) OVER (PARTITION BY {key} ORDER BY ts) AS s{m} FROM t{where}",
        {"key": ("k", "g"), "m": ("", ", MAX(x) OVER (PARTITION BY {key} ORDER BY ts) AS m"), "where": _KEEPS},
        needs="time",
    ),
}
"""The operators over what another one hands up, ``t``."""


@dataclass(frozen=True)
class Stacked:
    """A job of two operators, each by its kind with the values of its parameters."""

    lower: str
    upper: str
    below: Mapping[str, str]
    above: Mapping[str, str]

    @property
    def script(self) -> str:
        """The job over the tables that it names."""
        below, query = queries(LOWERS[self.lower], UPPERS[self.upper], self.below, self.above)
        read = {table for table in TABLES if table in f"{below} {query}".replace(",", " ").split()}
        # The operator emits older watermarks than it receives.
        held_back = f"  {HELD_BACK}\n" if self.lower == "interval join" else ""
        options = {table: _FILES.format(table.removeprefix("timed_")) for table in read}
        tables = "".join(
            f"CREATE TABLE {table} ({held_back}{TABLES[table]}) WITH ({options[table]});\n" for table in sorted(read)
        )
        return f"{tables}CREATE TEMPORARY VIEW t AS {below};\n{query};\n"


def queries(under: Kind, over: Kind, below: Mapping[str, str], above: Mapping[str, str]) -> tuple[str, str]:
    """The query of the lower operator, and that of the upper one over it as ``t``."""
    lower = filled(under.query, below)
    if "windows" in under.gives and over.needs == "time":  # a second window_start would be ambiguous
        lower = f"SELECT k, g, v, w, x, ts FROM ({lower})"
    # A join emits no watermark if one side has none.
    timed = "untimed" not in lower
    side = ("timed_clicks" if timed else "untimed_clicks") if under.orders else "untimed_thirds"
    upper = over.query
    for _ in range(2):  # a value may hold a parameter itself
        upper = filled(upper, {**above, "side": side})
    return lower, upper


def filled(query: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        query = query.replace(f"{{{name}}}", value)
    return query


def fits(lower: str, upper: str, lowers: Mapping[str, Kind] = LOWERS) -> bool:
    """True if an upper operator may stand over a lower one."""
    under, over = lowers[lower], UPPERS[upper]
    # What the watermark has not reached yet is never waited for where an interval join holds it back.
    waits = over.needs and lower in ("interval join", "union")
    return (not over.needs or over.needs in under.gives) and not waits


FITTING = tuple((lower, upper) for lower in LOWERS for upper in UPPERS if fits(lower, upper))
"""The kinds that may be stacked."""


def _another(draw: random.Random, kind: Kind, values: Mapping[str, str]) -> Mapping[str, str]:
    """The parameters of an operator, one of them changed."""
    others = [(name, each) for name, some in kind.choices.items() for each in set(some) if each != values[name]]
    name, value = draw.choice(sorted(others))
    return MappingProxyType({**values, name: value})


def stacked_pairs(count: int, seed: int) -> Iterator[Pair]:
    """Draw pairs through all kinds that may be stacked; a greater count only adds to those of a seed."""
    draw = random.Random(seed)
    for number in range(count):
        if number % len(FITTING) == 0:
            order = draw.sample(FITTING, len(FITTING))
        lower, upper = order[number % len(FITTING)]
        below, above = (
            {name: draw.choice(some) for name, some in kind.choices.items()} for kind in (LOWERS[lower], UPPERS[upper])
        )
        old = new = Stacked(lower, upper, below, above)
        where = draw.choice(("lower", "lower", "upper", "both"))
        if where != "upper":
            new = replace(new, below=_another(draw, LOWERS[lower], below))
        if where != "lower":
            new = replace(new, above=_another(draw, UPPERS[upper], above))
        id = f"{seed}-{number:03d} {lower} / {upper}"
        yield Pair(id, "stacked operators", f"the {where} changed", Side(old.script), Side(new.script))
