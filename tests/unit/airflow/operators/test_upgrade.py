"""An upgrade in waves: the DAG, the decisions of its audit, and the health that the next wave waits for."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException, TaskDeferred
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import Connection

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators import DeploymentsError, upgrade, upgrade_dag
from airflow_flinkcompat.airflow.triggers import health
from airflow_flinkcompat.compat import Report, Side, check
from airflow_flinkcompat.compat.gate import ChangeIdentity, finding_digest, is_waivable
from airflow_flinkcompat.compat.report import RestoredOperator
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, JobStart, JobVersion, RejectedEntry
from airflow_flinkcompat.deploy.target import JobHistory, JobStatus, Snapshot, SnapshotStats, VertexState
from airflow_flinkcompat.deploy.two_lines import TwoLines
from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from airflow_flinkcompat.fleet.audit import judging
from airflow_flinkcompat.fleet.audit.values import AuditResult, AuditRow, Cause
from airflow_flinkcompat.model import Waiver
from airflow_flinkcompat.project.waivers import with_waiver
from tests.support.airflow.operators.fakes import Run, script
from tests.support.airflow.operators.versions import DagSerialization
from tests.support.deploy.fake_cluster import FakeCluster

FILE = """\
ledger = "ledger"

[upgrade]
from = "1.20"
to = "2.3"
flink_conn_id = "flink_23"
wave = ["canary", "*"]
hold = "1 min"
lag = { pendingRecords = 100 }

[defaults]
flink_conn_id = "flink_120"
check = { engine = "flink", engine_version = "1.20", planner = "never" }

[deployments.orders]
script = "orders.sql"

[deployments."shop.clicks"]
script = "clicks.sql"
tags = ["canary"]

[deployments.views]
script = "views.sql"
rehearse = true
"""
STATELESS = """\
CREATE TABLE orders (shop STRING, price DOUBLE)
  WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'csv');
CREATE TABLE prices (price DOUBLE) WITH ('connector' = 'print');
INSERT INTO prices SELECT price FROM orders;
"""
NAMES = {"orders": "orders.sql", "shop.clicks": "clicks.sql", "views": "views.sql"}


class Metered(FakeCluster):
    """A cluster whose jobs report a metric."""

    pending: float | None = None

    def highest_metric(self, _job: str, name: str) -> float | None:
        assert name == "pendingRecords"
        return self.pending


@dataclass
class Fleet:
    folder: Path
    former: FakeCluster = field(default_factory=lambda: FakeCluster("1.20.3"))
    new: Metered = field(default_factory=lambda: Metered("2.3.0"))
    run: Run = field(default_factory=lambda: Run("run-1"))
    both: Any = None
    skipped: list[str] = field(default_factory=list)

    def dag(self, **changes: str) -> Any:
        text = FILE
        for old, new in changes.items():
            text = text.replace(old, new)
        (self.folder / "flinkcompat.toml").write_text(text, encoding="utf-8")
        return upgrade_dag(self.folder / "flinkcompat.toml")

    def deployed(self, name: str, version: str = "1.20.3", text: str = STATELESS) -> None:
        cluster = self.new if version.startswith("2.3") else self.former
        job = cluster.run(f"{name}-{version}", name)
        side = Side(text, engine="flink", engine_version=version)
        Ledger(self.folder / "ledger", name).append(DeployedEntry(job=side, start=JobStart(job_id=job)))

    def audit(self, wave: str = '["canary", "*"]', **conf: Any) -> dict[str, tuple[str, str]]:
        self.run.conf = conf
        self.skipped = self.run.execute(self.dag(**{'["canary", "*"]': wave}).get_task("audit"))
        found = self.run.pushed["audit", "return_value"]
        return {name: (row["decision"], row["reason"]) for name, row in found.items()}


def judged(old: Side, new: Side, *_: Any) -> Report:
    """The report of planners that plan the same job for an unchanged script on every version."""
    return check(*(replace(side, engine_version="2.3") for side in (old, new)))


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    fleet = Fleet(tmp_path)
    extras = {"flink_23": {"former_conn_id": "flink_120"}, "flink_120": {"ledger": str(tmp_path / "ledger")}}
    made = {
        name: Connection(conn_id=name, conn_type="flink", extra=json.dumps(extra)) for name, extra in extras.items()
    }
    monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(made.__getitem__))
    fleet.both = TwoLines(fleet.former, fleet.new)
    fleet.both.highest_metric = fleet.new.highest_metric
    monkeypatch.setattr(FlinkHook, "get_conn", lambda self: fleet.both if self.has_former else fleet.former)
    monkeypatch.setattr(judging, "judge", judged)
    for name in NAMES.values():
        (tmp_path / name).write_text(STATELESS, encoding="utf-8")
    return fleet


def test_jobs_follow_each_other_after_the_audit(fleet: Fleet) -> None:
    dag = fleet.dag()
    tasks = [task for task in dag.tasks if task.task_id.endswith(("turn", "check")) or "." not in task.task_id]
    above = {task.task_id: sorted(task.upstream_task_ids) for task in tasks}
    ends = ["deploy_first", "restart", "resume"]
    assert above == {
        "back": [],
        "healthy": [],
        "audit": ["healthy"],
        "jobs.orders.turn": ["audit"],
        "jobs.orders.check": ["audit", "jobs.orders.turn"],
        "jobs.shop__clicks.turn": [f"jobs.orders.{each}" for each in (*ends, "turn")],
        "jobs.shop__clicks.check": ["audit", "jobs.shop__clicks.turn"],
        "jobs.views.turn": [f"jobs.shop__clicks.{each}" for each in (*ends, "turn")],
        "jobs.views.check": ["audit", "jobs.views.turn"],
        "next_wave": [f"jobs.views.{each}" for each in (*ends, "turn")],
    }
    check, rehearse = dag.get_task("jobs.shop__clicks.check"), dag.get_task("jobs.views.rehearse")
    assert (check.flink_conn_id, check.engine_version, rehearse.flink_conn_id) == ("flink_23", "2.3", "flink_23")
    assert [each.name for each in dag.get_task("healthy").deployments] == ["orders", "shop.clicks", "views"]
    following = [task for task in tasks if task.upstream_task_ids]
    assert {task.trigger_rule for task in following} == {"none_failed"}
    assert DagSerialization.serialize_dag(dag)["max_active_runs"] == 1


def test_a_mistake_is_an_import_error_with_its_place(fleet: Fleet) -> None:
    with pytest.raises(DeploymentsError, match=r"flinkcompat.toml:8:1: upgrade.hold: '1 minute' is not a duration"):
        fleet.dag(**{"1 min": "1 minute"})


def test_deployments_without_tasks_are_listed_by_the_audit(fleet: Fleet) -> None:
    dag = fleet.dag(**{'script = "orders.sql"': 'skript = "orders.sql"', 'script = "views.sql"': 'script = "views.py"'})
    assert dag.get_task("audit").left == {
        "orders": "its table in the project file is unusable",
        "views": "views.py is a program, and targets run only SQL scripts",
    }
    dag = fleet.dag(script="skript")
    fleet.run.execute(dag.get_task("audit"))
    decisions = fleet.run.pushed["audit", "return_value"]
    assert [each["decision"] for each in decisions.values()] == ["held"] * 3
    with pytest.raises(AirflowSkipException, match="no job has moved"):
        fleet.run.execute(dag.get_task("next_wave"))


def test_the_audit_lets_compatible_jobs_of_one_wave_move(fleet: Fleet) -> None:
    fleet.deployed("orders", text=script())
    (fleet.folder / "orders.sql").write_text(script(size=5), encoding="utf-8")
    fleet.deployed("shop.clicks")
    fleet.deployed("views")
    found = fleet.audit()
    assert {name: row[0] for name, row in found.items()} == {"orders": "held", "shop.clicks": "moves", "views": "waits"}
    assert found["orders"][1].startswith("incompatible: ")
    assert fleet.skipped == ["jobs.orders.check", "jobs.views.check"]
    assert fleet.audit(move=["orders"])["orders"][1].startswith("incompatible, but moves at the request of this run")

    fleet.deployed("shop.clicks", "2.3.0")
    found = fleet.audit()
    assert {name: row[0] for name, row in found.items()} == {"orders": "held", "shop.clicks": "moved", "views": "moves"}
    assert found["shop.clicks"][1] == "Flink 2.3 already runs job shop.clicks-2.3.0"
    assert fleet.skipped == ["jobs.orders.check", "jobs.shop__clicks.check"]

    fleet.deployed("views", "2.3.0")
    fleet.audit()
    assert fleet.skipped == ["jobs.orders.check", "jobs.shop__clicks.check", "jobs.views.check"]


def test_a_run_triggers_the_next_run_if_a_job_has_moved(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    triggered = []
    monkeypatch.setattr(TriggerDagRunOperator, "execute", lambda self, context: triggered.append(self))
    fleet.deployed("shop.clicks")
    fleet.audit(move=["orders", "shop.clicks"])
    with pytest.raises(AirflowSkipException, match="no job has moved: trigger a new run to continue with later waves"):
        fleet.run.execute(fleet.dag().get_task("next_wave"))
    fleet.deployed("shop.clicks", "2.3.0")
    fleet.run.execute(fleet.dag().get_task("next_wave"))
    (task,) = triggered
    assert (task.trigger_dag_id, task.trigger_run_id) == ("flink_upgrade", "run-1__next")
    assert (task.conf, task.skip_when_already_exists) == ({"move": ["orders"]}, True)


def test_a_rejected_job_is_not_asked_again(fleet: Fleet) -> None:
    fleet.deployed("orders")
    ledger = Ledger(fleet.folder / "ledger", "orders")
    version = JobVersion("flink", "2.3", "1" * 64)
    ledger.append(RejectedEntry(version=version, message="ann: after the sale."))
    decision, reason = fleet.audit()["orders"]
    assert (decision, reason.partition(" at ")[0]) == ("held", "rejected")
    assert reason.endswith(': ann: after the sale. To ask again, trigger a run with the conf {"move": ["orders"]}')
    assert fleet.audit(move=["orders"])["orders"][0] == "moves"
    fleet.deployed("orders")
    assert fleet.audit()["orders"][0] == "moves"


@pytest.mark.parametrize(
    ("wave", "moves"),
    [
        ('[{ size = "1 KB" }, "*"]', ["orders", "views"]),
        ('[{ risk = "none" }, "*"]', ["shop.clicks", "views"]),
        ('[{ risk = "low" }, "*"]', ["orders", "shop.clicks", "views"]),
        ('[{ tag = "canary", size = "1 KB" }, { size = "2 KB", risk = "none" }]', ["shop.clicks", "views"]),
    ],
)
def test_waves_contain_jobs_by_size_and_risk(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, wave: str, moves: list[str]
) -> None:
    for name in NAMES:
        fleet.deployed(name)
    (fleet.folder / "orders.sql").write_text(STATELESS.replace("SELECT price", "SELECT price + 1"), encoding="utf-8")
    sizes = {"orders-1.20.3": 1000, "shop.clicks-1.20.3": 1001, "views-1.20.3": 0}
    stats = {job: SnapshotStats(Snapshot("file:/c"), {"": VertexState("", 1, size)}) for job, size in sizes.items()}
    monkeypatch.setattr(fleet.both, "snapshot_stats", lambda job, kind: stats[job] if kind == "completed" else None)
    found = fleet.audit(wave)
    assert [name for name, row in found.items() if row[0] == "moves"] == moves


def test_a_job_without_a_wave_is_held_back(fleet: Fleet) -> None:
    fleet.deployed("orders")
    found = fleet.audit('["canary"]')["orders"]
    assert found == ("held", "no wave contains it: add one of its tags or '*' to wave")


def test_the_audit_honours_waivers_like_the_check_of_the_job(fleet: Fleet) -> None:
    fleet.deployed("orders", text=script())
    changed = script().replace("SUM(price)", "SUM(price), COUNT(*)").replace("total DOUBLE", "total DOUBLE, n BIGINT")
    (fleet.folder / "orders.sql").write_text(changed, encoding="utf-8")
    old, new = Side(script(), engine="flink", engine_version="1.20.3"), Side(changed.rstrip(), engine_version="2.3")
    report = check(old, replace(new, engine="flink"))
    assert fleet.audit()["orders"][0] == "held"
    change = ChangeIdentity.of(old, new)
    text = ""
    for each in report.findings:
        if is_waivable(each):
            about = (each.rule, each.subject, "flink", str(each.outcome), each.message, "agreed", "ann")
            digests = change.deployed, finding_digest(each, "flink", change)
            text = with_waiver(text, Waiver(*about, date(2999, 1, 1), *digests, "orders", True), "orders.sql")
    (fleet.folder / "orders.sql.waivers.toml").write_text(text, encoding="utf-8")
    decision, reason = fleet.audit('[{ risk = "low" }, "*"]')["orders"]
    assert (decision, reason.partition(":")[0]) == ("moves", f"{report.outcome}, but all findings are waived")


@pytest.mark.parametrize(
    ("migrate", "kept", "connector", "decision"),
    [
        ("migrate = true", "whole", "right", "moves"),
        ("migrate = true", "whole", "unknown", "held"),
        ("migrate = true", "partial", "right", "held"),
        ("", "whole", "right", "held"),
    ],
)
def test_a_job_moves_if_a_migration_keeps_all_of_its_state(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, migrate: str, kept: str, connector: str, decision: str
) -> None:
    fleet.deployed("orders")
    cause = Cause("plan-differs", "the stored state of GroupAggregate has a different layout")
    operators = (RestoredOperator("orders (read, of-our-own)", connector),)
    row = AuditRow("orders", AuditResult.INCOMPATIBLE, (cause,), operators=operators, kept=MigrationExtent(kept))
    monkeypatch.setattr(upgrade.FlinkUpgradeAuditOperator, "_judged", lambda *_: (row, False))
    dag = fleet.dag(**{'script = "orders.sql"': f'script = "orders.sql"\n{migrate}'})
    fleet.run.execute(dag.get_task("audit"))
    found = fleet.run.pushed["audit", "return_value"]["orders"]
    begin = "incompatible, but moves with migrated state: " if decision == "moves" else "incompatible: "
    assert (found["decision"], found["reason"]) == (decision, f"{begin}{cause.message}")


def test_other_lines_and_unreadable_scripts_are_held_back(fleet: Fleet) -> None:
    fleet.deployed("orders", "1.19.1")
    fleet.deployed("views")
    (fleet.folder / "views.sql").unlink()
    assert fleet.audit() == {
        "orders": ("held", "runs flink 1.19.1, not Flink 1.20"),
        "shop.clicks": ("held", "was never deployed: deploy it on the new line with its own DAG"),
        "views": ("held", "unreadable: views.sql: there is no such file"),
    }


def test_a_connection_of_another_line_is_refused(fleet: Fleet) -> None:
    fleet.new.version = "2.2.0"
    with pytest.raises(AirflowFailException, match=r"'flink_23' runs flink 2.2.0, but .* correct flink_conn_id or to"):
        fleet.audit()


def test_a_run_can_move_jobs_back_and_nothing_else(fleet: Fleet) -> None:
    fleet.deployed("orders")
    fleet.former.end("orders-1.20.3", "FINISHED")
    job = fleet.new.run("moved", "orders", "file:/sp/1")
    side = Side(STATELESS, engine="flink", engine_version="2.3.0")
    ledger = Ledger(fleet.folder / "ledger", "orders")
    ledger.append(DeployedEntry(job=side, start=JobStart("savepoint", "file:/sp/1", job_id=job)))  # type: ignore[arg-type]
    assert fleet.audit(back=["orders"])["orders"] == ("held", "this run only moves jobs back")
    dag = fleet.dag()
    assert fleet.run.execute(dag.get_task("back")) == ["orders"]
    head = ledger.head()
    assert head is not None
    assert (head.kind, head.job.engine_version, head.start.savepoint) == ("rolled-back", "1.20.3", "file:/sp/1")
    assert (fleet.former.now[str(head.job_id)], fleet.new.now) == ("RUNNING", {"moved": "CANCELED"})
    with pytest.raises(AirflowSkipException, match="only moves jobs back"):
        fleet.run.execute(dag.get_task("healthy"))
    fleet.run.conf = {"back": ["order"]}
    with pytest.raises(AirflowFailException, match=r"back: 'order' is not one of orders, shop\.clicks, views"):
        fleet.run.execute(dag.get_task("back"))
    fleet.run.conf = {}
    with pytest.raises(AirflowSkipException, match="this run moves no job back"):
        fleet.run.execute(dag.get_task("back"))


def healthy(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, after: float) -> bool:
    """True if the fleet is healthy so many seconds from now."""
    clock = SimpleNamespace(time=lambda: time.time() + after)
    monkeypatch.setattr(upgrade, "time", clock)
    monkeypatch.setattr(health, "time", clock)
    try:
        fleet.run.execute(fleet.dag().get_task("healthy"))
    except TaskDeferred as deferred:
        place, arguments = deferred.trigger.serialize()
        assert (place, arguments["hold"], arguments["poll_interval"]) == (
            f"{health.__name__}.FlinkHealthTrigger",
            60,
            3,
        )
        assert not health.FlinkHealthTrigger(**json.loads(json.dumps(arguments)))._is_decided()
        return False
    return True


def test_a_wave_ends_when_its_jobs_were_healthy_for_a_while(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    assert healthy(fleet, monkeypatch, 0), "no job has moved"
    fleet.deployed("shop.clicks", "2.3")
    fleet.deployed("orders", "2.3.0")
    assert not healthy(fleet, monkeypatch, 50)
    assert healthy(fleet, monkeypatch, 65)
    # A failure in the time that a job has for that begins the time anew.
    fleet.new.job_histories["orders-2.3.0"] = JobHistory(failures=(time.time() + 10,))
    assert not healthy(fleet, monkeypatch, 65)
    assert healthy(fleet, monkeypatch, 75)
    fleet.new.pending = 101
    assert not healthy(fleet, monkeypatch, 30)
    fleet.new.pending = 100
    assert healthy(fleet, monkeypatch, 75)


@pytest.mark.parametrize(
    ("harm", "warned"),
    [
        (lambda _fleet: None, True),
        (lambda fleet: setattr(fleet.new, "pending", 0), False),
        (lambda fleet: fleet.new.jobs.update({"orders-2.3.0": JobStatus("orders-2.3.0", "orders", "CREATED")}), False),
    ],
)
def test_a_metric_that_no_running_job_reports_is_logged(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, logs: list[Any], harm: Any, warned: bool
) -> None:
    fleet.deployed("orders", "2.3.0")
    harm(fleet)
    healthy(fleet, monkeypatch, 50)
    found = [each["event"] % each.get("positional_args", ()) for each in logs]
    warning = "lag: no moved job reports the metric pendingRecords, so it limits no job: check its name"
    assert (warning in found) is warned


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda fleet: fleet.new.end("orders-2.3.0", "FAILED"), "orders: job orders-2.3.0 is FAILED"),
        (lambda fleet: fleet.new.jobs.clear(), "orders: job orders-2.3.0 is unknown to the cluster"),
        (lambda fleet: setattr(fleet.new, "pending", 101), "orders: pendingRecords is 101, above 100"),
        (
            lambda fleet: fleet.new.job_histories.update({"orders-2.3.0": JobHistory(failures=(time.time() + 64,))}),
            "orders: job orders-2.3.0 failed and restarted: the reason is unknown",
        ),
    ],
)
def test_an_unhealthy_job_stops_the_fleet(fleet: Fleet, monkeypatch: pytest.MonkeyPatch, harm: Any, words: str) -> None:
    fleet.deployed("orders", "2.3.0")
    harm(fleet)
    with pytest.raises(AirflowFailException, match="the fleet stops here, and later waves do not move") as raised:
        healthy(fleet, monkeypatch, 65)
    assert words in str(raised.value)
