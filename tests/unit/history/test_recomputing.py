"""What plain Python makes of the rows of a key: slices, calls, and the keys with the least hashes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.exec_graph.layout import NamedState, Stored
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.history.recomputing import KeySample, KeySampling, PlainAggregation, PlainCall, PlainState
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.savepoint.binary import KeyedStateKind
from tests.unit.history.test_state_rows import sliced

STATE = NamedState("accState", KeyedStateKind.VALUE, Stored("row"))
KEY, VALUE, CONDITION, TIME = range(4)


def plain(*calls: PlainCall, **given: Any) -> PlainAggregation:
    """Rows of a key, a value, a condition and a time."""
    return PlainAggregation(1, (PlainState(STATE, calls),), **given)


def results(made: PlainAggregation, columns: Sequence[Sequence[Any]], reached: int = 0) -> dict[Any, Any]:
    """By bounds what the calls give of rows of one key."""
    (sample,) = KeySampling(made, 1, reached).of_partition([(7, *row) for row in columns])
    return {
        place[1]: [value for value, _ in found]
        for key in sample.held.values()
        for place, found in key.results(made).items()
    }


@given(windows=sliced(), watermark=st.integers(-500, 500), moment=st.integers(-900, 900))
def test_a_row_is_kept_where_the_writer_puts_its_slice(windows: SlicedWindow, watermark: int, moment: int) -> None:
    rows = plain(PlainCall("COUNT"), time=TIME, windows=windows)
    place = windows.place(windows.next_end(moment + 1), watermark)
    assert rows.bounds(["k", 1, True, moment * 1000 + 999], watermark) == (place and (place[0],))


def test_a_window_with_both_bounds_and_a_row_without_a_time() -> None:
    rows = plain(PlainCall("COUNT"), time=TIME, windows=SlicedWindow(WindowKind.TUMBLE, 60, 60, 10), spans=True)
    assert rows.bounds(["k", 1, True, 75_000], 0) == (70, 130)
    assert rows.bounds(["k", 1, True, 75_000], 129) is None
    assert rows.bounds(["k", 1, True, None], 0) is None


def test_a_day_of_a_zone() -> None:
    """22:30 by UTC is half an hour into the next day of Berlin in summer."""
    day, hour = 86_400_000, 3_600_000
    rows = plain(time=TIME, windows=SlicedWindow(WindowKind.TUMBLE, day, day), zone="Europe/Berlin")
    july = 19_905 * day
    assert rows.bounds(["k", 1, True, (july + 22 * hour + hour // 2) * 1000], 0) == (july + 2 * day,)


@pytest.mark.parametrize(
    ("call", "gives"),
    [
        (PlainCall("COUNT"), 5),
        (PlainCall("COUNT", VALUE), 4),
        (PlainCall("COUNT", VALUE, CONDITION), 2),
        (PlainCall("COUNT", VALUE, distinct=True), 3),
        (PlainCall("SUM", VALUE), 106),
        (PlainCall("SUM", VALUE, type="TINYINT"), 106),
        (PlainCall("SUM", VALUE, CONDITION), 6),
        (PlainCall("SUM", VALUE, distinct=True), 103),
        (PlainCall("MIN", VALUE), 1),
        (PlainCall("MAX", VALUE), 99),
    ],
)
def test_a_call(call: PlainCall, gives: int) -> None:
    """NULL does not count, and neither does a row of which the condition is not true, be it not known."""
    rows = [("k", 3, True), ("k", 3, True), ("k", None, True), ("k", 99, None), ("k", 1, False)]
    assert results(plain(call), rows) == {(): [gives]}


def test_sums_wrap_and_begin_with_no_value() -> None:
    calls = [PlainCall("SUM", VALUE, type=type) for type in ("INT", "BIGINT NOT NULL")]
    assert results(plain(*calls), [("k", 2**31 - 1), ("k", 1)]) == {(): [-(2**31), 2**31]}
    assert results(plain(calls[1]), [("k", 2**63 - 1), ("k", 2)]) == {(): [-(2**63) + 1]}
    assert results(plain(*calls, PlainCall("MIN", VALUE)), [("k", None)]) == {(): [None, None, None]}


def test_all_digits_of_decimals_count() -> None:
    call, most = PlainCall("SUM", VALUE, type="DECIMAL(38, 2)"), Decimal("9" * 36 + ".99")
    assert results(plain(call), [("k", most), ("k", Decimal("-0.01"))]) == {(): [Decimal("9" * 36 + ".98")]}


ROWS = st.lists(st.tuples(st.integers(0, 9), st.one_of(st.none(), st.integers(-5, 5)), st.booleans()), max_size=60)


@given(rows=ROWS, cuts=st.lists(st.integers(0, 60), max_size=3), count=st.integers(1, 6), most=st.integers(3, 60))
def test_the_keys_with_the_least_hashes_are_sampled_with_all_of_their_rows(
    rows: list[tuple[int, int | None, bool]], cuts: list[int], count: int, most: int
) -> None:
    """Whatever partitions they lie in; with too many rows for the sample fewer keys are in it."""
    calls = (
        PlainCall("COUNT"),
        PlainCall("SUM", VALUE, CONDITION),
        PlainCall("MAX", VALUE),
        PlainCall("COUNT", VALUE, distinct=True),
    )
    sampling = KeySampling(plain(*calls), count, 0, most)
    hashes = {key: (7 * key + 3) % 10 for key in range(10)}
    ends = [*sorted(cuts), len(rows)]
    parts = [rows[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    samples = [next(sampling.of_partition([(hashes[row[0]], *row) for row in part])) for part in parts]
    found = sampling.merge(samples)
    of_key = defaultdict(list)
    for row in rows:
        of_key[row[0]].append(row)
    wanted = sorted(of_key, key=hashes.__getitem__)[: len(found.held)]
    assert [key.key[0] for _, key in sorted(found.held.items())] == wanted
    enough = all(len(part) <= most for part in parts)
    assert len(found.held) == min(count, len(of_key)) or not enough
    for key in found.held.values():
        held = of_key[key.key[0]]
        values = [value for _, value, _ in held if value is not None]
        counted = [value for _, value, there in held if there and value is not None]
        ((_, given),) = key.results(sampling.made).items()
        assert [value for value, _ in given] == [
            len(held),
            sum(counted) if counted else None,
            max(values, default=None),
            len(set(values)),
        ]


@given(
    windows=sliced(),
    rows=st.lists(st.tuples(st.integers(0, 5), st.integers(-5, 5), st.integers(-300, 900)), max_size=40),
    cut=st.integers(0, 40),
    times=st.tuples(st.integers(-300, 900), st.integers(-300, 900)).map(sorted),
    count=st.integers(1, 6),
)
def test_what_was_computed_before_goes_on(
    windows: SlicedWindow, rows: list[tuple[int, int, int]], cut: int, times: list[int], count: int
) -> None:
    """Of each key that is left it comes to what all rows come to by then; what has fired meanwhile is left out."""
    calls = PlainCall("COUNT"), PlainCall("SUM", VALUE), PlainCall("COUNT", VALUE, distinct=True)
    made, hashes = plain(*calls, time=TIME, windows=windows), {key: (7 * key + 3) % 10 for key in range(6)}
    before, now = (KeySampling(made, count, reached) for reached in times)
    columns = [(hashes[key], key, value, True, moment * 1000) for key, value, moment in rows]
    former = before.merge([next(before.of_partition(columns[:cut]))])
    rest = [row for row in columns[cut:] if former.below is None or row[0] < former.below]
    found = now.merge([former.later(made, times[1]), next(now.of_partition(rest))])
    expected = next(KeySampling(made, 6, times[1]).of_partition(columns)).held
    assert {place: key.results(made) for place, key in found.held.items()} == {
        place: key.results(made) for place, key in expected.items() if place in found.held
    }
    least = sorted(place for place in expected if former.below is None or place[0] < former.below)
    assert sorted(found.held) == least[:count]


def test_keys_without_end_are_left_out() -> None:
    """Rows are read no further once none is left."""
    read = iter([(1, "k", 1, True)] * 5)
    sampling = KeySampling(plain(PlainCall("COUNT")), 3, 0, most=2)
    (sample,) = sampling.of_partition(read)
    assert (sample.held, sample.below, len(list(read))) == ({}, 1, 2)
    assert not sampling.merge([sample, KeySample()]).held


def test_a_mask_has_a_bit_for_each_call_that_counted() -> None:
    calls = (PlainCall("COUNT"), PlainCall("COUNT", None, CONDITION))
    state = PlainState(STATE, calls, (VALUE,), (VALUE, True), mask=True, there=False)
    rows = replace(plain(), states=(state, replace(state, by=(), holds=(VALUE, False))))
    (sample,) = KeySampling(rows, 1, 0).of_partition([(7, "k", "a", False), (7, "k", "b", True), (7, "k", None, True)])
    (key,) = sample.held.values()
    assert {place: [each for each, _ in found] for place, found in key.results(rows).items()} == {
        (0, (), ("a",)): [1],
        (0, (), ("b",)): [3],
        (1, (), ()): [3],
    }
