"""Snapshots of serializers: what Flink writes of how keys, namespaces and values are stored."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from airflow_flinkcompat.savepoint.binary import DataReader, SavepointUnreadable
from airflow_flinkcompat.savepoint.logical_types import read_object, read_type, type_text

_PROXY_VERSION = 2
_NESTED = struct.pack(">Ii", 0x1457FD, 1)
_COMPOSITE = struct.pack(">I", 911108)
_SHORT = re.compile(r"(Serializer)?Snapshot$")


@dataclass(frozen=True)
class Serializer:
    """One serializer.

    Attributes:
        class_name: The Java class of its snapshot.
        types: The logical types that it serializes, where it says so: of a row its fields, in order.
        nested: Serializers of parts: of a list the one of its elements, of a map those of keys and values.
        stored: The bytes of its snapshot.
    """

    class_name: str
    types: tuple[str, ...]
    nested: tuple[Serializer, ...]
    stored: bytes

    @property
    def name(self) -> str:
        """The class without its package, such as ``RowData``."""
        return _SHORT.sub("", re.split(r"[.$]", self.class_name)[-1])

    def __str__(self) -> str:
        parts = self.types or tuple(map(str, self.nested))
        return f"{self.name}<{', '.join(parts)}>" if parts else self.name


def read_serializer(reader: DataReader) -> Serializer:
    """The snapshot of one serializer.

    Args:
        reader: Is behind the snapshot afterwards.

    Returns:
        The serializer; of a class that is not known here without types and parts, if its snapshot holds nothing.

    Raises:
        SavepointUnreadable: It is damaged or of a form that is not known here.
    """
    version = reader.int32()
    if version != _PROXY_VERSION:
        raise SavepointUnreadable(f"a serializer's snapshot of version {version} is not known here")
    return _snapshot(reader)


def _snapshot(reader: DataReader) -> Serializer:
    begin = reader.at
    class_name = reader.text()
    reader.int32()  # its version
    types, nested = _content(reader, class_name.rsplit(".", 1)[-1])
    return Serializer(class_name, types, nested, reader.content[begin : reader.at])


def _content(reader: DataReader, name: str) -> tuple[tuple[str, ...], tuple[Serializer, ...]]:
    types: tuple[str, ...] = ()
    match name.split("$")[0]:
        case "RowDataSerializer":
            types = tuple(read_type(reader) for _ in range(reader.count()))
            return types, _nested(reader)
        case "TimestampDataSerializer":
            return (f"TIMESTAMP({reader.int32()})",), ()
        case "DecimalDataSerializer":
            precision, scale = reader.int32(), reader.int32()
            return (f"DECIMAL({precision}, {scale})",), ()
        case "ArrayDataSerializer":
            types = (read_type(reader),)
            read_object(reader)  # the serializer of the elements
            return types, ()
        case "MapDataSerializer":
            types = (read_type(reader), read_type(reader))
            read_object(reader)
            read_object(reader)
            return types, ()
        case "SortedMapSerializerSnapshot":
            read_object(reader)  # the comparator of the keys
            return (), _nested(reader)
    ahead = reader.content[reader.at : reader.at + 8]
    if ahead.startswith(_COMPOSITE):
        reader.take(8)
        types = _outer(reader, name.split("$")[0])
        return types, _nested(reader)
    return (), _nested(reader) if ahead == _NESTED else ()


def _outer(reader: DataReader, name: str) -> tuple[str, ...]:
    """What some serializers of several parts write in front of them."""
    match name:
        case "ExternalSerializer":
            type = type_text(read_object(reader).logicalType)
            reader.flag()  # whether it works with Flink's own structures
            return (type,)
        case "LinkedListSerializer":
            reader.flag()  # whether it may hold nulls
        case "TupleSerializerSnapshot":
            reader.text()  # the class of the tuple
    return ()


def _nested(reader: DataReader) -> tuple[Serializer, ...]:
    if reader.take(8) != _NESTED:
        raise SavepointUnreadable(f"the parts of a serializer are of a form that is not known here, at {reader.at - 8}")
    return tuple(_snapshot(reader) for _ in range(reader.count()))
