"""One deployment as a group of tasks, many as DAGs of one file, and never two redeploys of one at once."""

from __future__ import annotations

import json
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.operators import (
    Deployment,
    DeploymentsError,
    FlinkWarmRestartOperator,
    gated,
    gated_redeploy,
    redeploy_dag,
)
from airflow_flinkcompat.airflow.operators.gated import redeploy_dags
from airflow_flinkcompat.compat import Outcome, Policy
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.rehearsal import sequence
from airflow_flinkcompat.deploy.rehearsal.report import Rehearsal
from airflow_flinkcompat.model import RehearsalFinding
from tests.support.airflow.operators.fakes import Run, script
from tests.support.airflow.operators.versions import DagBag, DagSerialization
from tests.unit.airflow.operators.conftest import Site

BOUNDARY = {"boundary": "2026-01-01 12:00:00"}


def edges(dag: Any) -> set[tuple[str, str]]:
    return {(task.task_id, below) for task in dag.tasks for below in task.downstream_task_ids}


def made(**fields: Any) -> Any:
    return redeploy_dag(Deployment(**{"name": "orders", "script": "orders.sql", **fields}))


def test_source_offsets_are_for_starts_without_state() -> None:
    def given(offsets: str) -> dict[str, Any]:
        dag = made(deploy={"source_offsets": offsets})
        return {name: dag.get_task(name).source_offsets for name in ("deploy_first", "restart", "resume")}

    assert given("earliest") == {"deploy_first": "earliest", "restart": "earliest", "resume": None}
    assert given("as-stored") == {"deploy_first": None, "restart": "as-stored", "resume": None}


@pytest.mark.parametrize("table", [{}, BOUNDARY], ids=["restart", "hand-over"])
def test_a_backfill_that_state_was_given_up_for_needs_rows(table: dict[str, Any]) -> None:
    assert made(backfill=table).get_task("backfill").allow_empty is False
    assert made(backfill={**table, "allow_empty": True}).get_task("backfill").allow_empty is True


def test_without_a_backfill_history_is_left_alone() -> None:
    assert edges(made()) == {
        ("changed", "check"),
        ("check", "deploy_first"),
        ("check", "resume"),
        ("check", "restart"),
        ("check", "approve"),
        ("approve", "resume"),
        ("approve", "restart"),
    }
    assert edges(made(backfill=False)) == edges(made())
    assert edges(made(backfill={})) - edges(made()) == {("restart", "backfill")}


def test_a_rehearsal_comes_before_every_resume() -> None:
    dag = made(rehearse=True)
    assert edges(dag) == {
        ("changed", "check"),
        ("check", "deploy_first"),
        ("check", "rehearse"),
        ("check", "restart"),
        ("check", "approve"),
        ("approve", "rehearse"),
        ("approve", "restart"),
        ("rehearse", "resume"),
    }
    assert dag.get_task("rehearse").fail_on == ("refused",)
    assert dag.get_task("check").branches["resume"] == dag.get_task("approve").branches["resume"] == ["rehearse"]
    assert edges(made(rehearse=False)) == edges(made())
    strict = made(rehearse={"fail_on": ["refused", "could not tell"], "settle_seconds": 30}, backfill=BOUNDARY)
    assert strict.get_task("rehearse").fail_on == ["refused", "could not tell"]
    assert strict.get_task("rehearse").settle_seconds == 30
    assert ("rehearse", "resume") in edges(strict)


def test_a_shadow_run_comes_between_the_check_and_a_start_from_state() -> None:
    dag = made(start_mode="shadow", shadow={"duration": "1min", "retries": 4}, migrate=True)
    assert edges(dag) == {
        ("changed", "check"),
        ("check", "deploy_first"),
        ("check", "restart"),
        ("check", "shadow"),
        ("shadow", "resume"),
        ("shadow", "approve"),
        ("shadow", "migrate"),
        ("shadow", "restart"),
        ("approve", "resume"),
        ("approve", "restart"),
        ("approve", "migrate"),
    }
    task = dag.get_task("shadow")
    assert (task.duration, task.retries, task.trigger_rule) == ("1min", 4, "all_success")
    assert task.branches == {"resume": ["resume"], "approve": ["approve"], "migrate": ["migrate"]}
    assert dag.get_task("check").branches == {
        "first": ["deploy_first"], "restart": ["restart"], **{key: ["shadow"] for key in task.branches},
    }  # fmt: skip
    assert dag.get_edge_info("shadow", "resume")["label"] == "compatible with equal rows"
    assert dag.get_edge_info("shadow", "approve")["label"].endswith("incompatible or different rows")
    assert dag.get_task("migrate").catch_up
    assert not made(migrate=True).get_task("migrate").catch_up
    assert made(migrate={"catch_up": "always"}).get_task("migrate").catch_up == "always"
    assert edges(made(start_mode="savepoint", shadow={"duration": "1min"})) == edges(made())
    placed = made(start_mode="shadow", check={"plan_dir": "/p"}, migrate={"savepoint_directory": "/s"})
    assert [getattr(placed.get_task("shadow"), key) for key in ("plan_dir", "savepoint_directory")] == ["/p", "/s"]
    both = made(start_mode="shadow", rehearse=True)
    assert {("shadow", "rehearse"), ("rehearse", "resume")} <= edges(both)


def test_a_migration_is_a_way_of_its_own() -> None:
    dag = made(migrate=True)
    assert edges(dag) - edges(made()) == {("check", "migrate"), ("approve", "migrate")}
    assert dag.get_task("check").branches["migrate"] == dag.get_task("approve").branches["migrate"] == ["migrate"]
    assert dag.get_edge_info("check", "migrate")["label"] == "incompatible, all of the state can be kept"
    assert dag.get_edge_info("approve", "migrate")["label"] == "Migrate the state"
    assert dag.get_edge_info("check", "approve")["label"] == "partial or unknown or incompatible"
    restarts = made(migrate=True, backfill={}).get_edge_info("check", "approve")["label"]
    assert restarts == "partial or unknown or incompatible, some of the state can be kept"
    assert edges(made(migrate=False)) == edges(made())
    table = {"plan_dir": "/plans", "rehearse": False, "settle_seconds": 3}
    given = made(migrate=table, deploy={"settle_seconds": 30, "stop_timeout": 9, "source_offsets": "earliest"})
    task = given.get_task("migrate")
    assert (task.plan_dir, task.rehearse, task.settle_seconds, task.stop_timeout) == ("/plans", False, 3, 9)
    asked = made(migrate=True, check={"policy": {"partly_migratable": "migrate", "migratable": "approve"}})
    assert asked.get_edge_info("check", "migrate")["label"] == "incompatible, some of the state can be kept"
    with pytest.raises(ValueError, match="start_mode"):
        made(migrate={"start_mode": "savepoint"})


def test_what_was_sent_before_a_migration_is_computed_on_request() -> None:
    """With the arguments of the backfill, up to where the migration says."""
    table = {"sinks": {"totals": "/history"}, "to": "{{ ds }}"}
    dag = made(migrate=True, backfill=table, backfill_sent=True)
    assert edges(dag) - edges(made(migrate=True, backfill=table)) == {("migrate", "backfill_sent")}
    assert dag.get_edge_info("migrate", "backfill_sent")["label"] == "windows already emitted"
    task = dag.get_task("backfill_sent")
    assert (task.sent_before, task.to, task.sinks) == ("migrate", None, {"totals": "/history"})
    with pytest.raises(ValueError, match="add migrate and backfill"):
        made(backfill={}, backfill_sent=True)


def test_a_restart_begins_warm_on_request() -> None:
    """The task stands where the other one would, with what the migration says of history."""
    check = {"history": {"orders": ""}}
    dag = made(
        warm_restart=True, backfill={}, check=check, migrate={"spark_master": "local[2]"}, deploy={"keep_savepoints": 2}
    )
    assert edges(dag) == edges(made(backfill={}, check=check, migrate=True))
    task = dag.get_task("restart")
    assert isinstance(task, FlinkWarmRestartOperator)
    assert (task.start_mode, task.spark_master, task.keep_savepoints) == ("stateless", "local[2]", 2)
    with pytest.raises(ValueError, match="to a backfill without a boundary"):
        made(warm_restart=True, migrate=True, check=check)
    for lacks in ({"migrate": True}, {"check": check}):
        with pytest.raises(ValueError, match="add migrate, and name the tables"):
            made(warm_restart=True, backfill={}, **lacks)


def test_what_a_rehearsal_refuses_does_not_resume(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    text = script() + "-- a comment\n"
    deployed.propose(text)
    arguments = {"template_searchpath": str(deployed.folder), "start_date": datetime(2026, 1, 1), "schedule": None}
    one = Deployment(name="orders", script="orders.sql", ledger=str(deployed.folder / "ledger"), rehearse=True)
    dag, run = redeploy_dag(one, **arguments), Run("run-1", {"redeploy_unchanged": True})
    assert run.execute(dag.get_task("check")) == ["approve", "deploy_first", "restart"]
    monkeypatch.setattr(FlinkHook, "rehearsal_cluster", lambda _hook: nullcontext())
    asked: list[Any] = []
    monkeypatch.setattr(
        sequence,
        "rehearse",
        lambda *given: asked.append(given) or Rehearsal(RehearsalFinding.REFUSED, "no", at="submit"),
    )
    with pytest.raises(AirflowFailException, match="refused at submit"):
        run.execute(dag.get_task("rehearse"))
    assert asked[0][3].sha256 == run.pushed["check", "summary"]["new_sha256"]
    assert dag.get_task("resume").trigger_rule == "all_success", "so Airflow does not start it"
    # And the version is not offered again.
    sensor = dag_sensor(one, arguments)
    with pytest.raises(TaskDeferred):
        run.execute(sensor)
    monkeypatch.setattr(sequence, "rehearse", lambda *_: Rehearsal(RehearsalFinding.RESTORED))
    assert run.execute(dag.get_task("rehearse"))["finding"] == "restored"


def dag_sensor(one: Deployment, arguments: dict[str, Any]) -> Any:
    return redeploy_dag(one, prefix="again_", **arguments).get_task("changed")


def test_only_what_was_checked_is_rehearsed(deployed: Site) -> None:
    deployed.propose(script() + "-- a comment\n")
    arguments = {"template_searchpath": str(deployed.folder), "start_date": datetime(2026, 1, 1), "schedule": None}
    one = Deployment(name="orders", script="orders.sql", ledger=str(deployed.folder / "ledger"), rehearse=True)
    dag, run = redeploy_dag(one, **arguments), Run("run-1")
    run.execute(dag.get_task("check"))
    deployed.propose(script() + "-- another comment\n")
    with pytest.raises(AirflowFailException, match="differs from the checked one"):
        run.execute(dag.get_task("rehearse"))


def test_with_a_boundary_nothing_starts_before_the_hand_over_is_worked_out() -> None:
    dag = made(backfill=BOUNDARY)
    assert edges(dag) == {
        ("changed", "check"),
        ("check", "resume"),
        ("check", "hand_over"),
        ("check", "approve"),
        ("approve", "resume"),
        ("approve", "hand_over"),
        ("hand_over", "restart"),
        ("restart", "backfill"),
    }
    assert [dag.get_task(name).boundary for name in ("hand_over", "backfill")] == [BOUNDARY["boundary"]] * 2
    assert [dag.get_task(name).only_plan for name in ("hand_over", "backfill")] == [True, False]
    assert (dag.get_task("backfill").retries, dag.get_task("hand_over").retries) == (12, 1)
    assert made(backfill={**BOUNDARY, "retries": 2}).get_task("backfill").retries == 2


@pytest.mark.parametrize("group_id", [None, "orders"])
@pytest.mark.parametrize("backfill", [None, {}, BOUNDARY])
@pytest.mark.parametrize("rehearse", [None, True])
@pytest.mark.parametrize("start_mode", ["savepoint", "shadow"])
@pytest.mark.parametrize("policy", [{}, {"partial": "resume", "unknown": "resume"}, {"incompatible": "reject"}])
def test_every_branch_leads_to_a_task_and_no_task_runs_unasked(
    group_id: str | None, backfill: Any, rehearse: Any, start_mode: str, policy: dict[str, str]
) -> None:
    with DAG("d", schedule=None, start_date=datetime(2026, 1, 1), max_active_runs=1) as dag:
        given = {"backfill": backfill, "rehearse": rehearse, "start_mode": start_mode, "check": {"policy": policy}}
        one = Deployment(name="orders", script="orders.sql", **given)
        group = gated_redeploy(one, group_id=group_id, watch=False)
    before = f"{group_id}." if group_id else ""
    assert group.group_id == group_id
    assert all(task.task_id.startswith(before) for task in dag.tasks)
    for name in ("check", "approve"):
        task: Any = dag.get_task(f"{before}{name}")
        assert {target for ids in task.branches.values() for target in ids} == task.downstream_task_ids
    if start_mode == "shadow":
        # A task that only approve can choose must be skipped if the shadow run leads to another branch.
        approved = dag.get_task(f"{before}approve").downstream_task_ids
        assert dag.get_task(f"{before}shadow").downstream_task_ids == {f"{before}approve", *approved}
    assert [task.task_id for task in dag.roots] == [f"{before}check"]
    for task in dag.tasks:
        joined = len(task.upstream_task_ids) > 1
        assert (task.trigger_rule == "none_failed_min_one_success") == joined, task.task_id
    if backfill == BOUNDARY:
        assert f"xcom_pull('{before}hand_over')" in dag.get_task(f"{before}restart").hand_over


@pytest.mark.parametrize("policy", [{}, {"partial": "resume"}, {"unknown": "restart", "compatible": "approve"}])
@pytest.mark.parametrize("backfill", [None, {}])
def test_labels_say_what_the_policy_does(policy: dict[str, str], backfill: Any) -> None:
    dag = made(check={"policy": policy}, backfill=backfill)
    expected: dict[str, list[str]] = {}
    found = Policy.of(policy, backfill=backfill is not None)
    for outcome in Outcome:
        expected.setdefault(found.branch_for(outcome), []).append(outcome)
    for branch in ("resume", "restart", "approve"):
        assert dag.get_edge_info("check", branch).get("label", "") == " or ".join(expected.get(branch, []))
        for outcome in expected.get(branch, []):
            assert dag.get_task("check")._effective_policy().branch_for(Outcome(outcome)) == branch
    assert dag.get_edge_info("check", "deploy_first")["label"] == "nothing deployed yet"
    option = "Restart without state" if backfill is None else "Restart with backfill"
    assert dag.get_edge_info("approve", "restart")["label"] == option
    assert dag.get_task("approve").options == ["Resume from savepoint", option, "Reject"]


def test_what_a_deployment_says_reaches_its_tasks() -> None:
    dag = made(
        flink_conn_id="flink_prod",
        target="kubernetes",
        ledger="s3://ledger",
        settings={"parallelism.default": "4"},
        functions={"f": "scalar"},
        catalog="tables.sql",
        owner="shop",
        tags=["shop"],
        approvers=["ana", {"id": "7", "name": "Ben"}],
        changed={"poke_interval": 5},
        check={"engine": "flink", "explain_plan": True},
        approve={"response_timeout": 60},
        deploy={"settle_seconds": 3, "retries": 4},
        backfill={"tables": {"t": "/archive"}, "conn_id": "spark_prod"},
    )
    for task in dag.tasks:
        assert (task.deployment, task.flink_conn_id, task.ledger) == ("orders", "flink_prod", "s3://ledger")
        assert task.target == task.hook.target == "kubernetes"
        assert task.owner == "shop"
        if task.task_id != "approve":
            assert (task.script, task.catalog) == ("orders.sql", "tables.sql")
            assert (task.settings, task.functions) == ({"parallelism.default": "4"}, {"f": "scalar"})
    task = dag.get_task
    assert task("approve").assigned_users == [{"id": "ana", "name": "ana"}, {"id": "7", "name": "Ben"}]
    assert task("approve").response_timeout == timedelta(minutes=1)
    assert (task("check").engine, task("check").explain_plan, task("changed").poke_interval) == ("flink", True, 5)
    starts = [task(name) for name in ("deploy_first", "resume", "restart")]
    assert [(one.start_mode, one.settle_seconds, one.retries) for one in starts] == [
        ("stateless", 3, 4),
        ("savepoint", 3, 4),
        ("stateless", 3, 4),
    ]
    assert (task("backfill").tables, task("backfill").conn_id) == ({"t": "/archive"}, "spark_prod")
    assert dag.tags == {"flink", "shop"}


def test_everybody_may_answer_where_nobody_is_named() -> None:
    assert made().get_task("approve").assigned_users is None


# --- one at a time ----------------------------------------------------------------------------------------------------


def test_airflow_starts_no_second_run() -> None:
    assert made().max_active_runs == 1
    with (
        pytest.raises(
            ValueError, match=r"DAG 'd' redeploys 'orders' and may run 16 times at the same time: set max_active"
        ),
        DAG("d", schedule=None),
    ):
        gated_redeploy(Deployment(name="orders", script="orders.sql"))


def test_the_ledger_refuses_a_second_run(deployed: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two DAGs about one deployment, which Airflow does not keep apart: both checked, both resume."""
    deployed.propose(script() + "-- a comment\n")
    arguments = {"template_searchpath": str(deployed.folder), "start_date": datetime(2026, 1, 1), "schedule": None}
    one = Deployment(name="orders", script="orders.sql", ledger=str(deployed.folder / "ledger"))
    one = one.model_copy(update={"deploy": {"settle_seconds": 0}})
    first, second = (redeploy_dag(one, prefix=prefix, **arguments) for prefix in ("a_", "b_"))
    runs = {dag.dag_id: Run("run-1") for dag in (first, second)}
    for dag in (first, second):
        runs[dag.dag_id].execute(dag.get_task("check"))
    append, refused = Ledger.append, []

    def in_the_middle(ledger: Ledger, entry: Any, **how: Any) -> Any:
        stored = append(ledger, entry, **how)
        if entry.kind == "deploying" and not refused:
            refused.append(entry.owner)
            with pytest.raises(AirflowFailException, match="airflow:a_orders/run-1/resume is deploying orders"):
                runs[second.dag_id].execute(second.get_task("resume"))
        return stored

    monkeypatch.setattr(Ledger, "append", in_the_middle)
    done = runs[first.dag_id].execute(first.get_task("resume"))
    assert refused == ["airflow:a_orders/run-1/resume"]
    head = deployed.ledger.head()
    assert head is not None
    assert (head.job_id, head.owner) == (done["job_id"], "airflow:a_orders/run-1/resume")
    assert deployed.kinds().count("deployed") == 2, "the first version, and this one once"
    with pytest.raises(AirflowFailException, match="Check the change again"):
        runs[second.dag_id].execute(second.get_task("resume"))


# --- a file of deployments --------------------------------------------------------------------------------------------

GOOD = '[deployments.orders]\nscript = "orders.sql"\n'


def bag(folder: Path, text: str) -> DagBag:
    """What Airflow makes of a DAG file over this file of deployments."""
    (folder / "jobs.toml").write_text(text, encoding="utf-8")
    dags = folder / "dags"
    dags.mkdir()
    (dags / "jobs.py").write_text(
        "from airflow_flinkcompat.airflow.operators import redeploy_dags  # makes every DAG\n"
        f"globals().update(redeploy_dags({str(folder / 'jobs.toml')!r}))\n",
        encoding="utf-8",
    )
    found = DagBag(dags, collect_dags=False)
    found.process_file(str(dags / "jobs.py"))
    return found


def test_a_dag_for_each_deployment(tmp_path: Path) -> None:
    found = bag(tmp_path, f'{GOOD}[deployments.clicks]\nscript = "clicks.sql"\n')
    assert (sorted(found.dags), found.import_errors) == (["redeploy_clicks", "redeploy_orders"], {})
    for dag in found.dags.values():
        stored = DagSerialization.to_dict(dag)
        assert json.loads(json.dumps(stored, default=str))["dag"]["max_active_runs"] == 1


def test_what_fails_all_the_same_stops_by_itself_and_a_long_run_sees_the_script_of_today(tmp_path: Path) -> None:
    def stored(dag: DAG) -> Any:
        return json.loads(json.dumps(DagSerialization.to_dict(dag), default=str))["dag"]

    (tmp_path / "jobs.toml").write_text(GOOD, encoding="utf-8")
    dag = stored(redeploy_dags(tmp_path / "jobs.toml")["redeploy_orders"])
    assert (dag["max_consecutive_failed_dag_runs"], dag["disable_bundle_versioning"]) == (5, True)
    given = {"max_consecutive_failed_dag_runs": 20, "disable_bundle_versioning": False, "description": "a job"}
    for dag in (
        stored(redeploy_dags(tmp_path / "jobs.toml", **given)["redeploy_orders"]),
        stored(redeploy_dag(Deployment(name="orders", script="orders.sql"), **given)),
    ):
        assert dag["max_consecutive_failed_dag_runs"] == 20
        assert not dag.get("disable_bundle_versioning")
        assert dag["description"] == "a job"


def test_the_sensor_requires_a_cluster_where_something_will_ask_it() -> None:
    def required(deploy: Any = None, **fields: Any) -> Any:
        one = Deployment(**{"name": "orders", "script": "orders.sql", **fields})
        with DAG("d", schedule=None, max_active_runs=1) as dag:
            gated_redeploy(one, deploy=deploy)
        return dag.get_task("changed").require_cluster

    def own(task_id: str, start_mode: str, **arguments: Any) -> Any:
        return EmptyOperator(task_id=task_id, **arguments)

    assert required() is required(own) is None
    assert required(own, check={"engine": "flink"}) is False
    assert required(own, check={"engine": "flink"}, changed={"require_cluster": True}) is True


def test_scripts_lie_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "orders.sql").write_text(script(), encoding="utf-8")
    task = bag(tmp_path, GOOD).dags["redeploy_orders"].get_task("check")
    Run().render(task)
    assert task.rendered("script").rstrip() == script().rstrip()


def test_what_cannot_be_used_is_an_import_error_and_the_others_have_their_dags(tmp_path: Path) -> None:
    found = bag(
        tmp_path,
        f"{GOOD}[deployments.a]\nskript = 'a.sql'\n"
        # What only an operator knows.
        "[deployments.b]\nscript = 'b.sql'\ncheck.policy = { incompatible = 'resume' }\n"
        "[deployments.c]\nscript = 'c.sql'\ncheck.engine = 'spark'\n",
    )
    assert list(found.dags) == ["redeploy_orders"]
    (error,) = found.import_errors.values()
    place = tmp_path / "jobs.toml"
    assert f"{place}:3:14: deployment 'a': script: is missing\n" in error
    assert f"{place}:7:7: deployment 'b': policy: an incompatible change must not resume without approval; " in error
    assert f"{place}:10:7: deployment 'c': engine 'spark' is not one of auto, vvr, flink" in error
    assert "these deployments have no DAG until the file is corrected" in error


def test_a_file_that_cannot_be_read_is_an_import_error(tmp_path: Path) -> None:
    found = bag(tmp_path, "[deployments.orders\n")
    (error,) = found.import_errors.values()
    assert found.dags == {}
    assert f"{tmp_path / 'jobs.toml'}:1:20: is not valid TOML: " in error


def test_a_worker_makes_the_dag_it_runs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "jobs.toml"
    path.write_text(f"{GOOD}[deployments.clicks]\nscript = 'c.sql'\n[deployments.bad]\nx = 1\n", encoding="utf-8")
    assert set(redeploy_dags(path)) == {"redeploy_orders", "redeploy_clicks", "redeploy_.problems"}
    monkeypatch.setattr(gated, "get_parsing_context", lambda: SimpleNamespace(dag_id="redeploy_orders", task_id="x"))
    assert set(redeploy_dags(path)) == {"redeploy_orders"}


def test_problems_are_no_dag(tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text("[deployments.bad]\nx = 1\n", encoding="utf-8")
    (problems,) = redeploy_dags(tmp_path / "jobs.toml").values()
    with pytest.raises(DeploymentsError, match="deployment 'bad': script: is missing"):
        problems.validate()
