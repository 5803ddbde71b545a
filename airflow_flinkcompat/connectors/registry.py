"""The connectors of the catalogue, found by their modules: adding a file to ``definitions`` adds one.

Formats of rows are here, too: whether they update and delete, and effects of their options. No format has state.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module

from airflow_flinkcompat.connectors import declared_options, definitions
from airflow_flinkcompat.connectors.facts import (
    ColumnIdentity,
    ConnectorFacts,
    FormatFacts,
    Known,
    LookupFacts,
    OptionEffect,
    OptionFact,
    SinkFacts,
    SourceFacts,
    SourceState,
    TableUse,
    facts,
)

_UNKNOWN, _UNKNOWN_SOURCE, _UNKNOWN_SINK = ConnectorFacts(()), SourceFacts(), SinkFacts()


def catalogue() -> Mapping[str, ConnectorFacts]:
    """The facts of every known connector by its names. Raises ValueError if two modules have one name."""
    return _read(tuple(definitions.__path__))


@cache
def _read(folders: tuple[str, ...]) -> Mapping[str, ConnectorFacts]:
    modules = [import_module(f"{definitions.__name__}.{found.name}") for found in pkgutil.iter_modules(folders)]
    found: dict[str, ConnectorFacts] = {}
    for connector in (each for module in modules for each in module.CONNECTORS):
        for name in connector.names:
            if found.setdefault(name, connector) is not connector:
                raise ValueError(f"two modules of {definitions.__name__} define connector {name}")
    return found


def _facts(connector: str | None) -> ConnectorFacts:
    return catalogue().get(connector or "", _UNKNOWN)


def source(connector: str | None) -> SourceFacts:
    """State and abilities of a connector's source."""
    return _facts(connector).source or _UNKNOWN_SOURCE


def sink(connector: str | None) -> SinkFacts:
    """State of a connector's sink."""
    return _facts(connector).sink or _UNKNOWN_SINK


def lookup(connector: str | None) -> LookupFacts:
    """Lookup mode of a connector."""
    return _facts(connector).lookup or LookupFacts()


def option(connector: str | None, use: TableUse, key: str) -> OptionFact | None:
    """Effect of a table's option, including those of its format.

    Options without a definition are looked up in the connector's artifacts.
    """
    facts = _facts(connector)
    found = facts.option(use, key) or (format_option(key) if facts.formats else None)
    if found is not None:
        return found
    for declared in declared_options.declared(connector, use, key):
        newer = facts.option(use, declared.key) if declared.key != key else None
        if newer is not None:
            document = f"code of {declared.artifact}: an older name for {declared.key}"
            return replace(newer, key=key, alias_of=declared.key, document=document)
    in_table = facts.source is not None and facts.source.positions is SourceState.TABLE_VERSION
    return declared_options.fact(connector, use, key, in_table=in_table)


def format_keys(connector: str | None) -> tuple[str, ...]:
    """The options in which a connector finds the format of its values."""
    return _facts(connector).formats


_PAGE = "Formats pages of Flink's documentation"


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
        note="it decides who asks the registry for schemas, and how that connection is secured; no state contains it",
    ),
)
"""Schema-registry options except its address: another registry may number schemas differently."""
FORMATS: Mapping[str, FormatFacts] = {
    each.name: each
    for each in (
        FormatFacts("json", Known.YES, _JSON, _PAGE),
        FormatFacts("csv", Known.YES, _CSV, _PAGE, by_place=True),
        FormatFacts("raw", Known.YES, _decoding("charset", "endianness"), _PAGE),
        # Avro files contain names as well; a message is read by the table's own schema.
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
"""The formats that Flink brings, by the value of a table's option."""
_NAMED_BY = ("format", "key.format", "value.format")
_OPTION = re.compile(r"(?:(?:key|value)\.)?(?P<format>[\w-]+)\.(?P<name>.+)")


def by_place(options: Mapping[str, str]) -> bool:
    """True if only the order of a row's values identifies their columns."""
    named = (FORMATS.get(options.get(key, "")) for key in _NAMED_BY)
    return any(each is not None and each.by_place for each in named)


def column_identity(options: Mapping[str, str], *, partitioned: bool) -> ColumnIdentity:
    """Identity of a table's columns across declarations."""
    if not by_place(options):
        return ColumnIdentity.NAME
    formats = [options[key] for key in _NAMED_BY if key in options]
    says_names = partitioned or (options.get("connector") == "filesystem" and "avro" in formats)
    return ColumnIdentity.BOTH if says_names or len(formats) > 1 else ColumnIdentity.PLACE


def format_option(key: str) -> OptionFact | None:
    """Effect of a format's option, such as ``value.json.ignore-parse-errors``; None if unknown."""
    found = _OPTION.fullmatch(key)
    format_facts = None if found is None else FORMATS.get(found["format"])
    if found is None or format_facts is None:
        return None
    return next((each for each in format_facts.options if each.covers(found["name"])), None)
