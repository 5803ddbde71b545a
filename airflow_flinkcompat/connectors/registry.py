"""The connectors of the catalogue, found by their modules: adding a file to ``definitions`` adds one."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module

from airflow_flinkcompat.connectors import declared_options, definitions
from airflow_flinkcompat.connectors.facts import (
    ConnectorFacts,
    LookupFacts,
    OptionFact,
    SinkFacts,
    SourceFacts,
    SourceState,
    TableUse,
)
from airflow_flinkcompat.connectors.formats import format_option

_UNKNOWN, _UNKNOWN_SOURCE, _UNKNOWN_SINK = ConnectorFacts(()), SourceFacts(), SinkFacts()


def catalogue() -> Mapping[str, ConnectorFacts]:
    """The facts of every known connector by its names. Raises ValueError if two modules have one name."""
    return _read(tuple(definitions.__path__))


@cache
def _read(folders: tuple[str, ...]) -> Mapping[str, ConnectorFacts]:
    modules = [import_module(f"{definitions.__name__}.{found.name}") for found in pkgutil.iter_modules(folders)]
    found: dict[str, ConnectorFacts] = {}
    for facts in (each for module in modules for each in module.CONNECTORS):
        for name in facts.names:
            if found.setdefault(name, facts) is not facts:
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
