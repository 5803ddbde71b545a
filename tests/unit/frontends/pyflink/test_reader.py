"""What lies beside a program: found in its folder and its repository, kept with the side, and none of its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.frontends.pyflink.reader import find_local_files, local_texts

PROGRAM = """\
import os
from pyflink.table import EnvironmentSettings, TableEnvironment
from common.tables import DDL

t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
t_env.execute_sql(open(os.environ["QUERY"]).read())
t_env.execute_sql(DDL)
"""
GIVEN = {"QUERY": "sql/totals.sql"}
TABLES = "DDL = \"CREATE TABLE o (a STRING) WITH ('connector' = 'kafka')\"\n"
QUERY = "INSERT INTO s SELECT a FROM o"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """``jobs/job.py``, whose module lies above it, and whose query lies in its own folder."""
    for name, text in {"jobs/job.py": PROGRAM, "jobs/sql/totals.sql": QUERY, "common/tables.py": TABLES}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def test_the_folder_alone_where_no_repository_is_known(folder: Path) -> None:
    assert local_texts(folder / "jobs" / "job.py", PROGRAM, GIVEN) == {"sql/totals.sql": QUERY}


@pytest.mark.parametrize("known", ["by its .git", "as given"])
def test_the_root_of_the_repository(known: str, folder: Path) -> None:
    root = None if known == "by its .git" else folder
    if root is None:
        (folder / ".git").mkdir()
    found = find_local_files(folder / "jobs" / "job.py", PROGRAM, GIVEN, root)
    assert {name: each.path for name, each in found.items()} == {
        "common/tables.py": folder / "common" / "tables.py",
        "sql/totals.sql": folder / "jobs" / "sql" / "totals.sql",
    }
    assert found["common/tables.py"].text == TABLES


def test_a_root_elsewhere_is_none(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "common").mkdir()
    (elsewhere / "common" / "tables.py").write_text(TABLES)
    assert set(find_local_files(folder / "jobs" / "job.py", PROGRAM, GIVEN, elsewhere)) == {"sql/totals.sql"}


def test_of_two_that_differ_none_is_taken(folder: Path) -> None:
    (folder / "jobs" / "common").mkdir()
    (folder / "jobs" / "common" / "tables.py").write_text(TABLES + "#\n")
    assert set(find_local_files(folder / "jobs" / "job.py", PROGRAM, GIVEN, folder)) == {"sql/totals.sql"}
    (folder / "jobs" / "common" / "tables.py").write_text(TABLES)
    assert len(find_local_files(folder / "jobs" / "job.py", PROGRAM, GIVEN, folder)) == 2


@pytest.mark.parametrize(("name", "text"), [("job.sql", "SELECT 1"), ("job.table", PROGRAM), ("job.py", "not Python")])
def test_nothing_else_has_any(name: str, text: str, folder: Path) -> None:
    assert local_texts(folder / "jobs" / name, text, GIVEN) == {}


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("tables.py", 'password = "planted"\n', ["password at tables.py:1:12"]),
        ("o.sql", "-- what\nCREATE TABLE o (a INT) WITH ('password' = 'planted')", ["password at o.sql:2:44"]),
        ("app.yaml", "size: 10\ndb.password: planted\n", ["a value at app.yaml:2:1"]),
        ("app.yaml", "size: 10\ntoken_count: 3\n", []),
        ("o.sql", "SELECT * FROM a JOIN b ON a.token = b.id", []),
    ],
)
def test_secrets_of_files_are_those_of_the_side(name: str, text: str, found: list[str]) -> None:
    side = Side(PROGRAM, language="python", files={name: text})
    assert [f"{secret.key} at {secret.span}" for secret in side.secrets] == found
