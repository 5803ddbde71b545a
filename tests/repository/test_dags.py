"""The example DAGs: short, free of import errors, cheap to parse, and shaped as it says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.compat.deployable import obstacles
from airflow_flinkcompat.deploy.redeploy.preconditions import read_hand_over
from tests.support.airflow.operators.versions import DagBag, DagSerialization

DAGS = Path(__file__).parents[2] / "dags"
FILE = DAGS / "flink_gated_deploy.py"
HAND_OVER = DAGS / "flink_hand_over.py"
DEPLOYMENTS = DAGS / "flink_deployments.py"
TABLE_API = DAGS / "flink_table_api.py"
# What a DAG processor must not pay for.
HEAVY = ("sqlglot", "pyspark", "kubernetes")


IMPORTS = {
    "packages": "import airflow_flinkcompat.airflow.operators, airflow_flinkcompat.airflow.sensors",
    "every name": (
        "from airflow_flinkcompat.airflow.operators import *; from airflow_flinkcompat.airflow.sensors import *"
    ),
    "the rest": "import airflow_flinkcompat.airflow.hooks.flink, airflow_flinkcompat.airflow.triggers.change",
    "provider": "from airflow_flinkcompat.airflow.provider_info import get_provider_info; get_provider_info()",
    "the DAG file": f"import runpy; runpy.run_path({str(FILE)!r})",
    "the second DAG file": f"import runpy; runpy.run_path({str(HAND_OVER)!r})",
    "the DAG file of a program": f"import runpy; runpy.run_path({str(TABLE_API)!r})",
    "the DAG file of many deployments": f"import runpy; runpy.run_path({str(DEPLOYMENTS)!r})",
    # The measure itself must notice.
    "sqlglot": "import airflow_flinkcompat, sqlglot",
}


@pytest.fixture(scope="module")
def heavy_imports() -> dict[str, list[str]]:
    """The heavy modules that are loaded after each of IMPORTS, in a fresh interpreter that has Airflow loaded."""
    script = f"""
import json, sys
import airflow.sdk, airflow.providers.standard.operators.hitl
seen = {{}}
for name, code in {IMPORTS!r}.items():
    exec(code)
    seen[name] = sorted(set({HEAVY!r}) & set(sys.modules))
print(json.dumps(seen))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=FILE.parents[1],
        env={**os.environ, "PYTHONPATH": str(FILE.parents[1])},
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in IMPORTS if name != "sqlglot"])
def test_parsing_pulls_in_nothing_heavy(heavy_imports: dict[str, list[str]], name: str) -> None:
    assert heavy_imports[name] == []


@pytest.mark.slow
def test_the_measure_would_notice(heavy_imports: dict[str, list[str]]) -> None:
    assert heavy_imports["sqlglot"] == ["sqlglot"]


GATED = {
    ("changed", "check"),
    ("check", "deploy_first"),
    ("check", "resume"),
    ("check", "restart"),
    ("check", "approve"),
    ("approve", "resume"),
    ("approve", "restart"),
    ("restart", "backfill"),
}
"""The tasks of a gated redeploy, each with one below it."""


def edges(dag: DAG) -> set[tuple[str, str]]:
    return {(task.task_id, below) for task in dag.tasks for below in task.downstream_task_ids}


def load_all(file: Path) -> dict[str, Any]:
    bag = DagBag(file, collect_dags=False)
    bag.process_file(str(file))
    assert bag.import_errors == {}
    return dict(bag.dags)


def load(file: Path = FILE) -> Any:
    return load_all(file)[file.stem]


@pytest.fixture(scope="module")
def dag() -> DAG:
    return load()


@pytest.mark.parametrize("file", [FILE, HAND_OVER, DEPLOYMENTS])
def test_it_is_short(file: Path) -> None:
    assert len(file.read_text(encoding="utf-8").splitlines()) < 60


def test_its_shape(dag: DAG) -> None:
    assert edges(dag) == GATED | {("check", "migrate"), ("approve", "migrate")}


def test_every_branch_is_labelled_and_leads_to_a_task(dag: DAG) -> None:
    for branching in ("check", "approve"):
        task: Any = dag.get_task(branching)
        targets = {target for ids in task.branches.values() for target in ids}
        assert targets == task.downstream_task_ids
        assert all(dag.get_edge_info(branching, target).get("label") for target in targets)


def test_tasks_on_several_branches_run_on_one(dag: DAG) -> None:
    for task in dag.tasks:
        joined = len(task.upstream_task_ids) > 1
        assert (task.trigger_rule == "none_failed_min_one_success") == joined, task.task_id


def test_what_is_resumed_and_what_starts_empty(dag: DAG) -> None:
    modes = {task.task_id: task.start_mode for task in dag.tasks if hasattr(task, "start_mode")}
    assert modes == {
        "deploy_first": "stateless", "resume": "savepoint", "migrate": "migrated", "restart": "stateless",
    }  # fmt: skip


def test_its_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLINKCOMPAT_DEPLOYMENT", "clicks")
    monkeypatch.setenv("FLINKCOMPAT_SCRIPT", "/jobs/clicks.sql")
    monkeypatch.setenv("FLINKCOMPAT_BACKFILL", json.dumps({"tables": {"clicks": "/archive"}, "to": "2026-01-01"}))
    monkeypatch.setenv("FLINKCOMPAT_MIGRATE", json.dumps({"plan_dir": "/plans"}))
    found = load()
    assert {task.deployment for task in found.tasks} == {"clicks"}
    assert found.get_task("migrate").plan_dir == "/plans"
    assert found.get_task("check").script == "/jobs/clicks.sql"
    assert (found.get_task("backfill").tables, found.get_task("backfill").to) == ({"clicks": "/archive"}, "2026-01-01")


def test_the_script_itself_is_not_stored_with_the_dag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "orders.sql"
    script.write_text("CREATE TABLE t (a INT) WITH ('password' = 'planted-pw');")
    monkeypatch.setenv("FLINKCOMPAT_SCRIPT", str(script))
    stored = json.dumps(DagSerialization.to_dict(load()), default=str)
    assert "planted-pw" not in stored
    assert str(script) in stored


def test_examples_deploy_jobs_of_their_own_whose_scripts_are_there() -> None:
    dags = [load(FILE), load(HAND_OVER), load(TABLE_API), *load_all(DEPLOYMENTS).values()]
    checks: list[Any] = [dag.get_task("check") for dag in dags]
    names = [check.deployment for check in checks]
    assert len(names) == len(set(names)) == 5
    assert all((DAGS / check.script).is_file() for check in checks)
    for dag, task in zip(dags, checks, strict=True):
        assert {"flink", "example"} <= dag.tags
        if task.script.endswith(".sql"):
            side = Side((DAGS / task.script).read_text(encoding="utf-8"), engine="flink", source=task.script)
            assert obstacles(side) == ()
            assert side.program.problems == ()


def test_no_example_deploys_the_job_of_another_unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLINKCOMPAT_DEPLOYMENT", "shared")  # as `make up` and compose.env name one
    dags = [load(FILE), load(HAND_OVER), load(TABLE_API), *load_all(DEPLOYMENTS).values()]
    sharing = {dag.dag_id for dag in dags if dag.get_task("check").deployment == "shared"}
    assert sharing == {"flink_gated_deploy", "flink_hand_over"}


def test_those_that_may_share_a_job_say_so() -> None:
    for file, other in ((FILE, "flink_hand_over"), (HAND_OVER, "flink_gated_deploy")):
        text = str(load(file).doc_md)
        assert "FLINKCOMPAT_DEPLOYMENT" in text
        assert other in text
        assert load(file).description


# --- the hand-over ----------------------------------------------------------------------------------------------------


def test_nothing_starts_before_the_hand_over_is_worked_out() -> None:
    dag = load(HAND_OVER)
    edges = {(task.task_id, below) for task in dag.tasks for below in task.downstream_task_ids}
    assert edges == {
        ("check", "resume"),
        ("check", "hand_over"),
        ("check", "approve"),
        ("approve", "resume"),
        ("approve", "hand_over"),
        ("hand_over", "restart"),
        ("restart", "backfill"),
    }
    test_every_branch_is_labelled_and_leads_to_a_task(dag)
    test_tasks_on_several_branches_run_on_one(dag)


def test_one_boundary_for_the_record_the_start_and_the_backfill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLINKCOMPAT_HISTORY", json.dumps({"tables": {"t": "/archive"}, "from_": "2025-12-01"}))
    script = tmp_path / "sums.sql"
    script.write_text(
        "CREATE TABLE t (ts TIMESTAMP(3), a INT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) "
        "WITH ('connector' = 'filesystem', 'path' = '/live', 'format' = 'csv');"
        "CREATE TABLE o (ws TIMESTAMP(3), we TIMESTAMP(3), s INT) "
        "WITH ('connector' = 'delta', 'table-path' = '/sums');"
        "INSERT INTO o SELECT window_start, window_end, SUM(a) FROM "
        "TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end;"
    )
    monkeypatch.setenv("FLINKCOMPAT_SCRIPT", str(script))
    dag = load(HAND_OVER)
    plan, restart, backfill = (dag.get_task(name) for name in ("hand_over", "restart", "backfill"))
    assert (plan.only_plan, backfill.only_plan) == (True, False)
    context = {"params": {"boundary": "2026-01-01T12:00:00+00:00"}}
    for task in (plan, backfill):
        task.render_template_fields(context)
        assert (task.boundary, task.from_, task.tables) == (
            "2026-01-01T12:00:00+00:00", "2025-12-01", {"t": "/archive"},
        )  # fmt: skip
    done = json.loads(json.dumps(plan.execute({})))
    assert (done["hand_over"]["boundary"], done["hand_over"]["sources"][0]["table"]) == ("2026-01-01 12:00:00", "t")
    restart.render_template_fields({"ti": _Ti({"hand_over": done})})
    assert restart.start_mode == "stateless"
    assert read_hand_over(restart.hand_over).to_dict() == done["hand_over"]


class _Ti:
    """As much of a task instance as an XCom is pulled by."""

    def __init__(self, xcoms: dict[str, Any]) -> None:
        self.xcoms = xcoms

    def xcom_pull(self, task_ids: str) -> Any:
        return self.xcoms[task_ids]


# --- many deployments -------------------------------------------------------------------------------------------------


def test_a_dag_for_each_deployment_of_the_example() -> None:
    dags = load_all(DEPLOYMENTS)
    assert set(dags) == {"redeploy_sessions", "redeploy_clicks"}
    assert all((dag.max_active_runs, dag.schedule) == (1, "@continuous") for dag in dags.values())
    orders, clicks = dags["redeploy_sessions"], dags["redeploy_clicks"]
    assert [user["id"] for user in orders.get_task("approve").assigned_users] == ["ana", "7"]
    assert (orders.has_task("backfill"), clicks.has_task("backfill")) == (True, False)
    assert clicks.get_edge_info("check", "rehearse")["label"] == "compatible or partial"
    assert clicks.get_task("rehearse").downstream_task_ids == {"resume"}
    assert not orders.has_task("rehearse")
    for dag in dags.values():
        assert dag.get_task("resume").settle_seconds == 30
        assert str(DAGS) in dag.get_template_env().loader.searchpath


def test_history_is_recomputed_up_to_the_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(DEPLOYMENTS.with_suffix(".toml"), tmp_path)
    (tmp_path / "orders.sql").write_text("SELECT 1;", encoding="utf-8")
    monkeypatch.setenv("FLINKCOMPAT_DEPLOYMENTS", str(tmp_path / "flink_deployments.toml"))
    backfill = load_all(DEPLOYMENTS)["redeploy_sessions"].get_task("backfill")
    backfill.render_template_fields({"ti": _Ti({"restart": {"at": "2026-11-21T10:00:00.000+00:00"}})})
    assert backfill.to == "2026-11-21T10:00:00.000+00:00"


def test_the_file_of_deployments_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.toml").write_text('[deployments.mine]\nscript = "mine.sql"\n', encoding="utf-8")
    monkeypatch.setenv("FLINKCOMPAT_DEPLOYMENTS", str(tmp_path / "mine.toml"))
    assert set(load_all(DEPLOYMENTS)) == {"redeploy_mine"}


# --- a program of the Table API ---------------------------------------------------------------------------------------


def test_a_program_is_checked_by_the_gate_and_started_by_the_dag_itself() -> None:
    bag = DagBag(DAGS)  # the program beside is no DAG file
    assert bag.import_errors == {}
    assert {"flink_table_api", "flink_gated_deploy"} <= set(bag.dags)
    dag = load(TABLE_API)
    assert edges(dag) == GATED
    test_every_branch_is_labelled_and_leads_to_a_task(dag)
    test_tasks_on_several_branches_run_on_one(dag)
    starts = {name: dag.get_task(name) for name in ("deploy_first", "resume", "restart")}
    assert {name: task.env["START_MODE"] for name, task in starts.items()} == {
        "deploy_first": "stateless", "resume": "savepoint", "restart": "stateless",
    }  # fmt: skip
    assert {task.retries for task in starts.values()} == {0}


def test_the_program_of_the_example_is_read_whole_and_its_secret_is_a_placeholder() -> None:
    dag = load(TABLE_API)
    check_task = dag.get_task("check")
    check_task.render_template_fields({"params": {}}, dag.get_template_env())
    side = check_task.proposed_side("flink", "2.3")
    assert (side.program.problems, side.secrets) == ((), ())
    assert check(side, side).outcome is Outcome.COMPATIBLE
    (sink,) = (table for table in side.program.tables if table.name == "visits_per_page")
    assert dict(sink.options)["password"] == "${conn.warehouse.password}"
    longer = replace(side, variables={**side.variables, "WINDOW_MINUTES": "20"})
    assert check(side, longer).outcome is Outcome.INCOMPATIBLE


def test_the_backfill_of_a_program_ends_where_its_restart_says() -> None:
    dag = load(TABLE_API)
    backfill = dag.get_task("backfill")
    backfill.render_template_fields({"ti": _Ti({"restart": "2026-11-21T10:00:00Z"})}, dag.get_template_env())
    request = backfill.request()
    assert (request.job.language, str(request.to)) == ("python", "2026-11-21 10:00:00+00:00")


FLINK = """\
#!/bin/sh
echo "flink $*" >> "$CALLS"
case "$1" in
  stop) {stop} ;;
  run) echo "Job has been submitted with JobID {job}" ;;
esac
"""
STOPPED = 'echo "Suspending job."; echo "Savepoint completed. Path: file:/savepoints/savepoint-1"'


@pytest.mark.parametrize(
    ("start_mode", "deployed", "stop", "code", "calls"),
    [
        ("stateless", False, STOPPED, 0, ["flink run -d -py programs/visits.py", "adopt"]),
        ("stateless", True, STOPPED, 0, ["flink stop", "flink run -d -py programs/visits.py", "adopt"]),
        ("savepoint", True, STOPPED, 0,
         ["flink stop", "flink run -d -s file:/savepoints/savepoint-1 -py programs/visits.py", "adopt"]),
        ("savepoint", False, STOPPED, 1, []),
        ("savepoint", True, "echo nothing", 1, ["flink stop"]),
        ("stateless", True, "echo refused; exit 3", 1, ["flink stop"]),
        ("stateless", None, STOPPED, 1, []),
    ],
)  # fmt: skip
def test_the_start_of_a_program_step_by_step(
    tmp_path: Path, start_mode: str, deployed: bool | None, stop: str, code: int, calls: list[str]
) -> None:
    """The commands themselves are stand-ins; ``deployed`` None: the ledger cannot be read."""
    old, new = "a" * 32, "b" * 32
    show = {
        True: f"""echo '{{"entry": {{"job_id": "{old}"}}}}'""",
        False: "echo 'no entry in /ledger/visits' >&2; exit 2",
        None: "echo 'the ledger is not there' >&2; exit 2",
    }[deployed]
    ledger = f'#!/bin/sh\nif [ "$2" = show ]; then {show}; else echo "$2 $*" >> "$CALLS"; fi\n'
    for name, text in (("flink", FLINK.format(stop=stop, job=new)), ("flinkcompat", ledger)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    task = load(TABLE_API).get_task("resume")
    env = {**task.env, "START_MODE": start_mode, "CALLS": str(tmp_path / "calls"), "WAREHOUSE_PASSWORD": "planted-pw"}
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = subprocess.run(["bash", "-c", task.bash_command], env={**env, "PATH": path}, capture_output=True, text=True)
    seen = (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []
    assert (done.returncode, [s for s, c in zip(seen, calls, strict=False) if s.startswith(c)]) == (code, seen)
    assert len(seen) == len(calls)
    assert "planted-pw" not in done.stdout + "".join(seen)
    if code == 0:
        assert f"--job-id {new} --script programs/visits.py" in seen[-1]
        assert "WAREHOUSE_PASSWORD=${conn.warehouse.password}" in seen[-1]
        assert done.stdout.splitlines()[-1].endswith("Z")
