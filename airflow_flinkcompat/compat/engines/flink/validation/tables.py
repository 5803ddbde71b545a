"""Validation of table declarations: watermark, keys, options, and types that formats support."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from airflow_flinkcompat.compat.engines.flink.validation import Fault
from airflow_flinkcompat.compat.engines.flink.validation.functions import expression_call_faults, refused_call
from airflow_flinkcompat.connectors import registry
from airflow_flinkcompat.connectors.facts import KeyDemand, Known
from airflow_flinkcompat.connectors.flink_options import has_metadata, metadata, table_faults
from airflow_flinkcompat.connectors.registry import FORMATS
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.types import CHARACTERS, TIMESTAMPS, Column, DataType

_KEY_FIELDS, _KEY_FORMAT = "key.fields", "key.format"


_TRANSACTIONS = "sink.transactional-id-prefix"


_ALIGNED, _DRIFT = "scan.watermark.alignment.group", "scan.watermark.alignment.max-drift"


_CACHE_LIMITS = tuple(
    f"lookup.partial-cache.{name}" for name in ("expire-after-access", "expire-after-write", "max-rows")
)


_LONGEST_TIME = 3
"""The maximum precision of a time attribute."""


_NO_RAW = frozenset({"DECIMAL", "DATE", "TIME", *TIMESTAMPS, "ARRAY", "MAP", "ROW", "MULTISET"})


def faults_of_table(table: Table, functions: Collection[str], line: str | None, *, sink: bool) -> Iterator[Fault]:
    """Faults in the declaration of a used table. ``functions`` are declared names in capitals.

    ``line`` is the line of Flink that plans the statement. ``sink`` is True if the query writes to the table.
    """
    if table.declared:
        yield from declaration_faults(table, functions)
        yield from _options(table, line, sink)
        yield from _metadata(table, sink)
        yield from _alignment(table, sink)
        yield from _key(table, sink)
        yield from _key_fields(table)
        if sink:
            yield from _guarantee(table)
        yield from _format(table)


def declaration_faults(table: Table, functions: Collection[str]) -> Iterator[Fault]:
    """Faults in a table's declaration that Flink refuses even if no query uses the table."""
    for expression in declared_expressions(table):
        yield from expression_call_faults(expression, functions)
    yield from _watermark(table)
    yield from _key_columns(table)
    yield from _partitions(table)


def declared_expressions(table: Table) -> Iterator[Expression]:
    """The expressions of computed columns and of the watermark."""
    yield from (expression for _, expression in table.computed)
    if table.watermark is not None:
        yield table.watermark.expression


def _options(table: Table, line: str | None, sink: bool) -> Iterator[Fault]:
    """Faults of option values that the connector or a format does not accept."""
    options = dict(table.options)
    for fault in table_faults(options, line, "sink" if sink else "source") if line is not None else ():
        yield Fault(f"option {fault.split()[0]}", f"option {fault}, in table {table.name}")
    cached = options.get("lookup.cache", "").upper() == "PARTIAL"
    if cached and not sink and not any(key in options for key in _CACHE_LIMITS):
        yield Fault(
            "lookup cache",
            f"'lookup.cache' = 'PARTIAL' of table {table.name} requires one of {', '.join(map(repr, _CACHE_LIMITS))}",
        )


def _metadata(table: Table, sink: bool) -> Iterator[Fault]:
    """Faults of metadata columns: keys that the connector lacks, and types that need an impossible cast."""
    connector = table.option("connector") or ""
    formats = [each for key in ("format", "value.format") if (each := table.option(key))]
    known = metadata(connector, formats, written=sink)
    if known is None and not sink and registry.source(connector).metadata is Known.NO:
        known = {}
    if known is None:
        return
    types = {column.name: column.type for column in table.columns}
    for name, key, virtual in table.metadata:
        if sink and virtual:
            continue
        if key not in known:
            # A format with unknown metadata may provide any key.
            if not key.startswith("value.") or all(_adds_nothing(format) for format in formats):
                what = f"use one of {', '.join(known)}" if known else "remove the column"
                yield Fault(
                    "metadata",
                    (
                        f"{connector} {'writes' if sink else 'has'} no metadata {key}, which column {name} of table "
                        f"{table.name} requires; {what}{', or make the column VIRTUAL' if sink else ''}"
                    ),
                )
            continue
        given, declared = DataType.read(known[key]), types[name]
        source, target = (declared, given) if sink else (given, declared)
        if source.is_known and target.is_known and refused_call("CAST", [source], target):
            yield Fault(
                "metadata",
                f"column {name} of table {table.name} is a {declared.with_nullability(True)}, and metadata {key} of "
                f"{connector} is a {given.with_nullability(True)}, which Flink does not cast; declare the column with "
                f"the metadata's type",
            )


def _adds_nothing(format: str) -> bool:
    """True if a format provides no metadata besides the known keys."""
    found = FORMATS.get(format)
    return has_metadata(format) or (found is not None and found.appends is Known.YES)


def _alignment(table: Table, sink: bool) -> Iterator[Fault]:
    group, drift = table.option(_ALIGNED), table.option(_DRIFT)
    if not sink and table.option("connector") == "kafka" and group is not None and drift is None:
        yield Fault("alignment", f"table {table.name} has the option '{_ALIGNED}' without '{_DRIFT}'; set both")


def _watermark(table: Table) -> Iterator[Fault]:
    if table.watermark is None:
        return
    name = table.watermark.column
    column = next((each for each in table.columns if each.name == name), None)
    if column is None:
        yield Fault(
            "watermark",
            f"table {table.name} has no column {name} for its watermark; use one of the table's columns",
            of_name=True,
        )
        return
    computed = dict(table.computed).get(name)
    if isinstance(computed, FunctionCall) and computed.function == "PROCTIME":
        yield Fault(
            "watermark",
            f"{name} of table {table.name} is processing time, which supports no WATERMARK; remove the WATERMARK",
        )
        return
    value = table.watermark.expression.type
    for what, type in ((f"column {name}", column.type), ("the expression", value)):
        if type.is_known and not _time(type):
            yield Fault(
                "watermark",
                (
                    f"{what} of the watermark of table {table.name} is a {type.with_nullability(True)}; it must be a "
                    "TIMESTAMP(3) or a TIMESTAMP_LTZ(3), for example a computed column with a CAST"
                ),
            )
            return
    if column.type.is_known and value.is_known and value.name != column.type.name:
        yield Fault(
            "watermark",
            (
                f"the watermark of table {table.name} is a {value.with_nullability(True)} computed from a "
                f"{column.type.with_nullability(True)}; both must have the same type"
            ),
        )


def _time(type: DataType) -> bool:
    return type.name in TIMESTAMPS and bool(type.parameters) and type.parameters[0] <= _LONGEST_TIME


def _key_columns(table: Table) -> Iterator[Fault]:
    names = {column.name for column in table.columns}
    for name in table.primary_key:
        if name not in names:
            yield Fault(
                "primary key",
                f"table {table.name} has no column {name} for its PRIMARY KEY; use one of the table's columns",
                of_name=True,
            )
        elif name not in table.physical:
            yield Fault(
                "primary key", f"{name} of table {table.name} is not stored, so it cannot be part of a PRIMARY KEY"
            )


def _key(table: Table, sink: bool) -> Iterator[Fault]:
    connector = table.option("connector")
    if sink and not table.primary_key and registry.sink(connector).primary_key is KeyDemand.ALWAYS:
        yield Fault("primary key", f"{connector} requires a PRIMARY KEY, but table {table.name} declares none")
    format = FORMATS.get(value_format(table))
    if connector == "kafka" and table.primary_key and format is not None and format.appends is Known.YES:
        yield Fault(
            "primary key",
            (
                f"kafka accepts no PRIMARY KEY with format {format.name}, as in table {table.name}; use "
                "upsert-kafka, or remove the key"
            ),
        )


def value_format(table: Table) -> str:
    """The format of a table's values; "" if there is none."""
    names = (table.option(key) for key in registry.format_keys(table.option("connector")))
    return next((name.lower() for name in names if name), "")


def _key_fields(table: Table) -> Iterator[Fault]:
    fields, format = table.option(_KEY_FIELDS), table.option(_KEY_FORMAT)
    if table.option("connector") != "kafka" or (fields is None and format is None):
        return
    if fields is None or format is None:
        missing, given = (_KEY_FORMAT, _KEY_FIELDS) if format is None else (_KEY_FIELDS, _KEY_FORMAT)
        yield Fault("key.fields", f"table {table.name} has the option '{given}' without '{missing}'; set both")
        return
    prefix = table.option("key.fields-prefix") or ""
    for name in _split(fields):
        if name not in table.physical:
            yield Fault(
                "key.fields", f"'{_KEY_FIELDS}' of table {table.name} names {name}, which is not a stored column"
            )
        elif not name.startswith(prefix):
            yield Fault("key.fields", f"{name} in '{_KEY_FIELDS}' of table {table.name} does not begin with {prefix!r}")
    if prefix and (table.option("value.fields-include") or "ALL").upper() != "EXCEPT_KEY":
        yield Fault(
            "key.fields",
            f"'key.fields-prefix' of table {table.name} requires 'value.fields-include' = 'EXCEPT_KEY'",
        )


def _partitions(table: Table) -> Iterator[Fault]:
    names = {column.name for column in table.columns}
    for name in table.partitioned_by:
        if name not in names:
            yield Fault(
                "partitions",
                f"table {table.name} has no column {name} to be PARTITIONED BY; use one of the table's columns",
                of_name=True,
            )
        elif name not in table.physical:
            yield Fault("partitions", f"{name} of table {table.name} is not stored, so PARTITIONED BY cannot use it")


def _guarantee(table: Table) -> Iterator[Fault]:
    """The fault of an exactly-once Kafka sink without a prefix for transactional ids."""
    if table.option("connector") not in ("kafka", "upsert-kafka") or table.option(_TRANSACTIONS) is not None:
        return
    for key in ("sink.delivery-guarantee", "sink.semantic"):
        if (table.option(key) or "").lower() == "exactly-once":
            yield Fault(
                "guarantee", f"'{key}' = 'exactly-once' of table {table.name} requires '{_TRANSACTIONS}'; set both"
            )


def _split(fields: str) -> list[str]:
    return [name.strip() for name in fields.split(";") if name.strip()]


def _format(table: Table) -> Iterator[Fault]:
    name = value_format(table)
    kept = table.stored
    key = _split(table.option(_KEY_FIELDS) or "")
    partitions = table.partitioned_by if table.option("connector") == "filesystem" else ()
    if (table.option("value.fields-include") or "ALL").upper() == "EXCEPT_KEY":
        kept = tuple(column for column in kept if column.name not in key)
    yield from _unsupported_types(table, name, tuple(column for column in kept if column.name not in partitions))
    if key and (key_format := table.option(_KEY_FORMAT)):
        yield from _unsupported_types(
            table, key_format.lower(), tuple(each for each in table.stored if each.name in key)
        )


def _unsupported_types(table: Table, format: str, columns: tuple[Column, ...]) -> Iterator[Fault]:
    if format == "raw" and len(columns) > 1:
        yield Fault(
            "format", f"format raw supports one column, but table {table.name} has {len(columns)} columns for it"
        )
        return
    for column in columns:
        if column.type.is_known and not _supports(format, column.type):
            yield Fault(
                "format",
                (
                    f"format {format} does not support {column.type.with_nullability(True)}, the type of {column.name} "
                    f"of table {table.name}; declare the column with a different type, or use a different format"
                ),
            )


def _supports(format: str, type: DataType) -> bool:
    """True if a format supports a column type (each type was checked with a 2.3.0 planner)."""
    match format:
        case "raw":
            return type.name not in _NO_RAW
        case "csv":
            nested = type.name in ("ARRAY", "ROW") and not any(element.elements for element in type.elements)
            return nested or not type.elements
        case "avro" | "avro-confluent":
            return type.name != "TIMESTAMP" or type.parameters[0] <= _LONGEST_TIME * 2
    if format == "json" or format.endswith("-json"):
        if type.name in ("MAP", "MULTISET") and type.elements[0].name not in CHARACTERS:
            return False
        return all(_supports(format, element) for element in type.elements)
    return True
