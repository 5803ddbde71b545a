# ruff: noqa: E501 -- one change a line
"""Scripts of several INSERTs over one shared view, some of them through a window over its windows, and changes of them.

The view is a query of tests/support/query_models.py. ``outcomes`` states the documents' tables for each sink and for the script
over these values alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from tests.support.query_models import (
    MODIFICATIONS,
    SEVERITY,
    TABLE,
    Metric,
    Query,
    Style,
    WindowModel,
    aggregation,
    finished,
    output_names,
    said_of_each,
    survivors,
)

FIELDS: Final = ("window_start", "window_end", "window_time")


@dataclass(frozen=True)
class Outer:
    """A window over ``window_time`` of the view: ``keys`` and what ``metrics`` are of, by their places in the view."""

    window: WindowModel
    keys: tuple[int, ...]
    metrics: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Reader:
    """An INSERT of the view's keys and ``metrics``, by place, or of what ``outer`` makes of them.

    ``at_least`` is asked of the first metric it reads, below ``outer``.
    """

    sink: str
    metrics: tuple[int, ...]
    at_least: int | None = None
    outer: Outer | None = None

    @property
    def reads(self) -> tuple[int, ...]:
        """The view's metrics it needs."""
        asked = self.metrics[:1] if self.at_least is not None else ()
        computed = self.metrics if self.outer is None else tuple(place for _, place in self.outer.metrics)
        return tuple(sorted({*asked, *computed}))


@dataclass(frozen=True)
class Script:
    """INSERTs of one statement set; ``unused`` are declared, but nothing is written into them."""

    view: Query
    readers: tuple[Reader, ...]
    unused: tuple[Reader, ...] = ()

    @property
    def by_sink(self) -> Mapping[str, Reader]:
        return {reader.sink: reader for reader in self.readers}

    def aggregation(self, reader: Reader) -> Query:
        """The view as the planner computes it for one reader: each metric that the reader needs, once."""
        return replace(self.view, metrics=tuple(dict.fromkeys(self.view.metrics[place] for place in reader.reads)))

    def condition(self, reader: Reader) -> tuple[Metric, int] | None:
        """What is asked of the view's rows."""
        return None if reader.at_least is None else (self.view.metrics[reader.metrics[0]], reader.at_least)

    def columns(self, reader: Reader) -> tuple[tuple[str, str], ...]:
        """Names and types of what a reader writes."""
        types = ["STRING" if "{c}" in key else "INT" for key in self.view.keys]
        if reader.outer is None:
            written = [self.view.metrics[place].type for place in reader.metrics]
        else:
            types = [types[place] for place in reader.outer.keys]
            written = [_type(function, self.view.metrics[place]) for function, place in reader.outer.metrics]
        return tuple((f"c{i}", column) for i, column in enumerate((*types, *written)))


def _type(function: str, metric: Metric) -> str:
    return "BIGINT" if function == "COUNT" else metric.type


# --- what the documents say -------------------------------------------------------------------------------------------


def outcomes(old: Script, new: Script) -> tuple[str, Mapping[str, str]]:
    """The outcome on ``vvr`` of the script and of each sink of either side."""
    sinks = {**new.by_sink, **old.by_sink}
    if old == new:
        return "compatible", dict.fromkeys(sinks, "compatible")
    common = [sink for sink in new.by_sink if sink in old.by_sink]
    script = _worst(_said_of_the_script(old, new, common))
    own = {sink: _pipeline(old, new, sink) if sink in common else "compatible" for sink in sinks}
    each = {sink: _worst((script, outcome)) for sink, outcome in own.items()}
    return _worst(each.values()), each


def _worst(said: Iterable[str]) -> str:
    return max(("compatible", *said), key=SEVERITY.index)


def _said_of_the_script(old: Script, new: Script, common: list[str]) -> Iterator[str]:
    if set(new.by_sink) - set(old.by_sink):
        yield "incompatible"  # a query that brings state
    if set(old.by_sink) - set(new.by_sink) and _declared(old) != _declared(new):
        yield "unknown"  # a sink deleted and a table's declaration changed
    if len({item for sink in common for item in _items(old, new, sink)}) > 1:
        yield "unknown"
    for one, other in combinations(common, 2):
        if _shared(old, one, other) != _shared(new, one, other):
            yield "unknown"  # no page says who takes over a state that was shared


def _declared(script: Script) -> object:
    return {reader.sink: script.columns(reader) for reader in (*script.readers, *script.unused)}


def _shared(script: Script, one: str, other: str) -> tuple[bool, bool]:
    """Whether two sinks read one aggregation, and one window over it."""
    readers = script.by_sink[one], script.by_sink[other]
    below = len({script.aggregation(reader) for reader in readers}) == 1
    outers = {(_window_above(script, reader), script.condition(reader)) for reader in readers}
    return below, below and len(outers) == 1 and readers[0].outer is not None


def _pipeline(old: Script, new: Script, sink: str) -> str:
    one, other = old.by_sink[sink], new.by_sink[sink]
    below = old.aggregation(one), new.aggregation(other)
    if below[0].window.assignment != below[1].window.assignment:
        return "incompatible"
    if one.outer is None or other.outer is None:
        return _worst(said_of_each(*below))
    if one.outer.window.assignment != other.outer.window.assignment:
        return "incompatible"
    said = list(said_of_each(*below))
    keys = [[s.view.keys[i] for i in r.outer.keys] for s, r in ((old, one), (new, other)) if r.outer]
    if keys[0] != keys[1]:
        said.append("incompatible")
    if old.condition(one) != new.condition(other) and not new.view.ignores_filters:
        said.append("incompatible")  # it decides which rows reach the outer window
    said.append(survivors(_outer_metrics(old, one), _outer_metrics(new, other)))
    return _worst(said)


def _window_above(script: Script, reader: Reader) -> object:
    """The window over the view, with each of its metrics once."""
    if reader.outer is None:
        return None
    metrics = dict.fromkeys((function, script.view.metrics[place]) for function, place in reader.outer.metrics)
    return reader.outer.window, reader.outer.keys, tuple(metrics)


def _outer_metrics(script: Script, reader: Reader) -> frozenset[tuple[str, object]]:
    assert reader.outer is not None
    return frozenset((function, script.view.metrics[place]) for function, place in reader.outer.metrics)


def _items(old: Script, new: Script, sink: str) -> Iterator[object]:
    """What changed at once: of an operator that several sinks read, once."""
    one, other = old.by_sink[sink], new.by_sink[sink]
    below = old.aggregation(one), new.aggregation(other)
    if set(below[0].metrics) != set(below[1].metrics):
        yield ("metrics", *below)
    if below[0].conditions != below[1].conditions:
        yield ("conditions", *below)
    if one.outer is None or other.outer is None:
        return
    above = (below, one.outer, other.outer, old.condition(one), new.condition(other))
    if _outer_metrics(old, one) != _outer_metrics(new, other):
        yield ("outer metrics", *above)
    if old.condition(one) != new.condition(other):
        yield ("outer conditions", *above)


# --- changes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A change of a script by name; ``apply`` answers None where it does not fit."""

    name: str
    apply: Callable[[Script], Script | None]

    def __repr__(self) -> str:
        return self.name


def _first(fits: Callable[[Reader], object], change: Callable[[Reader], Reader]) -> Callable[[Script], Script | None]:
    """The first reader that fits, changed."""

    def apply(script: Script) -> Script | None:
        place = next((i for i, reader in enumerate(script.readers) if fits(reader)), None)
        if place is None:
            return None
        readers = list(script.readers)
        readers[place] = change(readers[place])
        return replace(script, readers=tuple(readers))

    return apply


def _outer(**changes: Callable[[Outer], object]) -> Callable[[Script], Script | None]:
    def change(reader: Reader) -> Reader:
        assert reader.outer is not None
        return replace(
            reader, outer=replace(reader.outer, **{name: new(reader.outer) for name, new in changes.items()})
        )  # type: ignore[arg-type]

    return _first(lambda reader: reader.outer, change)


def _of_view(name: str, apply: Callable[[Query], Query | None]) -> Change:
    def changed(script: Script) -> Script | None:
        view = apply(script.view)
        kept = view is not None and len(view.metrics) >= len(script.view.metrics)
        types = kept and all(
            a.type == b.type
            for a, b in zip(script.view.metrics, view.metrics, strict=False)  # type: ignore[union-attr]
        )
        return replace(script, view=view) if view is not None and types else None

    return Change(f"view: {name}", changed)


VIEW: Final = frozenset(
    {"bounds last", "bounds swapped", "same offset", "count added", "filtered count added", "first modified"}
    | {"input computed", "window size", "to TUMBLE", "to HOP", "to CUMULATE", "key added", "key computed"}
    | {"keys reversed", "distinct added", "filter added", "filter changed"}
)
CHANGES: Final = (
    *(_of_view(change.name, change.apply) for change in MODIFICATIONS if change.name in VIEW),
    Change("reader: one metric less", _first(lambda r: not r.outer and r.metrics[1:], lambda r: replace(r, metrics=r.metrics[:-1]))),
    Change("reader: one metric more", _first(lambda r: not r.outer and r.metrics == (0,), lambda r: replace(r, metrics=(0, 1)))),
    Change("reader: another metric", _first(lambda r: not r.outer and r.metrics == (0,) and r.at_least is None, lambda r: replace(r, metrics=(1,)))),
    Change("reader: another condition", _first(lambda r: r.at_least is not None, lambda r: replace(r, at_least=(r.at_least or 0) + 1))),
    Change("reader: no condition", _first(lambda r: r.at_least is not None, lambda r: replace(r, at_least=None))),
    Change("readers reversed", lambda s: replace(s, readers=s.readers[::-1])),
    Change("last reader gone", lambda s: replace(s, readers=s.readers[:-1], unused=s.readers[-1:]) if len(s.readers) == 2 else None),
    Change("last reader and its table gone", lambda s: replace(s, readers=s.readers[:-1]) if len(s.readers) == 2 else None),
    Change("reader added", lambda s: replace(s, readers=(*s.readers, Reader("more", (0,)))) if len(s.readers) == 2 else None),
    Change("outer: size", _outer(window=lambda o: replace(o.window, size=o.window.size * 2))),
    Change("outer: to TUMBLE", _outer(window=lambda o: replace(o.window, kind="TUMBLE", slide=0))),
    Change("outer: key less", _outer(keys=lambda o: o.keys[:-1])),
    Change("outer: metric less", _outer(metrics=lambda o: o.metrics[:-1] or o.metrics)),
    Change("outer: metric more", _outer(metrics=lambda o: tuple(dict.fromkeys((*o.metrics, ("COUNT", 1)))))),
    Change("outer: first metric modified", _outer(metrics=lambda o: tuple(dict.fromkeys((("MIN", 0), *o.metrics[1:]))))),
    Change("outer: metrics reversed", _outer(metrics=lambda o: o.metrics[::-1])),
)  # fmt: skip

# --- text -------------------------------------------------------------------------------------------------------------


def render_script(script: Script, style: Style) -> tuple[str, Mapping[str, str]]:
    """The script and the settings passed beside it; the view may stand in each INSERT where no window reads it."""
    declarations, select = aggregation(replace(script.view, bounds=FIELDS, fields=("window_time",)), style)
    parts = [TABLE, declarations]
    inline = style.result_in != "view" and not any(reader.outer for reader in script.readers)
    shared = f"(\n{select}\n)" if inline else f"{style.prefix}_shared"
    if not inline:
        parts.append(f"CREATE TEMPORARY VIEW {shared} AS\n{select};\n")
    for reader in (*script.readers, *script.unused):
        columns = ", ".join(" ".join(column) for column in script.columns(reader))
        parts.append(f"CREATE TABLE {reader.sink} ({columns}) WITH ('connector' = 'blackhole');\n")
    inserts = []
    for reader in script.readers:
        above, query = _reading(script, reader, shared, style)
        parts.append(above)
        inserts.append(f"INSERT INTO {reader.sink}\n{query};\n")
    body = "EXECUTE STATEMENT SET BEGIN\n" + "".join(inserts) + "END;\n"
    return finished("".join(parts) + body, script.view.settings, style)


def _reading(script: Script, reader: Reader, shared: str, style: Style) -> tuple[str, str]:
    """A view of the rows below an outer window, where a condition cuts them, and the SELECT."""
    names = output_names(style)
    keys = [f"{names['k']}{i}" for i in range(len(script.view.keys))]
    asked = "" if reader.at_least is None else f" WHERE {names['m']}{reader.metrics[0]} >= {reader.at_least}"
    if reader.outer is None:
        metrics = [f"{names['m']}{place}" for place in reader.metrics]
        alias = " AS r" if shared.startswith("(") else ""
        return "", f"SELECT {', '.join([*keys, *metrics])} FROM {shared}{alias}{asked}"
    above = ""
    if asked:
        above = f"CREATE TEMPORARY VIEW {style.prefix}_{reader.sink}_rows AS SELECT * FROM {shared}{asked};\n"
        shared = f"{style.prefix}_{reader.sink}_rows"
    outer, kept = reader.outer, [keys[place] for place in reader.outer.keys]
    calls = [f"{function}({names['m']}{place})" for function, place in outer.metrics]
    lengths = [f"INTERVAL '{length}' MINUTE(4)" for length in (outer.window.slide, outer.window.size) if length]
    window = f"{outer.window.kind}(TABLE {shared}, DESCRIPTOR({names['w']}0), {', '.join(lengths)})"
    group = [*kept, "window_start", "window_end"]
    if style.tuple_keys and len(kept) > 1:
        group[: len(kept)] = [f"({', '.join(kept)})"]
    return above, f"SELECT {', '.join([*kept, *calls])}\nFROM TABLE({window})\nGROUP BY {', '.join(group)}"
