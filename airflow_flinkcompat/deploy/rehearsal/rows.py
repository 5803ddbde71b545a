"""Comparison of the rows of state that two versions of Flink computed from the same savepoint.

The old line restores the deployed script, and the new line restores the same script. If both jobs read the same rows
until their own savepoints, all rows of their state must be equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from airflow_flinkcompat.model import install_command
from airflow_flinkcompat.model.text import size_text
from airflow_flinkcompat.plan.functions import ANEW_FOR_EACH_ROW
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.secrets import mask_secrets

if TYPE_CHECKING:
    from airflow_flinkcompat.state import OpenSavepoint, TableDifference

_MOST_BYTES = 1 << 30
_NOT_COMPARED = "the rows of the state were not compared: {}"


def compare_state_rows(script: str, old: str, new: str) -> tuple[str, str]:
    """Compare the state in two savepoints, read from their folders.

    Args:
        script: The script of both jobs.
        old: The savepoint of the old line (path or URI).
        new: The savepoint of the new line (path or URI).

    Returns:
        The first difference, or "" without one, and the evidence, which includes the reason if nothing was compared.
    """
    words = set(re.findall(r"\w+", script.upper()))
    if changing := sorted(words & ANEW_FOR_EACH_ROW):
        return "", _NOT_COMPARED.format(f"the script uses {', '.join(changing)}")
    try:
        from airflow_flinkcompat.state import SOURCES, compare, open_savepoint
    except ImportError:
        return "", _NOT_COMPARED.format(install_command("state"))
    try:
        savepoints = [_comparable(open_savepoint(each)) for each in (old, new)]
        if (size := max(each.size for each in savepoints)) > _MOST_BYTES:
            return "", _NOT_COMPARED.format(f"{size_text(size)} exceed the limit of {size_text(_MOST_BYTES)}")
        sources = [SOURCES.read(each).to_pylist() for each in savepoints]
        if not all(sources) or not all(row["connector"] for row in chain(*sources)):
            return "", _NOT_COMPARED.format("the positions of a source are unknown")
        *tables, positions = compare(savepoints[0], savepoints[1], shown=0)
    except SavepointUnreadable as error:
        return "", _NOT_COMPARED.format(error)
    if positions:
        return "", _NOT_COMPARED.format("new rows arrived, so both jobs read different rows")
    number = sum(not each.only_in for each in tables)
    basis = f"the rows of {number} state{'' if number == 1 else 's'}, after both lines read the same rows"
    return _first_difference(savepoints[0], tables), basis


def _comparable(savepoint: OpenSavepoint) -> OpenSavepoint:
    """The savepoint without names, which Flink 1.20 does not store, and without states of the clock."""
    by_clock = {
        each.operator_id
        for each in savepoint.tables
        if each.name.endswith("processing_timers") and any(batch.num_rows for batch in each.batches())
    }
    return replace(
        savepoint,
        operators=tuple(replace(each, name="") for each in savepoint.operators),
        tables=tuple(
            replace(each, name=f"{each.operator_id} {each.name.rpartition('__')[2]} {each.state}")
            for each in savepoint.tables
            if each.operator_id not in by_clock
        ),
    )


def _first_difference(old: OpenSavepoint, tables: Iterable[TableDifference]) -> str:
    """The number of rows of the first state that differ, without their values, which may be personal data."""
    for each in tables:
        counts = {"changed": each.changed, "only on the old line": each.removed, "only on the new line": each.added}
        if each.only_in or not any(counts.values()):
            continue  # the rehearsal lists operators of which only one version has state
        table = next(table for table in old.tables if table.name == each.table)
        differing = f" (columns: {', '.join(each.columns)})" if each.columns else ""
        found = ", ".join(f"{count:,} {words}" for words, count in counts.items() if count)
        return mask_secrets(
            f"from the same rows, both lines computed different rows of the state {table.state} of {table.operator}: "
            f"{found}{differing}. The difference is no fault if the order of rows or a function of yours decides the "
            "result; then omit rehearse for this move"
        )
    return ""
