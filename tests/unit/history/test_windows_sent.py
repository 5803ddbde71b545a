"""Windows that count as emitted, according to the operators of a savepoint or without one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import SimpleNamespace

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_script import operator_layout
from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.migration import Migration, OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.history import known_history
from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.history.table_rows import LONG_AGO
from airflow_flinkcompat.plan.operators import operators
from dev.measure.progress import epoch_millis
from tests.unit.history.planned import spec_of

SIDE = Side(
    """
CREATE TABLE orders (a STRING, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'
);
CREATE TABLE printed (a STRING, s BIGINT) WITH ('connector' = 'print');
INSERT INTO printed
SELECT a, SUM(b) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY a, window_start, window_end;
""",
    engine="flink",
)
NOON, LATER = (epoch_millis(f"2024-01-01 12:{minute}:00") - 1 for minute in ("00", "10"))


def computed(number: str) -> OperatorMigration:
    (operator,) = (each for output in SIDE.outputs[0].values() for each in operators(output))
    layout = operator_layout(operator, Symbols())
    assert isinstance(layout, StateLayout)
    spec = spec_of(SIDE, operator, layout, number)
    return OperatorMigration(RestoreEffect.COMPUTED, spec, spec, "", from_history=True)


@pytest.mark.parametrize(
    ("reached", "until", "said"),
    [
        ({"one": [NOON]}, "12:00", ["windows that end by 2024-01-01T12:00:00.000"]),
        ({"one": [NOON], "two": [NOON]}, "12:00", ["windows that end by 2024-01-01T12:00:00.000"]),
        ({"one": [LATER, NOON]}, "12:00", ["windows that end by 2024-01-01T12:00:00.000"]),
        (
            {"one": [NOON], "two": [LATER]},
            "12:00",
            [f"window-aggregate: windows that end by 2024-01-01T12:{minute}:00.000" for minute in ("00", "10")],
        ),
        (
            {"one": [LONG_AGO], "two": [LATER]},
            None,
            ["window-aggregate: windows that end by 2024-01-01T12:10:00.000"],
        ),
        ({"one": [LONG_AGO]}, None, []),
        ({}, None, []),
    ],
)
def test_each_operator_tells_how_far_it_had_sent(
    reached: Mapping[str, list[int]], until: str | None, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a backfill of all makes whole ends where the operator had come that is furthest behind."""
    held = SimpleNamespace(operators=[SimpleNamespace(id=number) for number in reached])
    monkeypatch.setattr(known_history, "read_metadata", lambda savepoint: held)
    monkeypatch.setattr(known_history, "watermarks", lambda operator, savepoint: reached[operator.id])
    known, migration = KnownHistory({"orders": ""}), Migration(tuple(map(computed, reached)))
    expected = None if until is None else datetime.fromisoformat(f"2024-01-01T{until}")
    assert known.sent_until(SIDE, "savepoint", migration) == expected
    told = [f"{each} are treated as emitted: run a backfill to complete them" for each in said]
    assert [*known.describe_emitted_windows(SIDE, "savepoint", migration)] == told
