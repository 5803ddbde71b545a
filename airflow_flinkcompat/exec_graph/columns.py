"""State fields for stored columns, with types in SQL notation."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable
from typing import Any

from airflow_flinkcompat.exec_graph.layout import Begins, CannotLower, StateField, Stored
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings
from airflow_flinkcompat.plan.types import MAX_LENGTH, DataType
from airflow_flinkcompat.savepoint.binary import KeyedStateKind

VALUE, MAP = KeyedStateKind.VALUE, KeyedStateKind.MAP
USER_TIMERS, WINDOW_TIMERS = "user-timers", "window-timers"
LONG = Stored("Long")
_NOT_NULL = " NOT NULL"
_WORDS = {"TIMESTAMP_WITHOUT_TIME_ZONE": "TIMESTAMP", "TIMESTAMP_WITH_LOCAL_TIME_ZONE": "TIMESTAMP_LTZ"}
_ZONED = re.compile(r"\bTIMESTAMP\((\d)\) WITH LOCAL TIME ZONE")


def stored_type(written: Any) -> str:
    """Convert a type of a compiled plan to SQL notation; a time attribute becomes a plain timestamp."""
    if isinstance(written, str):
        return (
            stored_type(json.loads(written)) if written.startswith("{") else _ZONED.sub(r"TIMESTAMP_LTZ(\1)", written)
        )
    null = "" if written.get("nullable", True) else _NOT_NULL
    match written["type"]:
        case "TIMESTAMP_WITHOUT_TIME_ZONE" | "TIMESTAMP_WITH_LOCAL_TIME_ZONE" as kind:
            return f"{_WORDS[kind]}({written['precision']}){null}"
        case "ROW":
            fields = (f"`{field['name']}` {stored_type(field['fieldType'])}" for field in written["fields"])
            return f"ROW<{', '.join(fields)}>{null}"
    return json.dumps(written, sort_keys=True)


def nullable(type: str) -> str:
    """A type without NOT NULL."""
    return type.removesuffix(_NOT_NULL)


def columns(read: ColumnMeanings, places: Iterable[int]) -> tuple[StateField, ...]:
    """State fields for the columns at these positions."""
    return tuple(_column(stored_type(read.types[place]), read.at(place), read.names[place]) for place in places)


def _column(type: str, meaning: Hashable, name: str) -> StateField:
    """A state field for a column. The column is NULL in rows that were stored before it existed."""
    return StateField(type, meaning, name, begins=None if type.endswith(_NOT_NULL) else Begins.NULL)


def row(read: ColumnMeanings, form: str = "row") -> Stored:
    """The stored form of a whole input row."""
    return Stored(form, columns(read, range(len(read.types))))


_WIDE = {"STRING": f"VARCHAR({MAX_LENGTH})", "BYTES": f"VARBINARY({MAX_LENGTH})"}
_PLAIN = frozenset(
    {"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP",
     "TIMESTAMP_LTZ", "CHAR", "VARCHAR", "STRING", "BYTES"}
)  # fmt: skip


def stored_as(type: DataType) -> str:
    """The text of a type as state stores it, such as VARCHAR(2147483647) for STRING."""
    if type.name not in _PLAIN or not type.is_known:
        raise CannotLower(f"the stored form of {type} is unknown")
    text = str(type)
    word = text.partition(" ")[0]
    return text.replace(word, _WIDE[word], 1) if word in _WIDE else text
