"""The project file as tables: where it is found, and what it may hold."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from airflow_flinkcompat.airflow.operators import Deployment, FlinkSqlCompatibilityOperator, read_deployments
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.file import DEPLOYMENT_KEYS, find_project_file, read_tables
from airflow_flinkcompat.project.job_options import KEYS, NETWORK
from airflow_flinkcompat.project.settings import load_project

ORDERS = '[deployments.orders]\nscript = "orders.sql"\n'


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_keys_are_those_of_a_deployment_in_airflow() -> None:
    assert {*Deployment.model_fields} - {"name"} == {*DEPLOYMENT_KEYS}


def test_the_gate_takes_and_describes_each_declared_key_of_a_deployment() -> None:
    operators = [cls for cls in FlinkSqlCompatibilityOperator.__mro__ if "flinkcompat" in cls.__module__]
    made = [vars(cls)["__init__"] for cls in operators if "__init__" in vars(cls)]
    taken = {name for each in made for name in inspect.signature(each).parameters}
    keys = {NETWORK, *(key for key, each in KEYS.items() if not each.of_file)}
    assert keys - taken == set()
    described = "\n".join(str(cls.__doc__) for cls in operators)
    assert [key for key in sorted(keys) if f"{key}: {KEYS[key].help.split('{')[0]}" not in described] == []


def test_the_nearest_file_upwards_counts(tmp_path: Path) -> None:
    outer = write(tmp_path / "flinkcompat.toml", ORDERS)
    script = tmp_path / "jobs" / "deep" / "orders.sql"
    assert find_project_file(script) == outer, "a script need not be there"
    assert find_project_file(tmp_path) == outer
    write(script.parents[1] / "pyproject.toml", "[tool.other]\nx = 1\n")
    assert find_project_file(script) == outer, "a pyproject.toml without the table is passed over"
    inner = write(script.parents[1] / "pyproject.toml", "[tool.flinkcompat]\nengine = 'flink'\n")
    assert find_project_file(script) == inner
    beside = write(script.parents[1] / "flinkcompat.toml", ORDERS)
    assert find_project_file(script) == beside, "the file of its own goes before a table"


def test_no_file_outside_of_the_repository_counts(tmp_path: Path) -> None:
    write(tmp_path / "flinkcompat.toml", ORDERS)
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    assert find_project_file(repository / "jobs") is None
    assert find_project_file(tmp_path) is not None


def test_a_pyproject_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", "[tool\n")
    with pytest.raises(InputError, match=r"pyproject\.toml:1:6: is not valid TOML: "):
        find_project_file(tmp_path / "orders.sql")


def test_one_file_serves_the_command_line_and_dags(tmp_path: Path) -> None:
    """What is said at the top, under [defaults] and of a deployment comes to the same for both."""
    path = write(
        tmp_path / "flinkcompat.toml",
        """
        engine = "flink"
        engine_version = "2.3"
        fail_on = "partial"
        ledger = "s3://bucket/ledger"
        settings."table.exec.state.ttl" = "1 d"
        functions = { f = "scalar:python" }
        policy = { partial = "resume" }

        [stopped]
        views = "2026-01-01 by ana"

        [defaults]
        check.engine_version = "1.20"
        settings.parallelism.default = 4
        deploy.settle_seconds = 30

        [deployments.orders]
        script = "jobs/orders.sql"

        [deployments.clicks]
        script = "jobs/clicks.sql"
        engine = "vvr"
        engine_version = "8.0.11"
        settings."table.exec.state.ttl" = "2 d"
        policy.unknown = "reject"
        migrate = true
        backfill.to = "2026-01-01"
        """,
    )
    of_dags = {each.name: each for each in read_deployments(path).deployments}
    project = load_project(path)
    assert read_deployments(path).problems == ()
    assert [each.name for each in project.deployments] == ["orders", "clicks"]
    for each in project.deployments:
        one = of_dags[each.name]
        assert (one.script, one.ledger, one.settings) == (each.script, each.ledger, each.options.settings)
        assert (one.check["engine"], one.check["engine_version"]) == (each.options.engine, each.options.engine_version)
        assert one.has_backfill is each.backfills
    orders, clicks = project.deployments
    assert (orders.options.engine, orders.options.engine_version) == ("flink", "1.20"), "[defaults] goes over the top"
    assert orders.options.settings == {"table.exec.state.ttl": "1 d", "parallelism.default": "4"}
    assert clicks.options.settings == {"table.exec.state.ttl": "2 d", "parallelism.default": "4"}
    assert (orders.policy.partial, orders.policy.unknown, orders.policy.incompatible) == (
        "resume",
        "approve",
        "approve",
    )
    assert (clicks.policy.partial, clicks.policy.unknown, clicks.policy.incompatible) == ("resume", "reject", "restart")
    assert (project.fail_on, project.ledger, project.common.engine) == ("partial", "s3://bucket/ledger", "flink")
    assert project.stopped == {"views": "2026-01-01 by ana"}
    assert (orders.migrates, clicks.migrates) == (False, True)


def test_a_pyproject_holds_the_same(tmp_path: Path) -> None:
    text = f'[tool.flinkcompat]\nengine = "flink"\n{ORDERS.replace("[", "[tool.flinkcompat.")}'
    path = write(tmp_path / "pyproject.toml", text)
    assert load_project(path).deployments[0].options.engine == "flink"
    assert read_deployments(path).deployments[0].check == {"engine": "flink"}
    with pytest.raises(InputError, match=r"pyproject\.toml: the table \[tool\.flinkcompat\] is missing"):
        read_tables(write(tmp_path / "pyproject.toml", "[project]\n"))


def test_what_is_said_twice_is_a_mistake(tmp_path: Path) -> None:
    path = write(tmp_path / "flinkcompat.toml", f'{ORDERS}engine = "vvr"\ncheck.engine = "flink"\n')
    (line,) = read_deployments(path).problems
    assert line == f"{path}:3:1: deployment 'orders': engine: is set twice, here and as check.engine; remove one"
    assert load_project(path).broken == {"orders": (line,)}


def test_who_looks_for_waivers_here_is_told_where_they_are(tmp_path: Path) -> None:
    path = write(tmp_path / "flinkcompat.toml", f'[[accept]]\nrule = "window-changed"\n{ORDERS}')
    with pytest.raises(InputError, match=":1:3: accept: is unknown here: waive findings with flinkcompat accept"):
        load_project(path)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("ledgers", "{}/p/ledgers"),
        ("../ledgers", "{}/p/../ledgers"),
        *((place, place) for place in ("/mnt/ledgers", "s3://bucket/ledgers", "file:///ledgers", "~/ledgers")),
    ],
)
@pytest.mark.parametrize("table", ["", "[defaults]\n", "[deployments.orders]\n"])
def test_a_ledger_counts_from_the_folder_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, read: str, table: str
) -> None:
    said = f"{table}ledger = '{written}'\n"
    text = f"{ORDERS}ledger = '{written}'\n" if "deployments" in table else said + ORDERS
    path, wanted = write(tmp_path / "p" / "flinkcompat.toml", text), read.format(tmp_path)
    for folder, name in ((tmp_path, Path("p/flinkcompat.toml")), (path.parent, path)):
        monkeypatch.chdir(folder)
        (of_command,) = load_project(name).deployments
        (of_dag,) = read_deployments(name).deployments
        assert (of_command.ledger, of_dag.ledger) == (wanted, wanted)


def test_a_template_of_a_ledger_is_left_to_airflow(tmp_path: Path) -> None:
    path = write(tmp_path / "flinkcompat.toml", f"ledger = '{{{{ var.value.ledger }}}}'\n{ORDERS}")
    assert read_deployments(path).deployments[0].ledger == "{{ var.value.ledger }}"
