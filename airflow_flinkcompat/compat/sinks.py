"""What open-source Flink plans between a query and its sink: operators that no query names, but its job holds."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from airflow_flinkcompat.compat import emission, settings
from airflow_flinkcompat.compat.change import Change
from airflow_flinkcompat.compat.pairs import PipelinePair
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import AggregateOperator, Output, sources
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn
from airflow_flinkcompat.plan.program import Pipeline, Program

TAKES_EVERY_CHANGE = frozenset({"print", "blackhole"})
TAKES_UPSERTS = frozenset({"upsert-kafka", "jdbc", "elasticsearch-6", "elasticsearch-7", "opensearch", "mongodb"})


class Materialized(StrEnum):
    """Whether a sink's results are kept once more in front of it (the sink materializer keeps whole rows)."""

    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


def table(program: Program, name: str) -> Table | None:
    """The table a program declares under a name."""
    return next((each for each in program.tables if each.name == name), None)


def declared(change: Change) -> Iterator[tuple[Output, Table]]:
    """Every declared table a paired query reads or writes, with the query, on both sides."""
    for pair in change.pipelines:
        for output, program in ((pair.old, pair.old_program), (pair.new, pair.new_program)):
            names = {output.sink, *(source.table for source in sources(output))}
            yield from ((output, each) for each in program.tables if each.name in names)


def materialized(pair: PipelinePair) -> tuple[Materialized, Materialized]:
    """Whether a sink materializer stands in front of the sink, before and after."""
    return (
        _materialized(pair.old, pair.old_pipeline, pair.old_program),
        _materialized(pair.new, pair.new_pipeline, pair.new_program),
    )


def _materialized(output: Output, pipeline: Pipeline, program: Program) -> Materialized:
    """It does where updates reach an upsert sink whose primary key is not the key they come by."""
    if not output.sink:
        return Materialized.NO
    sink = table(program, output.sink)
    if sink is None:
        return Materialized.MAYBE
    mode = settings.effective(dict(pipeline.settings), "table.exec.sink.upsert-materialize", "flink")
    if not sink.primary_key or mode == "NONE":
        return Materialized.NO
    if mode == "FORCE":
        return Materialized.YES
    top, connector = output.region.origin, sink.option("connector")
    if connector in TAKES_EVERY_CHANGE:
        return Materialized.NO
    if isinstance(top, AggregateOperator) and top.windowed:
        return Materialized.MAYBE if emission.fires(pipeline) else Materialized.NO
    if not isinstance(top, AggregateOperator) or connector not in TAKES_UPSERTS or output.insert_columns:
        return Materialized.MAYBE
    held, keys = _held(output, sink), set(top.keys)
    if held == keys:
        return Materialized.NO
    return Materialized.MAYBE if held & keys else Materialized.YES


def _held(output: Output, sink: Table) -> set[Expression | None]:
    """What the columns of a sink's primary key hold: a grouping key as itself."""
    names = (column.name for column in sink.columns if column.name not in dict(sink.computed))
    columns = dict(zip(names, output.columns, strict=False))
    found = (columns.get(key) for key in sink.primary_key)
    return {
        each.output.key if isinstance(each, OperatorColumn) and isinstance(each.output, KeyOutput) else each
        for each in found
    }
