"""The DAG of the page in a real Airflow, deploying to the real operator: what a user edits, answers, and gets.

One deployment goes through all of it: each test begins where the one before has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.deploy.ledger.entries import HeadEntry, StoppedEntry
from airflow_flinkcompat.deploy.target import same_snapshot
from airflow_flinkcompat.deploy.targets.kubernetes.resource import REQUEST
from dev.local_kubernetes.resources import job_id
from dev.services.csv_job import wait_for
from tests.scenarios.local_kubernetes.gated import DEPLOYMENT, SECRET, KubernetesGate, gated_on_kubernetes

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.kubernetes, pytest.mark.timeout(3600)]

MINUTE_0, MINUTE_1 = 'ann,1,"2026-01-01 00:00:00"', 'ann,7,"2026-01-01 00:01:00"'
# Before anything else a task imports Airflow's provider of Kubernetes, 10 s of processor time each.
SECONDS = 1500.0


@pytest.fixture(scope="module")
def gate(
    kubernetes_binary: Path, flink_1_20: Path, runner_jar_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KubernetesGate]:
    with gated_on_kubernetes(tmp_path_factory.mktemp("gated"), flink_1_20, runner_jar_path) as gate:
        yield gate


def ended(gate: KubernetesGate, run: str) -> tuple[str, dict[str, Any]]:
    """How a run ended, and its tasks that were not skipped."""
    state = gate.client.wait_for_run(gate.dag_id, run, timeout=SECONDS)
    states = gate.client.task_states(gate.dag_id, run)
    return state, {task: each for task, each in states.items() if each != "skipped"}


def head_of(gate: KubernetesGate) -> HeadEntry:
    """What the ledger says is in force: it runs alone, by the JobManager's word from the state that it names."""
    head = gate.ledger.head()
    assert head is not None
    assert f"{DEPLOYMENT}/{gate.resource['metadata']['labels'][REQUEST]}" == head.job_id
    assert same_snapshot(gate.restored(), head.start.savepoint if head.start.start_mode != "stateless" else None)
    assert gate.running() == [job_id(gate.resource)]
    return head


def succeeded(*tasks: str) -> tuple[str, dict[str, Any]]:
    """As ``ended``: of a run that took this way."""
    return "success", dict.fromkeys(("changed", "check", *tasks), "success")


def test_the_first_version_makes_the_resource(gate: KubernetesGate) -> None:
    gate.files.arrive("1.csv", [("ann", 1, "00:10"), ("ann", 2, "01:10")])
    gate.propose(gate.version())
    gate.client.unpause(gate.dag_id)
    run = gate.run()
    assert ended(gate, run) == succeeded("deploy_first")
    assert "The target runs flink 1.20.3" in gate.log(run, "check")
    assert head_of(gate).start.start_mode == "stateless"
    wait_for(lambda: gate.files.rows() == [MINUTE_0], "minute 0 is written")


def test_a_compatible_change_goes_on_from_the_savepoint_of_the_stop(gate: KubernetesGate) -> None:
    before = head_of(gate)
    run = gate.run()
    gate.propose(gate.version(poll="300 ms"))
    assert ended(gate, run) == succeeded("resume")
    head = head_of(gate)
    assert (head.start.start_mode, head.review.outcome) == ("savepoint", "compatible")
    deployed = gate.client.xcom(gate.dag_id, run, "resume")
    assert (deployed["job_id"], deployed["savepoint"]) == (head.job_id, head.start.savepoint)
    page = f"{gate.jobmanager.endpoint.url}/#/job/running/{job_id(gate.resource)}/overview"
    assert deployed["job_url"] == gate.client.xcom(gate.dag_id, run, "resume", "_link_FlinkJobLink") == page
    log = gate.log(run, "resume")
    for words in (
        f"stopping job {before.job_id} with a savepoint",
        f"stopped; its state is in {head.start.savepoint}",
        f"restored from {head.start.savepoint}",
        f"deployed: job {head.job_id} is RUNNING, verified",
    ):
        assert words in log
    gate.files.arrive("2.csv", [("ann", 5, "01:20"), ("ann", 7, "02:10")])
    wait_for(lambda: gate.files.rows() == [MINUTE_0, MINUTE_1], "the window that the savepoint held open")


def test_an_incompatible_change_asks_and_starts_without_state_before_a_backfill(gate: KubernetesGate) -> None:
    run = gate.run()
    archive = gate.root / "archive"
    archive.mkdir()
    (archive / "old.csv").write_text("ann,40,2026-01-01 00:00:30\nann,2,2026-01-01 00:01:40\n", encoding="utf-8")
    gate.propose(gate.version(poll="300 ms", minutes=2))
    gate.client.wait_for_question(gate.dag_id, run, "approve", timeout=SECONDS)
    question = gate.client.question(gate.dag_id, run, "approve")
    assert question["options"] == ["Resume from savepoint", "Restart with backfill", "Reject"]
    assert "window-changed" in question["body"]
    for of_a_gateway in ("STOP JOB", "source_offsets"):
        assert of_a_gateway not in question["body"]
    gate.answer(run, "Restart with backfill")
    assert ended(gate, run) == succeeded("approve", "restart", "backfill")
    head = head_of(gate)
    assert (head.start.start_mode, head.review.approved_by) == ("stateless", "admin")
    history = [line for path in (gate.root / "history").glob("**/*.csv") for line in path.read_text().splitlines()]
    assert history == ['ann,42,"2026-01-01 00:00:00"']


def test_a_script_that_flink_refuses_is_rolled_back(gate: KubernetesGate) -> None:
    """It shows at its start alone, which is after the stop: the former script goes on from that savepoint."""
    before = head_of(gate)
    run = gate.run()
    gate.propose(gate.version(poll="300 ms", minutes=2, sink="nowhere"))
    gate.answer(run, "Resume from savepoint")
    state, tasks = ended(gate, run)
    assert (state, tasks["resume"]) == ("failed", "failed")
    log = gate.log(run, "resume")
    assert "Could not find any factory for identifier 'nowhere'" in log
    assert f"rolling back to entry {before.number}" in log
    head = head_of(gate)
    assert (head.kind, head.sha256) == ("rolled-back", before.sha256)
    stop = next(entry for entry in reversed(gate.ledger.entries()) if isinstance(entry, StoppedEntry))
    assert same_snapshot(head.start.savepoint, stop.stop.savepoint)


def test_what_a_person_rejects_touches_nothing(gate: KubernetesGate) -> None:
    before, generation = head_of(gate), gate.resource["metadata"]["generation"]
    run = gate.run()
    gate.wait(run, "changed", "deferred")
    assert "is not offered again" in gate.log(run, "changed")
    gate.propose(gate.version(poll="300 ms", minutes=2, default="none"))
    gate.answer(run, "Reject")
    assert ended(gate, run) == succeeded("approve")
    assert (head_of(gate), gate.resource["metadata"]["generation"]) == (before, generation)


def test_no_secret_is_kept(gate: KubernetesGate) -> None:
    """The token of the Kubernetes connection is in no log, entry or database; what a script has to hide is refused."""
    generation = gate.resource["metadata"]["generation"]
    run = gate.run()
    secretive = gate.version(poll="300 ms", minutes=2, default="${conn.lake.password}")
    gate.propose(secretive.replace("partition.default-name", "password"))
    gate.answer(run, "Resume from savepoint")
    assert ended(gate, run)[0] == "failed"
    assert "with {script_uri} in the manifest of a FlinkDeployment, which stores the script in a Secret" in gate.log(
        run, "resume"
    )
    assert gate.resource["metadata"]["generation"] == generation
    kept = gate.everything_kept()
    assert gate.kube.token not in kept
    assert SECRET not in kept
