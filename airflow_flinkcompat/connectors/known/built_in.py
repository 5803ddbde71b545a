"""What comes with Flink to try things out: ``print``, ``blackhole``, ``datagen`` (measured on Flink 2.3 and 1.20)."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    ConnectorFacts,
    Effect,
    Known,
    OptionFact,
    SinkFacts,
    SinkState,
    SourceFacts,
    StoredPositions,
)

CONNECTORS = (
    ConnectorFacts(
        ("print",),
        sink=SinkFacts(
            state=SinkState.NONE,
            operators=1,
            upserts=Known.NO,
            updates=Known.YES,
            options=(
                OptionFact("print-identifier", Effect.TUNES, ("x-sink-option", "sinks-print-option")),
                OptionFact("standard-error", Effect.TUNES, ("x-sink-option",)),
                OptionFact("sink.parallelism", Effect.TUNES, ("sk-stateless-print-parallelism",)),
            ),
            ids=("sinks-unchanged",),
            document="PrintTableSinkFactory: rows are written as they come",
        ),
    ),
    ConnectorFacts(
        ("blackhole",),
        sink=SinkFacts(
            state=SinkState.NONE,
            operators=1,
            upserts=Known.NO,
            updates=Known.YES,
            ids=("sk-stateless-blackhole-print",),
            document="BlackHoleTableSinkFactory: rows are dropped",
        ),
    ),
    ConnectorFacts(
        ("datagen",),
        source=SourceFacts(
            positions=StoredPositions.COUNTER,
            projection=Known.NO,
            filters=Known.NO,
            watermark=Known.NO,
            metadata=Known.NO,
            appends=Known.YES,
            document="DataGenTableSource: SupportsLimitPushDown",
        ),
    ),
)
