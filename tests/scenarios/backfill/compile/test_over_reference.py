"""Drawn row windows and windows over rows, over drawn histories: the rows of a backfill are those of the definitions.

Flink runs some of them no longer, and some it never did (TumbleRows, SessionRows, a SlideRows that looks ahead).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_flinkcompat.backfill import BackfillRequest, plan
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.reference import Aggregate, Event
from tests.scenarios.backfill.test_reference import KEYS, NULL, VALUES, _history, _many
from tests.support.backfill.scripts import table
from tests.support.nightly import NIGHTLY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


COLUMNS = "ts TIMESTAMP(3), nr INT, k STRING, f BOOLEAN, v INT, WATERMARK FOR ts AS ts - INTERVAL '1' DAY"
SUM, COUNT = Aggregate("SUM", "v"), Aggregate("COUNT")
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Drawn:
    """A query in FLIP-11's notation without its sink, and the rows it gives: a number, a sum and a count."""

    text: str
    rows: Callable[[Sequence[Event]], Rows]


def totals(events: Iterable[Event]) -> tuple[Any, ...]:
    held = list(events)
    return SUM.of(held), COUNT.of(held)


def by_key(events: Iterable[Event], keyed: bool) -> list[list[Event]]:
    groups: dict[str | None, list[Event]] = defaultdict(list)
    for event in events:
        groups[event.k if keyed else None].append(event)
    return list(groups.values())


def counted(size: int, slide: int | None, keyed: bool) -> Drawn:
    """Window j of a key holds its rows j · slide to j · slide + size, in the order of the file; full ones only."""

    def rows(events: Sequence[Event]) -> Rows:
        found: Rows = []
        for group in by_key(events, keyed):
            for start in range(0, len(group) - size + 1, slide or size):
                held = group[start : start + size]
                found.append((max(event.nr for event in held), *totals(held)))
        return found

    window = f"Tumble over {size}.rows as 'w" if slide is None else f"Slide over {size}.rows every {slide}.rows as 'w"
    key = "groupBy('k)." if keyed else ""
    return Drawn(f"{key}window({window}).select('nr.max, 'v.sum, 'nr.count)", rows)


def along(window: str, keyed: bool, timed: bool, frame: Callable[[list[Event], int], Iterable[Event]]) -> Drawn:
    """``frame``: of a key's rows in their order and the position of one, the rows it is aggregated with."""

    def rows(events: Sequence[Event]) -> Rows:
        found: Rows = []
        for group in by_key(events, keyed):
            order = sorted(group, key=lambda event: event.ts or 0) if timed else group
            found += [(event.nr, *totals(frame(order, i))) for i, event in enumerate(order)]
        return found

    key, on = "groupBy('k)." if keyed else "", " on 'rowtime" if timed else ""
    text = f"{key}rowWindow({window}{on} as 'w).select('nr, 'v.sum over 'w, 'nr.count over 'w)"
    return Drawn(text, rows)


def since(order: list[Event], i: int, begins: Callable[[Event, Event], bool]) -> list[Event]:
    """The rows up to one, from the last on that ``begins`` something new after the one before."""
    first = next((j for j in range(i, 0, -1) if begins(order[j - 1], order[j])), 0)
    return order[first : i + 1]


def around(ms: int, ahead: int) -> Callable[[list[Event], int], Iterable[Event]]:
    return lambda order, i: [e for e in order if -ms <= (e.ts or 0) - (order[i].ts or 0) <= ahead]


LENGTHS, FEW, KEYED = st.integers(1, 20), st.integers(1, 6), st.booleans()
DRAWN = st.tuples(
    st.builds(lambda n, keyed: counted(n, None, keyed), FEW, KEYED),
    st.builds(counted, FEW, FEW, KEYED),
    st.builds(counted, FEW, FEW, KEYED),
    st.builds(
        lambda p, f, keyed, timed: along(
            f"SlideRows preceding {p}.rows following {f}.rows",
            keyed,
            timed,
            lambda order, i: order[max(0, i - p) : i + f + 1],
        ),
        FEW,
        FEW,
        KEYED,
        st.booleans(),
    ),
    st.builds(
        lambda f, keyed: along(
            f"SlideRows.unboundedPreceding following {f}.rows", keyed, False, lambda order, i: order[: i + f + 1]
        ),
        FEW,
        KEYED,
    ),
    st.builds(
        lambda p, f, keyed: along(
            f"SlideRows preceding {p}.seconds following {f}.seconds", keyed, True, around(p * 1000, f * 1000)
        ),
        LENGTHS,
        LENGTHS,
        KEYED,
    ),
    st.builds(
        lambda n, keyed: along(
            f"TumbleRows over {n}.seconds",
            keyed,
            True,
            lambda order, i: since(order, i, lambda a, b: (a.ts or 0) // (n * 1000) != (b.ts or 0) // (n * 1000)),
        ),
        LENGTHS,
        KEYED,
    ),
    st.builds(
        lambda n, keyed: along(f"TumbleRows over {n}.rows", keyed, False, lambda order, i: order[i - i % n : i + 1]),
        FEW,
        KEYED,
    ),
    st.builds(
        lambda n, keyed: along(
            f"SessionRows withGap {n}.seconds",
            keyed,
            True,
            lambda order, i: since(order, i, lambda a, b: (b.ts or 0) - (a.ts or 0) > n * 1000),
        ),
        LENGTHS,
        KEYED,
    ),
)
TIMES = st.builds(lambda second, milli: second * 1000 + milli, st.integers(-60, 60), st.sampled_from([0, 0, 1, 999]))
EVENTS = st.lists(
    st.tuples(TIMES, st.sampled_from(KEYS), st.just(None), st.sampled_from(VALUES)), min_size=1, max_size=40
).map(lambda rows: [Event(ts, nr, *rest) for nr, (ts, *rest) in enumerate(rows)])
MANY = st.integers(0, 2**16).map(lambda seed: [event for event in _many(seed) if event.ts is not None])


@pytest.mark.nightly
@pytest.mark.slow
@settings(
    max_examples=100 if NIGHTLY else 1,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(events=st.one_of(MANY, EVENTS), asked=DRAWN)
def test_any_row_windows_over_any_history(
    plain_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, events: list[Event], asked: tuple[Drawn, ...]
) -> None:
    from airflow_flinkcompat.backfill.execution.frames import Execution

    folder: Path = tmp_path_factory.mktemp("drawn")
    _history(folder / "t", events)
    sinks = [table(f"o{i}", "nr INT, s INT, n BIGINT", folder / f"o{i}") for i in range(len(asked))]
    queries = [f'val t{i} = tEnv.from("t");\nt{i}.{drawn.text}.insertInto("o{i}")' for i, drawn in enumerate(asked)]
    program = ";\n".join([table("t", COLUMNS, folder / "t", csv__null_literal=NULL), *sinks, *queries]) + ";\n"
    work = plan(BackfillRequest(JobSpec(program, source="job.table", language="table"))).work
    execution = Execution(plain_spark)
    frames = [
        execution.rows(write)[0].selectExpr(f"{i} AS query", "c0", "c1", "c2") for i, write in enumerate(work.writes)
    ]
    found: dict[int, Counter[tuple[Any, ...]]] = defaultdict(Counter)
    for number, *row in reduce(lambda one, other: one.union(other), frames).collect():
        found[number][tuple(row)] += 1
    for i, drawn in enumerate(asked):
        assert found[i] == Counter(drawn.rows(events)), drawn.text
