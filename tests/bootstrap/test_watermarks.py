"""Where watermarks come from, by the abilities of sources in plans; what they come to is run by test_on_kafka.py."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_flinkcompat.bootstrap.state_rows import NotComputable
from airflow_flinkcompat.bootstrap.watermarks import Watermarking
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.state.compiled.nodes import CompiledPlan, Node

ORDERS = Table(("", "", "orders"), (), ())


def plan(*abilities: list[dict[str, Any]]) -> CompiledPlan:
    """Of as many sources of one table."""
    table = {"identifier": "`default_catalog`.`default_database`.`orders`"}
    configs = [{"scanTableSource": {"table": table, "abilities": each}} for each in abilities]
    return CompiledPlan(
        "2.3", tuple(Node(i, "table-source-scan", "", each, (), (), ()) for i, each in enumerate(configs))
    )


def pushed(idle: int = -1, of_table: int = -1) -> dict[str, Any]:
    """As Flink 2.3 writes it of a Kafka table."""
    return {
        "type": "WatermarkPushDown",
        "idleTimeoutMillis": idle,
        "watermarkParams": {"emitStrategy": "ON_PERIODIC", "alignGroupName": None, "sourceIdleTimeout": of_table},
    }


@pytest.mark.parametrize(
    ("abilities", "found"),
    [
        ([], Watermarking(by_split=False)),
        ([{"type": "ProjectPushDown"}], Watermarking(by_split=False)),
        ([pushed()], Watermarking(by_split=True)),
        ([pushed(idle=5000)], Watermarking(by_split=True, idle=True)),
        ([pushed(of_table=5000)], Watermarking(by_split=True, idle=True)),
        ([{"type": "WatermarkPushDown"}], Watermarking(by_split=True)),
    ],
)
def test_abilities_tell(abilities: list[dict[str, Any]], found: Watermarking) -> None:
    assert Watermarking.of(plan(abilities), ORDERS) == found
    assert Watermarking.of(plan(abilities, abilities), ORDERS) == found


@pytest.mark.parametrize(
    ("sources", "reason"),
    [
        ([[pushed()], []], "where the watermarks of table orders come from its plan does not tell"),
        ([], "where the watermarks of table orders come from its plan does not tell"),
        ([[{"type": "SourceWatermark"}]], "the watermarks of table orders are those of its connector"),
    ],
)
def test_what_more_than_rows_decides(sources: list[list[dict[str, Any]]], reason: str) -> None:
    with pytest.raises(NotComputable, match=reason):
        Watermarking.of(plan(*sources), ORDERS)
