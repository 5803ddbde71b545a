"""What is concluded from the sizes that a cluster shows, at one parallelism and at another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_flinkcompat.deploy import Ledger, Options, deploy
from airflow_flinkcompat.deploy.redeploy.verify import compare_state
from airflow_flinkcompat.deploy.target import SnapshotStats, VertexState
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from dev.services.csv_job import Files, Side

SOURCE, AGGREGATE = "Source: o[1] -> Calc[2]", "GroupAggregate[4] -> k[5]: Writer"


def taken(parallelism: int = 1, **vertices: tuple[str, int]) -> SnapshotStats:
    """Name and bytes by id."""
    return SnapshotStats("p", {key: VertexState(name, parallelism, size) for key, (name, size) in vertices.items()})


SAVED = taken(s=(SOURCE, 234), a=(AGGREGATE, 3000))


def test_sizes_stand_beside_each_other_at_one_parallelism() -> None:
    lines, wrong = compare_state(SAVED, taken(s=(SOURCE, 300), a=(AGGREGATE, 0)))
    assert wrong == "", "sizes prove nothing: windows close"
    assert lines == (
        "state: 300 bytes in the first checkpoint, 3,234 in the savepoint",
        f"  {SOURCE}: 300 bytes, 234 before",
        f"  {AGGREGATE}: 0 bytes, 3,000 before",
    )


def test_and_at_another() -> None:
    lines, wrong = compare_state(SAVED, taken(2, s=(SOURCE, 468), a=(AGGREGATE, 13016)))
    assert wrong == ""
    assert lines[1:] == (
        f"  {SOURCE}: 468 bytes in 2 subtasks, 234 in 1 subtask before",
        f"  {AGGREGATE}: 13,016 bytes in 2 subtasks, 3,000 in 1 subtask before",
    )


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_vertex_with_state_that_is_gone_is_dropped_state(parallelism: int) -> None:
    _, wrong = compare_state(SAVED, taken(parallelism, s=(SOURCE, 234), k=("k[5]: Writer", 10)))
    assert wrong == f"state was dropped: no operator of the new job restored the state of {AGGREGATE} (3,000 bytes)"


def test_a_vertex_without_state_may_go() -> None:
    assert compare_state(taken(s=(SOURCE, 1), k=("k", 0)), taken(2, s=(SOURCE, 1)))[1] == ""


def test_operators_of_lasting_ids_may_be_chained_otherwise_at_another_parallelism() -> None:
    """One vertex becomes two, or two one; what they held together is still held."""
    joined, apart = "Source: o[7] -> (Calc[8] -> k[9]: Writer, Calc[10])", ("Calc[3] -> k[4]: Writer", "Calc[5]")
    saved = taken(2, s=("Source: o[2]", 100), c=(apart[0], 40), d=(apart[1], 0))
    lines, wrong = compare_state(saved, taken(1, s=(joined, 140)))
    assert wrong == ""
    assert lines[-1] == (
        f"  chained differently at this parallelism: {joined} (140 bytes); before: {apart[0]} (40 bytes)"
    )
    # At the parallelism they had, their ids would be the same.
    assert "state was dropped" in compare_state(saved, taken(2, s=(joined, 140)))[1]
    # The operators are there and hold nothing.
    assert "state was dropped" in compare_state(saved, taken(1, s=(joined, 0)))[1]


def test_an_operator_of_the_same_name_that_was_kept_is_not_the_one_that_is_gone() -> None:
    saved = taken(a=("GroupAggregate[3]", 10), b=("GroupAggregate[5]", 20))
    assert "restored the state of GroupAggregate[5]" in compare_state(saved, taken(2, a=("GroupAggregate[3]", 30)))[1]


def test_what_is_not_shown_is_not_compared() -> None:
    for saved, first in ((None, SAVED), (SAVED, None), (SAVED, SnapshotStats("p")), (SnapshotStats("p"), SAVED)):
        assert compare_state(saved, first) == (
            ("state sizes: not compared, because the target does not show them",), "",
        )  # fmt: skip


@pytest.mark.nightly
@pytest.mark.slow
def test_a_job_at_another_parallelism_is_compared_vertex_by_vertex(local_flink: LocalFlink, tmp_path: Path) -> None:
    files = Files(tmp_path)
    files.arrive("1.csv", [(f"c{number % 50}", number, "00:10") for number in range(1000)])
    script = files.script("customer, SUM(amount)", "customer STRING, total BIGINT", "customer")
    script = script.replace("TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE))", "orders")
    script = script.replace(f"'filesystem', 'path' = '{files.sink.as_uri()}', 'format' = 'csv'", "'blackhole'")
    ledger, options, sha256 = Ledger(tmp_path / "ledger", "wider"), Options(settle_seconds=0.5), None
    with SqlGatewayTarget(local_flink.gateway_url, local_flink.jobmanager_url) as target:
        try:
            for parallelism in (1, 2, 1):
                side = Side(
                    script, {"parallelism.default": str(parallelism), "execution.checkpointing.interval": "1 s"}
                )
                entry = deploy(target, ledger, side, checked_old_sha256=sha256, options=options)
                told = "\n".join(entry.evidence)
                if sha256 is not None:
                    now, before = ("2 subtasks", "1 subtask") if parallelism == 2 else ("1 subtask", "2 subtasks")
                    for name in ("Source: orders", "GroupAggregate"):
                        line = rf"  {name}.*: [1-9][\d,]* bytes in {now}, [1-9][\d,]* in {before} before"
                        assert re.search(line, told), told
                sha256 = side.sha256
        finally:
            for job_id in target.running("wider"):
                target.cancel(job_id)
