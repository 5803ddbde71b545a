# ruff: noqa: E501 -- one change a line
"""Queries as structured values, changes of them, their text in many spellings, and what the documents say of a change.

``expected`` states the tables of the three documents once more, over these values alone: it knows nothing of SQL,
plans or rules, so that it can be held against the check.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

COLUMNS: Final = ("a", "b", "c", "d", "ts", "ts2", "clock")
TABLE: Final = """\
CREATE TABLE orders (
  a INT, b BIGINT, c STRING, d INT, ts TIMESTAMP(3), ts2 AS PROCTIME(), clock AS PROCTIME(),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json');
CREATE FUNCTION split AS 'com.acme.Split';
CREATE FUNCTION weighted AS 'acme.weighted' LANGUAGE PYTHON;
"""
TYPES: Final = {"b": "BIGINT", "c": "STRING", "d": "INT", "*": "BIGINT"}


@dataclass(frozen=True)
class Metric:
    """One aggregate call; ``of`` is an expression with its column in braces, ``where`` a FILTER condition."""

    function: str
    of: str
    distinct: bool = False
    where: str = ""

    @property
    def type(self) -> str:
        if self.function in ("COUNT", "weighted"):
            return "BIGINT"
        return "TIMESTAMP(3)" if "window" in self.of else "STRING" if "{c}" in self.of else "BIGINT"

    @property
    def of_window(self) -> bool:
        return "window_" in self.of


@dataclass(frozen=True)
class WindowModel:
    """A window: lengths in minutes, ``time`` a column of the table."""

    kind: str
    size: int
    slide: int = 0
    offset: int = 0
    time: str = "ts"

    @property
    def assignment(self) -> tuple[object, ...]:
        period = self.slide if self.kind == "HOP" else self.size
        return (self.kind, self.size, self.slide, self.offset % period, self.time)


@dataclass(frozen=True)
class TopN:
    """``ROW_NUMBER() … <= limit``; ``by`` is the place of an output column, ``partition`` keys by place."""

    limit: int
    by: int
    descending: bool = False
    partition: tuple[int, ...] = ()
    shown: bool = False


@dataclass(frozen=True)
class Query:
    """A windowed aggregation, perhaps ranked. ``keys`` are expressions with their column in braces; ``bounds`` the
    window fields among the keys in their order, standing before key ``bounds_at``.
    """

    window: WindowModel
    keys: tuple[str, ...]
    metrics: tuple[Metric, ...]
    legacy: bool = False
    bounds: tuple[str, ...] = ("window_start", "window_end")
    bounds_at: int = 0
    fields: tuple[str, ...] = ("window_start",)
    conditions: frozenset[str] = frozenset()
    having: str = ""
    window_condition: str = ""
    window_key: bool = False
    grouping_sets: bool = False
    table_function: bool = False
    top: TopN | None = None
    settings: tuple[tuple[str, str], ...] = ()
    sink: str = "totals"

    @property
    def fires(self) -> bool:
        return any("-fire" in key and value == "true" for key, value in self.settings)

    @property
    def ignores_filters(self) -> bool:
        return dict(self.settings).get(IGNORE_FILTER) == "true"

    @property
    def opaque(self) -> bool:
        return self.table_function or any(metric.function == "weighted" for metric in self.metrics)


WINDOW_FIELDS: Final = ("window_start", "window_end", "window_time")
EARLY_FIRE: Final = "table.exec.emit.early-fire.enabled"
IGNORE_FILTER: Final = "table.optimizer.state-compatibility.ignore-filter"

# --- what the documents say -------------------------------------------------------------------------------------------

SEVERITY: Final = ("compatible", "partial", "unknown", "incompatible")


def expected(old: Query, new: Query) -> str:
    """The outcome on ``vvr`` by the documents' tables and readings.md."""
    if old == new:
        return "compatible"
    if old.window.assignment != new.window.assignment:
        return "incompatible"
    if old.opaque or new.opaque:
        return "unknown"
    said = set(said_of_each(old, new))
    if _items(old, new) > 1:
        said.add("unknown")
    return max(said, key=SEVERITY.index, default="compatible")


def said_of_each(old: Query, new: Query) -> Iterator[str]:
    """What the documents say of each clause that differs, or that they speak of whether it differs or not."""
    if old.legacy != new.legacy:
        yield "unknown"
    if old.keys != new.keys or set(old.bounds) != set(new.bounds):
        yield "incompatible"
    if old.window_key != new.window_key or old.grouping_sets != new.grouping_sets:
        yield "incompatible"
    if old.window_key or old.grouping_sets or old.window_condition or new.window_condition:
        yield "unknown"
    if any(metric.of_window for metric in old.metrics + new.metrics):
        yield "unknown"
    if (old.legacy or new.legacy) and (old.fires or new.fires):
        yield "incompatible"
    elif old.fires != new.fires:
        yield "unknown"
    if old.conditions != new.conditions and not new.ignores_filters:
        yield "incompatible"
    yield survivors(old.metrics, new.metrics, [[m for m in q.metrics if m.distinct] for q in (old, new)])
    if old.top or new.top:
        yield from _ranked(old, new)


def survivors(old: Iterable[object], new: Iterable[object], distinct: Sequence[Sequence[object]] = ((), ())) -> str:
    """What becomes of an aggregation whose metrics these are, each counted once."""
    before, after = set(old), set(new)
    if list(dict.fromkeys(distinct[0])) != list(dict.fromkeys(distinct[1])):
        return "incompatible"
    if (before or after) and not before & after:
        return "incompatible"
    return "partial" if after - before else "compatible"


def _ranked(old: Query, new: Query) -> Iterator[str]:
    a, b = old.top, new.top
    if a is None or b is None:
        yield "incompatible"
        return
    by = [(*old.keys, *old.metrics)[a.by], (*new.keys, *new.metrics)[b.by]]
    if (a.limit, a.descending, by[0]) != (b.limit, b.descending, by[1]):
        yield "incompatible"
    if {old.keys[i] for i in a.partition} != {new.keys[i] for i in b.partition}:
        yield "incompatible"
    if tuple(dict.fromkeys(old.metrics)) != tuple(dict.fromkeys(new.metrics)):
        yield "incompatible"
    if (old.bounds, old.bounds_at) != (new.bounds, new.bounds_at):
        yield "incompatible"
    if old.having != new.having and not new.ignores_filters:
        yield "incompatible"  # it decides which rows reach the ranking


def _items(old: Query, new: Query) -> int:
    metrics = set(old.metrics) != set(new.metrics)
    ranked = old.top is not None and new.top is not None and old.having != new.having
    return metrics + (old.conditions != new.conditions) + ranked + (old.sink != new.sink)


# --- changes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Modification:
    """A change by name; ``apply`` answers None where it does not fit."""

    name: str
    apply: Callable[[Query], Query | None]

    def __repr__(self) -> str:
        return self.name


def _with(**changes: object) -> Callable[[Query], Query | None]:
    return lambda query: replace(query, **changes)  # type: ignore[arg-type]


def _window(**changes: object) -> Callable[[Query], Query | None]:
    return lambda query: replace(query, window=replace(query.window, **changes))  # type: ignore[arg-type]


def _add(metric: Metric) -> Callable[[Query], Query | None]:
    return lambda q: None if metric in q.metrics else replace(q, metrics=(*q.metrics, metric))


def _drop_last(query: Query) -> Query | None:
    fewer = query.metrics[:-1]
    ranked = query.top is not None and query.top.by >= len(query.keys) + len(fewer)
    return None if not query.metrics or ranked else replace(query, metrics=fewer)


def _kind(kind: str) -> Callable[[Query], Query | None]:
    def apply(query: Query) -> Query | None:
        if query.window.kind == kind or (kind == "CUMULATE" and query.legacy):
            return None
        slide = 0 if kind in ("TUMBLE", "SESSION") else 1
        return replace(query, window=replace(query.window, kind=kind, size=max(query.window.size, 2), slide=slide))

    return apply


def _top(**changes: object) -> Callable[[Query], Query | None]:
    return lambda q: None if q.top is None else replace(q, top=replace(q.top, **changes))  # type: ignore[arg-type]


def _shape(query: Query) -> bool:
    """Room for what the documents show only on plain windowed aggregations in TVF notation."""
    return not query.legacy and query.top is None


def _only(applies: Callable[[Query], bool], change: Callable[[Query], Query | None]) -> Callable[[Query], Query | None]:
    return lambda query: change(query) if applies(query) else None


NEUTRAL: Final = (
    Modification("window field out", _with(fields=())),
    Modification("window fields in", _only(lambda q: len(q.bounds) == 2, _with(fields=("window_start", "window_end")))),
    Modification("metrics reversed", lambda q: replace(q, metrics=q.metrics[::-1]) if q.top is None else None),
    Modification("having", _only(lambda q: bool(q.metrics), _with(having="{m0} > 3"))),
    Modification("bounds last", lambda q: replace(q, bounds_at=len(q.keys))),
    Modification("bounds swapped", _only(lambda q: not q.legacy, lambda q: replace(q, bounds=q.bounds[::-1]))),
    Modification("rank shown", lambda q: q.top and replace(q, top=replace(q.top, shown=not q.top.shown))),
    Modification("partition reversed", lambda q: q.top and replace(q, top=replace(q.top, partition=q.top.partition[::-1]))),
    Modification("same offset", _only(lambda q: _shape(q) and q.window.kind != "SESSION", lambda q: replace(q, window=replace(q.window, offset=q.window.offset - (q.window.slide if q.window.kind == "HOP" else q.window.size))) if abs(q.window.offset) < 1 else None)),
)  # fmt: skip
PARTIAL: Final = (
    Modification("count added", _add(Metric("COUNT", "{c}"))),
    Modification("filtered count added", _add(Metric("COUNT", "*", where="{d} > 1"))),
    Modification("last deleted", _drop_last),
    Modification("first modified", lambda q: replace(q, metrics=(Metric("AVG", "{b}"), *q.metrics[1:])) if q.metrics[1:] else None),
    Modification("input computed", lambda q: replace(q, metrics=tuple(replace(m, of="SUBSTRING({c}, 1, 5)") if m == Metric("MAX", "{c}") else m for m in q.metrics))),
)  # fmt: skip
INCOMPATIBLE: Final = (
    Modification("window size", lambda q: replace(q, window=replace(q.window, size=q.window.size * 2))),
    Modification("to TUMBLE", _kind("TUMBLE")),
    Modification("to HOP", _kind("HOP")),
    Modification("to CUMULATE", _kind("CUMULATE")),
    Modification("to SESSION", _only(lambda q: not q.window.offset and not q.conditions, _kind("SESSION"))),
    Modification("time attribute", lambda q: replace(q, window=replace(q.window, time="clock")) if q.window.time == "ts" else None),
    Modification("another clock", lambda q: replace(q, window=replace(q.window, time="ts2")) if q.window.time == "clock" else None),
    Modification("key added", lambda q: None if "{d}" in q.keys else replace(q, keys=(*q.keys, "{d}")) if q.top is None else None),
    Modification("key computed", lambda q: None if "{c}" not in q.keys else replace(q, keys=tuple("UPPER({c})" if k == "{c}" else k for k in q.keys))),
    Modification("keys reversed", lambda q: None if len(q.keys) < 2 or q.top else replace(q, keys=q.keys[::-1])),
    Modification("distinct added", _add(Metric("COUNT", "{d}", distinct=True))),
    Modification("all metrics deleted", lambda q: replace(q, metrics=(), having="") if q.metrics and q.top is None else None),
    Modification("first metric added", lambda q: None if q.metrics else replace(q, metrics=(Metric("SUM", "{b}"),))),
    Modification("metrics replaced", lambda q: replace(q, metrics=(Metric("MIN", "{d}"), Metric("AVG", "{d}"))) if q.metrics and q.top is None else None),
    Modification("filter added", lambda q: None if "{b} > 10" in q.conditions or q.ignores_filters else replace(q, conditions=q.conditions | {"{b} > 10"})),
    Modification("filter changed", lambda q: None if "{d} < 7" not in q.conditions or q.ignores_filters else replace(q, conditions=q.conditions - {"{d} < 7"} | {"{d} < 8"})),
    Modification("window key", _only(_shape, lambda q: replace(q, window_key=not q.window_key))),
    Modification("one bound", _only(_shape, lambda q: replace(q, bounds=("window_start",) if len(q.bounds) == 2 else ("window_start", "window_end"), fields=()))),
    Modification("grouping sets", _only(lambda q: _shape(q) and bool(q.keys), lambda q: replace(q, grouping_sets=not q.grouping_sets))),
    Modification("early fire", _only(lambda q: q.legacy and not q.fires, lambda q: replace(q, settings=(*q.settings, (EARLY_FIRE, "true"))))),
    Modification("N", lambda q: _top(limit=(q.top.limit if q.top else 0) + 1)(q)),
    Modification("direction", lambda q: _top(descending=not (q.top and q.top.descending))(q)),
    Modification("partition", lambda q: _top(partition=q.top.partition[:-1])(q) if q.top and q.top.partition else None),
)  # fmt: skip
UNKNOWN: Final = (
    Modification("window filter", _only(lambda q: not q.legacy, _with(window_condition="window_start >= TIMESTAMP '2026-01-01 00:00:00'"))),
    Modification("window aggregated", _only(_shape, _add(Metric("MAX", "window_start")))),
    Modification("table function", _only(_shape, _with(table_function=True))),
    Modification("python", _only(lambda q: q.top is None, _add(Metric("weighted", "{b}")))),
    Modification("notation", _only(lambda q: q.top is None and not (q.window.kind == "SESSION" and q.conditions) and q.window.kind != "CUMULATE" and not q.window.offset and not q.window_key and not q.window_condition and not q.grouping_sets and len(q.bounds) == 2 and not q.table_function and not any(m.of_window for m in q.metrics), lambda q: replace(q, legacy=not q.legacy, bounds=("window_start", "window_end")))),
    Modification("early fire on a TVF", _only(lambda q: not q.legacy and not q.fires, lambda q: replace(q, settings=(*q.settings, (EARLY_FIRE, "true"))))),
)  # fmt: skip
OTHER: Final = (
    Modification("sink", _with(sink="sums")),
    Modification("filters ignored", lambda q: replace(q, settings=(*q.settings, (IGNORE_FILTER, "true"))) if not q.ignores_filters else None),
)  # fmt: skip
MODIFICATIONS: Final = NEUTRAL + PARTIAL + INCOMPATIBLE + UNKNOWN + OTHER

# --- text -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Style:
    """One way of writing a query; no part of it means anything."""

    lower: bool = False
    quoted: bool = False
    comments: bool = False
    seconds: bool = False
    named_arguments: bool = False
    columns_from: str = "table"
    """Where the source columns are renamed: nowhere (``table``), in a ``view`` or in a ``subquery``."""
    result_in: str = "query"
    """Where the query stands: in the INSERT itself (``query``), a ``view`` or a ``cte``."""
    prefix: str = "x"
    strict_rank: bool = False
    reversed_conditions: bool = False
    conditions_below: bool = False
    parentheses: bool = False
    tuple_keys: bool = False
    """Whether keys that stand together are written as one tuple."""
    settings_in_script: bool = True


def render(query: Query, style: Style) -> tuple[str, Mapping[str, str]]:
    """The script and the settings passed beside it."""
    return finished(_script(query, style), query.settings, style)


def finished(script: str, settings: Iterable[tuple[str, str]], style: Style) -> tuple[str, Mapping[str, str]]:
    """A script in the letters of its style, with its settings where they are given."""
    script, given = _cased(script, style), dict(settings)
    if style.settings_in_script:
        return "".join(f"SET '{key}' = '{value}';\n" for key, value in given.items()) + script, {}
    return script, given


def _cased(text: str, style: Style) -> str:
    return (
        text.replace("SELECT", "select").replace("FROM", "from").replace("GROUP BY", "group by")
        if style.lower
        else text
    )


def _script(query: Query, style: Style) -> str:
    declarations, statement = aggregation(query, style)
    parts = [TABLE, _sink(query), declarations]
    if style.result_in == "view":
        parts.append(f"CREATE TEMPORARY VIEW {style.prefix}_result AS\n{statement};\n")
        statement = f"SELECT * FROM {style.prefix}_result"
    elif style.result_in == "cte":
        statement = f"WITH {style.prefix}_result AS (\n{statement}\n)\nSELECT * FROM {style.prefix}_result"
    comment = "-- totals by window\n/* kept simple */ " if style.comments else ""
    return "".join(parts) + f"INSERT INTO {_name(query.sink, style)}\n{comment}{statement};\n"


def aggregation(query: Query, style: Style) -> tuple[str, str]:
    """The view that renames the source's columns, where the style has one, and the SELECT of the query."""
    names = {name: name if style.columns_from == "table" else f"{style.prefix}_{name}" for name in COLUMNS}
    renamed = ", ".join(f"{name} AS {names[name]}" for name in COLUMNS)
    below = _conditions_below(query, style)
    pushed = _conditions(query, {name: name for name in COLUMNS}, style) if below else ""
    declarations, base = "", "orders"
    if style.columns_from == "view":
        base = f"{style.prefix}_source"
        declarations = f"CREATE TEMPORARY VIEW {base} AS SELECT {renamed} FROM orders{pushed};\n"
    elif style.columns_from == "subquery":
        fields = "" if query.legacy else "".join(f", {name}" for name in WINDOW_FIELDS)
        base = f"(SELECT {renamed}{fields} FROM orders{pushed})"
    return declarations, _query(query, style, names, base)


def _conditions_below(query: Query, style: Style) -> bool:
    """Not below a session, where a condition decides which rows make one."""
    return style.conditions_below and query.window.kind != "SESSION"


def _name(name: str, style: Style) -> str:
    return f"`{name}`" if style.quoted else name


def _sink(query: Query) -> str:
    columns = [f"k{i} {'STRING' if '{c}' in key else 'INT'}" for i, key in enumerate(query.keys)]
    columns += ["wk TIMESTAMP(3)"] * query.window_key
    columns += [f"m{i} {metric.type}" for i, metric in enumerate(query.metrics)]
    columns += [f"{name} TIMESTAMP(3)" for name in query.fields]
    columns += ["rk BIGINT"] * bool(query.top and query.top.shown)
    return f"CREATE TABLE {query.sink} ({', '.join(columns) or 'nothing INT'}) WITH ('connector' = 'blackhole');\n"


def _interval(minutes: int, style: Style) -> str:
    return f"INTERVAL '{minutes * 60}' SECOND(6)" if style.seconds else f"INTERVAL '{minutes}' MINUTE"


def _lengths(window: WindowModel, style: Style) -> list[str]:
    size, slide = _interval(window.size, style), _interval(window.slide, style)
    return [size] if window.kind in ("TUMBLE", "SESSION") else [slide, size]


def _tvf(query: Query, style: Style, names: Mapping[str, str], base: str) -> str:
    """What stands in FROM: the windowed rows, their columns renamed below or above the window."""
    above = style.columns_from == "subquery"
    window = query.window
    labels = {"TUMBLE": ["SIZE"], "HOP": ["SLIDE", "SIZE"], "CUMULATE": ["STEP", "SIZE"], "SESSION": ["GAP"]}[
        window.kind
    ]
    time = window.time if above else names[window.time]
    arguments = [f"TABLE {'orders' if above else base}", f"DESCRIPTOR({time})", *_lengths(window, style)]
    if window.offset:
        sign = "-" if window.offset < 0 else ""
        arguments.append(_interval(abs(window.offset), style).replace("'", f"'{sign}", 1))
        labels = [*labels, "`OFFSET`"]
    if style.named_arguments:
        arguments = [
            f"{label} => {value}" for label, value in zip(["DATA", "TIMECOL", *labels], arguments, strict=True)
        ]
    windowed = f"TABLE({window.kind}({', '.join(arguments)}))"
    return base.replace(" FROM orders", f" FROM {windowed}", 1) if above else windowed


def _conditions(query: Query, names: Mapping[str, str], style: Style, *more: str) -> str:
    found = [condition.format(**names) for condition in sorted(query.conditions, reverse=style.reversed_conditions)]
    found += [condition for condition in more if condition]
    if style.parentheses:
        found = [f"({condition})" for condition in found]
    return "\nWHERE " + " AND ".join(found) if found else ""


def _metric(metric: Metric, names: Mapping[str, str]) -> str:
    argument = metric.of.format(**names)
    call = f"{metric.function}({'DISTINCT ' if metric.distinct else ''}{argument})"
    return f"{call} FILTER (WHERE {metric.where.format(**names)})" if metric.where else call


def output_names(style: Style) -> Mapping[str, str]:
    """What the columns of a query begin with: keys, metrics, window fields and the rank."""
    return {name: name if style.prefix == "x" else f"{style.prefix}_{name}" for name in ("k", "m", "w", "rk")}


def _query(query: Query, style: Style, names: Mapping[str, str], base: str) -> str:
    columns = output_names(style)
    metrics = [_metric(metric, names) for metric in query.metrics]
    keys = [key.format(**names) for key in query.keys]
    group = list(keys)
    window_key = "window_start + INTERVAL '1' SECOND"
    if query.legacy:
        call = f"{query.window.kind}({', '.join([names[query.window.time], *_lengths(query.window, style)])})"
        group.insert(min(query.bounds_at, len(keys)), call)
        fields = [call.replace("(", "_START(" if name == "window_start" else "_END(", 1) for name in query.fields]
        source = base
    else:
        at = min(query.bounds_at, len(keys))
        source = _tvf(query, style, names, base)
        if query.window_key:
            group.append(window_key)
        if query.grouping_sets:
            sets = ", ".join(f"({key})" for key in group) + ", ()"
            group = [*query.bounds, f"GROUPING SETS ({sets})"]
        else:
            group[at:at] = query.bounds
            if style.tuple_keys and len(keys) > 1 and at in (0, len(keys)):
                first = group.index(keys[0])
                group[first : first + len(keys)] = [f"({', '.join(keys)})"]
        fields = list(query.fields)
        if query.table_function:
            source += ", LATERAL TABLE(split(" + names["c"] + ")) AS words(word)"
    output = [f"{key} AS {columns['k']}{i}" for i, key in enumerate(keys)]
    if query.window_key:
        output.append(f"{window_key} AS {columns['w']}k")
    output += [f"{metric} AS {columns['m']}{i}" for i, metric in enumerate(metrics)]
    ranked = query.top is not None
    shown = [f"{name} AS {columns['w']}{i}" for i, name in enumerate(fields)]
    if ranked:
        shown = ["window_start", "window_end"]
    below = _conditions_below(query, style) and style.columns_from != "table"
    where = _conditions(
        replace(query, conditions=frozenset()) if below else query, names, style, query.window_condition
    )
    having = "\nHAVING " + query.having.format(m0=metrics[0]) if query.having and metrics else ""
    select = ", ".join([*output, *shown]) or "1 AS one"
    text = f"SELECT {select}\nFROM {source}{where}\nGROUP BY {', '.join(group)}{having}"
    return _ranking(query, style, columns, text) if query.top else text


def _ranking(query: Query, style: Style, columns: Mapping[str, str], inner: str) -> str:
    top = query.top
    assert top is not None
    keys = [f"{columns['k']}{i}" for i in range(len(query.keys))]
    metrics = [f"{columns['m']}{i}" for i in range(len(query.metrics))]
    partition = ", ".join(["window_start", "window_end", *(keys[i] for i in top.partition)])
    order = (keys + metrics)[top.by] + (" DESC" if top.descending else "")
    rank = columns["rk"]
    limit = f"{rank} < {top.limit + 1}" if style.strict_rank else f"{rank} <= {top.limit}"
    outer = ", ".join([*keys, *metrics, *query.fields, *([rank] if top.shown else [])])
    return (
        f"SELECT {outer} FROM (\nSELECT *, ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {order}) AS {rank}\n"
        f"FROM (\n{inner}\n)\n)\nWHERE {limit}"
    )
