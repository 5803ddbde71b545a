"""When windows over TIMESTAMP_LTZ fire: cut by the clock of ``table.local-time-zone``, waited for in moments.

Read in Flink 2.3 (``TimeWindowUtil``): state stands under local times, and timers fire at the moment of a window's last
local millisecond. Where clocks change by the season, one that no clock shows fires when clocks go forward, and one that
they show twice the second time: a timer that was set the first time fires without the rows that came since the last
checkpoint (measured), so that in these two hours a watermark does not tell what was counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from airflow_flinkcompat.compat.cutover import zones
from airflow_flinkcompat.migration import NotMigratable

_EPOCH = datetime(1970, 1, 1)
_MILLISECOND = timedelta(milliseconds=1)
_HOUR = 3_600_000
_FAR, _NEAR = 2090, 2037
"""Years that only rules tell that never end, and that tables of Java's tell too."""


@dataclass(frozen=True)
class LocalClock:
    """The clock by which windows are cut.

    Attributes:
        zone: Its time zone, ``UTC`` also of times without one.
    """

    zone: str = "UTC"

    def fires(self, end: int) -> int:
        """When the timer of a window fires."""
        return self._moment(end - 1)

    def reached(self, watermark: int) -> int:
        """How far the clock has come: what ends by the millisecond after has fired, and nothing else."""
        if self.zone == "UTC" or abs(watermark) > _FURTHEST:
            return watermark
        before, after = (self._offset(watermark + days * 24 * _HOUR) for days in (-2, 2))
        if before != after and not (self._by_season and abs(before - after) == _HOUR and before % _HOUR == 0):
            raise NotMigratable(f"clocks of {self.zone} change near {watermark} ms in a way that was not measured")
        if self._offset(watermark - _HOUR) > self._offset(watermark + _HOUR):
            raise NotMigratable(
                f"as long as the clocks of {self.zone} show an hour twice it depends on when checkpoints came what "
                "Flink sends: take the savepoint once more"
            )
        return watermark + self._offset(watermark)

    @cached_property
    def _by_season(self) -> bool:
        """Whether clocks change each year from now on, by which Flink decides how timers are set."""
        near, far = (len({_offset(self.zone, datetime(year, month, 1, tzinfo=UTC)) for month in range(1, 13)}) > 1
                     for year in (_NEAR, _FAR))  # fmt: skip
        if near is not far:
            raise NotMigratable(f"whether clocks of {self.zone} change by the season Java and Python may say otherwise")
        return near

    def is_punctual(self, step: int) -> bool:
        """Whether an aggregation fires its windows as soon as they end.

        It looks after its rows where slices end, and in a zone whose clocks do not change where they would by UTC.
        """
        if self.zone == "UTC" or self._by_season:
            return True
        months = (datetime(year, month, 1, tzinfo=UTC) for year in range(1970, _FAR) for month in range(1, 13))
        return all(_offset(self.zone, each) % step == 0 for each in months)

    def _offset(self, moment: int) -> int:
        return _offset(self.zone, (_EPOCH + moment * _MILLISECOND).replace(tzinfo=UTC))

    def _plain(self, local: int) -> int:
        """The first moment at which a clock shows a time; of one that it leaves out as though it had not changed."""
        shown = (_EPOCH + local * _MILLISECOND).replace(tzinfo=zones.zone(self.zone))
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
"""Watermarks that lie further from 1970 are those of a job to which none has come, or all."""


def _offset(zone: str, moment: datetime) -> int:
    return _millis(moment.astimezone(zones.zone(zone)))


def _millis(time: datetime) -> int:
    offset = time.utcoffset()
    assert offset is not None
    return offset // _MILLISECOND
