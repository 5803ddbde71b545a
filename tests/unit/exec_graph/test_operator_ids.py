"""The ids of operators against those that a real Flink wrote down, in a savepoint and in its refusals."""

from pathlib import Path

import pytest

from airflow_flinkcompat.exec_graph.operator_ids import StreamGraph, StreamNode, murmur3_128
from airflow_flinkcompat.savepoint.metadata import parse_metadata

SAVEPOINT = Path(__file__).parents[2] / "fixtures" / "rehearsal" / "metadata-2.3.0"


def line(*kinds: str) -> StreamGraph:
    """One operator behind the other; ``!`` stands before one behind an exchange."""
    return StreamGraph(
        tuple(
            StreamNode(kind.removeprefix("!"), (place - 1,) if place else (), place > 0 and kind[0] != "!")
            for place, kind in enumerate(kinds)
        )
    )


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "00000000000000000000000000000000"),
        (b"hello", "029bbd41b3a7d8cb191dae486a901e5b"),
        (b"The quick brown fox jumps over the lazy dog", "6c1b07bc7bbc4be347939ac4a93c437a"),
    ],
)
def test_the_hash_is_murmur3_as_others_compute_it(data: bytes, digest: str) -> None:
    assert murmur3_128(data).hex() == digest


def test_every_operator_of_a_real_savepoint() -> None:
    """A windowed aggregation into files: the savepoint lists each operator by name and id."""
    graph = line("Source", "WatermarkAssigner", "Local", "!GlobalWindow", "Calc", "StreamingFileWriter", "end")
    stored = {operator.id: operator.name for operator in parse_metadata(SAVEPOINT.read_bytes()).operators}
    assert set(graph.ids) == set(stored)
    assert all(stored[number].startswith(node.kind) for node, number in zip(graph.nodes, graph.ids, strict=True))


@pytest.mark.parametrize(
    ("kinds", "place", "named"),
    [
        (("scan", "!aggregate"), 0, "bc764cd8ddf7a0cff126f51c16239658"),
        (("scan", "sink"), 0, "cbc357ccb763df2852fee8c4fc7d55f2"),
        # Named where the savepoint was refused: cumulate-calls-swapped, filters-removed-no-calc, over-frames-clock.
        (("scan", "watermark", "local", "!global", "sink"), 3, "c27dcf7b54ef6bfd6cff02ca8870b681"),
        (("scan", "watermark", "calc", "local", "!global", "sink"), 4, "f6dc7f4d2283f4605b127b9364e21148"),
        (("scan", "watermark", "!over", "calc", "sink"), 2, "90bea66de1c231edf33913ecd54406c1"),
    ],
)
def test_ids_that_a_real_flink_missed(kinds: tuple[str, ...], place: int, named: str) -> None:
    assert line(*kinds).ids[place] == named


def test_an_operator_waits_for_all_its_inputs() -> None:
    graph = StreamGraph(
        (StreamNode("left"), StreamNode("calc", (0,), True), StreamNode("right"), StreamNode("join", (2, 1)))
    )
    assert [graph.nodes[place].kind for place in graph.order] == ["left", "right", "calc", "join"]


def test_only_chained_readers_are_counted() -> None:
    one, two = (
        StreamGraph((StreamNode("scan"), StreamNode("sink", (0,), True), StreamNode("aggregate", (0,), chained)))
        for chained in (False, True)
    )
    assert one.ids[0] == line("scan", "sink").ids[0] != two.ids[0]
