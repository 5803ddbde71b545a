"""``plan_only``: what GitOps owns is planned by the DAG, and recorded once it was merged."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from airflow.sdk import DAG, Connection
from structlog.testing import capture_logs

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators import Deployment, FlinkSqlDeployOperator, FlinkStateMigrationOperator
from airflow_flinkcompat.airflow.operators.deployments import read_deployments
from airflow_flinkcompat.airflow.operators.gated import gated_redeploy
from airflow_flinkcompat.airflow.sensors import FlinkSqlChangeSensor
from airflow_flinkcompat.airflow.tasks.offers import offer_of
from airflow_flinkcompat.deploy.ledger.entries import PlannedEntry
from airflow_flinkcompat.deploy.targets.kubernetes.manifest import Manifest
from airflow_flinkcompat.testing.target_contract import CHANGED, MISFIT, SCRIPT, SETTINGS
from tests.support.airflow.operators.fakes import Run
from tests.support.deploy.targets.kubernetes_deployments import connected, operator
from tests.support.deploy.targets.kubernetes_stand_in import KubernetesStandIn


class Shop:
    """A DAG folder, its ledger, and a cluster whose resource ``orders`` belongs to Argo CD."""

    def __init__(self, folder: Path, stand_in: KubernetesStandIn) -> None:
        self.folder, self.stand_in = folder, stand_in
        self.plan = folder / "gitops" / "orders.yaml"
        self.made = 0

    def tasks(self, **more: Any) -> dict[str, Any]:
        """The tasks of a new DAG."""
        self.made += 1
        deployment = Deployment(
            name="orders",
            script="orders.sql",
            settings=SETTINGS,
            ledger=str(self.folder / "ledger"),
            check={"settle_seconds": 0, "policy": {"unknown": "resume", "incompatible": "restart"}},
            deploy={"settle_seconds": 0},
            **more,
        )
        with DAG(f"orders_{self.made}", template_searchpath=str(self.folder), max_active_runs=1) as dag:
            gated_redeploy(deployment)
        return {task.task_id: task for task in dag.tasks}

    def run(self, script: str, task: str, **more: Any) -> Any:
        """What the deploying task of a run returns, after its check."""
        (self.folder / "orders.sql").write_text(script, encoding="utf-8")
        tasks, run = self.tasks(**more), Run(f"run-{self.made}")
        skipped = run.execute(tasks["check"])
        assert task not in skipped, skipped
        return run.execute(tasks[task])

    def check(self, script: str) -> str:
        """The branch that a run of the planning DAG takes."""
        (self.folder / "orders.sql").write_text(script, encoding="utf-8")
        tasks, run = self.tasks(plan_only=True), Run(f"run-{self.made}")
        run.execute(tasks["check"])
        return str(run.pushed["check", "summary"]["branch"])

    def offer(self, script: str) -> Any:
        """What the sensor says of a script."""
        (self.folder / "orders.sql").write_text(script, encoding="utf-8")
        sensor = self.tasks(plan_only=True)["changed"]
        assert isinstance(sensor, FlinkSqlChangeSensor)
        return sensor._look(Run().render(sensor))  # type: ignore[arg-type]

    def plan_of(self, script: str) -> dict[str, Any]:
        """Plan a change."""
        found: dict[str, Any] = self.run(script, "resume", plan_only=True, plan_to=str(self.plan))
        return found

    def merge(self) -> None:
        """As a GitOps controller applies the file: what it does not name stays."""
        (document,) = yaml.safe_load_all(self.plan.read_text("utf-8"))
        kept = self.stand_in.objects["flinksessionjobs", "orders"]
        assert self.stand_in._patched("flinksessionjobs", kept, document, dry=False).status_code == 200

    @property
    def kinds(self) -> list[str]:
        ledger = FlinkHook("flink_default").ledger("orders", str(self.folder / "ledger"))
        return [entry.kind for entry in ledger.entries()]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with operator("1.10") as stand_in:
        extra = json.dumps({"target": "kubernetes", "session_cluster": "session"})
        connection = Connection(conn_id="flink_default", conn_type="flink", extra=extra)
        monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(lambda _: connection))
        # A kubeconfig is looked for once in a process; what the connection says beside it is read as always.
        monkeypatch.setattr(FlinkHook, "get_conn", lambda hook: connected(stand_in, Manifest.of(hook.access, "it")))
        found = Shop(tmp_path, stand_in)
        found.run(SCRIPT, "deploy_first")
        annotations = stand_in.objects["flinksessionjobs", "orders"]["metadata"]["annotations"]
        annotations["argocd.argoproj.io/tracking-id"] = "shop:flink.apache.org/orders"
        stand_in.calls.clear()
        yield found


def test_without_plan_only_it_is_refused_and_named(shop: Shop) -> None:
    with pytest.raises(AirflowFailException, match=r"belongs to Argo CD.*plan_only=True"):
        shop.run(CHANGED, "resume")
    assert shop.stand_in.calls == []


def test_a_plan_goes_to_the_file_the_log_and_xcom(shop: Shop) -> None:
    with capture_logs() as logs:
        result = shop.plan_of(CHANGED)
    assert shop.stand_in.calls == []
    assert shop.kinds[-1] == "planned"
    text = shop.plan.read_text("utf-8")
    said = [str(row["event"]) for row in logs]
    assert text == result["plan"]
    assert "INSERT INTO counts SELECT n, COUNT(*) + 1 FROM numbers GROUP BY n;" in text
    assert (result["deployment"], result["job_id"], result["start_mode"]) == ("orders", None, "savepoint")
    assert result["patch"]["spec"]["job"]["args"] == ["--script", CHANGED.rstrip()]
    assert json.dumps(result), "XCom keeps JSON"
    assert any("Nothing was changed" in each for each in said)
    # Values of a log record are apart from its text.
    assert any("upgradeMode: savepoint" in str(row) for row in logs)


def test_the_sensor_waits_for_the_merge_and_the_check_records_it(shop: Shop) -> None:
    """No person, and no second plan: the DAG run after the merge ends as one without a change."""
    assert shop.offer(CHANGED).offered
    result = shop.plan_of(CHANGED)
    waiting = shop.offer(CHANGED)
    assert not waiting.offered
    assert waiting.reason.startswith(f"this version of orders.sql is planned (entry {result['number']} at ")
    assert waiting.reason.endswith(": waiting until it is carried out")
    shop.merge()
    ready = shop.offer(CHANGED)
    assert ready.offered
    assert "which is RUNNING: the check can record it" in ready.reason
    assert shop.check(CHANGED) == "unchanged"
    assert [kind for kind in shop.kinds if kind != "checked"][-3:] == ["planned", "deployed", "unchanged"]
    assert not shop.offer(CHANGED).offered
    (job,) = (each for each in shop.stand_in.flink.jobs.values() if each.state == "RUNNING")
    assert job.restored == "file:/savepoints/savepoint-1"


def test_another_version_is_offered_beside_one_that_is_planned(shop: Shop) -> None:
    shop.plan_of(CHANGED)
    assert shop.offer(CHANGED.replace("+ 1", "+ 2")).offered


def test_a_merge_that_fails_ends_the_run_once(shop: Shop) -> None:
    shop.plan_of(CHANGED)
    shop.stand_in.flink.misfits.add("orders")
    shop.merge()
    assert shop.offer(CHANGED).offered
    with pytest.raises(AirflowFailException, match="Revert the merge"):
        shop.check(CHANGED)
    assert shop.kinds[-1] == "failed"
    offer = shop.offer(CHANGED)
    assert not offer.offered
    assert "is not offered again (failed at" in offer.reason


def test_a_plan_of_before_a_deployment_does_not_count(shop: Shop) -> None:
    shop.run(MISFIT, "restart", plan_only=True)
    shop.plan_of(CHANGED)
    shop.merge()
    shop.check(CHANGED)
    assert shop.offer(MISFIT).offered


def test_a_file_that_cannot_be_written(shop: Shop) -> None:
    """The next try plans the same."""
    (shop.folder / "taken").write_text("a file")
    with pytest.raises(AirflowException, match=r"the plan cannot be written to .*plan\.yaml.*Nothing was changed"):
        shop.run(CHANGED, "resume", plan_only=True, plan_to=str(shop.folder / "taken" / "plan.yaml"))
    shop.plan_of(CHANGED)
    assert shop.kinds.count("planned") == 1


def test_an_offer_of_what_was_planned_names_it(shop: Shop) -> None:
    shop.plan_of(CHANGED)
    ledger = FlinkHook("flink_default").ledger("orders", str(shop.folder / "ledger"))
    entries = ledger.entries()
    planned = entries[-1]
    assert isinstance(planned, PlannedEntry)
    assert offer_of(planned.job, entries).plan == planned
    assert offer_of(replace(planned.job, script=SCRIPT), entries).plan is None


def test_the_pages_dag_plans() -> None:
    page = Path(__file__).parents[4] / "docs" / "targets" / "kubernetes.md"
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    (code,) = (block for block in blocks if "plan_only" in block)
    names: dict[str, Any] = {}
    exec(code, names)
    planning = {task.task_id for task in names["dag"].tasks if getattr(task, "plan_only", False)}
    assert planning == {"deploy_first", "resume", "restart"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"plan_to": "x.yaml"}, "plan_to needs plan_only"),
        ({"plan_only": True, "backfill": {}}, "plan_only accepts no backfill"),
        ({"plan_only": True, "migrate": True}, "plan_only accepts no migrate"),
        ({"plan_only": True, "rehearse": True}, "plan_only accepts no rehearse"),
    ],
)
def test_what_does_not_go_with_a_plan(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Deployment(name="orders", script="orders.sql", **arguments)


def test_what_the_operator_does_not_take_beside(tmp_path: Path) -> None:
    given: dict[str, Any] = {"task_id": "t", "deployment": "orders", "script": "orders.sql"}
    with pytest.raises(ValueError, match="plan_only accepts no hand_over and no source_offsets"):
        FlinkSqlDeployOperator(plan_only=True, start_mode="stateless", source_offsets="latest", **given)
    with pytest.raises(ValueError, match="plan_to needs plan_only"):
        FlinkSqlDeployOperator(plan_to="x", **given)
    with pytest.raises(ValueError, match="plan_only cannot be set"):
        FlinkStateMigrationOperator(plan_only=True, **given)
    deployment = Deployment(name="orders", script="orders.sql", plan_only=True)
    with DAG("own", max_active_runs=1), pytest.raises(ValueError, match="deploy creates other tasks: omit one of them"):
        gated_redeploy(deployment, deploy=FlinkSqlDeployOperator)
    file = tmp_path / "deployments.toml"
    file.write_text('[deployments.orders]\nscript = "orders.sql"\nplan_only = true\nrehearse = true\n')
    (problem,) = read_deployments(file).problems
    words = "deployment 'orders': plan_only accepts no rehearse, because its tasks deploy nothing: omit one of them"
    assert problem.endswith(words)
