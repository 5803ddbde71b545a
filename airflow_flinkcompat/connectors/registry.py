"""The connectors of the catalogue, found by their modules: to add one is to add a file to ``known``."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from airflow_flinkcompat.connectors import known
from airflow_flinkcompat.connectors.facts import (
    ConnectorFacts,
    LookupFacts,
    OptionFact,
    SinkFacts,
    SourceFacts,
    TableUse,
)
from airflow_flinkcompat.connectors.formats import format_option

_NO_SOURCE, _NO_SINK, _NO_LOOKUP = SourceFacts(), SinkFacts(), LookupFacts()


def catalogue() -> Mapping[str, ConnectorFacts]:
    """Every connector that is known.

    Returns:
        The facts by each value of the option ``connector`` that stands for them.

    Raises:
        ValueError: Two modules speak of one name.
    """
    return _read(tuple(known.__path__))


@cache
def _read(folders: tuple[str, ...]) -> Mapping[str, ConnectorFacts]:
    modules = [import_module(f"{known.__name__}.{found.name}") for found in pkgutil.iter_modules(folders)]
    found: dict[str, ConnectorFacts] = {}
    for facts in (each for module in modules for each in module.CONNECTORS):
        for name in facts.names:
            if found.setdefault(name, facts) is not facts:
                raise ValueError(f"two modules of {known.__name__} speak of connector {name}")
    return found


def source(connector: str | None) -> SourceFacts:
    """What a connector's source keeps, and what is handed down into it.

    Args:
        connector: The value of the option, None for a table without one.

    Returns:
        Facts that say "not known" where the catalogue lacks it.
    """
    facts = catalogue().get(connector or "")
    return facts.source if facts is not None and facts.source is not None else _NO_SOURCE


def sink(connector: str | None) -> SinkFacts:
    """What a connector's sink keeps.

    Args:
        connector: The value of the option, None for a table without one.

    Returns:
        Facts that say "not known" where the catalogue lacks it.
    """
    facts = catalogue().get(connector or "")
    return facts.sink if facts is not None and facts.sink is not None else _NO_SINK


def lookup(connector: str | None) -> LookupFacts:
    """How a connector looks rows up.

    Args:
        connector: The value of the option, None for a table without one.

    Returns:
        Facts that say "not known" where the catalogue lacks it.
    """
    facts = catalogue().get(connector or "")
    return facts.lookup if facts is not None and facts.lookup is not None else _NO_LOOKUP


def option(connector: str | None, use: TableUse, key: str) -> OptionFact | None:
    """What an option of a table does, those of its format included.

    Args:
        connector: The value of the option ``connector``, None for a table without one.
        use: What a query does with the table.
        key: The option.

    Returns:
        The fact; None where nothing is known of it.
    """
    facts = catalogue().get(connector or "")
    if facts is None:
        return None
    found = facts.option(use, key)
    return found if found is not None or not facts.formats else format_option(key)


def format_keys(connector: str | None) -> tuple[str, ...]:
    """The options in which a connector finds the format of its values.

    Args:
        connector: The value of the option ``connector``, None for a table without one.

    Returns:
        Their names, the first that is given counts; none where the catalogue lacks the connector.
    """
    facts = catalogue().get(connector or "")
    return () if facts is None else facts.formats
