"""A topic with an archive that stores no offsets. Rows before an event time are read from the archive."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.backfill.result import Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import references, scalar
from airflow_flinkcompat.backfill.spark_sql.windows import MILLISECOND, from_micros, to_micros
from airflow_flinkcompat.history.archived_topic import TopicWithArchive, require_one_topic
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.plan.expressions import Expression, InputRef, transform
from airflow_flinkcompat.plan.nodes import Table

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def is_event_time(text: str) -> bool:
    """True if the suffix of an archive's location is a time, which begins with a date."""
    return _DATE.match(text) is not None


@dataclass(frozen=True)
class BoundaryArchive(TopicWithArchive):
    """A table with an archive for rows before an event time and a topic for all other rows.

    Attributes:
        time: Spark SQL for the event time, over the stored columns ``c0`` ….
        field: Index of the event time among the stored columns; None if it is computed.
        boundary: Boundary between archive and topic, in microseconds of the event time's clock.
    """

    time: str
    field: int | None
    boundary: int
    zoned: bool
    ordered: ClassVar[bool] = False

    @classmethod
    def of(
        cls, table: Table, topic: KafkaSource, archive: Callable[[Table], BackfillSource], text: str
    ) -> BoundaryArchive:
        require_one_topic(table, topic)
        if topic.start.mode != "earliest":
            raise Untranslatable(
                f"table {table.name} starts within its topic (scan.startup.mode), and only offsets show which "
                "archived rows precede the start: specify the archive's columns of partition and offset",
                table.span,
            )
        time, field = _event_time(table)
        zoned = _type_of_time(table) == "TIMESTAMP_LTZ"
        found = cls(topic, archive(table), table, time, field, _micros(table, text, zoned), zoned)
        try:
            for position, column in enumerate(table.stored):
                found.decode(column, f"f{position}", table)
        except Untranslatable as error:
            raise Untranslatable(
                f"table {table.name}: an archive and its topic are compared in all columns: {error.message}", table.span
            ) from None
        return found

    @property
    def place(self) -> str:
        """Locations of the archive and the topic, and the boundary between them."""
        return f"{self.archive.place} below {self.time_text(self.boundary)}, then {self.topic.place}"

    def time_text(self, micros: int) -> str:
        return from_micros(micros).isoformat() + "Z" * self.zoned


def _type_of_time(table: Table) -> str:
    assert table.watermark is not None
    return next(column.type.name for column in table.columns if column.name == table.watermark.column)


def _event_time(table: Table) -> tuple[str, int | None]:
    """Spark SQL for the event time, and its index in the stored columns (None for a computed time)."""
    if table.watermark is None:
        raise Untranslatable(
            f"table {table.name} declares no WATERMARK, so it has no event time that could separate an archive "
            "from its topic: specify the archive's columns of partition and offset",
            table.span,
        )
    name, computed = table.watermark.column, dict(table.computed)
    if name in table.physical:
        position = table.physical.index(name)
        return f"c{position}", position
    names = [column.name for column in table.columns]
    if name not in computed or not all(names[each] in table.physical for each in references([computed[name]])):
        raise Untranslatable(
            f"table {table.name}: the event time {name} cannot be computed from stored columns alone, and an "
            "archive without offsets has no other columns. Specify the archive's columns of partition and offset",
            table.span,
        )

    def of_stored(each: Expression) -> Expression:
        return InputRef(table.physical.index(names[each.index]), each.type) if isinstance(each, InputRef) else each

    try:
        return scalar(transform(computed[name], of_stored)), None
    except Untranslatable as error:
        raise Untranslatable(
            f"table {table.name}: Spark cannot compute the event time {name} exactly, so no boundary can separate "
            f"the rows: {error.message}",
            table.span,
        ) from None


def _micros(table: Table, text: str, zoned: bool) -> int:
    what = f"history of {table.path[2]}: the boundary {text}"
    example = "2026-01-31T00:00:00Z" if zoned else "2026-01-31T00:00:00"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{what} is not a time: write it as in URI#{example}") from None
    assert table.watermark is not None
    if zoned and moment.tzinfo is None:
        raise InputError(
            f"{what} has no time zone, but {table.watermark.column} is a TIMESTAMP_LTZ: add a time zone, as "
            f"in URI#{example}"
        )
    if not zoned and moment.tzinfo is not None:
        raise InputError(
            f"{what} has a time zone, but {table.watermark.column} is a TIMESTAMP without a zone: write the "
            f"column's value, as in URI#{example}"
        )
    micros = to_micros(moment.astimezone(UTC).replace(tzinfo=None) if zoned else moment)
    if micros % MILLISECOND:
        raise InputError(f"{what} is more precise than an event time: write at most milliseconds, as in URI#{example}")
    return micros
