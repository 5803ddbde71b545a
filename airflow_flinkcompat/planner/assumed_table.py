"""Assumed declarations of tables, and their columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from airflow_flinkcompat.model.text import sql_name

Parts = tuple[str, ...]
"""The parts of a table's name, as a statement writes it."""
TIMESTAMP, ROWTIME, PROCTIME = "TIMESTAMP(3)", "rowtime", "proctime"
NUMBER, TEXT = "BIGINT", "STRING"

_PADDING = ("assumed STRING", "assumed_2 STRING")
"""Columns that a small source gets. With one column, lines of Flink plan COUNT(*) differently."""
_CONNECTOR = "flinkcompat-assumed"


@dataclass
class AssumedColumn:
    """A column or a field: the type that its use suggests ("" for any), and its fields if it is a ROW.

    ``required`` is True for a column that is NOT NULL.
    """

    type: str = ""
    fields: dict[str, AssumedColumn] = field(default_factory=dict)
    required: bool = False

    def suggest(self, type_: str) -> None:
        """Set the type, unless a use before this one suggests a type."""
        if not self.type or (type_ == ROWTIME and self.type == TIMESTAMP):
            self.type = type_


@dataclass
class AssumedTable:
    """An assumed declaration of a table."""

    columns: dict[str, AssumedColumn]
    statement: int
    rowtime: str = ""
    key: tuple[str, ...] = ()
    sink: bool = False
    partitions: tuple[str, ...] = ()

    def ddl(self, name: str, number: str = NUMBER, key_at: int | None = None) -> str:
        """CREATE TABLE; ``number`` is the type of columns with a number, ``key_at`` the place of a sink's key."""
        parts = [f"{sql_name(each)} {self._type(each, column, number)}" for each, column in self.columns.items()]
        parts += _PADDING[: max(0, (1 if self.sink else 2) - len(parts))]
        if self.rowtime:
            time = sql_name(self.rowtime)
            parts.append(f"WATERMARK FOR {time} AS {time} - INTERVAL '5' SECOND")
        key = self.key
        if self.sink and key_at is not None and self.columns:
            key = (tuple(self.columns)[key_at],)
        if key:
            parts.append(f"PRIMARY KEY ({', '.join(map(sql_name, key))}) NOT ENFORCED")
        by = f" PARTITIONED BY ({', '.join(map(sql_name, self.partitions))})" if self.partitions else ""
        return f"CREATE TABLE IF NOT EXISTS {name} ({', '.join(parts)}){by} WITH ('connector' = '{_CONNECTOR}')"

    def _type(self, name: str, column: AssumedColumn, number: str) -> str:
        if column.type == PROCTIME:
            return TIMESTAMP if self.sink else "AS PROCTIME()"
        if column.type == ROWTIME:
            return "TIMESTAMP_LTZ(3)" if name.startswith("$") else TIMESTAMP
        return f"{_rendered(column, number)}{' NOT NULL' if column.required else ''}"

    def settle_times(self, keys: Collection[str]) -> None:
        """Choose the time attribute of a source, and the key of a versioned table."""
        times = [name for name, each in self.columns.items() if each.type == ROWTIME and not each.fields]
        self.rowtime = times[0] if times else ""
        for name in times[1:]:
            self.columns[name].type = TIMESTAMP
        if keys:
            self.key = tuple(keys)
            if not self.rowtime:
                self.columns["assumed_time"], self.rowtime = AssumedColumn(ROWTIME), "assumed_time"


def _rendered(column: AssumedColumn, number: str) -> str:
    if column.fields:
        fields = ", ".join(f"{sql_name(name)} {_rendered(each, number)}" for name, each in column.fields.items())
        return f"ROW<{fields}>"
    return {"": TEXT, ROWTIME: TIMESTAMP, PROCTIME: TIMESTAMP, NUMBER: number}.get(column.type, column.type)


def leaves(name: str, column: AssumedColumn) -> Iterator[tuple[str, AssumedColumn]]:
    """The column itself, or the innermost fields of a ROW, with their names."""
    if not column.fields:
        yield name, column
    for label, each in column.fields.items():
        yield from leaves(label, each)
