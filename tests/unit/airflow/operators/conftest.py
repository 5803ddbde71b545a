"""One deployment, its ledger, and a cluster in memory in place of Flink."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowNotFoundException
from airflow.sdk import DAG
from structlog.testing import capture_logs

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators import (
    FlinkSqlApprovalOperator,
    FlinkSqlCompatibilityOperator,
    FlinkSqlDeployOperator,
)
from airflow_flinkcompat.deploy import PlansUnavailable
from airflow_flinkcompat.deploy.ledger.ledger import Ledger
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import QUERY_SINK
from airflow_flinkcompat.model import PLANNER_VARIABLE
from airflow_flinkcompat.planner import installation, questions
from airflow_flinkcompat.planner.installation import LINES, Installation, PlannerMissing
from dev.measure.measured import written
from tests.support.airflow.operators.fakes import Run, script
from tests.support.deploy.fake_cluster import FakeCluster, number_ids


@dataclass
class Site:
    """A DAG folder, a ledger and a cluster. ``propose`` writes the script; ``tasks`` is the gate around it."""

    folder: Path
    cluster: FakeCluster = field(default_factory=FakeCluster)

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "ledger", "orders")

    def kinds(self) -> list[str]:
        return [entry.kind for entry in self.ledger.entries()]

    def propose(self, text: str) -> None:
        (self.folder / "orders.sql").write_text(text, encoding="utf-8")

    def tasks(self, **arguments: Any) -> dict[str, Any]:
        """check → first | resume | restart | approve, all about orders.sql. ``check``: arguments of the check."""
        common = {"deployment": "orders", "ledger": str(self.folder / "ledger"), "retries": 1}
        dag = DAG("gate", default_args=common, template_searchpath=str(self.folder))
        joined: dict[str, Any] = {"trigger_rule": "none_failed_min_one_success"}
        hand_over = arguments.pop("hand_over", None)
        with dag:
            text = arguments.pop("script", "orders.sql")
            branches = {"first": "first", "resume": "resume", "restart": "restart", "approve": "approve"}
            # Every branch is reached by a change of the script alone; the defaults have tests of their own.
            check_arguments = {"policy": {"incompatible": "restart"}, "redeploy_unchanged": True}
            check_arguments |= {"branches": {**branches, **arguments.pop("branches", {})}, **arguments.pop("check", {})}
            check = FlinkSqlCompatibilityOperator(task_id="check", script=text, **check_arguments, **arguments)
            approve = FlinkSqlApprovalOperator(task_id="approve", branches={"resume": "resume", "restart": "restart"})
            start: dict[str, Any] = {"script": text, "settle_seconds": 0, "hand_over": hand_over, **arguments}
            first = FlinkSqlDeployOperator(task_id="first", start_mode="stateless", **start)
            resume = FlinkSqlDeployOperator(task_id="resume", start_mode="savepoint", **start, **joined)
            restart = FlinkSqlDeployOperator(task_id="restart", start_mode="stateless", **start, **joined)
            check >> [first, resume, restart, approve]
            approve >> [resume, restart]
        return {task.task_id: task for task in dag.tasks}

    def deploy(self, text: str, **arguments: Any) -> None:
        """Bring a first version up, through the gate itself."""
        self.propose(text)
        run, tasks = Run("first"), self.tasks(**arguments)
        run.execute(tasks["check"])
        run.execute(tasks["first"])

    def checked(self, text: str, **arguments: Any) -> tuple[Run, dict[str, Any], Any]:
        """Propose ``text`` and check it: the run, its tasks, and what was skipped."""
        self.propose(text)
        run, tasks = Run(), self.tasks(**arguments)
        return run, tasks, run.execute(tasks["check"])


def worker_plans(monkeypatch: pytest.MonkeyPatch, *answers: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Have a planner on the worker that gives these answers in turn, over and over; what it was asked."""
    asked: list[Mapping[str, Any]] = []
    in_turn = cycle(answers)

    def ask(question: Mapping[str, Any]) -> Mapping[str, Any]:
        asked.append(question)
        return next(in_turn)

    def find(line: str, jars: Sequence[Path] = ()) -> Installation:
        return Installation(LINES[line], Path("flink"), Path("java"), (), tuple(jars))

    monkeypatch.setenv(PLANNER_VARIABLE, "auto")
    monkeypatch.setattr(installation, "find", find)
    monkeypatch.setattr(questions, "daemon", lambda _: SimpleNamespace(ask=ask))
    return asked


def answer(*ids: str, **other: Any) -> dict[str, Any]:
    """An answer of Flink 2.3.0: one job, with a stateful operator of each id."""
    kept = {"kind": "K", "keeps": "yes", "basis": "opened", "component": "", "max_parallelism": -1, "uid": None}
    operators = [{"id": each, "name": f"Operator {each}", "states": [], **kept} for each in ids]
    jobs = [{"operators": operators, "plan": None, "restores": {}, "savepoint": ""}]
    return {"flink": "2.3.0", "jobs": jobs, **other}


def planner_compiles(monkeypatch: pytest.MonkeyPatch, measured: str) -> None:
    """Has the planner answer with the stored plans of a measured pair."""
    names = {"`MyTable`": "`orders`", f"`{QUERY_SINK}`": "`totals`"}

    def named(plan: Mapping[str, Any]) -> CompiledPlan:
        text = json.dumps(plan)
        for old, new in names.items():
            text = text.replace(old, new)
        return read_plan(text)

    old, new = (tuple(map(named, side)) for side in written(measured))
    monkeypatch.setattr(FlinkHook, "explain_plans", lambda *_: (old, new))


@pytest.fixture
def logs() -> Iterator[list[Any]]:
    """What was logged, before Airflow's own masking: mappings with ``event`` and ``log_level``."""
    with capture_logs() as records:
        yield records


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    found = Site(tmp_path)
    number_ids(monkeypatch)

    def no_connection(conn_id: str) -> Any:
        raise AirflowNotFoundException(conn_id)

    monkeypatch.setattr(FlinkHook, "get_connection", staticmethod(no_connection))

    def no_planner(*_: Any) -> Any:
        raise PlansUnavailable("no planner here")

    def not_installed(line: str, *_: Any) -> Any:
        raise PlannerMissing(f"Flink {line} is not on this machine: run flinkcompat planner install {line}")

    monkeypatch.setenv(PLANNER_VARIABLE, "never")
    monkeypatch.setattr(installation, "find", not_installed)
    monkeypatch.setattr(FlinkHook, "get_conn", lambda _self: found.cluster)
    monkeypatch.setattr(FlinkHook, "explain_plans", no_planner)
    monkeypatch.setattr(FlinkHook, "jobmanager_url", "http://jm:8081")
    return found


@pytest.fixture
def deployed(site: Site) -> Site:
    site.deploy(script())
    return site


@pytest.fixture
def deployed_on_vvr(site: Site) -> Site:
    """As ``deployed``, by a gate that names the engine which resumes partial changes."""
    site.deploy(script(), check={"engine": "vvr"})
    return site
