"""A file of deployments: what it may say, and what is said of a mistake."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import BaseNotifier
from pydantic import ValidationError

from airflow_flinkcompat.airflow.operators import (
    Deployment,
    DeploymentsError,
    FlinkSqlCompatibilityOperator,
    read_deployments,
    redeploy_dag,
    redeploy_dags,
)
from airflow_flinkcompat.airflow.operators.deployments import Deployments
from tests.support.airflow.operators.versions import SINCE_3_3

ORDERS = '[deployments.orders]\nscript = "orders.sql"\n'


def read(folder: Path, text: str) -> Deployments:
    path = folder / "jobs.toml"
    path.write_text(text, encoding="utf-8")
    return read_deployments(path)


def test_a_script_is_enough(tmp_path: Path) -> None:
    found = read(tmp_path, ORDERS)
    assert found.problems == ()
    assert found.deployments == (Deployment(name="orders", script="orders.sql"),)


def test_everything_it_may_say(tmp_path: Path) -> None:
    (one,) = read(
        tmp_path,
        """
        [defaults]
        ledger = "s3://bucket/ledger"
        tags = ["shop"]
        deploy = { settle_seconds = 30, start_timeout = 600 }

        [deployments.orders]
        script = "orders.sql"
        flink_conn_id = "flink_prod"
        functions = { f = "scalar:python" }
        approvers = ["ana", { id = "7", name = "Ben Okri" }]
        settings.table.exec.state.ttl = "1 d"
        settings."parallelism.default" = 4
        settings.pipeline.object-reuse = true

        [deployments.orders.changed]
        poke_interval = 5
        recheck = 60

        [deployments.orders.check]
        policy = { partial = "resume" }
        explain_plan = true
        plan_dir = "s3://plans"

        [deployments.orders.approve]
        response_timeout = 86400

        [deployments.orders.deploy]
        settle_seconds = 5
        retries = 3

        [deployments.orders.backfill]
        from_ = "2026-01-01"
        tables = { orders = "s3://archive/orders" }
        spark = { conf = { "spark.executor.memory" = "2g" } }
        """,
    ).deployments
    assert (one.ledger, one.flink_conn_id, one.tags) == ("s3://bucket/ledger", "flink_prod", ("shop",))
    assert one.settings == {
        "table.exec.state.ttl": "1 d",
        "parallelism.default": "4",
        "pipeline.object-reuse": "true",
    }
    assert [(user.id, user.name) for user in one.approvers] == [("ana", "ana"), ("7", "Ben Okri")]
    assert one.changed == {"poke_interval": 5, "recheck": timedelta(minutes=1)}
    assert one.check == {"policy": {"partial": "resume"}, "explain_plan": True, "plan_dir": "s3://plans"}
    assert one.approve == {"response_timeout": timedelta(days=1)}
    assert one.deploy == {"settle_seconds": 5, "start_timeout": 600, "retries": 3}
    assert one.backfill == {
        "from_": "2026-01-01",
        "tables": {"orders": "s3://archive/orders"},
        "spark": {"conf": {"spark.executor.memory": "2g"}},
    }


def test_planner_and_jars_of_the_project_file_are_the_gates(tmp_path: Path) -> None:
    (tmp_path / "flinkcompat.toml").write_text(
        f'planner = "never"\njars = ["lib/*.jar"]\nplanner_network = "allow"\n{ORDERS}'
    )
    check = redeploy_dags(tmp_path / "flinkcompat.toml")["redeploy_orders"].get_task("check")
    assert isinstance(check, FlinkSqlCompatibilityOperator)
    assert (check.planner, check.jars) == ("never", [str(tmp_path / "lib" / "*.jar")])
    assert check.planner_network == "allow"


def test_a_backfill_of_all_may_be_left_out_by_one(tmp_path: Path) -> None:
    text = f'[defaults.backfill]\nto = "2026-01-01"\n{ORDERS}[deployments.clicks]\nscript = "c.sql"\nbackfill = false\n'
    orders, clicks = read(tmp_path, text).deployments
    assert (orders.backfill, clicks.backfill) == ({"to": "2026-01-01"}, False)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("script = 'a.sql'\nownr = 'me'", "orders': ownr: is unknown; did you mean owner?"),
        ("script = 7", "orders': script: input should be a valid string"),
        ("script = ''", "orders': script: string should have at least 1 character"),
        ("x = 1\nscript = 'a.sql'", "orders': x: is unknown; choose from script, settings, functions, catalog"),
        ("owner = 'me'", "orders': script: is missing"),
        ("name = 'other'\nscript = 'a.sql'", "orders': name: [deployments.orders] already sets it; remove it"),
        ("script = 'a.sql'\ndeploy.settle = 5", "orders': deploy.settle: is unknown; did you mean settle_seconds?"),
        ("script = 'a.sql'\ndeploy.settle_seconds = 'ten'", "orders': deploy.settle_seconds: input should be a valid"),
        ("script = 'a.sql'\nbackfill.form = ''", "orders': backfill.form: is unknown; did you mean from_?"),
        ("script = 'a.sql'\nbackfill = true", "orders': backfill: input should be"),
        ("script = 'a.sql'\nbackfill.tables = 3", "orders': backfill.tables: input should be a valid"),
        ("script = 'a.sql'\napprovers = 'ana'", "orders': approvers: input should be a valid tuple"),
        ("script = 'a.sql'\napprovers = [{ id = 'a' }]", "orders': approvers.1.name: is missing"),
        ("script = 'a.sql'\nsettings.a = []", "orders': settings.a: input should be a valid string"),
        # What all tasks share, or their order decides, is not for one task to say.
        ("script = 'a.sql'\ncheck.script = 'b.sql'", "orders': check.script: is unknown"),
        ("script = 'a.sql'\ndeploy.start_mode = 'stateless'", "orders': deploy.start_mode: is unknown"),
        ("script = 'a.sql'\nbackfill.dry_run = true", "orders': backfill.dry_run: is unknown"),
        ("script = 'a.sql'\nstart_mode = 'shade'", "orders': start_mode: input should be 'savepoint' or 'shadow'"),
        ("script = 'a.sql'\nshadow.duration = 90", "orders': shadow.duration: input should be a valid string"),
        ("script = 'a.sql'\nshadow.for = '1min'", "orders': shadow.for: is unknown; choose from"),
        ("script = 'a.py'\nstart_mode = 'shadow'", "orders': start_mode: shadow runs are for SQL scripts"),
        ("script = 'a.sql'\nplan_only = true\nstart_mode = 'shadow'", "orders': start_mode: plan_only starts no job"),
    ],
)
def test_a_mistake_is_named_by_file_deployment_and_key(tmp_path: Path, table: str, problem: str) -> None:
    found = read(tmp_path, f'[deployments.good]\nscript = "good.sql"\n[deployments.orders]\n{table}\n')
    assert [one.name for one in found.deployments] == ["good"], "it is not the end of the others"
    (line,) = found.problems
    place, _, words = line.removeprefix(f"{tmp_path / 'jobs.toml'}:").partition(": ")
    assert words.startswith(f"deployment '{problem}")
    row, column = map(int, place.split(":"))
    written = (tmp_path / "jobs.toml").read_text().splitlines()[row - 1][column - 1 :]
    key = words.split(": ")[1]
    # A key that is missing is placed at the innermost table that lacks it: here a deployment, or an element of a list.
    assert written.startswith(("orders", "{ id") if "is missing" in words else key.rpartition(".")[2])


def test_every_mistake_is_told_and_no_value(tmp_path: Path) -> None:
    found = read(tmp_path, ORDERS + 'ledger = ["planted-pw"]\nowner = 3\n[deployments."-x"]\nscript = "a.sql"\n')
    assert len(found.problems) == 3
    assert "planted-pw" not in "".join(found.problems)
    assert "deployment '-x': a name has 1 to 128 letters" in found.problems[2]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[deployments.orders\n", r"jobs\.toml:1:20: is not valid TOML"),
        (ORDERS + ORDERS, r"jobs\.toml:3:20: is not valid TOML"),
        ("deployments = 3", r"jobs\.toml:1:1: deployments: a table is needed, \[deployments\]"),
        ("defaults = 3", r"jobs\.toml:1:1: defaults: a table is needed"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(DeploymentsError, match=problem):
        read(tmp_path, text)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(DeploymentsError, match=r"none\.toml: the project file cannot be read: No such file"):
        read_deployments(tmp_path / "none.toml")
    (tmp_path / "jobs.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(DeploymentsError, match="is not UTF-8 text"):
        read_deployments(tmp_path / "jobs.toml")


def test_what_else_stands_in_the_file_is_named(tmp_path: Path) -> None:
    found = read(tmp_path, f"[deployment.x]\n{ORDERS}")
    assert found.problems == (f"{tmp_path / 'jobs.toml'}:1:2: deployment: is unknown; did you mean deployments?",)


def test_a_deployment_is_a_table(tmp_path: Path) -> None:
    found = read(tmp_path, "[deployments]\nclicks = 3\n")
    assert found.problems == (
        f"{tmp_path / 'jobs.toml'}:2:1: deployment 'clicks': a table is needed, [deployments.clicks]",
    )


@pytest.mark.parametrize("arguments", [{"name": "a b", "script": "a.sql"}, {"name": "a"}])
def test_in_python_it_is_checked_as_well(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Deployment(**arguments)


def note(context: Any, where: str = "") -> str:
    """A callback, named by import path."""
    return f"{where}{context}"


class Bell(BaseNotifier):
    """A notifier, named by import path."""

    def __init__(self, text: str = "decide") -> None:
        super().__init__()
        self.text = text

    def notify(self, context: Any) -> None: ...


HERE = __name__
TAKEN = f"""
[deployments.orders]
script = "orders.sql"
default_args = {{ retries = 5, on_failure_callback = "{HERE}:note", email_on_failure = false }}
approve.notifiers = [{{ path = "{HERE}:Bell", arguments = {{ text = "please" }} }}, "{HERE}.Bell"]
approve.params = {{ reason = "" }}

[deployments.orders.deploy]
on_success_callback = ["{HERE}:note", {{ path = "{HERE}.note", arguments = {{ where = "deployed " }} }}]
outlets = ["flink://orders", {{ name = "totals", uri = "s3://lake/totals", extra = {{ team = "shop" }} }}]
priority_weight = 7
pool = "flink"
pool_slots = 2
executor = "LocalExecutor"
trigger_rule = "none_failed_min_one_success"
doc_md = "The start."
max_retry_delay = 60
"""


def test_deployments_take_what_tasks_take(tmp_path: Path) -> None:
    found = read(tmp_path, TAKEN)
    assert found.problems == ()
    (one,) = found.deployments
    dag = redeploy_dag(one)
    approve, resume = dag.get_task("approve"), dag.get_task("resume")
    assert [bell.text for bell in approve.notifiers] == ["please", "decide"]
    assert dict(approve.params) == {"reason": ""}
    assert [task.retries for task in dag.tasks] == [5] * len(dag.tasks)
    assert all([each("x") for each in task.on_failure_callback] == ["x"] for task in dag.tasks)
    assert [each("x") for each in resume.on_success_callback] == ["x", "deployed x"]
    assert [asset.uri for asset in resume.outlets[:2]] == ["flink://orders/", "s3://lake/totals"]
    assert resume.outlets[1].extra == {"team": "shop"}
    assert (resume.priority_weight, resume.pool, resume.pool_slots, resume.executor) == (7, "flink", 2, "LocalExecutor")
    assert (resume.trigger_rule, resume.doc_md) == ("none_failed_min_one_success", "The start.")
    assert resume.max_retry_delay == timedelta(minutes=1)


@SINCE_3_3
def test_the_notifiers_of_a_deployment_hear_of_all_that_has_some(tmp_path: Path) -> None:
    text = f"""
    [deployments.orders]
    script = "orders.sql"
    migrate = true
    notifiers = [{{ path = "{HERE}:Bell", arguments = {{ text = "all" }} }}]
    approve.decision_notifiers = "{HERE}:Bell"
    approve.approvers_needed = 2
    approve.authors = {{ "ada@example.com" = "7" }}
    approve.escalate_to = ["9", {{ id = "11", name = "carl" }}]
    approve.escalate_after = 3600
    approvers = ["7", "8"]
    deploy.rollback_notifiers = {{ path = "{HERE}:Bell", arguments = {{ text = "back" }} }}
    [deployments.clicks]
    script = "clicks.sql"
    notifiers = "{HERE}:Bell"
    migrate = true
    """
    orders, clicks = (redeploy_dag(one) for one in read(tmp_path, text).deployments)

    def heard(dag: Any, task: str, when: str) -> list[str]:
        return [bell.text for bell in getattr(dag.get_task(task), when)]

    assert [heard(orders, "approve", when) for when in ("notifiers", "decision_notifiers")] == [["all"], ["decide"]]
    approve = orders.get_task("approve")
    assert (approve.approvers_needed, approve.author_may_approve, approve.escalate_after) == (2, False, 3600)
    assert approve.authors == {"ada@example.com": ["7"]}
    assert [person.name for person in approve.escalate_to] == ["9", "carl"]
    starts = ("deploy_first", "resume", "restart", "migrate")
    assert [heard(orders, task, "rollback_notifiers") for task in starts] == [["back"]] * 4
    assert [heard(clicks, task, "rollback_notifiers") for task in starts] == [["decide"]] * 4
    assert [heard(clicks, "approve", when) for when in ("notifiers", "decision_notifiers")] == [["decide"]] * 2


def test_objects_are_taken_as_they_are() -> None:
    bell = Bell()
    one = Deployment(name="o", script="o.sql", approve={"notifiers": [bell], "on_success_callback": note})
    approve = redeploy_dag(one).get_task("approve")
    assert (list(approve.notifiers), list(approve.on_success_callback)) == ([bell], [note])


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (
            "approve.notifiers = 'no_such_module_x:f'",
            "approve.notifiers: 'no_such_module_x:f': there is no module no_such",
        ),
        ("notifiers = 'no_such_module_x:f'", "notifiers: 'no_such_module_x:f': there is no module no_such"),
        ("approve.approvers_needed = 3", "approve.approvers_needed: input should be 1 or 2"),
        ("deploy.rollback_notifiers = 7", "deploy.rollback_notifiers: 7 is neither a function nor a notifier"),
        (f"approve.notifiers = '{HERE}:nothing'", f"approve.notifiers: '{HERE}:nothing': module {HERE} has no nothing"),
        (
            "deploy.on_failure_callback = 'plain'",
            "deploy.on_failure_callback: 'plain' is not an import path; write package",
        ),
        (f"deploy.on_failure_callback = '{HERE}:HERE'", "is neither a function nor a notifier"),
        (
            f"approve.notifiers = {{ path = '{HERE}:Bell', arguments = {{ txt = 'x' }} }}",
            "does not accept these arguments",
        ),
        (f"approve.notifiers = {{ path = '{HERE}:Bell', args = 1 }}", "args is unknown; write path and arguments"),
        ("deploy.outlets = [{ url = 's3://x' }]", "deploy.outlets: is not an asset"),
        ("deploy.priority_weigth = 3", "deploy.priority_weigth: is unknown; did you mean priority_weight?"),
        ("deploy.pool_slots = 'two'", "deploy.pool_slots: input should be a valid integer"),
        ("default_args.retrys = 1", "default_args.retrys: is unknown; did you mean retries?"),
        ("approve.assigned_users = []", "approve.assigned_users: is unknown"),
        ("deploy.task_id = 'x'", "deploy.task_id: is unknown"),
    ],
)
def test_a_mistake_in_what_tasks_take_is_named(tmp_path: Path, table: str, problem: str) -> None:
    (line,) = read(tmp_path, f"[deployments.orders]\nscript = 'a.sql'\n{table}\n").problems
    assert line.startswith(f"{tmp_path / 'jobs.toml'}:3:")
    assert "deployment 'orders': " in line
    assert problem in line
