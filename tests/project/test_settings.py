"""What the command line takes of a project file, and what is said of a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.model import FunctionDeclaration, InputError
from airflow_flinkcompat.project import ProjectFile, load_project


def load(folder: Path, text: str) -> ProjectFile:
    path = folder / "flinkcompat.toml"
    path.write_text(text, encoding="utf-8")
    return load_project(path)


def test_a_script_is_enough(tmp_path: Path) -> None:
    project = load(tmp_path, '[deployments.orders]\nscript = "jobs/orders.sql"\n')
    (orders,) = project.deployments
    assert (orders.name, orders.script, orders.options.engine, orders.ledger) == (
        "orders",
        "jobs/orders.sql",
        None,
        None,
    )
    assert project.deployments_of(tmp_path / "jobs" / "x" / ".." / "orders.sql") == (orders,)
    assert project.deployments_of(tmp_path / "orders.sql") == ()


@pytest.mark.parametrize(
    ("said", "text", "files"),
    [
        ("'a.sql'", "", ("a.sql",)),
        ("['a.sql', 'ddl/b.sql']", "", ("a.sql", "ddl/b.sql")),
        ("[]", "", ()),
        ("'CREATE TABLE a (b INT)'", "CREATE TABLE a (b INT)", ()),
    ],
)
def test_a_catalog_is_ddl_a_file_or_several(tmp_path: Path, said: str, text: str, files: tuple[str, ...]) -> None:
    common = load(tmp_path, f"catalog = {said}\n").common
    assert (common.catalog, common.catalog_files) == (text, files)


def test_functions_and_the_engine_of_the_target(tmp_path: Path) -> None:
    project = load(tmp_path, 'engine = "auto"\nfunctions = { f = "Scalar", g = "aggregate:python" }\n')
    assert project.common.engine is None, "nothing asks a target here"
    assert project.common.functions == (
        FunctionDeclaration("f", "scalar", "java"),
        FunctionDeclaration("g", "aggregate", "python"),
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("engin = 'flink'", "engin: is not known; did you mean engine?"),
        ("zzz = 1", "zzz: is not known; known are engine, engine_version, policy, settings"),
        ("engine = 'flnk'", "check.engine: 'flnk' is not one of vvr, flink, auto"),
        ("engine = 3", "check.engine: a text is needed"),
        ("engine_version = '2.3'", "check.engine_version: a version of which engine? Name it with engine"),
        ("engine = 'flink'\nengine_version = 'new'", "check.engine_version: engine version 'new' of it is no version"),
        ("fail_on = 'always'", "fail_on: 'always' is not one of partial, unknown, incompatible, never"),
        (
            "functions = { f = 'scaler' }",
            "functions: function 'f': kind 'scaler' is not one of scalar",
        ),
        ("functions = { f = 'scalar:rust' }", "functions: function 'f': language 'rust' is not one of java"),
        ("settings = 'a'", "settings: a table is needed"),
        ("catalog = 1", "catalog: a text is needed"),
        ("catalog = ['a.sql', 1]", "catalog.2: a text is needed"),
        ("catalog = ['a.sql', 'CREATE TABLE a (b INT)']", "catalog: of a list each is the path of a file that ends in"),
        ("catalog = ['{{ x }}.sql']", "catalog.1: is a template that Airflow renders"),
        ("settings.a = [1]", "settings.a: a text is needed"),
        ("policy = { partial = 'resum' }", "check.policy: partial leads to 'resum'; known are resume"),
        ("policy = { unknwn = 'reject' }", "check.policy: unknown outcome 'unknwn'; known are compatible"),
        ("defaults.check.enginee = 'flink'", "check.enginee: is not known; did you mean engine?"),
        ("defaults.ownr = 'me'", "ownr: is not known; did you mean owner?"),
        ("stopped.a = ''", "stopped.a: a text is needed: who stopped its job and when"),
        ("stopped.a = true", "stopped.a: a text is needed"),
        ("deployments.a.script = 'a.sql'\nstopped.a = 'me'", "stopped.a: is a deployment of this file"),
        ("deployments.a.name = 'a'\nstopped.a = 'me'", "stopped.a: is a deployment of this file"),
        ("placeholders_filled_elsewhere = 'yes'", "placeholders_filled_elsewhere: true or false is needed"),
        ("stopped = 1", "stopped: a table is needed, [stopped]"),
        ("ledger = '{{ var.value.ledger }}'", "ledger: is a template that Airflow renders when a task runs"),
    ],
)
def test_a_mistake_for_all_is_named_by_file_and_key(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    place = ":1" if "is not known" in problem and "." not in text else ""
    assert str(caught.value).startswith(f"{tmp_path / 'flinkcompat.toml'}{place}: {problem}")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("owner = 'me'", "script: is missing"),
        ("script = 7", "script: a text is needed"),
        ("script = 'INSERT INTO a SELECT * FROM b'", "script: is no path of a file that ends in .sql, .py or .table"),
        ("script = '{{ params.script }}'", "script: is a template that Airflow renders when a task runs"),
        ("script = 'a.sql'\nownr = 'me'", "ownr: is not known; did you mean owner?"),
        ("script = 'a.sql'\nengine = 'vrr'", "check.engine: 'vrr' is not one of vvr, flink, auto"),
        ("script = 'a.sql'\nsettings.x = ['planted-pw']", "settings.x: a text is needed"),
        ("script = 'a.sql'\nname = 'b'", "name: is given by [deployments.orders]; remove it"),
    ],
)
def test_a_mistake_of_one_deployment_is_its_own(tmp_path: Path, table: str, problem: str) -> None:
    project = load(tmp_path, f'[deployments.good]\nscript = "good.sql"\n[deployments.orders]\n{table}\n')
    assert [each.name for each in project.deployments] == ["good"]
    assert project.names == ("good", "orders")
    (line,) = project.broken["orders"]
    assert line.startswith(f"{tmp_path / 'flinkcompat.toml'}: deployment 'orders': {problem}")
    assert "planted-pw" not in line


def test_a_deployment_without_a_table_is_named(tmp_path: Path) -> None:
    assert load(tmp_path, "[deployments]\norders = 3\n").broken == {
        "orders": (f"{tmp_path / 'flinkcompat.toml'}: deployment 'orders': a table is needed, [deployments.orders]",)
    }
