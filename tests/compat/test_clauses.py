"""Clauses as reports quote them."""

from __future__ import annotations

from airflow_flinkcompat.compat.changes.clauses import values
from airflow_flinkcompat.plan.origins import SourceColumn
from airflow_flinkcompat.plan.types import STRING


def test_a_set_is_quoted_in_one_order_in_every_process() -> None:
    """The order of a set differs from process to process, and with it the text of a report."""
    columns = [SourceColumn(0, name, type=STRING) for name in ("d", "a", "c", "b", "f", "e")]
    assert values(columns) == "d, a, c, b, f, e"
    assert values(frozenset(columns)) == "a, b, c, d, e, f"
