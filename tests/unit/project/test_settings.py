"""What the command line takes of a project file, and what is said of a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.model import FunctionDeclaration, InputError
from airflow_flinkcompat.project.settings import ProjectFile, load_project


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


def test_jars_are_found_from_the_folder_of_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "a[1]"
    (folder / "lib").mkdir(parents=True)
    for name in ("b.jar", "a.jar", "c.txt"):
        (folder / "lib" / name).touch()
    project = load(
        folder,
        'planner = "always"\njars = ["lib/*.jar"]\nplanner_network = "allow"\n[deployments.orders]\n'
        'script = "a.sql"\ncheck.jars = ["lib/b.jar"]\n',
    )
    assert (project.common.planner, project.network) == ("always", "allow")
    assert project.common.jars == (folder / "lib" / "a.jar", folder / "lib" / "b.jar")
    assert project.deployments[0].options.jars == (folder / "lib" / "b.jar",)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("engin = 'flink'", "1:1", "engin: is unknown; did you mean engine?"),
        ("planner = 'sometimes'", "1:1", "check.planner: 'sometimes' is not one of auto, always, never"),
        ("planner_network = true", "1:1", "planner_network: True is not one of allow, refuse"),
        ("jars = 'lib/*.jar'", "1:1", 'check.jars: a list of files, such as ["lib/*.jar"], is needed'),
        ("jars = [\n'lib/*.jar']", "2:1", "check.jars.1: no file matches "),
        ("zzz = 1", "1:1", "zzz: is unknown; choose from engine, engine_version, planner, jars, policy, settings"),
        ("engine = 'flnk'", "1:1", "check.engine: 'flnk' is not one of vvr, flink, auto"),
        ("engine = 3", "1:1", "check.engine: a text is needed"),
        (
            "engine_version = '2.3'",
            "1:1",
            ("check.engine_version: the version has no engine: set engine next to the version"),
        ),
        (
            "engine = 'flink'\nengine_version = 'new'",
            "2:1",
            "check.engine_version: engine version 'new' of it is not a version",
        ),
        ("fail_on = 'always'", "1:1", "fail_on: 'always' is not one of partial, unknown, incompatible, never"),
        (
            "functions = { f = 'scaler' }",
            "1:15",
            "functions: function 'f' has the unknown kind 'scaler': choose one of scalar",
        ),
        (
            "functions = { f = 'scalar:rust' }",
            "1:15",
            "functions: function 'f' has the unknown language 'rust': choose one of java",
        ),
        ("settings = 'a'", "1:1", "settings: a table is needed"),
        ("catalog = 1", "1:1", "catalog: a text is needed"),
        ("catalog = ['a.sql', 1]", "1:21", "catalog.2: a text is needed"),
        (
            "catalog = ['a.sql', 'CREATE TABLE a (b INT)']",
            "1:21",
            ("catalog.2: is not the path of a file that ends in .sql"),
        ),
        ("catalog = ['{{ x }}.sql']", "1:12", "catalog.1: is a template, which only Airflow renders"),
        ("settings.a = [1]", "1:10", "settings.a: a text is needed"),
        (
            "policy = { partial = 'resum' }",
            "1:12",
            "check.policy: partial has the unknown branch 'resum'; choose one of resume",
        ),
        ("policy = { unknwn = 'reject' }", "1:12", "check.policy: unknown outcome 'unknwn'; choose one of compatible"),
        ("defaults.check.enginee = 'flink'", "1:16", "check.enginee: is unknown; did you mean engine?"),
        ("defaults.ownr = 'me'", "1:10", "ownr: is unknown; did you mean owner?"),
        ("stopped.a = ''", "1:9", "stopped.a: a text is needed: write who stopped the job, when"),
        ("stopped.a = true", "1:9", "stopped.a: a text is needed"),
        ("deployments.a.script = 'a.sql'\nstopped.a = 'me'", "2:9", "stopped.a: is a deployment of this file"),
        ("deployments.a.name = 'a'\nstopped.a = 'me'", "2:9", "stopped.a: is a deployment of this file"),
        ("placeholders_filled_elsewhere = 'yes'", "1:1", "placeholders_filled_elsewhere: true or false is needed"),
        ("stopped = 1", "1:1", "stopped: a table is needed, [stopped]"),
        ("ledger = '{{ var.value.ledger }}'", "1:1", "ledger: is a template, which only Airflow renders"),
    ],
)
def test_a_mistake_for_all_is_named_by_place_and_key(tmp_path: Path, text: str, place: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path / 'flinkcompat.toml'}:{place}: {problem}")


@pytest.mark.parametrize(
    ("table", "place", "problem"),
    [
        ("owner = 'me'", "3:14", "script: is missing"),
        ("script = 7", "4:1", "script: a text is needed"),
        (
            "script = 'INSERT INTO a SELECT * FROM b'",
            "4:1",
            "script: is not the path of a file that ends in .sql, .py",
        ),
        ("script = '{{ params.script }}'", "4:1", "script: is a template, which only Airflow renders"),
        ("script = 'a.sql'\nownr = 'me'", "5:1", "ownr: is unknown; did you mean owner?"),
        ("script = 'a.sql'\nengine = 'vrr'", "5:1", "check.engine: 'vrr' is not one of vvr, flink, auto"),
        ("script = 'a.sql'\nsettings.x = ['planted-pw']", "5:10", "settings.x: a text is needed"),
        ("script = 'a.sql'\nshadow.duration = 'soon'", "5:8", "shadow.duration: 'soon' is not a duration. Write"),
        ("script = 'a.sql'\nstart_mode = 'shade'", "5:1", "start_mode: 'shade' is not one of savepoint, shadow"),
        ("script = 'a.py'\nstart_mode = 'shadow'", "5:1", "start_mode: shadow runs are for SQL scripts"),
        ("script = 'a.sql'\nname = 'b'", "5:1", "name: [deployments.orders] already sets it; remove it"),
    ],
)
def test_a_mistake_of_one_deployment_is_its_own(tmp_path: Path, table: str, place: str, problem: str) -> None:
    project = load(tmp_path, f'[deployments.good]\nscript = "good.sql"\n[deployments.orders]\n{table}\n')
    assert [each.name for each in project.deployments] == ["good"]
    assert project.names == ("good", "orders")
    (line,) = project.broken["orders"]
    assert line.startswith(f"{tmp_path / 'flinkcompat.toml'}:{place}: deployment 'orders': {problem}")
    assert "planted-pw" not in line


def test_a_deployment_without_a_table_is_named(tmp_path: Path) -> None:
    assert load(tmp_path, "[deployments]\norders = 3\n").broken == {
        "orders": (
            f"{tmp_path / 'flinkcompat.toml'}:2:1: deployment 'orders': a table is needed, [deployments.orders]",
        )
    }
