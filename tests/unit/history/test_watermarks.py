"""Where watermarks come from, by the abilities of sources in plans; what they come to is run by test_on_kafka.py."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from airflow_flinkcompat.backfill.connectors.kafka import KafkaSource, Position
from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.backfill.protocols import BackfillSource, Locations
from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.history import watermarks
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.sources import RowsRead
from airflow_flinkcompat.history.table_rows import TableRows
from airflow_flinkcompat.history.watermarks import NEVER, Watermarking, least_watermark
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.plan.operators import operators
from airflow_flinkcompat.savepoint.store import read_metadata
from tests.support.savepoint.savepoints import FOLDER

ORDERS = Table(("", "", "orders"), (), ())


def plan(*abilities: list[dict[str, Any]]) -> CompiledPlan:
    """Of as many sources of one table."""
    table = {"identifier": "`default_catalog`.`default_database`.`orders`"}
    configs = [{"scanTableSource": {"table": table, "abilities": each}} for each in abilities]
    return CompiledPlan(
        "2.3", tuple(ExecNode(i, ExecKind.TABLE_SOURCE_SCAN, "", each, (), (), ()) for i, each in enumerate(configs))
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
        ([[pushed()], []], "the plan does not show how watermarks of table orders are generated"),
        ([], "the plan does not show how watermarks of table orders are generated"),
        ([[{"type": "SourceWatermark"}]], "the connector of table orders generates the watermarks itself"),
    ],
)
def test_what_more_than_rows_decides(sources: list[list[dict[str, Any]]], reason: str) -> None:
    with pytest.raises(NotComputable, match=reason):
        Watermarking.of(plan(*sources), ORDERS)


SCRIPT = """
CREATE TABLE many (a STRING, b BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ({});
INSERT INTO printed SELECT a, SUM(b) FROM many GROUP BY a;
CREATE TABLE printed (a STRING, b BIGINT) WITH ('connector' = 'print');
"""


def rows(options: str, locations: Locations) -> TableRows:
    side = Side(SCRIPT.format(options), engine="flink")
    (operator,) = operators(side.outputs[0][0])
    return TableRows(side.program.pipelines[0], operator.segments[0], locations)


@dataclass(frozen=True)
class Three(TableLocations):
    """Of a topic three partitions were read."""

    def source(self, table: Table) -> BackfillSource:
        found = super().source(table)
        assert isinstance(found, KafkaSource)
        return replace(found, end=Position("read", offsets=((0, 7), (1, 3), (2, 0))))


@pytest.mark.parametrize(("reached", "least"), [({0: 5, 1: 3, 2: 9}, 3), ({0: 5, 1: 3}, NEVER), ({}, NEVER)])
def test_the_partition_that_lies_furthest_behind(
    reached: dict[int, int], least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One without a row may hold any to come."""
    monkeypatch.setattr(watermarks, "_by_partition", lambda session, rows: reached)
    topic = "'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b:9', 'format' = 'json'"
    assert least_watermark(None, rows(topic, Three())) == least  # type: ignore[arg-type]


def test_readers_that_share_the_files_of_a_folder() -> None:
    path = str(FOLDER / "2.3" / "group-parallel")
    (operator,) = (each for each in read_metadata(path).operators if each.coordinator is not None)
    read = RowsRead(savepoint=path, readers={"many": operator})
    folder = "'connector' = 'filesystem', 'path' = 'file:///many', 'format' = 'csv', 'source.monitor-interval' = '1 s'"
    with pytest.raises(NotComputable, match="several subtasks read the files of file:///many"):
        least_watermark(None, rows(folder, read))  # type: ignore[arg-type]
