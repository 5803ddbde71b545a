"""Stores of keys and documents that are looked up: HBase and MongoDB."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import ConnectorFacts, Known, LookupFacts, LookupSupport, SinkFacts

CONNECTORS = (
    ConnectorFacts(
        ("hbase-1.4",),
        lookup=LookupFacts(LookupSupport.SYNCHRONOUS, document="HBase connector page: lookups are synchronous"),
    ),
    ConnectorFacts(
        ("hbase-2.2",),
        lookup=LookupFacts(
            LookupSupport.BY_OPTION,
            document="HBase connector page: lookup.async, false by default; a hint says nothing",
        ),
    ),
    ConnectorFacts(
        ("mongodb",),
        sink=SinkFacts(upserts=Known.YES, updates=Known.NO, document="MongoDB connector page: upserts by the key"),
        lookup=LookupFacts(LookupSupport.SYNCHRONOUS, document="MongoDB connector page: lookups are synchronous"),
    ),
)
