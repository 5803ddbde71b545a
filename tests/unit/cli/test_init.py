"""``flinkcompat init``: the file it writes, and what it leaves alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.airflow.operators import read_deployments
from airflow_flinkcompat.cli.init import named_scripts
from airflow_flinkcompat.project.settings import load_project
from tests.support.cli.command import FUNCTIONS_OF_PYTHON, PROGRAM, QUERY, TABLES, UNREADABLE_PROGRAM, V1, Run


def write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")


def test_a_deployment_for_each_script_with_an_insert(run: Run, snapshot: SnapshotAssertion) -> None:
    for path in ("jobs/orders.sql", "jobs/über täglich.sql", "eu/clicks.sql", "us/clicks.sql", "v2.1.sql"):
        write(path, V1)
    write("ddl/tables.sql", TABLES)
    write("queries/look.sql", "SELECT 1;")
    write(".hidden/orders.sql", V1)
    write("node_modules/x/orders.sql", V1)
    result = run("init")
    assert (result.code, result.err) == (0, "")
    assert "flinkcompat.toml: 5 deployments" in result.out
    assert Path("flinkcompat.toml").read_text(encoding="utf-8") == snapshot
    project = load_project("flinkcompat.toml")
    assert {each.name: each.script for each in project.deployments} == {
        "orders": "jobs/orders.sql",
        "ber-t-glich": "jobs/über täglich.sql",
        "eu-clicks": "eu/clicks.sql",
        "us-clicks": "us/clicks.sql",
        "v2.1": "v2.1.sql",
    }
    assert project.common.engine is None
    assert read_deployments("flinkcompat.toml").problems == ()


@pytest.mark.parametrize("files", [("tables",), ("orders", "totals"), ("again", "tables")])
def test_the_files_of_the_tables_that_scripts_do_not_declare(run: Run, files: tuple[str, ...]) -> None:
    """They are the catalog; where a table stands in two of them a person says which ones each deployment needs."""
    orders, totals = TABLES.split("CREATE TABLE totals")
    texts = {"tables": TABLES, "orders": orders, "totals": f"CREATE TABLE totals{totals}", "again": orders}
    catalog = () if "again" in files else tuple(f"ddl/{name}.sql" for name in files)
    for name in files:
        write(f"ddl/{name}.sql", texts[name])
    write("ddl/others.sql", "CREATE TABLE spare (a INT) WITH ('connector' = 'print');\n")
    write("jobs/orders.sql", QUERY)
    result = run("init")
    assert (result.code, load_project("flinkcompat.toml").common.catalog_files) == (0, catalog)
    assert read_deployments("flinkcompat.toml").problems == ()
    several = "Several files declare the same tables: ddl/again.sql, ddl/tables.sql. Put"
    assert (several in result.out) is (not catalog)
    assert run("lint").code == (0 if catalog else 1)


def test_a_script_that_is_nested_too_deeply_is_a_deployment(run: Run) -> None:
    write("deep.sql", QUERY.replace("SUM(amount)", f"SUM(amount{' + 1' * 5000})"))
    write("tables.sql", TABLES)
    assert run("init").code == 0
    assert [each.script for each in load_project("flinkcompat.toml").deployments] == ["deep.sql"]


def test_what_cannot_be_read_is_left_out_with_the_reason(run: Run) -> None:
    write("good.sql", V1)
    write("postgres.sql", "INSERT INTO a VALUES (1);\nDELETE FROM a;\n")
    write("broken.sql", TABLES + "INSERT INTO totals SELECT FROM;\n")
    Path("latin.sql").write_bytes(b"-- \xe9\nINSERT INTO a SELECT 1;")
    result = run("init", ".")
    assert result.code == 0
    left_out = result.err.splitlines()
    assert [line.split(":")[1].strip() for line in left_out] == ["broken.sql", "latin.sql", "postgres.sql"]
    assert [each.name for each in load_project("flinkcompat.toml").deployments] == ["good"]


def test_names_that_the_file_cannot_hold_are_left_out(run: Run) -> None:
    write("good.sql", V1)
    write("new\nline.sql", V1)
    Path(os.fsdecode(b"odd\xff.sql")).write_text(V1, encoding="utf-8")
    os.mkfifo("pipe.sql")
    result = run("init", ".")
    assert result.code == 0
    assert result.err.splitlines() == [
        f"left out: {name}: its name is not UTF-8, or contains a control character: rename it"
        for name in (r"'new\nline.sql'", r"'odd\udcff.sql'")
    ]
    assert [each.name for each in load_project("flinkcompat.toml").deployments] == ["good"]


EXPRESSIONS = """\
CREATE TABLE a (x STRING, n BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE b (x STRING, n BIGINT) WITH ('connector' = 'print');
a.groupBy($("x")).select($("x"), $("n").sum().as("n")).executeInsert("b");
"""


def test_programs_are_deployments_where_their_queries_can_be_read(run: Run) -> None:
    """A repository of programs alone, too; what makes an environment and cannot be read is named."""
    write("jobs/copy.py", PROGRAM)
    write("jobs/sums.table", EXPRESSIONS)
    write("jobs/generic.py", UNREADABLE_PROGRAM)
    write("jobs/functions.py", FUNCTIONS_OF_PYTHON)
    write("setup.py", "print(1)\n")
    result = run("init")
    assert result.code == 0
    assert [each.script for each in load_project("flinkcompat.toml").deployments] == ["jobs/copy.py", "jobs/sums.table"]
    (line,) = result.err.splitlines()
    assert line.startswith("left out: jobs/generic.py:")
    assert "no query of the program could be read: if the program is a job, add [deployments.NAME]" in line


def test_a_repository_of_programs_that_cannot_be_read_says_which(run: Run) -> None:
    write("jobs/generic.py", UNREADABLE_PROGRAM)
    result = run("init")
    assert result.code == 2
    assert "left out: jobs/generic.py:" in result.err
    assert "no program (*.py, *.table) contains a readable query" in result.err


def test_nothing_is_overwritten(run: Run) -> None:
    write("orders.sql", V1)
    write("flinkcompat.toml", "# mine\n")
    result = run("init")
    assert result.code == 2
    assert "flinkcompat.toml: already exists" in result.err
    assert Path("flinkcompat.toml").read_text(encoding="utf-8") == "# mine\n"
    Path("flinkcompat.toml").unlink()
    write("pyproject.toml", '[tool.flinkcompat]\nengine = "flink"\n')
    result = run("init")
    assert result.code == 2
    assert "pyproject.toml: already exists" in result.err
    assert not Path("flinkcompat.toml").exists()


def test_a_folder_without_scripts_is_bad_input(run: Run) -> None:
    write("ddl.sql", TABLES)
    result = run("init")
    assert result.code == 2
    assert "no *.sql file in this folder contains a readable INSERT" in result.err
    assert not Path("flinkcompat.toml").exists()
    assert run("init", "nowhere").code == 2


def test_every_name_is_one_that_a_deployment_may_have() -> None:
    named = named_scripts(["a b.sql", "a-b.sql", "_x.sql", "日本.sql", f"{'n' * 200}.sql"])
    assert list(named) == ["x", "a-b", "a-b-2", "n" * 128, "script"]
