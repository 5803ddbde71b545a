"""What a run would read, and what of it is not exact, is told before anything is read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource, Position
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.from_script import operator_layout
from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.symbols import Symbols
from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.history.queries import preview
from airflow_flinkcompat.history.sources import AssumedHistory
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import operators
from dev.measure.savepoint_fixtures import change, load_changes
from tests.unit.history.planned import spec_of

SCRIPT = """
CREATE TABLE orders (a STRING, b BIGINT, d DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = 'broker:9092', 'format' = 'json'
);
CREATE TABLE printed (a STRING, v DOUBLE) WITH ('connector' = 'print');
INSERT INTO printed SELECT {};
"""
PLACE = "orders is read from kafka://broker:9092/orders"
RANKED = "a, d FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY ts) AS n FROM orders) WHERE n = 1"


class Stopped(AssumedHistory):
    """A topic that a job had read."""

    def source(self, table: Table) -> BackfillSource:
        found = super().source(table)
        assert isinstance(found, KafkaSource)
        return replace(found, end=Position("read", offsets=((1, 800), (0, 1200), (2, -2))))


def told(query: str, locations: AssumedHistory, settings: dict[str, str] | None = None) -> list[str]:
    side = Side(SCRIPT.format(query), settings or {}, engine="flink")
    (operator,) = (each for output in side.outputs[0].values() for each in operators(output))
    layout = operator_layout(operator, Symbols(), time_to_live=bool(settings))
    assert isinstance(layout, StateLayout)
    spec = spec_of(side, operator, layout)
    return list(preview(side, [spec], locations, "as far as it goes"))


@pytest.mark.parametrize(
    ("query", "settings", "inexact"),
    [
        ("a, CAST(SUM(b) AS DOUBLE) FROM orders GROUP BY a", None, "all computed state is exact"),
        ("a, SUM(d) FROM orders GROUP BY a", None, "sums of FLOAT and DOUBLE are added in a different order"),
        (
            "a, CAST(SUM(b) AS DOUBLE) FROM orders GROUP BY a",
            {"table.exec.state.ttl": "1 h"},
            "the arrival time of a row is taken as the last write time of its value",
        ),
        (RANKED, None, "the run fails if a first row may have arrived too late"),
    ],
)
def test_what_is_not_exact(query: str, settings: dict[str, str] | None, inexact: str) -> None:
    place, operator = told(query, AssumedHistory(), settings)
    assert place == f"{PLACE}, as far as it goes"
    assert operator.partition(": ")[2].startswith(inexact)


def test_how_many_rows_positions_tell() -> None:
    place, _ = told("a, SUM(d) FROM orders GROUP BY a", Stopped())
    assert place == f"{PLACE}, at most 2,000 records, below the offsets 0:1200,1:800,2:0"


def test_a_check_says_why_a_state_is_not_computed() -> None:
    """Beside what becomes of the state without history."""
    title = "a metric is added to a tumbling window"
    (case,) = (each for each in load_changes() if each.title == title)
    old, new = (Side(each.script, engine="flink") for each in (case.old, case.new))
    found = change(title.replace(" ", "-"))
    for tables, why in (
        ({"orders": ""}, ""),
        ({}, "the history of table orders is not specified: pass --history orders"),
    ):
        (window,) = (
            each for each in KnownHistory(tables).applied(found, old, new).operators if each.new and each.new.layout
        )
        assert bool(window.from_history) is not bool(why)
        assert window.reason.endswith(f"not computed from history, because {why}" if why else "")


@pytest.mark.parametrize("which", ["old", "new"])
def test_a_source_that_looks_once_tells_not_what_it_has_found(which: str) -> None:
    title = "a metric is added to a tumbling window"
    (case,) = (each for each in load_changes() if each.title == title)
    every = ", 'source.monitor-interval' = '100 ms'"
    scripts = {"old": case.old.script, "new": case.new.script}
    assert every in scripts[which]
    scripts[which] = scripts[which].replace(every, "")
    old, new = (Side(script, engine="flink") for script in scripts.values())
    _, reasons = KnownHistory({"orders": ""}).extend(change(title.replace(" ", "-")), new, old)
    assert ["is bounded: set source.monitor-interval" in why for why in reasons.values()] == [True]
