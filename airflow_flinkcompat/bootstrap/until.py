"""How far the tables of a job that has never run are read for its state."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from airflow_flinkcompat.model import InputError

_OFFSETS = re.compile(r"\d+:\d+(,\d+:\d+)*")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Until:
    """How far one table is read; with neither of both all that lies there when it is looked at.

    Attributes:
        offsets: Of a topic by the number of a partition the offset of the first record that is not read.
        moment: Of a topic the first record of each partition with this timestamp or a later one is not read; of a
            folder no file that was changed then or later is.
    """

    offsets: tuple[tuple[int, int], ...] = ()
    moment: datetime | None = None

    @classmethod
    def of(cls, table: str, text: str) -> Until:
        """What was written for a table."""
        if _OFFSETS.fullmatch(text):
            pairs = [tuple(map(int, pair.split(":"))) for pair in text.split(",")]
            if twice := sorted({pair[0] for pair in pairs if sum(pair[0] == other[0] for other in pairs) > 1}):
                raise InputError(f"--until {table}={text}: partition {twice[0]} is named twice")
            return cls(offsets=tuple((partition, offset) for partition, offset in pairs))
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            raise InputError(
                f"--until {table}={text}: write offsets of partitions, 0:1200,1:800, or a moment, 2026-01-31T00:00:00Z"
            ) from None
        if moment.tzinfo is None:
            raise InputError(f"--until {table}={text} names no zone: write a moment as 2026-01-31T00:00:00Z")
        if moment.microsecond % 1000:
            raise InputError(f"--until {table}={text} is finer than the milliseconds in which records and files count")
        return cls(moment=moment)

    @property
    def millis(self) -> int | None:
        """The moment in milliseconds since 1970."""
        return None if self.moment is None else (self.moment - EPOCH) // _MILLISECOND


ALL = Until()
"""All that lies there."""
