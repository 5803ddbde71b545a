"""Clock of window boundaries in a time zone, and the check that computed state can be written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from airflow_flinkcompat.compat.hand_over import time_zone
from airflow_flinkcompat.exec_graph.layout import Begins, NamedState, StateField
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.migration.fields import begin
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, SavepointUnreadable
from airflow_flinkcompat.savepoint.binary_row import field_writer, value_writer

EXTREME = re.compile(r"[\w.$]+WithRetractAccumulator<`(?:min|max)` (?P<value>.+?), `mapSize` BIGINT, `map` .+>")
"""Type of a retractable MIN or MAX: the value, the number of all values, and a separate map."""
_WRITABLE = frozenset(
    {
        "row", "Tuple<row, Int>", "value", "List<row>", "List<Tuple<row, Boolean>>", "SortedMap<row, Long>", "Int",
        "Tuple<Int, Int>", "TimeWindow", "Boolean", "Long",
    }
)  # fmt: skip
"""Forms of values whose stored bytes are known."""
_EPOCH = datetime(1970, 1, 1)
_MILLISECOND = timedelta(milliseconds=1)
_HOUR = 3_600_000
_FAR, _NEAR = 2090, 2037
"""A year that only recurring clock rules cover, and a year that Java's tables cover too."""


@dataclass(frozen=True)
class LocalClock:
    """Clock that determines window boundaries in a time zone; ``UTC`` for times without a zone."""

    zone: str = "UTC"

    def fires(self, end: int) -> int:
        """Time at which the timer of a window fires."""
        return self._moment(end - 1)

    def reached(self, watermark: int) -> int:
        """Local time that a watermark has reached. Windows whose last millisecond is not later have fired."""
        if self.zone == "UTC" or abs(watermark) > _FURTHEST:
            return watermark
        before, after = (self._offset(watermark + days * 24 * _HOUR) for days in (-2, 2))
        if before != after and not (self._by_season and abs(before - after) == _HOUR and before % _HOUR == 0):
            raise NotMigratable(f"clock changes of {self.zone} near {watermark} ms were not measured")
        if self._offset(watermark - _HOUR) > self._offset(watermark + _HOUR):
            raise NotMigratable(
                f"the clocks of {self.zone} repeat an hour near this savepoint, and Flink's output then depends "
                "on checkpoint times: take another savepoint later"
            )
        return watermark + self._offset(watermark)

    @cached_property
    def _by_season(self) -> bool:
        """True if the zone has seasonal clock changes in all future years.

        Seasonal changes affect how Flink sets timers.
        """
        near, far = (len({_offset(self.zone, datetime(year, month, 1, tzinfo=UTC)) for month in range(1, 13)}) > 1
                     for year in (_NEAR, _FAR))  # fmt: skip
        if near is not far:
            raise NotMigratable(f"Java and Python may disagree on seasonal clock changes of {self.zone}")
        return near

    def is_punctual(self, step: int) -> bool:
        """True if an aggregation fires every window as soon as the window ends."""
        if self.zone == "UTC" or self._by_season:
            return True
        months = (datetime(year, month, 1, tzinfo=UTC) for year in range(1970, _FAR) for month in range(1, 13))
        return all(_offset(self.zone, each) % step == 0 for each in months)

    def _offset(self, moment: int) -> int:
        return _offset(self.zone, (_EPOCH + moment * _MILLISECOND).replace(tzinfo=UTC))

    def _plain(self, local: int) -> int:
        """UTC time at which the clock first shows a local time; a skipped time uses the previous offset."""
        shown = (_EPOCH + local * _MILLISECOND).replace(tzinfo=time_zone(self.zone))
        return local - _millis(shown)

    def _moment(self, local: int) -> int:
        if self.zone == "UTC":
            return local
        first = self._plain(local)
        if self._by_season:
            hour_later = self._plain(local + _HOUR)
            if hour_later == first:
                return first - first % _HOUR
            if hour_later - first > _HOUR:
                return first + _HOUR
        return first


_FURTHEST = 200_000_000_000_000
"""Largest watermark, in milliseconds from 1970, of a job whose input has begun and has not ended."""


def _offset(zone: str, moment: datetime) -> int:
    return _millis(moment.astimezone(time_zone(zone)))


def _millis(time: datetime) -> int:
    offset = time.utcoffset()
    assert offset is not None
    return offset // _MILLISECOND


def check_writable(key: Sequence[StateField], state: NamedState) -> None:
    """Check that the entries of a state can be encoded."""
    if state.value.form not in _WRITABLE:
        raise SavepointUnreadable(
            f"values of the form {state.value.form} cannot be written: their stored bytes are unknown"
        )
    if state.time_to_live and state.kind is KeyedStateKind.LIST:
        raise SavepointUnreadable("lists with a state TTL are not computed from history yet")
    _check_row(key)
    for stored in (state.value, state.map_key):
        if stored is not None and stored.form == "value":
            value_writer(stored.fields[0].type)
        elif stored is not None:
            _check_row(stored.fields)


def _check_row(fields: Sequence[StateField]) -> None:
    for field in fields:
        if field.begins is not None:
            begin(field)
        if field.begins is not Begins.EMPTY_VIEW:
            extreme = EXTREME.fullmatch(field.type)
            field_writer(extreme["value"] if extreme else field.type)
