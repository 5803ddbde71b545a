"""Flink's logical types as Java serialised them into a savepoint, in Flink's SQL spelling."""

from __future__ import annotations

import io
import logging
from typing import Any

import javaobj

from airflow_flinkcompat.savepoint.binary import DataReader, SavepointUnreadable

_WORDS = {
    "INTEGER": "INT",
    "TIMESTAMP_WITHOUT_TIME_ZONE": "TIMESTAMP",
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": "TIMESTAMP_LTZ",
    "TIMESTAMP_WITH_TIME_ZONE": "TIMESTAMP WITH TIME ZONE",
    "TIME_WITHOUT_TIME_ZONE": "TIME",
}


# What it finds in a damaged stream is said by the error, and needs no dump of the parser's state beside.
logging.getLogger("javaobj").setLevel(logging.CRITICAL)


class _CheckedStream(io.BytesIO):
    """A stream that reports its end, where the library would accept a shortened text."""

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        if size is not None and len(found) < size:
            raise EOFError("it has ended")
        return found


def read_object(reader: DataReader) -> Any:
    """Read one Java object with its own stream header, as an object of javaobj.

    Raises SavepointUnreadable if there is none, or it is damaged.
    """
    stream = _CheckedStream(reader.content[reader.at :])
    try:
        found = javaobj.load(stream, ignore_remaining_data=True)
    except Exception as error:  # the library raises whatever it comes upon
        raise SavepointUnreadable(f"the Java object at byte {reader.at} cannot be read: {error}") from None
    reader.at += stream.tell()
    return found


def read_type(reader: DataReader) -> str:
    """Read one logical type in Flink's spelling, such as ``DECIMAL(30, 4) NOT NULL``.

    Raises SavepointUnreadable if it is no known logical type.
    """
    return type_text(read_object(reader))


def type_text(type: Any) -> str:
    """An object of javaobj as a logical type in Flink's SQL spelling; a structured one by its class.

    Raises SavepointUnreadable if it is no logical type.
    """
    try:
        root = str(type.typeRoot.constant)
        return _shape(_WORDS.get(root, root), type) + ("" if type.isNullable else " NOT NULL")
    except AttributeError:
        raise SavepointUnreadable(f"{type} is not a known logical type") from None


def _shape(word: str, type: Any) -> str:
    match word:
        case "ROW":
            return f"ROW<{', '.join(f'`{field.name}` {type_text(field.type)}' for field in _items(type.fields))}>"
        case "STRUCTURED_TYPE":
            fields = ", ".join(f"`{field.name}` {type_text(field.type)}" for field in _items(type.attributes))
            # Lines of Flink before 2.1 name the class by itself alone.
            name = getattr(type, "className", None) or type.implementationClass.name
            return f"{name}<{fields}>"
        case "ARRAY" | "MULTISET":
            return f"{word}<{type_text(type.elementType)}>"
        case "MAP":
            return f"MAP<{type_text(type.keyType)}, {type_text(type.valueType)}>"
        case "RAW":
            return f"RAW('{type.clazz.name}')"
        case "DISTINCT_TYPE":
            return type_text(type.sourceType)
    sizes = [str(getattr(type, name)) for name in ("length", "precision", "scale") if hasattr(type, name)]
    return f"{word}({', '.join(sizes)})" if sizes else word


def _items(collection: Any) -> list[Any]:
    """The elements of one of Java's lists: of a wrapper, those of the wrapped list."""
    inner = getattr(collection, "c", None) or getattr(collection, "list", None) or collection
    return list(inner) if isinstance(inner, list) else [item for item in inner.annotations if not isinstance(item, str)]
