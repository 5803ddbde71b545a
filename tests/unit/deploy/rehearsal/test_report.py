"""Savepoints' metadata, as Flink writes it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airflow_flinkcompat.deploy.rehearsal.report import StoredOperator, read_snapshot, require_restored
from airflow_flinkcompat.deploy.rehearsal.restoring import Checked, Inconclusive, RestoreRunner, Timeouts
from airflow_flinkcompat.deploy.rehearsal.waiting import Journal
from airflow_flinkcompat.deploy.target import JobRef
from airflow_flinkcompat.exec_graph.stand_ins import StandInIds
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.metadata import parse_metadata
from airflow_flinkcompat.savepoint.operator_parts import OperatorPart

FIXTURES = Path(__file__).parents[3] / "fixtures" / "rehearsal"


def test_savepoints_are_read() -> None:
    """Taken by Flink 2.3.0 of the windowed job of these tests."""
    found = parse_metadata((FIXTURES / "metadata-2.3.0").read_bytes()).operators
    assert {(each.name.partition("[")[0], each.has_state) for each in found} == {
        ("GlobalWindowAggregate", True),
        ("Source: orders", True),
        ("WatermarkAssigner", False),
        ("StreamingFileWriter", True),
        ("end: Writer", False),
        ("Calc", False),
        ("LocalWindowAggregate", False),
    }
    by_name = {each.name.partition("[")[0]: each.id for each in found}
    assert by_name["GlobalWindowAggregate"] == "c27dcf7b54ef6bfd6cff02ca8870b681", "the vertex's id in the REST API"


def test_a_name_or_else_the_state_shows_the_part_of_an_operator() -> None:
    query, sink, unknown = OperatorPart.QUERY, OperatorPart.SINK, OperatorPart.UNKNOWN
    parts = {
        ("GroupAggregate[3]", unknown): query,
        ("Source: orders[8]", query): query,
        ("StreamingFileWriter", sink): sink,
        ("totals: custom committer", unknown): sink,
        ("totals: custom index", query): query,
        ("", query): query,
        ("", sink): sink,
        ("", unknown): unknown,
    }
    assert {key: StoredOperator("a" * 32, key[0], True, key[1]).part for key in parts} == parts


@pytest.mark.parametrize(("known", "by_state"), [(True, OperatorPart.UNKNOWN), (False, OperatorPart.QUERY)])
def test_state_of_the_query_must_be_restored(known: bool, by_state: OperatorPart) -> None:
    """A plan shows which operators belong to the query, or else their names and state."""
    query, sink = StoredOperator("a" * 32, "", True, by_state), StoredOperator("b" * 32, "k[5]: Writer", True)
    side, target = SimpleNamespace(source="a.sql"), SimpleNamespace(left_aside=lambda job: frozenset(job.split()))
    checked = Checked(cast(Any, side), cast(Any, None), StandInIds({query.id: query.id} if known else {}, frozenset()))
    runner = RestoreRunner(cast(Any, target), Timeouts(), Journal())
    assert require_restored(runner, checked, JobRef(sink.id), (query, sink)) == {sink.id}
    with pytest.raises(Inconclusive, match=rf"a\.sql does not restore all state of the query \({query.id}\)\. Look$"):
        require_restored(runner, checked, JobRef(f"{query.id} {sink.id}"), (query, sink), ". Look")


def test_unreadable_savepoints_say_why(tmp_path: Path) -> None:
    whole = (FIXTURES / "metadata-2.3.0").read_bytes()
    # After the operators come properties that are not read: an object of Java's.
    for length in range(whole.rindex(b"\xac\xed\x00\x05") - 1, 0, -97):
        with pytest.raises(SavepointUnreadable):
            parse_metadata(whole[:length])
    with pytest.raises(SavepointUnreadable, match="_metadata was not written by Flink"):
        parse_metadata(b"\x00" * 100)
    with pytest.raises(SavepointUnreadable, match="_metadata has version 99"):
        parse_metadata(whole[:4] + (99).to_bytes(4, "big") + whole[8:])
    with pytest.raises(SavepointUnreadable, match=r"cannot be read from here \(FileNotFoundError\)"):
        read_snapshot(f"file:{tmp_path}/savepoint-1")
    with pytest.raises(SavepointUnreadable, match="cannot be read from here"):
        read_snapshot("nowhere://bucket/savepoint-1")
    (tmp_path / "_metadata").write_bytes(whole)
    assert len(read_snapshot(f"file:{tmp_path}")) == 7, "as Flink writes file:///"
