"""Programs of the Table API through the gate: checked against the ledger, never rendered, never run by the Gateway."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowFailException, TaskDeferred
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, BaseOperator

from airflow_flinkcompat.airflow.operators import (
    Deployment,
    DeploymentsError,
    FlinkBackfillOperator,
    gated_redeploy,
    redeploy_dags,
)
from airflow_flinkcompat.airflow.sensors import FlinkSqlChangeSensor
from airflow_flinkcompat.airflow.tasks.base import ScriptOperator, side_of
from airflow_flinkcompat.airflow.tasks.offers import offer_of
from airflow_flinkcompat.airflow.triggers.change import fingerprint_of
from airflow_flinkcompat.deploy.ledger.entries import AdoptedEntry, JobStart
from airflow_flinkcompat.model import JobSpec
from tests.support.airflow.operators.fakes import TABLES, Run, script
from tests.support.airflow.operators.versions import DagSerialization
from tests.unit.airflow.operators.conftest import Site

PROGRAM = f'''\
import os
from pyflink.table import EnvironmentSettings, TableEnvironment
from pyflink.table.expressions import col, lit
from pyflink.table.window import Tumble

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
for ddl in ("""{TABLES.split(";")[0]}""", """{TABLES.split(";")[1].strip()}"""):
    t_env.execute_sql(ddl)
names = f"{{{{not a template}}}} {{{{ params.x }}}}"
window = Tumble.over(lit(int(os.environ["MINUTES"])).minutes).on(col("ts")).alias("w")
orders = t_env.from_path("orders").window(window).group_by(col("w"), col("shop"))
orders.select(col("w").start, col("shop"), col("price").sum).execute_insert("totals")
'''
BRANCHES = {"first": "first", "resume": "resume", "restart": "restart", "approve": "approve"}


def propose(site: Site, text: str = PROGRAM) -> None:
    (site.folder / "orders.py").write_text(text, encoding="utf-8")


def adopt(site: Site, text: str = PROGRAM, language: str = "python", **more: Any) -> AdoptedEntry:
    """The head of the ledger, as ``ledger adopt`` writes it."""
    given = {"MINUTES": "10"} if language == "python" else {}
    job = JobSpec(text, language=language, variables=given, engine="flink", engine_version="2.3", **more)
    return site.ledger.append(AdoptedEntry(job=job, start=JobStart(job_id="a" * 32)))


def checked(site: Site, minutes: str = "10", **check: Any) -> tuple[dict[str, Any], Any, Run]:
    """The summary of a check of orders.py, and the branches that were skipped."""
    tasks = site.tasks(script="orders.py", variables={"MINUTES": minutes}, check={"engine": "flink", **check})
    run = Run()
    skipped = run.execute(tasks["check"])
    return run.pushed["check", "summary"], skipped, run


@pytest.mark.parametrize(
    ("deployed", "language", "minutes", "outcome", "branch"),
    [
        (PROGRAM, "python", "10", "compatible", "resume"),
        (PROGRAM, "python", "20", "incompatible", "restart"),
        (script(10), "sql", "10", "incompatible", "restart"),
    ],
)
def test_a_program_is_checked_against_what_the_ledger_holds(
    site: Site, deployed: str, language: str, minutes: str, outcome: str, branch: str
) -> None:
    adopt(site, deployed, language=language)
    propose(site)
    summary, skipped, _ = checked(site, minutes)
    assert (summary["outcome"], summary["branch"]) == (outcome, branch)
    assert branch not in skipped


def test_a_script_is_checked_against_a_program(site: Site) -> None:
    adopt(site)
    run, tasks, _ = site.checked(script(10), check={"engine": "flink"})
    assert run.pushed["check", "summary"]["outcome"] == "incompatible"
    assert tasks["check"].language is None


def test_what_flink_refuses_is_for_a_person_to_decide(site: Site) -> None:
    adopt(site)
    propose(site, PROGRAM.replace('.on(col("ts"))', '.on(col("shop"))'))
    summary, skipped, _ = checked(site)
    assert (summary["outcome"], summary["branch"]) == ("incompatible", "approve")
    assert "approve" not in skipped


def test_what_only_the_environment_knows_and_nobody_gave_is_unknown(site: Site) -> None:
    adopt(site)
    propose(site)
    run, tasks = Run(), site.tasks(script="orders.py", check={"engine": "flink"})
    run.execute(tasks["check"])
    summary = run.pushed["check", "summary"]
    assert (summary["outcome"], summary["branch"]) == ("unknown", "approve")
    assert "give --var MINUTES=" in json.dumps(summary["findings"])


def test_a_program_is_no_template_and_its_variables_are(site: Site) -> None:
    adopt(site)
    propose(site)
    tasks = site.tasks(script="orders.py", variables={"MINUTES": "{{ 5 * 2 }}"}, check={"engine": "flink"})
    run = Run()
    run.execute(tasks["check"])
    assert tasks["check"].rendered("script") == PROGRAM
    assert run.pushed["check", "summary"]["outcome"] == "compatible"


def test_a_program_given_as_text_names_its_language(site: Site) -> None:
    adopt(site)
    given = {"script": PROGRAM, "language": "python", "variables": {"MINUTES": "10"}}
    tasks = site.tasks(**given, check={"engine": "flink"})
    run = Run()
    run.execute(tasks["check"])
    assert run.pushed["check", "summary"]["outcome"] == "compatible"


def test_the_gateway_is_given_no_program(site: Site) -> None:
    propose(site)
    run, tasks = Run(), site.tasks(script="orders.py", variables={"MINUTES": "10"})
    run.execute(tasks["check"])
    with pytest.raises(AirflowFailException, match=r"flink run -py.*flinkcompat ledger adopt orders --job-id ID"):
        run.execute(tasks["first"])
    assert site.kinds() == ["checked"]


def test_plans_are_of_scripts(site: Site) -> None:
    adopt(site)
    propose(site)
    with pytest.raises(AirflowFailException, match="plans SQL scripts on engine flink: omit explain_plan"):
        checked(site, explain_plan=True)


def test_secrets_of_a_program_are_shown_nowhere(site: Site, logs: list[Any]) -> None:
    adopt(site)
    propose(site, PROGRAM + '\nclient_secret: str = "planted-pw"\n')
    tasks = site.tasks(
        script="orders.py", variables={"MINUTES": "10", "DB_PASSWORD": "planted-pw"}, check={"engine": "flink"}
    )
    run = Run()
    words = r"orders\.py:\d+:\d+: client_secret is a secret in plain text"
    with pytest.raises(AirflowFailException, match=words) as failed:
        run.execute(tasks["check"])
    shown = [str(failed.value), *(str(getattr(tasks["check"], name)) for name in tasks["check"].template_fields)]
    stored = "".join(path.read_text() for path in (site.folder / "ledger").rglob("*.*"))
    assert "planted-pw" not in "".join([*shown, json.dumps(logs, default=str), stored, str(run.pushed)])
    assert 'client_secret: *** = "***"' in tasks["check"].script


def test_the_sensor_knows_a_program_again_by_text_and_variables(site: Site) -> None:
    entry = adopt(site)
    side = side_of(entry)
    assert not offer_of(side, site.ledger.entries()).offered
    for other in (
        {"variables": {"MINUTES": "20"}},
        {"script": PROGRAM + "x = 1\n"},
        {"language": "sql", "variables": {}},
        {"files": {"windows.py": "SIZE = 10\n"}},
    ):
        assert offer_of(replace(side, **other), site.ledger.entries()).offered


def test_a_backfill_gets_the_program_and_its_variables(site: Site) -> None:
    propose(site)
    with DAG("backfills", template_searchpath=str(site.folder)):
        task = FlinkBackfillOperator(
            task_id="backfill", deployment="orders", script="orders.py", variables={"MINUTES": "10"}, from_="2026-01-01"
        )
    Run().render(task)
    request = task.request()
    assert (request.job.language, request.job.variables, request.job.script) == ("python", {"MINUTES": "10"}, PROGRAM)


SPLIT = PROGRAM.replace("import os\n", "import os\nfrom windows import SIZE\n", 1).replace(
    'int(os.environ["MINUTES"])', "SIZE"
)


def split(site: Site, size: str) -> None:
    """The program with its window in a module beside it."""
    propose(site, SPLIT)
    (site.folder / "windows.py").write_text(f"SIZE = {size}\n", encoding="utf-8")


def test_a_program_is_checked_with_its_modules_against_those_it_was_deployed_with(site: Site) -> None:
    adopt(site, SPLIT, files={"windows.py": "SIZE = 10\n"})
    split(site, "10")
    assert checked(site)[0]["outcome"] == "compatible"
    split(site, "20")
    assert checked(site)[0]["outcome"] == "incompatible"


def test_what_was_deployed_without_its_modules_is_unknown(site: Site) -> None:
    adopt(site, SPLIT)
    split(site, "10")
    assert checked(site)[0]["outcome"] == "unknown"


def test_the_sensor_watches_modules_too(site: Site) -> None:
    adopt(site, SPLIT, files={"windows.py": "SIZE = 10\n"})
    split(site, "10")

    def look() -> Any:
        with DAG("d", template_searchpath=str(site.folder)):
            arguments: Any = {"deployment": "orders", "script": "orders.py", "ledger": str(site.folder / "ledger")}
            return Run().execute(FlinkSqlChangeSensor(task_id="changed", variables={"MINUTES": "10"}, **arguments))

    with pytest.raises(TaskDeferred) as deferred:
        look()
    trigger = deferred.value.trigger
    assert trigger.paths == [str(site.folder / name) for name in ("orders.py", "windows.py")]  # type: ignore[attr-defined]
    assert fingerprint_of(trigger.paths) == trigger.baseline  # type: ignore[attr-defined]
    split(site, "20")
    assert fingerprint_of(trigger.paths) != trigger.baseline  # type: ignore[attr-defined]
    assert "orders.py differs from entry 1" in look()["reason"]


def test_a_module_at_the_root_that_a_path_is_given_from(site: Site) -> None:
    """A bundle of DAGs has no ``.git`` as a rule."""
    (site.folder / "jobs").mkdir()
    (site.folder / "jobs" / "orders.py").write_text(SPLIT, encoding="utf-8")
    (site.folder / "windows.py").write_text("SIZE = 10\n", encoding="utf-8")
    absolute = str(site.folder / "jobs" / "orders.py")
    for text, files in (("jobs/orders.py", {"windows.py": "SIZE = 10\n"}), (absolute, {}), (SPLIT, {})):
        with DAG("backfills", template_searchpath=str(site.folder)):
            task = FlinkBackfillOperator(
                task_id="backfill", deployment="orders", script=text, language="python", from_="2026-01-01"
            )
        Run().render(task)
        assert task.request().job.files == files


def test_secrets_of_a_module_are_named_and_shown_nowhere(site: Site, logs: list[Any]) -> None:
    adopt(site, SPLIT, files={"windows.py": "SIZE = 10\n"})
    split(site, '10\npassword = "planted-pw"')
    with pytest.raises(AirflowFailException, match=r"windows\.py:2:12: password is a secret in plain text") as failed:
        checked(site)
    stored = "".join(path.read_text() for path in (site.folder / "ledger").rglob("*.*"))
    assert "planted-pw" not in "".join([json.dumps(logs, default=str), stored, str(failed.value)])


def started(**arguments: Any) -> BaseOperator:
    """A task of one's own that starts the program."""
    start_mode = arguments.pop("start_mode")
    return EmptyOperator(**arguments, doc=start_mode)


def test_the_gate_of_a_program_starts_it_with_a_task_of_ones_own() -> None:
    deployment = Deployment(name="orders", script="orders.py", variables={"MINUTES": "10"}, backfill={})
    with DAG("gate", max_active_runs=1) as dag:
        gated_redeploy(deployment, deploy=started)
    edges = {(task.task_id, below) for task in dag.tasks for below in task.downstream_task_ids}
    assert {("check", "deploy_first"), ("check", "resume"), ("approve", "restart"), ("restart", "backfill")} <= edges
    modes = {task.task_id: task.doc for task in dag.tasks if isinstance(task, EmptyOperator)}
    assert modes == {"deploy_first": "stateless", "resume": "savepoint", "restart": "stateless"}
    assert [dag.get_task(name).trigger_rule for name in ("resume", "restart")] == ["none_failed_min_one_success"] * 2
    scripted = [task for task in dag.tasks if isinstance(task, ScriptOperator)]
    assert {task.task_id for task in scripted} == {"changed", "check", "backfill"}
    assert all(task.variables == {"MINUTES": "10"} for task in scripted)
    DagSerialization.to_dict(dag)


def test_the_gate_of_a_program_without_such_a_task_is_an_import_error() -> None:
    with DAG("gate", max_active_runs=1), pytest.raises(ValueError, match=r"flink run -py"):
        gated_redeploy(Deployment(name="orders", script="orders.py"))


def test_a_file_of_deployments_says_that_a_program_needs_a_dag_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text('[deployments.a]\nscript = "a.py"\n[deployments.b]\nscript = "b.sql"\n')
    dags = redeploy_dags(tmp_path / "jobs.toml")
    assert set(dags) == {"redeploy_b", "redeploy_.problems"}
    with pytest.raises(DeploymentsError, match=r"deployment 'a': a.py is a program.*flink run -py"):
        dags["redeploy_.problems"].validate()


def test_a_program_is_found_missing_by_name(site: Site) -> None:
    with pytest.raises(AirflowFailException, match=r"script file 'orders.py' does not exist; looked in"):
        checked(site)
    assert Path(site.folder).is_dir()
