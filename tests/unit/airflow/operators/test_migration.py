"""The branch that keeps the state over an incompatible change: who leads there, what it promises, what it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.providers.standard.operators import hitl
from airflow.sdk import DAG

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators import (
    Deployment,
    FlinkSqlCompatibilityOperator,
    FlinkStateMigrationOperator,
    redeploy_dag,
)
from airflow_flinkcompat.airflow.operators.approval import MIGRATE, REJECT, RESTART, RESUME
from airflow_flinkcompat.airflow.operators.summary import Summary
from airflow_flinkcompat.deploy import DeployRefused, migration, warm_restart
from airflow_flinkcompat.exec_graph.migration import Accept, MigrationExtent
from airflow_flinkcompat.history.known_history import KnownHistory
from dev.measure.savepoint_fixtures import CASES, FOLDER
from tests.support.airflow.operators.fakes import QUERY, TABLES, Run, script
from tests.support.airflow.operators.versions import AwaitingAnswer
from tests.unit.airflow.operators.conftest import Site, planner_compiles
from tests.unit.airflow.operators.test_approval import event

METRICS = TABLES.replace("total DOUBLE", "total DOUBLE, most DOUBLE")
BOTH = METRICS + QUERY.format(size=10).replace("SUM(price)", "SUM(price), MAX(price)")
SWAPPED = METRICS + QUERY.format(size=10).replace("SUM(price)", "MAX(price), SUM(price)")


class Migration:
    """In place of the one that plans and writes; ``given`` is what it was made with."""

    given: Mapping[str, Any]
    savepoint: str | Exception | None = "file:///savepoint"
    writes = "migrated"

    def __init__(self, old: Any, new: Any, cluster: Any, live: Any, **more: Any) -> None:
        Migration.given = {"old": old, "new": new, "live": live, **more}

    def prepare(self) -> None: ...

    @contextmanager
    def compared(self) -> Iterator[str | None]:
        if isinstance(Migration.savepoint, Exception):
            raise Migration.savepoint
        yield Migration.savepoint

    def write(self, savepoint: str, folder: str, prepared: str | None) -> Mapping[str, Any]:
        return {"kept": "whole"}

    def rehearse(self, savepoint: str) -> str:
        return "rehearsed"


class Restart(Migration):
    """The same of a restart; ``possible`` is what is told of it."""

    possible = True
    writes = "computed"

    def __init__(self, new: Any, cluster: Any, live: Any, begin: Any, **more: Any) -> None:
        super().__init__(None, new, cluster, live, **more)

    def is_possible(self) -> bool:
        return Restart.possible


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "SavepointMigration", Migration)
    monkeypatch.setattr(warm_restart, "WarmRestart", Restart)
    monkeypatch.setattr(FlinkHook, "location", lambda _hook: None)


def gate(site: Site, **fields: Any) -> Any:
    arguments: dict[str, Any] = {"start_date": datetime(2026, 1, 1), "schedule": None}
    one = Deployment(
        name="orders",
        script="orders.sql",
        ledger=str(site.folder / "ledger"),
        **{"migrate": {"settle_seconds": 0}, **fields},
    )
    return redeploy_dag(one, template_searchpath=str(site.folder), **arguments)


@pytest.fixture
def running(site: Site) -> Site:
    site.deploy(BOTH)
    return site


def test_what_a_migration_keeps_whole_is_migrated(running: Site) -> None:
    running.propose(SWAPPED)
    dag, run = gate(running), Run()
    assert run.execute(dag.get_task("check")) == ["approve", "deploy_first", "restart", "resume"]
    summary = run.pushed["check", "summary"]
    assert (summary["branch"], summary["outcome"], summary["migration"]) == ("migrate", "incompatible", "whole")
    result = run.execute(dag.get_task("migrate"))
    assert result["start_mode"] == "migrated"
    assert Path(result["savepoint"]).name.startswith("migrated-")
    assert running.cluster.starts[-1][1].savepoint == result["savepoint"]
    assert Migration.given["at_least"] is MigrationExtent.WHOLE
    assert (Migration.given["old"].script, Migration.given["new"].script) == (BOTH.strip(), SWAPPED.strip())
    assert Migration.given["live"] == "job-1"


@pytest.mark.parametrize(
    ("savepoint", "why"),
    [
        (None, "no savepoint of the running job could be compared"),
        (
            DeployRefused("the old plan predicts A, but the savepoint contains B"),
            "the old plan predicts A, but the savepoint contain",
        ),
        (AirflowFailException("no planner is to be had"), "no planner is to be had"),
    ],
)
def test_what_rests_on_plans_alone_is_for_a_person(
    savepoint: str | Exception | None, why: str, running: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Migration, "savepoint", savepoint)
    running.propose(SWAPPED)
    dag, run = gate(running), Run()
    assert "approve" not in run.execute(dag.get_task("check"))
    summary = run.pushed["check", "summary"]
    assert (summary["branch"], summary["policy"], summary["migration"]) == ("approve", "migrate", "whole")
    assert why in Path(summary["report"]).with_suffix(".md").read_text("utf-8")


def test_the_gate_compares_where_the_migration_would(running: Site) -> None:
    running.propose(SWAPPED)
    tables = {"deploy": {"savepoint_directory": "file:///kept"}, "migrate": {"settle_seconds": 0, "plan_dir": "/plans"}}
    Run().execute(gate(running, **tables).get_task("check"))
    given = {key: Migration.given[key] for key in ("live", "savepoint_directory", "plan_dir", "at_least")}
    assert given == {
        "live": "job-1", "savepoint_directory": "file:///kept", "plan_dir": "/plans", "at_least": MigrationExtent.WHOLE,
    }  # fmt: skip


def test_a_planner_is_open_as_long_as_the_task_needs_it(running: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is opened when a migration asks for it, and closed with the task."""
    seen: list[str] = []

    @contextmanager
    def planner(_hook: FlinkHook) -> Iterator[str]:
        seen.append("opened")
        yield "the planner"
        seen.append("closed")

    monkeypatch.setattr(FlinkHook, "planner", planner)
    monkeypatch.setattr(Migration, "prepare", lambda _self: seen.append(Migration.given["planner"]()))
    running.propose(SWAPPED)
    dag, run = gate(running), Run()
    run.execute(dag.get_task("check"))
    assert seen == []
    run.execute(dag.get_task("migrate"))
    assert seen == ["opened", "the planner", "closed"]


@pytest.mark.parametrize("spark", [None, False])
def test_who_rewrites_is_asked_of_the_savepoint(running: Site, spark: bool | None) -> None:
    """A small one is rewritten in this process, unless Spark is wanted."""
    running.propose(SWAPPED)
    dag, run = gate(running, migrate={"settle_seconds": 0, "spark": spark}), Run()
    run.execute(dag.get_task("check"))
    run.execute(dag.get_task("migrate"))
    with Migration.given["workers"](str(FOLDER / CASES[0] / "old")) as workers:
        assert workers is None


LONGER = METRICS + QUERY.format(size=60).replace("SUM(price)", "SUM(price), MAX(price)")


@pytest.mark.parametrize("possible", [True, False])
def test_a_restart_begins_with_what_history_says(
    running: Site, monkeypatch: pytest.MonkeyPatch, possible: bool
) -> None:
    """Where it does not say all the job begins empty, where the deployment says."""
    monkeypatch.setattr(Restart, "possible", possible)
    planner_compiles(monkeypatch, "w-size-1to2-ws")
    running.propose(LONGER)
    check = {"history": {"orders": ""}, "policy": {"migratable": "restart"}}
    given = {"warm_restart": True, "backfill": {}, "check": check}
    dag, run = gate(running, **given, deploy={"settle_seconds": 0, "source_offsets": "earliest"}), Run()
    assert "restart" not in run.execute(dag.get_task("check"))
    result = run.execute(dag.get_task("restart"))
    assert result["start_mode"] == ("migrated" if possible else "stateless")
    start = running.cluster.starts[-1][1]
    assert start.savepoint == (result["savepoint"] if possible else None)
    assert Migration.given["live"] == "job-1"


def test_a_restart_that_has_begun_warm_goes_on_so(running: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a retry could not tell any more that it is possible: the former job has stopped by then."""
    planner_compiles(monkeypatch, "w-size-1to2-ws")
    running.propose(LONGER)
    check = {"history": {"orders": ""}, "policy": {"migratable": "restart"}}
    dag = gate(running, warm_restart=True, backfill={}, check=check, deploy={"settle_seconds": 0})
    run = Run()
    run.execute(dag.get_task("check"))
    monkeypatch.setattr(Restart, "write", died)
    with pytest.raises(KeyboardInterrupt):
        run.execute(dag.get_task("restart"))
    monkeypatch.setattr(Restart, "write", Migration.write)
    monkeypatch.setattr(Restart, "possible", False)
    result = run.execute(dag.get_task("restart"))
    assert result["start_mode"] == "migrated"
    assert Path(result["savepoint"]).name.startswith("computed-")


def died(*_: Any) -> Mapping[str, Any]:
    raise KeyboardInterrupt


OF_THE_PLAN = """\
CREATE TABLE orders (a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts)
  WITH ('connector' = 'filesystem', 'path' = '/in', 'format' = 'csv', 'source.monitor-interval' = '1 s');
CREATE TABLE totals (a STRING, b BIGINT, c STRING, ws TIMESTAMP(3), we TIMESTAMP(3))
  WITH ('connector' = 'filesystem', 'path' = '/out', 'format' = 'csv');
INSERT INTO totals
SELECT a, SUM(b), MAX(c), window_start, window_end
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '{}' MINUTE))
GROUP BY a, window_start, window_end;
"""
"""The script of the stored plans."""


def test_what_history_says_is_kept_too(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of longer windows nothing is stored: without history they are no migration. Files are looked for again."""
    before, after = (OF_THE_PLAN.format(size) for size in (1, 2))
    site.deploy(before)
    site.propose(after)
    planner_compiles(monkeypatch, "w-size-1to2-ws")
    dag, run = gate(site), Run()
    run.execute(dag.get_task("check"))
    assert run.pushed["check", "summary"]["migration"] == "none"
    dag, run = gate(site, check={"history": {"orders": ""}}), Run()
    run.execute(dag.get_task("check"))
    summary = run.pushed["check", "summary"]
    assert (summary["branch"], summary["migration"], summary["history"]) == ("migrate", "whole", {"orders": ""})
    run.execute(dag.get_task("migrate"))
    assert Migration.given["history"] == KnownHistory({"orders": ""})
    assert Migration.given["at_least"] is MigrationExtent.WHOLE


@pytest.mark.parametrize("history", ["bids", {"bids": None}, ["bids"]])
def test_history_names_tables_and_places(history: object) -> None:
    with pytest.raises(ValueError, match=r"history: .* is not a mapping from table names to the places of their rows"):
        FlinkStateMigrationOperator(task_id="m", script="orders.sql", deployment="orders", ledger="/l", history=history)


def test_history_is_for_a_migration() -> None:
    with pytest.raises(
        ValueError, match="history applies only to a migration: add 'migrate' to branches, or omit history"
    ):
        FlinkSqlCompatibilityOperator(
            task_id="c",
            script="orders.sql",
            deployment="orders",
            ledger="/l",
            branches=dict.fromkeys(("first", "resume", "restart", "approve"), "a"),
            history={"orders": ""},
        )


def test_a_master_belongs_to_spark() -> None:
    with pytest.raises(ValueError, match="spark_master needs Spark, and spark is False"):
        FlinkStateMigrationOperator(
            task_id="migrate", deployment="orders", script="orders.sql", ledger="/ledger", spark=False,
            spark_master="local[2]",
        )  # fmt: skip


def test_wrong_arguments_are_refused() -> None:
    given = {"task_id": "migrate", "deployment": "orders", "script": "orders.sql", "ledger": "/ledger"}
    with pytest.raises(ValueError, match="catch_up: 'sometimes' is unknown: write true, false or always"):
        FlinkStateMigrationOperator(**given, catch_up="sometimes")
    with pytest.raises(ValueError, match="sample: -1 is not a number of keys: write 0 or more"):
        FlinkStateMigrationOperator(**given, sample=-1)
    checked = Summary("orders", "migrate", "", "flink", None, history={"orders": ""})
    known = [FlinkStateMigrationOperator(**given, **more)._known(checked) for more in ({}, {"sample": 0})]
    assert [each.sample for each in known] == [20, 0]


def test_without_that_branch_nothing_changes(running: Site) -> None:
    running.propose(SWAPPED)
    run = Run()
    run.execute(gate(running, migrate=False).get_task("check"))
    assert run.pushed["check", "summary"]["branch"] == "approve"


def test_what_it_keeps_in_part_is_for_a_person(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.deploy(script())
    site.propose(BOTH)
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **arguments: asked.append(arguments))
    dag, run = gate(site), Run()
    run.execute(dag.get_task("check"))
    assert (run.pushed["check", "summary"]["branch"], run.pushed["check", "summary"]["migration"]) == (
        "approve",
        "partial",
    )
    with pytest.raises(AwaitingAnswer):
        run.execute(dag.get_task("approve"))
    assert asked[0]["options"] == [RESUME, MIGRATE, RESTART, REJECT]
    assert "begins now" in asked[0]["body"]
    assert "with the branch `migrate` (Migrate the state)" in asked[0]["body"]
    assert run.complete(dag.get_task("approve"), event(MIGRATE, {"id": "7", "name": "ada"})) == ["restart", "resume"]
    for other in ("resume", "restart"):
        with pytest.raises(AirflowFailException, match="connect only the branch 'migrate' to a FlinkState"):
            run.execute(dag.get_task(other))
    assert run.execute(dag.get_task("migrate"))["approved_by"] == "ada"
    assert Migration.given["at_least"] is MigrationExtent.PARTIAL


def test_a_person_is_offered_no_migration_that_keeps_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.deploy(script())
    site.propose(script(size=5))
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **arguments: asked.append(arguments))
    dag, run = gate(site), Run()
    run.execute(dag.get_task("check"))
    with pytest.raises(AwaitingAnswer):
        run.execute(dag.get_task("approve"))
    assert asked[0]["options"] == [RESUME, RESTART, REJECT]


@pytest.mark.parametrize(("accept", "kept"), [((), None), (("filter",), "partial")])
def test_rows_of_another_condition_go_on_only_where_it_was_asked_for(
    site: Site, accept: tuple[str, ...], kept: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(hitl, "upsert_hitl_detail", lambda **arguments: asked.append(arguments))
    site.deploy(BOTH)
    site.propose(BOTH.replace("GROUP BY", "WHERE price > 1 GROUP BY"))
    dag, run = gate(site, check={"accept": accept}), Run()
    run.execute(dag.get_task("check"))
    summary = run.pushed["check", "summary"]
    assert (summary["branch"], summary["migration"], summary["accepted"]) == ("approve", kept, [*accept])
    with pytest.raises(AwaitingAnswer):
        run.execute(dag.get_task("approve"))
    assert (MIGRATE in asked[0]["options"]) is bool(accept)
    assert ("the stored state comes from rows that met the former condition" in asked[0]["body"]) is bool(accept)
    if accept:
        run.complete(dag.get_task("approve"), event(MIGRATE, {"id": "7", "name": "ada"}))
        run.execute(dag.get_task("migrate"))
        assert Migration.given["accepted"] == (Accept.FILTER,)


@pytest.mark.parametrize(
    ("accept", "message"),
    [
        (("filtre",), "accept: 'filtre' is not one of filter, source-moved, history"),
        (("dropped",), "accept: 'dropped' is not one of filter, source-moved, history"),
    ],
)
def test_what_cannot_be_accepted(accept: Any, message: str) -> None:
    branches = dict.fromkeys(("first", "resume", "restart", "approve", "migrate"), "next")
    with pytest.raises(ValueError, match=message):
        FlinkSqlCompatibilityOperator(
            task_id="check", deployment="orders", script="orders.sql", branches=branches, accept=accept
        )


def test_nothing_is_accepted_without_a_migration(site: Site) -> None:
    with pytest.raises(ValueError, match="add 'migrate' to branches, or omit accept"):
        gate(site, migrate=False, check={"accept": ["filter"]})


def test_a_decision_for_something_else_is_not_migrated(site: Site) -> None:
    site.deploy(script())
    site.propose(BOTH)
    dag, run = gate(site), Run()
    run.execute(dag.get_task("check"))
    run.complete(dag.get_task("approve"), event(RESTART, {"id": "7", "name": "ada"}))
    with pytest.raises(AirflowFailException, match="the decision on orders is 'restart'"):
        run.execute(dag.get_task("migrate"))
    assert site.cluster.now == {"job-1": "RUNNING"}


def test_what_nobody_was_told_is_not_migrated(running: Site) -> None:
    running.propose(SWAPPED)
    dag, run = gate(running), Run()
    run.execute(dag.get_task("check"))
    run.pushed["check", "summary"] = {**run.pushed["check", "summary"], "migration": None}
    with pytest.raises(AirflowFailException, match=r"does not contain the state of .*, so nobody decided"):
        run.execute(dag.get_task("migrate"))


@pytest.mark.parametrize("name", ["start_mode", "hand_over", "source_offsets", "allow_ended"])
def test_what_a_migration_does_not_take(name: str) -> None:
    with DAG("d"), pytest.raises(ValueError, match=f"{name} cannot be set, because the written state decides where"):
        FlinkStateMigrationOperator(task_id="m", deployment="orders", script="o.sql", **{name: "savepoint"})


def test_what_a_migration_does_not_see_is_for_a_person(site: Site) -> None:
    """Another function computes what is added to the same sums from now on: state that is kept whole proves nothing."""
    declared = "CREATE FUNCTION taxed AS '{name}';\n"
    taxed = [text.replace("price)", "taxed(price))") for text in (BOTH, SWAPPED)]
    site.deploy(declared.format(name="org.example.Taxed") + taxed[0])
    site.propose(declared.format(name="org.example.Other") + taxed[1])
    run = Run()
    run.execute(gate(site).get_task("check"))
    summary = run.pushed["check", "summary"]
    assert (summary["branch"], summary["outcome"]) == ("approve", "incompatible")
    assert "function-changed" in {row["rule"] for row in summary["findings"]}
