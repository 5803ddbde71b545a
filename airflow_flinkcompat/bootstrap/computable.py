"""Which state of a new job can be computed from history, told without Spark and without reading anything."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.backfill.connectors.locations import AssumedLocations
from airflow_flinkcompat.bootstrap.aggregations import NotComputable, accumulator_query
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.state.migration import Migration, with_history
from airflow_flinkcompat.state.model import StateSpec


def from_history(found: Migration, new: Side, history: Mapping[str, str]) -> tuple[Migration, Mapping[str, str]]:
    """What another job could keep, where the rows are known that the old one had read.

    Args:
        found: What it could keep without.
        new: The new script.
        history: The tables of which history is known, each with the place of its rows, "" for the table's own.

    Returns:
        What becomes of each state, and by the name of an operator why it cannot be computed.

    Raises:
        InputError: The script reads no table of such a name.
    """
    known = {table.path[2]: table.name for table in new.program.tables}
    if unknown := sorted(history.keys() - known.keys()):
        raise InputError(
            f"--history {unknown[0]}: the new script declares no table of that name; it declares "
            f"{', '.join(sorted(known)) or 'none'}"
        )
    reasons: dict[str, str] = {}

    def computable(spec: StateSpec) -> bool:
        try:
            query = accumulator_query(new, spec, AssumedLocations(places(history)))
        except NotComputable as error:
            reasons[spec.name] = str(error)
            return False
        if query.table.path[2] not in history:
            reasons[spec.name] = f"no history is named for table {query.table.name}: add --history {query.table.name}"
            return False
        return True

    return with_history(found, computable), reasons


def places(history: Mapping[str, str]) -> Mapping[str, str]:
    """The places of tables whose rows lie elsewhere.

    Args:
        history: By table, "" for the table's own place.

    Returns:
        Those that are named.
    """
    return {table: place for table, place in history.items() if place}
