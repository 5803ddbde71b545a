"""Recomputation of some keys' state in plain Python, without Spark's aggregation or generated SQL.

Spark supplies filtered rows with their keys, event times and aggregate arguments. Python assigns slices, applies FILTER
and DISTINCT, and adds values with Flink's overflow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import localcontext
from functools import reduce
from typing import Any

from airflow_flinkcompat.compat.hand_over import time_zone
from airflow_flinkcompat.exec_graph.layout import NamedState
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.savepoint.binary_row import PlainValue

ROWS = 100_000
"""Maximum number of sampled rows that each partition processes.

If a partition has more sampled rows, keys are omitted from the sample.
"""
_DIGITS = 80
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
Identity = tuple[PlainValue, ...]
"""Values in a comparable form: equal if and only if Flink stores the same bytes."""
Place = tuple[int, tuple[int, ...], Identity]
"""Index of a state, window or slice bounds in milliseconds, and map key."""
Partial = Any
"""Partial aggregate. DISTINCT stores values by identity; SUM also stores the sum of absolute values."""


def identity(values: Iterable[Any]) -> Identity:
    """Convert values to a comparable form: equal if and only if Flink stores the same bytes."""
    return tuple(
        repr(each) if isinstance(each, float) else bytes(each) if isinstance(each, bytearray) else each
        for each in values
    )


@dataclass(frozen=True)
class PlainCall:
    """One aggregate function over some columns of the rows.

    ``argument``: Column index of the argument; None for COUNT(*). ``condition``: Column index of the FILTER condition;
    None if every row is aggregated.
    """

    function: str
    argument: int | None = None
    condition: int | None = None
    distinct: bool = False
    type: str = "BIGINT"

    def of_row(self, row: Sequence[Any]) -> Partial:
        if self.condition is not None and row[self.condition] is not True:
            return None
        value = 1 if self.argument is None else row[self.argument]
        if value is None:
            return None
        return {identity([value]): value} if self.distinct else self._partial(value)

    def _partial(self, value: Any) -> Partial:
        match self.function:
            case "COUNT":
                return 1
            case "SUM":
                return value, abs(value)
        return value

    def merge(self, one: Partial, other: Partial) -> Partial:
        """Merge the partial results of two sets of rows."""
        if one is None or other is None:
            return other if one is None else one
        if self.distinct:
            one.update(other)
            return one
        return self._merge(one, other)

    def _merge(self, one: Partial, other: Partial) -> Partial:
        match self.function:
            case "COUNT":
                return one + other
            case "SUM":
                return one[0] + other[0], one[1] + other[1]
            case "MIN":
                return min(one, other)
        return max(one, other)

    def result(self, partial: Partial) -> tuple[Any, Any]:
        if self.distinct and partial is not None:
            partial = reduce(self._merge, map(self._partial, partial.values()))
        if self.function == "COUNT":
            return partial or 0, 0
        if self.function != "SUM" or partial is None:
            return partial, 0
        value, size = partial
        bits = _BITS.get(self.type.partition(" ")[0])
        if bits is not None:
            value = (value + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        return value, size


@dataclass(frozen=True)
class PlainState:
    """Definition of one state for the recomputation in Python.

    Attributes:
        calls: Aggregates in the order of the accumulator columns. For a state without accumulators, aggregates that
            determine a count.
        by: Column indexes of the map key.
        holds: Condition for rows that change the state: the index of a column, and True if the column must not be NULL
            or False if the column must be NULL.
        mask: True if the stored value is a bit mask with one bit for each aggregate.
        there: True if an entry is stored even if its count is 0.
    """

    state: NamedState
    calls: tuple[PlainCall, ...]
    by: tuple[int, ...] = ()
    holds: tuple[int, bool] | None = None
    mask: bool = False
    there: bool = True

    def results(self, partials: Sequence[Partial]) -> Sequence[tuple[Any, Any]] | None:
        found = [call.result(partial) for call, partial in zip(self.calls, partials, strict=True)]
        if self.mask:
            found = [(sum(1 << bit for bit, (count, _) in enumerate(found) if count), 0)]
        return found if self.there or found[0][0] else None


@dataclass(frozen=True)
class PlainAggregation:
    """Definition of an aggregation for the recomputation in Python. Rows begin with the key columns.

    Attributes:
        key: Number of key columns.
        time: Column index of the event time of a windowed operator.
        spans: True if the start and end of a window identify an entry, False if the end of a slice identifies it.
    """

    key: int
    states: tuple[PlainState, ...]
    time: int | None = None
    windows: SlicedWindow | None = None
    spans: bool = False
    zone: str = "UTC"

    def bounds(self, row: Sequence[Any], reached: int) -> tuple[int, ...] | None:
        """Window or slice bounds of a row; None if the row is in no open window."""
        windows = self.windows
        if windows is None or self.time is None:
            return ()
        if row[self.time] is None:
            return None
        moment = row[self.time] // 1000
        if self.zone != "UTC":
            shown = (_EPOCH + moment * _MILLISECOND).astimezone(time_zone(self.zone)).utcoffset()
            assert shown is not None
            moment += shown // _MILLISECOND
        return self._open(windows, moment, reached)

    def later(self, bounds: tuple[int, ...], reached: int) -> tuple[int, ...] | None:
        """Window or slice bounds after the watermark has advanced; None if the window has fired."""
        return bounds if self.windows is None else self._open(self.windows, bounds[-1] - 1, reached)

    def _open(self, windows: SlicedWindow, moment: int, reached: int) -> tuple[int, ...] | None:
        start = moment - (moment - windows.offset) % windows.step
        end = start + windows.step
        widest = moment - (moment - windows.offset) % windows.size
        last = (widest if windows.kind is WindowKind.CUMULATE else start) + windows.size
        if last - 1 <= reached:
            return None
        if self.spans:
            return start, end
        # CUMULATE merges all slices that have fired, and stores them under the end of the first slice.
        fired = windows.kind is WindowKind.CUMULATE and end - 1 <= reached
        return (widest + windows.step,) if fired else (end,)


@dataclass
class PlainKey:
    """Partial results over the rows of one key."""

    key: tuple[Any, ...]
    rows: int = 0
    found: dict[Place, list[Partial]] = field(default_factory=dict)

    def add(self, made: PlainAggregation, row: Sequence[Any], bounds: tuple[int, ...]) -> None:
        self.rows += 1
        for number, state in enumerate(made.states):
            if state.holds is None or (row[state.holds[0]] is not None) is state.holds[1]:
                place = number, bounds, identity(row[column] for column in state.by)
                self.merge_at(made, place, [call.of_row(row) for call in state.calls])

    def merge(self, made: PlainAggregation, other: PlainKey) -> None:
        """Merge the partial results of other rows of this key."""
        self.rows += other.rows
        for place, partials in other.found.items():
            self.merge_at(made, place, partials)

    def merge_at(self, made: PlainAggregation, place: Place, partials: Sequence[Partial]) -> None:
        """Merge partial results into the partial results of an entry."""
        calls, former = made.states[place[0]].calls, self.found.get(place, [None] * len(partials))
        self.found[place] = [call.merge(one, other) for call, one, other in zip(calls, former, partials, strict=True)]

    def results(self, made: PlainAggregation) -> Mapping[Place, Sequence[tuple[Any, Any]]]:
        with localcontext(prec=_DIGITS):
            found = {place: made.states[place[0]].results(partials) for place, partials in self.found.items()}
        return {place: values for place, values in found.items() if values is not None}


@dataclass
class KeySample:
    """Sample of the keys with the lowest hashes. The sample contains all rows of each sampled key.

    ``below``: The sample omits keys whose hash is not below this number; None if it omits no key.
    """

    below: int | None = None
    held: dict[tuple[int, Identity], PlainKey] = field(default_factory=dict)

    def later(self, made: PlainAggregation, reached: int) -> KeySample:
        """Return this sample after the watermark has advanced."""
        found = KeySample(self.below)
        for place, key in self.held.items():
            open_yet = PlainKey(key.key, key.rows)
            with localcontext(prec=_DIGITS):
                for (number, bounds, by), partials in key.found.items():
                    if (moved := made.later(bounds, reached)) is not None:
                        open_yet.merge_at(made, (number, moved, by), partials)
            if open_yet.found:
                found.held[place] = open_yet
        return found

    def narrow(self, below: int) -> None:
        self.below = below if self.below is None else min(self.below, below)
        self.held = {place: key for place, key in self.held.items() if place[0] < self.below}


@dataclass(frozen=True)
class KeySampling:
    """Definition of a sample, which is sent to Spark's executors.

    ``reached``: Watermark in milliseconds of the windows' local clock. ``most``: Maximum number of sampled rows that
    one partition processes.
    """

    made: PlainAggregation
    count: int
    reached: int
    most: int = ROWS

    def of_partition(self, rows: Iterable[Sequence[Any]]) -> Iterator[KeySample]:
        sample, added = KeySample(), 0
        with localcontext(prec=_DIGITS):
            for hashed, *row in rows:
                if sample.below is not None and hashed >= sample.below:
                    continue
                bounds = self.made.bounds(row, self.reached)
                if bounds is None:
                    continue
                key = tuple(row[: self.made.key])
                sample.held.setdefault((hashed, identity(key)), PlainKey(key)).add(self.made, row, bounds)
                added += 1
                if added > self.most or len(sample.held) > self.count:
                    sample.narrow(max(place[0] for place in sample.held))
                    added = sum(each.rows for each in sample.held.values())
                    if not sample.held:
                        break
        yield sample

    def merge(self, samples: Sequence[KeySample]) -> KeySample:
        whole = KeySample()
        with localcontext(prec=_DIGITS):
            for sample in samples:
                for place, key in sample.held.items():
                    whole.held.setdefault(place, PlainKey(key.key)).merge(self.made, key)
        below = [sample.below for sample in samples if sample.below is not None]
        for limit in (*below, *sorted(place[0] for place in whole.held)[self.count : self.count + 1]):
            whole.narrow(limit)
        return whole
