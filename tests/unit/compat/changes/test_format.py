"""Clauses as reports quote them."""

from __future__ import annotations

from airflow_flinkcompat import Side, check
from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.plan.origins import SourceColumn
from airflow_flinkcompat.plan.types import STRING


def test_a_set_is_quoted_in_one_order_in_every_process() -> None:
    """The order of a set differs from process to process, and with it the text of a report."""
    columns = [SourceColumn(0, name, type=STRING) for name in ("d", "a", "c", "b", "f", "e")]
    assert format_expressions(columns) == "d, a, c, b, f, e"
    assert format_expressions(frozenset(columns)) == "a, b, c, d, e, f"


def test_the_input_of_a_union_is_quoted_as_a_reader_knows_it() -> None:
    names = ("orders", "returns", "exchanges")
    tables = "".join(f"CREATE TABLE {name} (item STRING, n INT) WITH ('connector' = 'datagen');\n" for name in names)
    two = "SELECT item, n FROM orders UNION ALL SELECT item, n FROM returns"
    scripts = [
        f"{tables}SELECT item, COUNT(*), SUM(n) FROM ({inputs}) GROUP BY item;"
        for inputs in (two, f"{two} UNION ALL SELECT item, n FROM exchanges WHERE n > 3")
    ]
    report = check(*(Side(script, engine="flink") for script in scripts))
    quoted = {part: (before, after) for operator in report.operators for part, before, after in operator.parts}
    assert quoted["further inputs"] == ("none", "exchanges WHERE (n > 3), item, n")
