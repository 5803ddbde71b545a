"""Lookup of facts about connectors. Every module in ``definitions`` is found automatically.

The module also describes row formats: their options, and if rows can be updates or deletions. No format has state.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module

from airflow_flinkcompat.connectors import artifacts, definitions
from airflow_flinkcompat.connectors.facts import (
    ColumnIdentity,
    ConnectorFacts,
    FormatFacts,
    Known,
    LookupFacts,
    OptionEffect,
    OptionFact,
    SinkFacts,
    SinkState,
    SourceFacts,
    SourceState,
    TableUse,
    facts,
)

_UNKNOWN, _UNKNOWN_SOURCE, _UNKNOWN_SINK = ConnectorFacts(()), SourceFacts(), SinkFacts()


def catalogue() -> Mapping[str, ConnectorFacts]:
    """The facts about every known connector, by name. Raises ValueError if two modules define one name."""
    return _read(tuple(definitions.__path__))


@cache
def _read(folders: tuple[str, ...]) -> Mapping[str, ConnectorFacts]:
    modules = [import_module(f"{definitions.__name__}.{found.name}") for found in pkgutil.iter_modules(folders)]
    found: dict[str, ConnectorFacts] = {}
    for connector in (each for module in modules for each in module.CONNECTORS):
        for name in connector.names:
            if found.setdefault(name, connector) is not connector:
                raise ValueError(f"two modules of {definitions.__name__} define the connector {name}")
    return found


def _facts(connector: str | None) -> ConnectorFacts:
    return catalogue().get(connector or "", _UNKNOWN)


def source(connector: str | None) -> SourceFacts:
    """The state and abilities of a connector's source."""
    return _facts(connector).source or _UNKNOWN_SOURCE


def sink(connector: str | None) -> SinkFacts:
    """The state of a connector's sink."""
    return _facts(connector).sink or _UNKNOWN_SINK


def is_stateless_sink(connector: str | None) -> bool:
    """True if a sink has no state and accepts every result, so that operators in front of it may change."""
    facts = sink(connector)
    return facts.state is SinkState.NONE and facts.updates is Known.YES


def lookup(connector: str | None) -> LookupFacts:
    """The lookup mode of a connector."""
    return _facts(connector).lookup or LookupFacts()


def option(connector: str | None, use: TableUse, key: str) -> OptionFact | None:
    """The fact about a table option or about an option of the table's format.

    If there is no definition, the connector's artifacts are searched.
    """
    facts = _facts(connector)
    found = facts.option(use, key) or (format_option(key) if facts.formats else None)
    if found is not None:
        return found
    for declared in artifacts.declared(connector, use, key):
        newer = facts.option(use, declared.key) if declared.key != key else None
        if newer is not None:
            document = f"code of {declared.artifact}: an older name for {declared.key}"
            return replace(newer, key=key, alias_of=declared.key, document=document)
    in_table = facts.source is not None and facts.source.positions is SourceState.TABLE_VERSION
    return artifacts.fact(connector, use, key, in_table=in_table)


def format_keys(connector: str | None) -> tuple[str, ...]:
    """The options in which a connector declares the format of its values."""
    return _facts(connector).formats


_PAGE = "Formats pages of the Flink documentation"


def _decoding(*names: str, note: str = "") -> tuple[OptionFact, ...]:
    return facts(OptionEffect.DECODING, _PAGE, *names, note=note)


_JSON = (
    OptionFact(
        "ignore-parse-errors",
        OptionEffect.DECODING,
        ("ks-stateless-ignore-parse-errors", "ks-group-ignore-parse-errors"),
    ),
    OptionFact(
        "fail-on-missing-field", OptionEffect.DECODING, ("ks-stateless-fail-on-missing", "ks-tumble-fail-on-missing")
    ),
    *_decoding(
        "timestamp-format.standard",
        "map-null-key.mode",
        "map-null-key.literal",
        "encode.decimal-as-plain-number",
        "encode.ignore-null-fields",
        "decode.json-parser.enabled",
    ),
)
_CSV = _decoding(
    "ignore-parse-errors",
    "field-delimiter",
    "disable-quote-character",
    "quote-character",
    "allow-comments",
    "array-element-delimiter",
    "escape-character",
    "null-literal",
    "write-bigdecimal-in-scientific-notation",
)
_AVRO = _decoding("codec", "encoding", "timestamp_mapping.legacy")
_REGISTRY = (
    *_decoding(*(f"{prefix}{name}" for prefix in ("", "schema-registry.") for name in ("subject", "schema"))),
    *_decoding(
        *("basic-auth.*", "bearer-auth.*", "ssl.*"),
        note="this option belongs to the connection to the schema registry; no state contains it",
    ),
)
"""Options of a schema registry, except its address: a different registry may assign different ids."""
FORMATS: Mapping[str, FormatFacts] = {
    each.name: each
    for each in (
        FormatFacts("json", Known.YES, _JSON, _PAGE),
        FormatFacts("csv", Known.YES, _CSV, _PAGE, by_place=True),
        FormatFacts("raw", Known.YES, _decoding("charset", "endianness"), _PAGE),
        # Avro files also contain column names, but a message is decoded with the schema of the table.
        FormatFacts("avro", Known.YES, _AVRO, _PAGE, by_place=True),
        FormatFacts("avro-confluent", Known.YES, _REGISTRY, _PAGE),
        FormatFacts("protobuf", Known.YES, (), _PAGE),
        FormatFacts("parquet", Known.YES, (), _PAGE),
        FormatFacts("orc", Known.YES, (), _PAGE),
        *(
            FormatFacts(name, Known.NO, (), _PAGE)
            for name in ("debezium-json", "debezium-avro-confluent", "canal-json", "maxwell-json", "ogg-json")
        ),
    )
}
"""The formats in Flink's distribution, by the value of a table's format option."""
_NAMED_BY = ("format", "key.format", "value.format")
_OPTION = re.compile(r"(?:(?:key|value)\.)?(?P<format>[\w-]+)\.(?P<name>.+)")


def by_place(options: Mapping[str, str]) -> bool:
    """True if only the position of a value in a row identifies its column."""
    named = (FORMATS.get(options.get(key, "")) for key in _NAMED_BY)
    return any(each is not None and each.by_place for each in named)


def column_identity(options: Mapping[str, str], *, partitioned: bool) -> ColumnIdentity:
    """The identity of a table's columns across declarations."""
    if not by_place(options):
        return ColumnIdentity.NAME
    formats = [options[key] for key in _NAMED_BY if key in options]
    says_names = partitioned or (options.get("connector") == "filesystem" and "avro" in formats)
    return ColumnIdentity.BOTH if says_names or len(formats) > 1 else ColumnIdentity.PLACE


def format_option(key: str) -> OptionFact | None:
    """The fact about a format option, such as ``value.json.ignore-parse-errors``; None if unknown."""
    found = _OPTION.fullmatch(key)
    format_facts = None if found is None else FORMATS.get(found["format"])
    if found is None or format_facts is None:
        return None
    return next((each for each in format_facts.options if each.covers(found["name"])), None)
