"""The catalogue of connectors: savepoint state of sources and sinks, and the effect of each option.

It is data, a module for each family in ``definitions``, and judges nothing: :mod:`~airflow_flinkcompat.compat` decides
about restores.
"""

from __future__ import annotations

from airflow_flinkcompat.connectors.declared_options import undeclared
from airflow_flinkcompat.connectors.facts import (
    ConnectorFacts,
    FormatFacts,
    KeyDemand,
    Known,
    ListedPlaces,
    LookupFacts,
    LookupSupport,
    OptionEffect,
    OptionFact,
    SinkFacts,
    SinkState,
    SourceFacts,
    SourceState,
    Startup,
    TableUse,
)
from airflow_flinkcompat.connectors.formats import FORMATS, format_option
from airflow_flinkcompat.connectors.registry import catalogue, format_keys, lookup, option, sink, source

__all__ = [
    "FORMATS", "ConnectorFacts", "FormatFacts", "KeyDemand", "Known", "ListedPlaces", "LookupFacts", "LookupSupport",
    "OptionEffect", "OptionFact", "SinkFacts", "SinkState", "SourceFacts", "SourceState", "Startup", "TableUse",
    "catalogue", "format_keys", "format_option", "lookup", "option", "sink", "source", "undeclared",
]  # fmt: skip
