"""Serializer snapshots, in which Flink records stored types, and the logical types in the snapshots."""

from __future__ import annotations

import io
import logging
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import javaobj

from airflow_flinkcompat.savepoint.binary import DataReader, SavepointUnreadable, require_version

_PROXY_VERSIONS = (2,)
_NESTED, _NESTED_VERSIONS = struct.pack(">I", 0x1457FD), (1,)
_COMPOSITE = struct.pack(">I", 911108)
_FLINK = "org.apache.flink."
_READ: Mapping[str, tuple[int, int | None]] = {
    "api.common.typeutils.base.BooleanSerializer$BooleanSerializerSnapshot": (3, None),
    "api.common.typeutils.base.ByteSerializer$ByteSerializerSnapshot": (3, None),
    "api.common.typeutils.base.DoubleSerializer$DoubleSerializerSnapshot": (3, None),
    "api.common.typeutils.base.FloatSerializer$FloatSerializerSnapshot": (3, None),
    "api.common.typeutils.base.IntSerializer$IntSerializerSnapshot": (3, None),
    "api.common.typeutils.base.ListSerializerSnapshot": (3, 1),
    "api.common.typeutils.base.LongSerializer$LongSerializerSnapshot": (3, None),
    "api.common.typeutils.base.MapSerializerSnapshot": (3, 1),
    "api.common.typeutils.base.ShortSerializer$ShortSerializerSnapshot": (3, None),
    "api.common.typeutils.base.array.BytePrimitiveArraySerializer$BytePrimitiveArraySerializerSnapshot": (3, None),
    "api.java.typeutils.runtime.TupleSerializerSnapshot": (3, 2),
    "cep.nfa.DeweyNumber$DeweyNumberSerializer$DeweyNumberSerializerSnapshot": (3, None),
    "cep.nfa.NFAStateSerializerSnapshot": (3, 2),
    "cep.nfa.sharedbuffer.EventId$EventIdSerializer$EventIdSerializerSnapshot": (3, None),
    "cep.nfa.sharedbuffer.LockableTypeSerializerSnapshot": (3, 1),
    "cep.nfa.sharedbuffer.NodeId$NodeIdSerializer$NodeIdSerializerSnapshot": (3, 1),
    "cep.nfa.sharedbuffer.SharedBufferEdge$SharedBufferEdgeSerializer$SharedBufferEdgeSerializerSnapshot": (3, 1),
    "cep.nfa.sharedbuffer.SharedBufferNodeSerializerSnapshotV2": (3, 1),
    "runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot": (3, None),
    "runtime.state.ttl.TtlStateFactory$TtlSerializerSnapshot": (3, 2),
    "streaming.api.operators.TimerSerializerSnapshot": (3, 2),
    "streaming.runtime.streamrecord.StreamElementSerializer$StreamElementSerializerSnapshot": (3, 2),
    "table.dataview.NullSerializer$NullSerializerSnapshot": (3, None),
    "table.runtime.operators.sink.SortedLongSerializer$SortedLongSerializerSnapshot": (3, None),
    "table.runtime.operators.window.TimeWindow$Serializer$TimeWindowSerializerSnapshot": (3, None),
    "table.runtime.typeutils.ArrayDataSerializer$ArrayDataSerializerSnapshot": (3, None),
    "table.runtime.typeutils.DecimalDataSerializer$DecimalSerializerSnapshot": (3, None),
    "table.runtime.typeutils.ExternalSerializer$ExternalSerializerSnapshot": (3, 1),
    "table.runtime.typeutils.LinkedListSerializer$LinkedListSerializerSnapshot": (3, 3),
    "table.runtime.typeutils.MapDataSerializer$MapDataSerializerSnapshot": (3, None),
    "table.runtime.typeutils.RawValueDataSerializer$RawValueDataSerializerSnapshot": (3, 0),
    "table.runtime.typeutils.RowDataSerializer$RowDataSerializerSnapshot": (3, None),
    "table.runtime.typeutils.SortedMapSerializerSnapshot": (3, None),
    "table.runtime.typeutils.StringDataSerializer$StringDataSerializerSnapshot": (3, None),
    "table.runtime.typeutils.TimestampDataSerializer$TimestampDataSerializerSnapshot": (1, None),
}
"""Version of each snapshot class, and of its own part, in savepoints of Flink 1.18 to 2.3.

Only composite snapshots have an own part, which precedes the snapshots of their nested serializers.
"""
_SHORT = re.compile(r"(Serializer)?Snapshot$")
_SNAPSHOT = re.compile(rb"[\w.$]+Snapshot\b")
_OF_FLINK_ITSELF = frozenset({"Timer", "VoidNamespace"})
"""Serializers of values that contain no column."""


@dataclass(frozen=True)
class Serializer:
    """One serializer.

    ``types``: logical types of the values, if the snapshot contains them; for a row, types of the fields in order.
    ``nested``: serializers of parts: for a list, of its elements; for a map, of its keys and its values.
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


def serializer_names(header: bytes) -> frozenset[str]:
    """Names of the serializers in a header of state, also of unknown ones such as ``Kryo``."""
    classes = (found.decode() for found in _SNAPSHOT.findall(header))
    return frozenset(_SHORT.sub("", re.split(r"[.$]", name)[-1]) for name in classes) - _OF_FLINK_ITSELF


def read_serializer(reader: DataReader) -> Serializer:
    require_version("a serializer snapshot", reader.int32(), _PROXY_VERSIONS)
    return _snapshot(reader)


def _snapshot(reader: DataReader) -> Serializer:
    begin = reader.at
    class_name = reader.text()
    what, version = f"serializer snapshot {class_name}", reader.int32()
    known, own = _READ.get(class_name.removeprefix(_FLINK), (None, None))
    require_version(what, version, () if known is None else (known,))
    if own is not None:
        _expect(reader, _COMPOSITE, what)
        require_version(f"the own part of {what}", reader.int32(), (own,))
    types, nested = _content(reader, class_name.rsplit(".", 1)[-1], own is not None)
    return Serializer(class_name, types, nested, reader.content[begin : reader.at])


def _content(reader: DataReader, name: str, composite: bool) -> tuple[tuple[str, ...], tuple[Serializer, ...]]:
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
    return (_outer(reader, name.split("$")[0]), _nested(reader)) if composite else ((), ())


def _outer(reader: DataReader, name: str) -> tuple[str, ...]:
    """Read the header that some composite serializers write before their nested serializers."""
    match name:
        case "ExternalSerializer":
            type = type_text(getattr(read_object(reader), "logicalType", None))
            reader.flag()  # true for Flink's own structures
            return (type,)
        case "LinkedListSerializer":
            reader.flag()  # true if values may be NULL
        case "NFAStateSerializerSnapshot":
            reader.flag()  # true if a match stores the time of its last event
        case "TupleSerializerSnapshot":
            reader.text()  # the class of the tuple
    return ()


def _nested(reader: DataReader) -> tuple[Serializer, ...]:
    _expect(reader, _NESTED, "the list of nested serializers")
    require_version("the list of nested serializers", reader.int32(), _NESTED_VERSIONS)
    return tuple(_snapshot(reader) for _ in range(reader.count()))


def _expect(reader: DataReader, magic: bytes, what: str) -> None:
    if reader.take(len(magic)) != magic:
        raise SavepointUnreadable(f"{what} has an unknown form at byte {reader.at - len(magic)}")


_WORDS = {
    "INTEGER": "INT",
    "TIMESTAMP_WITHOUT_TIME_ZONE": "TIMESTAMP",
    "TIMESTAMP_WITH_LOCAL_TIME_ZONE": "TIMESTAMP_LTZ",
    "TIMESTAMP_WITH_TIME_ZONE": "TIMESTAMP WITH TIME ZONE",
    "TIME_WITHOUT_TIME_ZONE": "TIME",
}


# The error names the fault of a damaged stream; a dump of the parser's state adds nothing.
logging.getLogger("javaobj").setLevel(logging.CRITICAL)


class _CheckedStream(io.BytesIO):
    """Stream that raises EOFError at its end, because javaobj would accept a truncated text."""

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        if size is not None and len(found) < size:
            raise EOFError("it has ended")
        return found


def read_object(reader: DataReader) -> Any:
    """Read one Java object with its own stream header, as an object of javaobj."""
    stream = _CheckedStream(reader.content[reader.at :])
    try:
        found = javaobj.load(stream, ignore_remaining_data=True)
    except Exception as error:  # the library raises errors of any type
        raise SavepointUnreadable(f"the Java object at byte {reader.at} cannot be read: {error}") from None
    reader.at += stream.tell()
    return found


def read_type(reader: DataReader) -> str:
    """Read one logical type in Flink's spelling, such as ``DECIMAL(30, 4) NOT NULL``."""
    return type_text(read_object(reader))


def type_text(type: Any) -> str:
    """Convert a javaobj object to a type in Flink's SQL spelling; a structured type is named by its class."""
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
            # Before version 2.1, Flink stores only the class object, without a separate class name.
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
    """The elements of a Java list, or of the list in a wrapper."""
    inner = getattr(collection, "c", None) or getattr(collection, "list", None) or collection
    return list(inner) if isinstance(inner, list) else [item for item in inner.annotations if not isinstance(item, str)]
