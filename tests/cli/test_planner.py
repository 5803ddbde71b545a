"""``check --planner`` and ``flinkcompat planner``: the ground of a report, refusals, and what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.caching import CACHE_VARIABLE
from airflow_flinkcompat.compat import Report
from airflow_flinkcompat.planner import close_all, install
from tests.cli.command import VALIDATOR, Run, report_of, save

TABLES = """\
CREATE TABLE orders (k STRING, v BIGINT) WITH ('connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'json');
CREATE TABLE totals (k STRING, x BIGINT) WITH ('connector' = 'print');
"""
SUM = f"{TABLES}INSERT INTO totals SELECT k, SUM(v) FROM orders GROUP BY k;\n"
FLINK = ("--engine", "flink", "--fail-on", "never")


@pytest.fixture
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def flink() -> None:
    install("2.3")


@pytest.mark.usefixtures("nothing_installed")
def test_auto_says_what_is_missing_and_judges_without(run: Run) -> None:
    save(old=SUM, new=SUM.replace("SUM(v)", "SUM(v) + 1"))
    result = run("check", "old.sql", "new.sql", *FLINK, "--planner", "auto", "--format", "json")
    data = report_of(result)
    VALIDATOR.validate(data)
    assert (data["ground"], data["outcome"]) == ("read from the script", "compatible")
    assert "Flink's planner was not asked" in data["warnings"][-1]
    assert Report.from_dict(data).ground == data["ground"]


@pytest.mark.usefixtures("nothing_installed")
def test_always_is_an_error_where_it_is_missing(run: Run) -> None:
    save(old=SUM, new=SUM.replace("SUM(v)", "MAX(v)"))
    result = run("check", "old.sql", "new.sql", *FLINK, "--planner", "always")
    assert result.code == 2
    assert result.err.startswith("flinkcompat: --planner always: ")


@pytest.mark.usefixtures("nothing_installed")
def test_it_is_not_asked_about_another_layout_or_engine(run: Run) -> None:
    save(old=SUM, new=SUM.replace(", SUM", ",\n  SUM"))
    assert "ground" not in report_of(
        run("check", "old.sql", "new.sql", *FLINK, "--planner", "auto", "--format", "json")
    )
    save(new=SUM.replace("SUM", "MAX"))
    assert "ground" not in report_of(
        run("check", "old.sql", "new.sql", "--engine", "vvr", "--planner", "auto", "--format", "json")
    )
    result = run("check", "old.sql", "new.sql", "--engine", "vvr", "--planner", "always")
    assert (result.code, "add --engine flink" in result.err) == (2, True)


def test_a_line_without_a_planner(run: Run) -> None:
    result = run("planner", "install", "1.18")
    assert result.code == 2
    assert "the lines that have one: 2.3, 2.2" in result.err


def test_the_lines_of_the_project_are_installed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "flinkcompat.toml").write_text(
        '[deployments.a]\nscript = "a.sql"\nengine = "flink"\nengine_version = "1.18.1"\n'
        '[deployments.b]\nscript = "b.sql"\nengine = "vvr"\n'
    )
    result = run("planner", "install", "--config", str(tmp_path / "flinkcompat.toml"))
    assert "no planner is built for Flink 1.18" in result.err
    result = run("planner", "install", "--config", "/dev/null")
    assert (result.code, "begin with flinkcompat init" in result.err) == (2, True)


@pytest.mark.slow
@pytest.mark.usefixtures("flink")
def test_what_a_reader_sees(run: Run, snapshot: SnapshotAssertion) -> None:
    refused = SUM.replace("SUM(v)", "CAST(AVG(v) + COUNT(*) AS BIGINT)")
    respelled = SUM.replace("FROM orders", "FROM orders WHERE k IN ('a', 'b')")
    save(old=SUM, new=refused, of=respelled, nope=SUM.replace("SUM(v)", "SUM(nope)"))
    save(other=respelled.replace("k IN ('a', 'b')", "k = 'a' OR k = 'b'"))
    shown = {}
    for name, (old, new) in {"refused": ("old", "new"), "spelling": ("of", "other")}.items():
        shown[name] = run("check", f"{old}.sql", f"{new}.sql", *FLINK, "--planner", "always").out
    assert shown == snapshot
    for sides in (("old.sql", "nope.sql"), ("nope.sql", "old.sql")):
        result = run("check", *sides, *FLINK, "--planner", "auto")
        assert result.code == 2
        assert "nope.sql:3:34: Flink 2.3.0 refuses it: Column 'nope' not found in any table" in result.err
    status = run("planner", "status").out
    assert "2.3: ready: Flink 2.3.0 in " in status
    close_all()
