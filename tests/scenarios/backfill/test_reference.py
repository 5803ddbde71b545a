"""Drawn queries over drawn histories: the rows of a backfill are those of the definitions, either way of computing."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from airflow_flinkcompat.backfill import BackfillRequest, plan
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.reference import Aggregate, Event, Having, Query, Row, TopN, Windows
from tests.support.backfill.scripts import script, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from airflow_flinkcompat.backfill.steps import Write

NULL = "~"
TYPES = {"ts": "TIMESTAMP(3)", "nr": "INT", "k": "STRING", "f": "BOOLEAN", "v": "INT"}
WINDOW_TYPES = {"window_start": "TIMESTAMP(3)", "window_end": "TIMESTAMP(3)"}
KINDS = ("TUMBLE", "HOP", "HOP", "CUMULATE", "CUMULATE", "SESSION")
"""Of the queries of one example, all in one script."""

WAYS: Mapping[str, Mapping[str, Any]] = {"slices": {"by_slices": True}, "rows": {"by_slices": False}}
"""What an Execution is told, for each way of computing an aggregation."""

# --- what is drawn ----------------------------------------------------------------------------------------------------

MILLIS = [0, 0, 0, 1, 500, 999]
KEYS = [None, "a", "b", "c"]
FLAGS = [None, True, False]
VALUES = [None, 0, 1, 1, -1, 2, -7, 9, 2**31 - 1, -(2**31)]
TIMES = st.builds(lambda second, milli: second * 1000 + milli, st.integers(-30, 30), st.sampled_from(MILLIS))
EVENTS = st.lists(
    st.tuples(
        st.one_of(TIMES, TIMES, TIMES, TIMES, st.none()),
        st.sampled_from(KEYS),
        st.sampled_from(FLAGS),
        st.sampled_from(VALUES),
    ),
    min_size=1,
    max_size=30,
).map(lambda rows: [Event(ts, nr, *rest) for nr, (ts, *rest) in enumerate(rows)])


def _many(seed: int) -> list[Event]:
    """Enough rows for windows to hold several of a key, which examples rarely grow to."""
    draw = random.Random(seed)
    return [
        Event(
            draw.choice([None, *(draw.randint(-30, 30) * 1000 + draw.choice(MILLIS) for _ in range(20))]),
            nr,
            draw.choice(KEYS),
            draw.choice(FLAGS),
            draw.choice(VALUES),
        )
        for nr in range(80)
    ]


HISTORIES = st.tuples(st.integers(0, 2**16).map(_many), EVENTS)

FILTERS = st.sampled_from([None, None, "f"])
AGGREGATE = st.one_of(
    st.builds(Aggregate, st.just("COUNT"), filter=FILTERS),
    st.builds(Aggregate, st.sampled_from(["COUNT", "SUM", "MIN", "MAX"]), st.just("v"), st.booleans(), FILTERS),
    st.builds(Aggregate, st.just("AVG"), st.just("v"), filter=FILTERS),
    st.builds(Aggregate, st.just("COUNT"), st.sampled_from(["k", "f"]), st.booleans(), FILTERS),
    st.builds(Aggregate, st.sampled_from(["MIN", "MAX"]), st.just("k"), filter=FILTERS),
)


def _one_planner(aggregates: list[Aggregate]) -> list[Aggregate]:
    """AVG beside SUM and COUNT of the same values is an error where it depends on Flink's planner: not asked for."""
    beside = {one.function for one in aggregates if one.column == "v"}
    return [one for one in aggregates if one.function != "AVG" or not beside >= {"SUM", "COUNT"}]


AGGREGATES = st.lists(AGGREGATE, min_size=2, max_size=4, unique=True).map(_one_planner)


@st.composite
def windows(draw: st.DrawFn, kind: str) -> Windows:
    """Lengths in seconds; offsets of either sign; slides beyond the size, and sizes that are no multiple of a slide."""
    if kind == "SESSION":
        return Windows(kind, draw(st.sampled_from([2, 1, 3, 6])) * 1000, keys=draw(st.sampled_from([("k",), ()])))
    slide = draw(st.sampled_from([4, 3, 1, 2, 5, 6]))
    size = (
        draw(st.sampled_from([3, 2, 1, 5])) * slide
        if kind == "CUMULATE"
        else draw(st.sampled_from([10, 7, 4, 1, 3, 20]))
    )
    offset = draw(st.integers(1 - size, size - 1))
    return Windows(kind, size * 1000, 0 if kind == "TUMBLE" else slide * 1000, offset * 1000)


@st.composite
def queries(draw: st.DrawFn, kind: str) -> Query:
    shape = draw(windows(kind))
    session = shape.kind == "SESSION"
    aggregates = tuple(draw(AGGREGATES)) if draw(st.integers(0, 4)) < 4 else ()
    keys: tuple[str, ...] = ()
    if aggregates:
        keys = shape.keys if session else draw(st.sampled_from([("k",), (), ("k", "f"), ("f",)]))
    numbers = [place for place, one in enumerate(aggregates) if one.type != "STRING"]
    having = None
    if numbers and draw(st.booleans()):
        having = Having(draw(st.sampled_from(numbers)), draw(st.sampled_from([">", "<="])), draw(st.integers(-1, 3)))
    ranked = draw(st.booleans())
    top = None
    if ranked and (not aggregates or keys):
        # Of sessions Flink ranks those of one key.
        key = (shape.keys or (None,))[0] if session else draw(st.sampled_from([None, *keys]))
        column = f"a{draw(st.integers(0, len(aggregates) - 1))}" if aggregates else draw(st.sampled_from(["v", "ts"]))
        top = TopN(draw(st.integers(1, 3)), column, draw(st.booleans()), key, draw(st.booleans()))
    # What a filter above sessions means is a matter of Flink's planner; tests against Flink say it.
    above = not session and draw(st.booleans())
    return Query(shape, keys, aggregates, having, top, above=above, below=draw(st.integers(0, 4)) == 4)


@st.composite
def ranges(draw: st.DrawFn) -> tuple[int | None, int | None]:
    first, length = draw(st.none() | TIMES), draw(st.none() | st.integers(1, 40_000))
    return first, None if length is None else (-20_000 if first is None else first) + length


# --- as Flink SQL -----------------------------------------------------------------------------------------------------


def _interval(milliseconds: int) -> str:
    assert milliseconds % 1000 == 0
    seconds = milliseconds // 1000
    return f"INTERVAL '{seconds}' SECOND{'(6)' if abs(seconds) > 99 else ''}"


def _windowed(shape: Windows, source: str) -> str:
    partition = f" PARTITION BY {', '.join(shape.keys)}" if shape.keys else ""
    lengths = [_interval(length) for length in (shape.slide, shape.size) if length]
    lengths += [_interval(shape.offset)] if shape.offset else []
    return f"TABLE({shape.kind}(TABLE {source}{partition}, DESCRIPTOR(ts), {', '.join(lengths)}))"


def _sql(query: Query, source: str) -> str:
    """The query; a filter below the windows stands in the view ``positive_...``."""
    windowed = _windowed(query.windows, f"positive_{source}" if query.below else source)
    if query.above:
        windowed += " WHERE v > 0"
    columns = ", ".join(query.names)
    inner = f"SELECT {columns} FROM {windowed}"
    if query.aggregates:
        fields = ", ".join(("window_start", "window_end", *query.keys))
        named = (f"{one.sql} AS a{i}" for i, one in enumerate(query.aggregates))
        inner = f"SELECT {fields}, {', '.join(named)} FROM {windowed} GROUP BY {fields}"
        if query.having is not None:
            tested = query.aggregates[query.having.position].sql
            inner += f" HAVING {tested} {query.having.sign} {query.having.number}"
    top = query.top
    if top is None:
        return inner
    partition = ", ".join(("window_start", "window_end", *([top.key] if top.key else [])))
    order = [top.column + (" DESC" if top.descending else ""), *(query.breakers if top.exact else ())]
    number = f"ROW_NUMBER() OVER (PARTITION BY {partition} ORDER BY {', '.join(order)}) AS rn"
    return f"SELECT {columns} FROM (SELECT *, {number} FROM ({inner})) WHERE rn <= {top.count}"


def _sink_types(query: Query) -> dict[str, str]:
    types = WINDOW_TYPES | TYPES | {f"a{i}": one.type for i, one in enumerate(query.aggregates)}
    return {name: types[name] for name in query.names}


def _time(milliseconds: int) -> datetime:
    return datetime(1970, 1, 1) + timedelta(milliseconds=milliseconds)


def _text(value: object) -> str:
    return NULL if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _history(folder: Path, events: Sequence[Event]) -> None:
    folder.mkdir(parents=True)
    rows = ([_text(ts if ts is None else _time(ts)), *map(_text, rest)] for ts, *rest in events)
    (folder / "rows.csv").write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")


def _program(folder: Path, asked: Sequence[tuple[int, Query]], histories: int) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in TYPES.items()) + ", WATERMARK FOR ts AS ts"
    statements = []
    for number in range(histories):
        statements.append(table(f"t{number}", columns, folder / f"t{number}", csv__null_literal=NULL))
        statements.append(f"CREATE VIEW positive_t{number} AS SELECT * FROM t{number} WHERE v > 0")
    for number, (_, query) in enumerate(asked):
        types = ", ".join(f"{name} {kind}" for name, kind in _sink_types(query).items())
        statements.append(table(f"o{number}", types, folder / f"o{number}"))
    for number, (source, query) in enumerate(asked):
        statements.append(f"INSERT INTO o{number} {_sql(query, f't{source}')}")
    return script(*statements)


# --- compared ---------------------------------------------------------------------------------------------------------


def _as_texts(rows: DataFrame, number: int, query: Query) -> DataFrame:
    """(number of the query, array of its columns as texts), so that the rows of all queries are one job."""
    texts = [
        f"CAST(unix_micros(CAST(c{i} AS TIMESTAMP_LTZ)) / 1000 AS BIGINT)" if kind.startswith("TIME") else f"c{i}"
        for i, kind in enumerate(_sink_types(query).values())
    ]
    return rows.selectExpr(f"{number} AS number", f"array({', '.join(f'CAST({text} AS STRING)' for text in texts)})")


def _value(text: str | None, kind: str) -> object:
    if text is None or kind == "STRING":
        return text
    return text == "true" if kind == "BOOLEAN" else int(text)


def _computed(spark: SparkSession, writes: Sequence[Write], asked: Sequence[Query], way: str) -> list[list[Row]]:
    from airflow_flinkcompat.backfill.execution.frames import Execution

    execution = Execution(spark, **WAYS[way])
    frames = [_as_texts(execution.rows(write)[0], number, asked[number]) for number, write in enumerate(writes)]
    found: list[list[Row]] = [[] for _ in asked]
    for number, texts in reduce(lambda one, other: one.union(other), frames).collect():
        kinds = _sink_types(asked[number]).values()
        found[number].append(tuple(_value(text, kind) for text, kind in zip(texts, kinds, strict=True)))
    return found


@pytest.mark.nightly
@pytest.mark.slow
@settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    histories=HISTORIES,
    asked=st.tuples(*(st.tuples(st.integers(0, 1), queries(kind)) for kind in KINDS)),
    bounds=ranges(),
)
def test_any_queries_over_any_history(
    plain_spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    histories: tuple[list[Event], ...],
    asked: tuple[tuple[int, Query], ...],
    bounds: tuple[int | None, int | None],
) -> None:
    folder = tmp_path_factory.mktemp("drawn")
    for number, events in enumerate(histories):
        _history(folder / f"t{number}", events)
    from_, to = (None if moment is None else _time(moment) for moment in bounds)
    text = _program(folder, asked, len(histories))
    work = plan(BackfillRequest(JobSpec(text, source="job.sql"), from_=from_, to=to)).work
    for way in WAYS:
        computed = _computed(plain_spark, work.writes, [query for _, query in asked], way)
        for number, ((source, query), found) in enumerate(zip(asked, computed, strict=True)):
            event(f"{query.windows.kind}: {'some rows' if found else 'no rows'}")
            wrong = query.differs(found, histories[source], *bounds)
            assert not wrong, f"{way}, o{number}: {wrong}\n{_sql(query, f't{source}')}"
