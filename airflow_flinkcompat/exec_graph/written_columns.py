"""Sink columns that two versions of a script define differently, by their compiled plans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from airflow_flinkcompat.connectors.facts import ColumnIdentity
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan
from airflow_flinkcompat.exec_graph.from_compiled import compiled_state
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.nodes.sink import sink_columns, sink_identifier
from airflow_flinkcompat.exec_graph.symbols import Symbol, Symbols

SinkPath = tuple[str, ...]
"""Catalog, database and name of a sink."""
_Insert = tuple[Symbol, tuple[tuple[str, Symbol], ...]]
"""The meaning of an INSERT: its rows, and each column of the sink."""


@dataclass(frozen=True)
class ChangedColumns:
    """The columns of a sink that a change names.

    Attributes:
        columns: The columns whose definitions differ; all columns if ``rows`` is True.
        rows: True if other rows are filtered, grouped, joined or ranked.
    """

    columns: frozenset[str] = frozenset()
    rows: bool = False


def changed_columns(
    old: Iterable[CompiledPlan],
    new: Iterable[CompiledPlan],
    identities: Mapping[str, ColumnIdentity] | None = None,
) -> dict[SinkPath, ChangedColumns]:
    """Compare the definitions of all sink columns.

    Args:
        old: The plans of the old script.
        new: The plans of the new script.
        identities: For each source, the rule that matches its columns between the two scripts.

    Returns:
        The changed columns of each sink that both scripts write.

    Raises:
        PlanError: An operator has an unknown form.
    """
    symbols = Symbols()
    before, after = (_inserts(plans, symbols, identities) for plans in (old, new))
    return {path: _compared(before[path], after[path]) for path in before if path in after}


def _inserts(
    plans: Iterable[CompiledPlan], symbols: Symbols, identities: Mapping[str, ColumnIdentity] | None
) -> dict[SinkPath, list[_Insert]]:
    found: dict[SinkPath, list[_Insert]] = {}
    for plan in plans:
        for _, operator in compiled_state(plan, symbols, {}, frozenset(), identities).operators:
            if operator.node.kind is ExecKind.SINK:
                path = tuple(sink_identifier(operator.node).strip("`").split("`.`"))
                (read,) = operator.inputs
                columns = tuple(zip(sink_columns(operator.node), read.symbols, strict=True))
                found.setdefault(path, []).append((read.rows, columns))
    return {path: sorted(inserts) for path, inserts in found.items()}


def _compared(old: Sequence[_Insert], new: Sequence[_Insert]) -> ChangedColumns:
    if old == new:
        return ChangedColumns()
    (rows, before), (other_rows, after) = old[0], new[0]
    if len(old) == len(new) == 1 and rows == other_rows:
        return ChangedColumns(frozenset(name for name, _ in {*before} ^ {*after}))
    return ChangedColumns(frozenset(name for _, columns in (*old, *new) for name, _ in columns), rows=True)
