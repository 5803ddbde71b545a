"""Flink's logical types and the columns of a relation, as frozen values."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from airflow_flinkcompat.lazy import cached_property, quick_init


class TimeAttribute(StrEnum):
    """Clock of a time column: event time (declared by a watermark) or processing time."""

    ROWTIME = "rowtime"
    PROCTIME = "proctime"


@quick_init
@dataclass(frozen=True)
class DataType:
    """A logical type of Flink.

    ``name`` is the type root in upper case, such as ``BIGINT``, ``DECIMAL``, ``TIMESTAMP_LTZ`` or ``ROW``.
    ``parameters`` contains the length, precision or scale. ``elements`` contains the types inside ARRAY, MAP,
    MULTISET and ROW, and ``names`` the field names of a ROW. Synonyms are replaced: STRING is VARCHAR(2147483647),
    INTEGER is INT, TIMESTAMP has precision 6, and DECIMAL is DECIMAL(10, 0).
    """

    name: str
    parameters: tuple[int, ...] = ()
    elements: tuple[DataType, ...] = ()
    names: tuple[str, ...] = ()
    nullable: bool = True

    def __hash__(self) -> int:
        # Most types differ by name. Every hash of a column or call needs the hash of its type, so it must be fast.
        return hash(self.name)

    def __str__(self) -> str:
        if self.name == "UNKNOWN":
            return self.names[0] if self.names else self.name
        if self.name == "ROW":
            inside = ", ".join(f"`{n}` {t}" for n, t in zip(self.names, self.elements, strict=True))
            text = f"ROW<{inside}>"
        elif self.elements:
            text = f"{self.name}<{', '.join(map(str, self.elements))}>"
        elif self == STRING or self.with_nullability(True) == STRING:
            text = "STRING"
        elif self.parameters:
            text = f"{self.name}({', '.join(map(str, self.parameters))})"
        else:
            text = self.name
        return text if self.nullable else f"{text} NOT NULL"

    @classmethod
    def read(cls, text: str) -> DataType:
        """Parse the ``str`` of a type without elements; UNKNOWN for other types."""
        if text in ("STRING", "STRING NOT NULL"):
            return STRING.with_nullability(text == "STRING")
        match = _PLAIN.fullmatch(text)
        if match is None:
            return UNKNOWN
        parameters = tuple(map(int, match["parameters"].split(", "))) if match["parameters"] else ()
        return cls(match["name"], parameters, nullable=match["not_null"] is None)

    @property
    def is_known(self) -> bool:
        """False if the plan cannot determine the type, such as for an undeclared function or table."""
        for element in self.elements:
            if not element.is_known:
                return False
        return self.name != "UNKNOWN"

    @cached_property
    def _flipped(self) -> DataType:
        return replace(self, nullable=not self.nullable)

    def with_nullability(self, nullable: bool) -> DataType:
        """The same type, nullable or not."""
        return self if self.nullable == nullable else self._flipped


MAX_LENGTH = 2147483647
_PLAIN = re.compile(r"(?P<name>[A-Z_]+)(?:\((?P<parameters>\d+(?:, \d+)*)\))?(?P<not_null> NOT NULL)?")
BOOLEAN = DataType("BOOLEAN")
TINYINT = DataType("TINYINT")
SMALLINT = DataType("SMALLINT")
INT = DataType("INT")
BIGINT = DataType("BIGINT")
FLOAT = DataType("FLOAT")
DOUBLE = DataType("DOUBLE")
DATE = DataType("DATE")
STRING = DataType("VARCHAR", (MAX_LENGTH,))
BYTES = DataType("VARBINARY", (MAX_LENGTH,))
NULL = DataType("NULL")
UNKNOWN = DataType("UNKNOWN")
INTERVAL_DAY_TIME = DataType("INTERVAL_DAY_TIME")
INTERVAL_YEAR_MONTH = DataType("INTERVAL_YEAR_MONTH")
SYMBOL = DataType("SYMBOL")

INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
APPROXIMATE = ("FLOAT", "DOUBLE")
TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_LTZ")
CHARACTERS = ("CHAR", "VARCHAR")


def decimal(precision: int, scale: int) -> DataType:
    """DECIMAL(precision, scale)."""
    return DataType("DECIMAL", (precision, scale))


def timestamp(precision: int = 3) -> DataType:
    """TIMESTAMP(precision) without time zone."""
    return DataType("TIMESTAMP", (precision,))


def timestamp_ltz(precision: int = 3) -> DataType:
    """TIMESTAMP_LTZ(precision): an instant, which is displayed in ``table.local-time-zone``."""
    return DataType("TIMESTAMP_LTZ", (precision,))


@quick_init
@dataclass(frozen=True)
class Column:
    """A column of a relation: its name, its Flink type, and its time attribute, if any."""

    name: str
    type: DataType
    time_attribute: TimeAttribute | None = None
