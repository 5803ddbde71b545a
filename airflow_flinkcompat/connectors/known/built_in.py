"""To try things out: ``print``, ``blackhole`` and ``datagen`` of Flink (measured on 2.3 and 1.20), ``faker``."""

from __future__ import annotations

from airflow_flinkcompat.connectors.facts import (
    ConnectorFacts,
    Effect,
    Known,
    LookupFacts,
    LookupSupport,
    OptionFact,
    SinkFacts,
    SinkState,
    SourceFacts,
    StoredPositions,
)
from airflow_flinkcompat.connectors.startup import Startup

_MADE = Startup(itself="anew: it makes its rows")
_FAKER = "README of flink-faker (0.5)"

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
            startup=_MADE,
            document="DataGenTableSource: SupportsLimitPushDown",
        ),
    ),
    ConnectorFacts(
        ("faker",),
        source=SourceFacts(
            positions=StoredPositions.COUNTER,
            projection=Known.NO,
            filters=Known.NO,
            watermark=Known.NO,
            metadata=Known.NO,
            appends=Known.YES,
            options=(OptionFact("rows-per-second", Effect.TUNES, document=_FAKER),),
            startup=_MADE,
            document="FlinkFakerTableSource (0.5): a NumberSequenceSource, which stores what it has counted to",
        ),
        lookup=LookupFacts(LookupSupport.SYNCHRONOUS, document="FlinkFakerTableSource (0.5): LookupFunctionProvider"),
    ),
)
