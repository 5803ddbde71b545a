"""Engine ``flink``: a query with one aggregation over Kafka whose table is declared otherwise where nobody reads it.

Kafka's table hands on every declared column, and a Calc above it drops and reorders them. Where that Calc stands on
both sides, or on neither, every operator keeps its id, and what the aggregation keeps says nothing of unread columns
(``connectors.md``, rules 7 and 8).
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.compat.engines.flink.stateless import mapped_states
from airflow_flinkcompat.compat.rule import Verdict, inferred, measured
from airflow_flinkcompat.connectors.formats import by_place
from airflow_flinkcompat.exec_graph.diff import RestoreEffect
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import AggregateOperator, Output, sources
from airflow_flinkcompat.plan.program import Program

_MEASURED_SOURCE = "kafka"
_PARTS: Mapping[str, tuple[str, ...]] = {
    "columns": ("ks-group-unread-end", "ks-group-unread-middle", "ks-tumble-unread-end", "ks-tumble-rename-unread"),
    "types": ("ks-group-type-unread", "ks-tumble-type-unread", "ks-group-unread-end", "ks-tumble-unread-end"),
    "order": ("ks-group-column-order", "ks-tumble-column-order", "ks-tumble-all-read-column-order"),
    "computed": ("ks-group-computed-unread", "ks-group-proctime-unread", "ks-tumble-computed-unread"),
    "metadata": ("ks-group-meta-unread", "ks-tumble-meta-unread"),
    "watermark delay": ("kafka-source-tumble-watermark-delay", "kafka-source-tumble-watermark-delay-p2"),
}
"""Restores across which such a part of the source's declaration changed."""
_WITHOUT_WINDOWS: Mapping[str, tuple[str, ...]] = {
    "watermark": ("ks-group-wm-added", "ks-group-wm-removed", "ks-group-ts-to-metadata"),
    "watermark delay": ("ks-group-watermark-delay",),
}
"""The same where no window closes by the watermark."""
_REFUSED = ("ks-group-all-read-unread-end", "ks-tumble-every-read-unread-end", "ks-tumble-unread-removed")


def kept(pair: PipelinePair, part: str, used: Set[str]) -> Verdict | None:
    """What becomes of the aggregation's state where columns that it does not read are declared otherwise.

    Args:
        pair: The query; whether it computes something else is judged where it does.
        part: The part of the source's declaration that differs, a watermark's delay apart from any other.
        used: The columns of the source that a query of either side reads.

    Returns:
        None of any other query, of a part that was not measured, where a column that is read is declared otherwise, and
        where the operators cannot be told.
    """
    old, new = (_over_kafka(*side) for side in ((pair.old, pair.old_program), (pair.new, pair.new_program)))
    if old is None or new is None:
        return None
    windowed = old.windowed or new.windowed
    ids = (_PARTS if windowed else {**_PARTS, **_WITHOUT_WINDOWS}).get(part)
    times = {table.watermark.column for table in (old.table, new.table) if table.watermark} if windowed else set()
    read = used | times
    if ids is None or _declared_otherwise(old.table, new.table) & read:
        return None
    if moved := sorted(_at_another_place(old.table, new.table) & read):
        says = "rows say by their order alone which column a value is of"
        return inferred(Outcome.UNKNOWN, f"{says}: what is stored of {', '.join(moved)} may be of another column")
    mapped = mapped_states(pair)
    if isinstance(mapped, Unknown):
        return None
    effects = {each.effect for each in mapped.states}
    if RestoreEffect.REFUSED_AT_SUBMIT in effects:
        says = "a Calc above the source comes or goes, so that the aggregation gets another id"
        return measured(Outcome.INCOMPATIBLE, *_REFUSED, note=says, consequence=Consequence.REFUSED_AT_SUBMIT)
    if effects != {RestoreEffect.RIGHT}:
        return None
    return measured(Outcome.COMPATIBLE, *ids, note="every operator keeps its id, and the aggregation reads the same")


@dataclass(frozen=True)
class _Aggregated:
    table: Table
    windowed: bool


def _over_kafka(output: Output, program: Program) -> _Aggregated | None:
    """The one aggregation of a query over one Kafka topic."""
    top = output.segment.origin
    read = {source.table for source in sources(output)}
    tables = [table for table in program.tables if table.declared and table.name in read]
    if not isinstance(top, AggregateOperator) or len(read) != 1 or len(tables) != 1:
        return None
    return _Aggregated(tables[0], top.windowed) if tables[0].option("connector") == _MEASURED_SOURCE else None


def _declared_otherwise(old: Table, new: Table) -> set[str]:
    """The columns that only one side declares, or that both declare otherwise."""
    left, right = (
        {
            column.name: (column.type, dict(table.computed).get(column.name), metadata.get(column.name))
            for metadata in ({name: rest for name, *rest in table.metadata},)
            for column in table.columns
        }
        for table in (old, new)
    )
    return {name for name in left.keys() | right.keys() if left.get(name) != right.get(name)}


def _at_another_place(old: Table, new: Table) -> set[str]:
    """The columns whose values stand at another place in rows that say no names."""
    if not any(by_place(dict(table.options)) for table in (old, new)):
        return set()
    left, right = old.physical, new.physical
    return {name for name in {*left} & {*right} if left.index(name) != right.index(name)}
