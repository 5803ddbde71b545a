"""Scripts for Flink's planner: seeded structured queries, one change of each, and their text in many spellings.

Everything is planned without a running job and without foreign connectors, so that the real planner can be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Final

TABLES: Final = """\
CREATE TABLE orders (
  a STRING, b BIGINT, c STRING, d BIGINT, e INT, ts TIMESTAMP(3), f AS b + 1, clock AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH ('connector' = 'datagen');
CREATE TABLE refunds (
  a STRING, b BIGINT, c STRING, d BIGINT, e INT, ts TIMESTAMP(3), f AS b + 1, clock AS PROCTIME(),
  WATERMARK FOR ts AS ts
) WITH ('connector' = 'datagen');
"""
KEYS: Final[Mapping[str, str]] = {
    "a": "STRING", "c": "STRING", "d": "BIGINT", "e": "INT", "f": "BIGINT", "UPPER(a)": "STRING", "d + 1": "BIGINT",
}  # fmt: skip
CALLS: Final[Mapping[str, str]] = {
    "SUM(b)": "BIGINT", "SUM(d)": "BIGINT", "MAX(b)": "BIGINT", "MIN(b)": "BIGINT", "MIN(d)": "BIGINT",
    "COUNT(*)": "BIGINT", "COUNT(c)": "BIGINT", "MAX(c)": "STRING", "MIN(a)": "STRING", "AVG(b)": "BIGINT",
    "SUM(e)": "INT", "SUM(f)": "BIGINT", "SUM(b + 1)": "BIGINT", "MAX(SUBSTRING(c, 1, 5))": "STRING",
    "COUNT(DISTINCT c)": "BIGINT", "SUM(DISTINCT b)": "BIGINT", "COUNT(DISTINCT a)": "BIGINT",
    "SUM(b) FILTER (WHERE d > 1)": "BIGINT", "COUNT(*) FILTER (WHERE c = 'x')": "BIGINT",
}  # fmt: skip
FILTERS: Final = ("b > 10", "d < 7", "c <> 'none'", "a IN ('x', 'y')", "e IS NOT NULL", "f > 3")
SOURCES: Final = ("table", "projection", "filter", "computed", "union", "union filtered")
KINDS: Final = ("TUMBLE", "HOP", "CUMULATE", "SESSION")


@dataclass(frozen=True)
class Window:
    """A window in minutes; ``notation`` is ``tvf`` or ``group``."""

    kind: str
    size: int = 10
    slide: int = 2
    offset: int = 0
    time: str = "ts"
    notation: str = "tvf"


@dataclass(frozen=True)
class Model:
    """One query: rows of a source, filtered, grouped in windows or not, filtered, put out, perhaps read once more.

    ``output`` holds texts over keys, calls and window fields; ``outer`` what stands around the aggregation; ``beside``
    another INSERT of the same statement set.
    """

    source: str
    where: tuple[str, ...]
    window: Window | None
    keys: tuple[str, ...]
    bounds: tuple[str, ...]
    calls: tuple[str, ...]
    having: str
    output: tuple[str, ...]
    outer: str
    beside: str

    @property
    def fields(self) -> tuple[str, ...]:
        if self.window is None:
            return ()
        if self.window.notation == "tvf":
            return self.bounds
        call = _group_window(self.window)
        return (call.replace("(", "_START(", 1), call.replace("(", "_END(", 1))


def models(random: Random) -> Iterator[Model]:
    """Queries without end."""
    while True:
        yield _sensible(_drawn(random))


def _drawn(random: Random) -> Model:
    window = None
    if random.random() < 0.85:
        group = random.random() < 0.3
        kinds = [kind for kind in KINDS if not (group and kind == "CUMULATE")]
        offset = 1 if random.random() < 0.1 and not group else 0
        time = "clock" if random.random() < 0.1 else "ts"
        window = Window(random.choice(kinds), 10, 2, offset, time, "group" if group else "tvf")
    keys = tuple(random.sample(list(KEYS), random.choice([0, 1, 1, 2, 2, 3])))
    calls = tuple(random.sample(list(CALLS), random.choice([0, 1, 2, 2, 3, 4])))
    bounds = ("window_start", "window_end") if window else ()
    model = Model(
        source=random.choice(["table", "table", *SOURCES]),
        where=tuple(random.sample(FILTERS, random.choice([0, 0, 1, 2]))),
        window=window,
        keys=keys,
        bounds=bounds,
        calls=calls,
        having="",
        output=(),
        outer=random.choice(["", "", "", "filter", "filter key", "rank", "second", "again"]),
        beside=random.choice(["", "", "", "", "rows", "same", "other"]),
    )
    if calls and random.random() < 0.2:
        model = replace(model, having=_condition(random, calls))
    return replace(model, output=_drawn_output(random, model))


def _drawn_output(random: Random, model: Model) -> tuple[str, ...]:
    items = [*model.keys, *model.calls, *(f for f in model.fields if random.random() < 0.5)]
    if random.random() < 0.2:
        random.shuffle(items)
    return tuple(_above(random, item) if random.random() < 0.1 else item for item in items)


def _above(random: Random, item: str) -> str:
    kind = type_of(item)
    if kind == "STRING":
        return f"CONCAT({item}, 'x')"
    return f"{item} * 2" if kind in ("BIGINT", "INT") else item


def _condition(random: Random, calls: tuple[str, ...]) -> str:
    call = random.choice(calls)
    return f"{call} <> 'x'" if CALLS[call] == "STRING" else f"{call} > {random.choice([3, 5])}"


def type_of(item: str) -> str:
    """The SQL type of an output item."""
    known = {**KEYS, **CALLS}
    if item in known:
        return known[item]
    if item.startswith("CONCAT("):
        return "STRING"
    return known.get(item.removesuffix(" * 2"), "TIMESTAMP(3)")


def _sensible(model: Model) -> Model:
    """What Flink can plan: something is put out, and what stands around reads what is there."""
    window = model.window
    if window is not None and window.notation == "group" and (window.offset or window.kind == "CUMULATE"):
        window = replace(window, offset=0, kind="HOP" if window.kind == "CUMULATE" else window.kind)
    if window is not None and window.kind == "SESSION" and window.offset:
        window = replace(window, offset=0)
    model = replace(model, window=window)
    known = {*model.keys, *model.calls, *model.fields}
    output = tuple(item for item in model.output if _base(item) in known)
    if not output:
        output = (*model.keys, *model.calls) or model.fields or ("COUNT(*)",)
    calls = model.calls if output != ("COUNT(*)",) else ("COUNT(*)",)
    having = model.having if any(model.having.startswith(f"{call} ") for call in calls) else ""
    outer = model.outer
    if outer in ("rank", "second") and (window is None or window.notation == "group" or window.time == "clock"):
        outer = "filter"
    if not any(type_of(item) == "BIGINT" for item in output):
        outer = ""
    return replace(model, output=output, calls=calls, having=having, outer=outer)


def _base(item: str) -> str:
    return item.removesuffix(" * 2").removeprefix("CONCAT(").removesuffix(", 'x')") if _wrapped(item) else item


def _wrapped(item: str) -> bool:
    return item.endswith(" * 2") or item.startswith("CONCAT(")


# --- changes ----------------------------------------------------------------------------------------------------------


def changed(random: Random, model: Model) -> tuple[str, Model]:
    """The name of a change, and the model after it; another one than before."""
    while True:
        name = random.choice(list(CHANGES))
        after = _sensible(CHANGES[name](random, model))
        if after != model:
            return name, after


def _shuffled(items: tuple[str, ...], random: Random) -> tuple[str, ...]:
    return tuple(random.sample(items, len(items)))


def _put_out(model: Model, random: Random) -> Model:
    return replace(model, output=_drawn_output(random, model))


def _one_out(random: Random, model: Model) -> Model:
    gone = random.choice(model.calls) if model.calls else ""
    return replace(model, calls=tuple(call for call in model.calls if call != gone))


def _one_in(random: Random, model: Model) -> Model:
    come = random.choice(list(CALLS))
    at = random.randint(0, len(model.calls))
    calls = model.calls if come in model.calls else (*model.calls[:at], come, *model.calls[at:])
    return replace(model, calls=calls, output=tuple(dict.fromkeys((*model.output, come))))


def _one_other(random: Random, model: Model) -> Model:
    return _one_in(random, _one_out(random, model))


def _key(random: Random, model: Model) -> Model:
    key = random.choice(list(KEYS))
    keys = tuple(k for k in model.keys if k != key) if key in model.keys else (*model.keys, key)
    return _put_out(replace(model, keys=keys), random)


def _window(random: Random, model: Model) -> Model:
    if model.window is None:
        return replace(model, window=Window("TUMBLE"), bounds=("window_start", "window_end"))
    other: dict[str, object] = random.choice(
        [{"kind": random.choice(KINDS)}, {"size": 20}, {"slide": 5}, {"offset": 2}, {"time": "clock"},
         {"notation": "group"}, {"size": 10, "offset": -10}]
    )  # fmt: skip
    return replace(model, window=replace(model.window, **other))  # type: ignore[arg-type]


def _where(random: Random, model: Model) -> Model:
    condition = random.choice(FILTERS)
    kept = tuple(each for each in model.where if each != condition)
    return replace(model, where=kept if condition in model.where else (*kept, condition))


def _having(random: Random, model: Model) -> Model:
    return replace(model, having=_condition(random, model.calls) if model.calls and not model.having else "")


CHANGES: Final[Mapping[str, Callable[[Random, Model], Model]]] = {
    "output drawn again": lambda random, m: _put_out(m, random),
    "output reordered": lambda random, m: replace(m, output=_shuffled(m.output, random)),
    "window field in": lambda random, m: replace(m, output=tuple(dict.fromkeys((*m.output, *m.fields)))),
    "window field out": lambda random, m: replace(m, output=tuple(i for i in m.output if i not in m.fields)),
    "expression over the output": lambda random, m: replace(m, output=tuple(_above(random, i) for i in m.output)),
    "repeated call": lambda random, m: replace(m, output=(*m.output, *m.output[-1:])),
    "keys reordered": lambda random, m: replace(m, keys=_shuffled(m.keys, random)),
    "calls reordered": lambda random, m: replace(m, calls=_shuffled(m.calls, random)),
    "calls and output reordered": lambda random, m: replace(
        m, calls=m.calls[::-1], output=tuple(sorted(m.output, key=lambda i: (i in m.calls, -m.output.index(i))))
    ),
    "bounds swapped": lambda random, m: replace(m, bounds=m.bounds[::-1]),
    "call out": _one_out,
    "call in": _one_in,
    "another call": _one_other,
    "key in or out": _key,
    "window": _window,
    "filter in or out": _where,
    "filters reordered": lambda random, m: replace(m, where=m.where[::-1]),
    "having": _having,
    "source": lambda random, m: replace(m, source=random.choice(SOURCES)),
    "around": lambda random, m: replace(
        m, outer=random.choice(["", "filter", "filter key", "rank", "second", "again"])
    ),
    "beside": lambda random, m: replace(m, beside=random.choice(["", "rows", "same", "other"])),
}


# --- text -------------------------------------------------------------------------------------------------------------


def render(model: Model, random: Random) -> str:
    """The script, in a spelling drawn from ``random``; no part of the spelling means anything."""
    base, views = _source(model, random)
    query, types = _around(model, _aggregation(model, base, random), random)
    if random.random() < 0.2:
        views.append(f"CREATE TEMPORARY VIEW result_view AS\n{query};\n")
        query = "SELECT * FROM result_view"
    elif random.random() < 0.2:
        query = f"WITH r AS (\n{query}\n)\nSELECT * FROM r"
    inserts = [f"INSERT INTO totals\n{query}"]
    sinks = [_sink("totals", types)]
    if model.beside:
        text, kinds = _beside(model, base)
        inserts.append(f"INSERT INTO others\n{text}")
        sinks.append(_sink("others", kinds))
    job = (
        f"{inserts[0]};\n" if len(inserts) == 1 else "EXECUTE STATEMENT SET BEGIN\n" + ";\n".join(inserts) + ";\nEND;\n"
    )
    if random.random() < 0.3:
        job = job.replace("SELECT", "select").replace("GROUP BY", "group by")
    if random.random() < 0.3:
        job = "-- totals\n" + job.replace("\nFROM", "\n/* rows */ FROM")
    return TABLES + "".join(sinks) + "".join(views) + job


def _sink(name: str, types: list[str]) -> str:
    columns = ", ".join(f"o{i} {kind}" for i, kind in enumerate(types))
    return f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'blackhole');\n"


_EVERY: Final = "a, b, c, d, e, ts, f, clock"


def _source(model: Model, random: Random) -> tuple[str, list[str]]:
    text = {
        "projection": f"SELECT {_EVERY} FROM orders",
        "filter": f"SELECT {_EVERY} FROM orders WHERE b > 0",
        "computed": "SELECT a, b * 2 AS b, c, d, e, ts, f, clock FROM orders",
        "union": f"SELECT {_EVERY} FROM orders UNION ALL SELECT {_EVERY} FROM refunds",
        "union filtered": f"SELECT {_EVERY} FROM orders WHERE d > 0 UNION ALL SELECT {_EVERY} FROM refunds",
    }.get(model.source)
    if text is None:
        return "orders", []
    name = random.choice(["source_view", "rows_of_source"])
    return name, [f"CREATE TEMPORARY VIEW {name} AS {text};\n"]


def _length(minutes: int, random: Random) -> str:
    sign, minutes = ("-" if minutes < 0 else ""), abs(minutes)
    return (
        f"INTERVAL '{sign}{minutes * 60}' SECOND(4)" if random.random() < 0.3 else f"INTERVAL '{sign}{minutes}' MINUTE"
    )


def _tvf(window: Window, base: str, keys: tuple[str, ...], random: Random) -> str:
    lengths = {"TUMBLE": [window.size], "SESSION": [window.size]}.get(window.kind, [window.slide, window.size])
    rows = f"TABLE {base}"
    plain = [key for key in keys if key.isidentifier()]
    if window.kind == "SESSION" and plain:
        rows += f" PARTITION BY {plain[0]}" if len(plain) == 1 else f" PARTITION BY ({', '.join(plain)})"
    parts = [rows, f"DESCRIPTOR({window.time})", *(_length(minutes, random) for minutes in lengths)]
    if window.offset:
        parts.append(_length(window.offset, random))
    return f"TABLE({window.kind}({', '.join(parts)}))"


def _group_window(window: Window) -> str:
    lengths = [window.slide, window.size] if window.kind == "HOP" else [window.size]
    intervals = [f"INTERVAL '{minutes}' MINUTE" for minutes in lengths]
    return f"{window.kind}({', '.join([window.time, *intervals])})"


def _aggregation(model: Model, base: str, random: Random) -> str:
    window = model.window
    rows, group = base, list(model.keys)
    if window is not None and window.notation == "tvf":
        rows = _tvf(window, base, model.keys, random)
        group += model.bounds
    elif window is not None:
        group.append(_group_window(window))
    columns = ", ".join(f"{item} AS {chr(97 + i)}{i}" for i, item in enumerate(model.output))
    conditions = list(model.where)
    if random.random() < 0.3:
        conditions = [f"({each})" for each in conditions]
    where = f"\nWHERE {' AND '.join(conditions)}" if conditions else ""
    having = f"\nHAVING {model.having}" if model.having else ""
    grouped = f"\nGROUP BY {', '.join(group)}" if group else ""
    return f"SELECT {columns}\nFROM {rows}{where}{grouped}{having}"


def _around(model: Model, query: str, random: Random) -> tuple[str, list[str]]:
    """What stands around the aggregation, and the types of what comes out."""
    names = [f"{chr(97 + i)}{i}" for i in range(len(model.output))]
    types = [type_of(item) for item in model.output]
    number = next((name for name, kind in zip(names, types, strict=True) if kind == "BIGINT"), "")
    key = next((n for n, item in zip(names, model.output, strict=True) if item in model.keys), "")
    match model.outer:
        case "filter":
            return f"SELECT * FROM (\n{query}\n) WHERE {number} > 4", types
        case "filter key" if key:
            return f"SELECT * FROM (\n{query}\n) WHERE {key} IS NOT NULL", types
        case "again":
            return f"SELECT {', '.join(names)} FROM (\n{query}\n) AS again", types
        case "rank":
            inner = query.replace("\nFROM", ", window_start AS ws, window_end AS we\nFROM", 1)
            over = f"PARTITION BY ws, we ORDER BY {number} DESC"
            ranked = f"SELECT *, ROW_NUMBER() OVER ({over}) AS rk FROM (\n{inner}\n)"
            return f"SELECT {', '.join(names)} FROM (\n{ranked}\n) WHERE rk {random.choice(['<= 3', '< 4'])}", types
        case "second":
            inner = query.replace("\nFROM", ", window_time AS wt\nFROM", 1).replace(
                "window_end", "window_end, window_time"
            )
            inner = inner.replace("window_end, window_time AS", "window_end AS")
            hours = "TABLE(TUMBLE(TABLE inside, DESCRIPTOR(wt), INTERVAL '60' MINUTE))"
            second = f"SELECT SUM({number}) AS total FROM {hours} GROUP BY window_start, window_end"
            return f"WITH inside AS (\n{inner}\n)\n{second}", ["BIGINT"]
    return query, types


def _beside(model: Model, base: str) -> tuple[str, list[str]]:
    match model.beside:
        case "rows":
            return f"SELECT a, b FROM {base} WHERE b > 100", ["STRING", "BIGINT"]
        case "same":
            return _aggregation(model, base, Random(0)), [type_of(item) for item in model.output]
    return f"SELECT c, COUNT(*) FROM {base} GROUP BY c", ["STRING", "BIGINT"]
