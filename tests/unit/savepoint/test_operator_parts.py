"""Operators of the query and of sinks, by names and state that Flink wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.savepoint.metadata import parse_metadata
from airflow_flinkcompat.savepoint.operator_parts import OperatorPart, part_by_name, part_by_state

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rehearsal"


@pytest.mark.parametrize(
    ("part", "names"),
    [
        (
            OperatorPart.QUERY,
            (
                "Source: orders[8]",
                "Source: TableSourceScan(table=[[c, d, orders]], fields=[a])",
                "GroupAggregate[3]",
                "GroupAggregate(groupBy=[b], select=[b, COUNT(*) AS n])",
                "Calc(select=[a, 'two\nlines' AS b])",
                "SinkMaterializer[7]",
                "SinkMaterializer(pk=[b])",
            ),
        ),
        (
            OperatorPart.SINK,
            (
                "totals[9]: Writer",
                "Sink(table=[c.d.totals], fields=[b, n]): Writer",
                "totals[9]: Committer",
                "Sink: totals[9]",
                "Sink: Sink(table=[c.d.totals], fields=[b, n])",
                "end: Writer",
                "StreamingFileWriter",
                "PartitionCommitter",
                "streaming-writer",
                "compact-coordinator",
            ),
        ),
        (OperatorPart.UNKNOWN, ("",)),
    ],
)
def test_parts_by_name(part: OperatorPart, names: tuple[str, ...]) -> None:
    assert {name: part_by_name(name) for name in names} == dict.fromkeys(names, part)


def test_parts_by_state() -> None:
    found = parse_metadata((FIXTURES / "metadata-2.3.0").read_bytes()).operators
    assert {each.name.partition("[")[0]: part_by_state(each) for each in found if each.has_state} == {
        "GlobalWindowAggregate": OperatorPart.QUERY,
        "Source: orders": OperatorPart.QUERY,
        "StreamingFileWriter": OperatorPart.SINK,
    }
    assert {part_by_state(each) for each in found if not each.has_state} == {OperatorPart.UNKNOWN}
