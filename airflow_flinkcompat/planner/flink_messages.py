"""Parts of Flink's error messages: places in a statement, types of arguments, and columns of a query."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from airflow_flinkcompat.planner.assumed_table import NUMBER, TEXT, TIMESTAMP

_PLACE = re.compile(r"[Ff]rom line (\d+), column (\d+) to line (\d+), column (\d+)")
_FAMILIES: Mapping[str, str] = {
    "BIGINT|INTEGER|NUMERIC|INT|EXACT_NUMERIC|DECIMAL": NUMBER,
    "DOUBLE|APPROXIMATE_NUMERIC|FLOAT": "DOUBLE",
    "VARCHAR|CHARACTER|CHAR|STRING|CHARACTER_STRING": TEXT,
    "DATETIME|TIMESTAMP|TIMESTAMP_LTZ|TIMESTAMP_WITHOUT_TIME_ZONE": TIMESTAMP,
    "DATE": "DATE",
    "TIME": "TIME",
    "BOOLEAN": "BOOLEAN",
    "ARRAY|COLLECTION": "ARRAY<STRING>",
    "MAP": "MAP<STRING, STRING>",
    "BINARY|VARBINARY|BYTES": "BYTES",
}
"""Types by the words for them in Flink's messages about arguments."""


def refused_part(text: str, messages: Sequence[str]) -> str:
    """The part of a statement that Flink's messages name by its place; "" without a place."""
    place = next(filter(None, map(_PLACE.search, messages)), None)
    return "" if place is None else _part(text, place)


def named_types(message: str) -> list[str]:
    """The types that a message about arguments names, in its order."""
    return [type_ for word in re.findall(r"[A-Z_]+", message) if (type_ := _family(word))]


def columns_of(schema: str) -> list[tuple[str, str]]:
    """The names and types of the columns of a query or a sink, as a message shows them."""
    return [_schema_column(each) for each in _split(schema)]


def _family(word: str) -> str:
    return next((type_ for pattern, type_ in _FAMILIES.items() if re.fullmatch(pattern, word)), "")


def _part(text: str, place: re.Match[str]) -> str:
    """The part of a text between two places, which count from 1."""
    first, begin, last, end = map(int, place.groups())
    lines = text.split("\n")[first - 1 : last]
    if not lines:
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin - 1 :]
    return "\n".join(lines)


def _split(schema: str) -> Iterator[str]:
    """Split a list of columns at the commas outside of brackets and quotes."""
    depth, part, quoted = 0, "", ""
    for each in schema:
        if quoted:
            quoted = "" if each == quoted else quoted
        elif each in "`'":
            quoted = each
        depth += 0 if quoted else (each in "<(") - (each in ">)")
        if each == "," and depth == 0 and not quoted:
            yield part.strip()
            part = ""
        else:
            part += each
    if part.strip():
        yield part.strip()


def _schema_column(text: str) -> tuple[str, str]:
    name, _, type_ = text.partition(": ")
    type_ = re.sub(r" NOT NULL$| \*(?:ROW|PROC)TIME\*", "", re.sub(r" NOT NULL$", "", type_))
    return name, TEXT if type_ == "NULL" else type_
