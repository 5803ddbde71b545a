"""The connectors, found by their folders: adding a folder adds a connector.

A folder holds ``spec.py``, which describes the connector in ``CONNECTOR`` and imports no Spark. A readable connector
has ``read.py`` with ``reader(session, source)``; a writable one has ``write.py`` with ``publication(session, sink,
rows, bounds)``. Both are imported when Spark runs.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from airflow_flinkcompat.backfill import connectors
from airflow_flinkcompat.backfill.protocols import (
    BackfillSink,
    BackfillSource,
    Publication,
    PublishedRows,
    Range,
    SourceReader,
)
from airflow_flinkcompat.plan.nodes import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MakeSource = Callable[[Table], BackfillSource]
MakeSink = Callable[[Table], BackfillSink]
GivenSource = Callable[[Table, str, str], BackfillSource]
"""Constructor of a source from a table, the requested place, and the argument's name for messages."""
GivenSink = Callable[[Table, str, str], BackfillSink]
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class Connector:
    """Sources and sinks of one folder.

    Attributes:
        sources: Constructors of a table's source, by the value of its option ``connector``. One raises
            :class:`BackfillError` with the reason why such a table is not read.
        sinks: The same for sinks.
        given_sources: Constructors of a source at a place that a request names, by the text before its first colon
            (``delta:/place``); "" is any other place.
        given_sinks: The same for sinks.
        listed: The place among other connectors where a message names them all.
    """

    sources: Mapping[str, MakeSource] = field(default_factory=dict)
    sinks: Mapping[str, MakeSink] = field(default_factory=dict)
    given_sources: Mapping[str, GivenSource] = field(default_factory=dict)
    given_sinks: Mapping[str, GivenSink] = field(default_factory=dict)
    listed: int = 99


def known_connectors() -> tuple[Connector, ...]:
    """The connectors of all folders, in the order in which messages name them."""
    return _known(tuple(connectors.__path__))


@cache
def _known(folders: tuple[str, ...]) -> tuple[Connector, ...]:
    names = [f"{connectors.__name__}.{found.name}.spec" for found in pkgutil.iter_modules(folders) if found.ispkg]
    specs = [import_module(name) for name in names if find_spec(name) is not None]
    return tuple(sorted((spec.CONNECTOR for spec in specs), key=lambda each: each.listed))


def merged(part: Callable[[Connector], Mapping[str, _Made]]) -> dict[str, _Made]:
    """One of the mappings of :class:`Connector`, over all connectors."""
    return {name: made for connector in known_connectors() for name, made in part(connector).items()}


def reader(session: SparkSession, source: BackfillSource) -> SourceReader:
    """The reader of a source."""
    found: SourceReader = _sibling_module(source, "read").reader(session, source)
    return found


def publication(session: SparkSession, sink: BackfillSink, rows: PublishedRows, bounds: Range) -> Publication:
    """The publication of one run's rows into a sink."""
    found: Publication = _sibling_module(sink, "write").publication(session, sink, rows, bounds)
    return found


def _sibling_module(spec: object, part: str) -> ModuleType:
    return import_module(f"{type(spec).__module__.rpartition('.')[0]}.{part}")
