"""The project file behind ``check``: what is taken of it, and what goes before it."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.support.cli.command import INCOMPATIBLE, PARTIAL, TABLES, V1, Run, report_of, save

FILE = """\
engine = "flink"
engine_version = "2.3"
fail_on = "incompatible"

[deployments.orders]
script = "new.sql"
settings = { "table.exec.state.ttl" = "1 d" }

[deployments.clicks]
script = "clicks.sql"
engine = "vvr"
engine_version = "8.0.11"
"""


def project(text: str = FILE, folder: str = ".") -> None:
    Path(folder, "flinkcompat.toml").write_text(text, encoding="utf-8")


def test_a_report_says_which_file_it_goes_by(run: Run, snapshot: SnapshotAssertion) -> None:
    save(old=V1, new=PARTIAL)
    project()
    result = run("check", "old.sql", "new.sql")
    assert result.code == 1
    assert result.out == snapshot
    shown = run("check", "old.sql", "new.sql", "--format", "markdown")
    head = shown.out.partition("\n\n###")[0]
    assert "By flinkcompat.toml, deployment orders: engine flink; version 2.3; settings table.exec.state.ttl" in head


def test_the_deployment_whose_script_it_is_counts(run: Run) -> None:
    save(old=V1, new=PARTIAL, clicks=PARTIAL, other=PARTIAL)
    project()
    judged = {
        name: (data["engine"], data["engine_version"])
        for name in ("new", "clicks", "other")
        for data in [report_of(run("check", "old.sql", f"{name}.sql", "--format", "json"))]
    }
    assert judged == {"new": ("flink", "2.3"), "clicks": ("vvr", "8.0"), "other": ("flink", "2.3")}
    named = run("check", "old.sql", "other.sql", "--deployment", "clicks", "--format", "json")
    assert report_of(named)["engine"] == "vvr"


def test_options_and_the_environment_go_before_the_file(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    save(old=V1, new=PARTIAL)
    project()
    result = run("check", "old.sql", "new.sql", "--engine", "vvr", "--format", "json")
    assert (report_of(result)["engine"], report_of(result)["engine_version"]) == ("vvr", "8"), "no version of flink's"
    monkeypatch.setenv("FLINKCOMPAT_ENGINE", "vvr")
    assert report_of(run("check", "old.sql", "new.sql", "--format", "json"))["engine"] == "vvr"
    monkeypatch.delenv("FLINKCOMPAT_ENGINE")
    result = run("check", "old.sql", "new.sql", "--engine-version", "1.20", "--format", "json")
    assert report_of(result)["engine_version"] == "1.20"


def test_the_gate_of_the_file(run: Run) -> None:
    save(old=V1, new=PARTIAL, clicks=PARTIAL)
    project(FILE.replace("incompatible", "partial"))
    assert run("check", "old.sql", "clicks.sql").code == 1
    assert run("check", "old.sql", "clicks.sql", "--fail-on", "unknown").code == 0
    project(FILE.replace("incompatible", "never"))
    save(clicks=INCOMPATIBLE)
    assert run("check", "old.sql", "clicks.sql").code == 0


def test_the_catalog_lies_beside_the_file(run: Run) -> None:
    query = V1.removeprefix(TABLES)
    save(old=query, new=query.replace("'1'", "'2'"))
    Path("ddl").mkdir()
    Path("ddl/tables.sql").write_text(TABLES, encoding="utf-8")
    project('engine = "flink"\ncatalog = "ddl/tables.sql"\n')
    result = run("check", "old.sql", "new.sql")
    assert "catalog ddl/tables.sql" in result.out
    assert "undeclared-table" not in result.out
    without = run("check", "old.sql", "new.sql", "--config", "/dev/null", "--engine", "flink")
    assert "undeclared-table" in without.out
    Path("ddl/tables.sql").unlink()
    missing = run("check", "old.sql", "new.sql")
    assert (missing.code, missing.out) == (2, "")
    assert "ddl/tables.sql: cannot be read: No such file" in missing.err


def test_a_command_about_open_source_flink_refuses_a_script_of_another_engine(run: Run) -> None:
    save(old=V1, new=V1, clicks=PARTIAL)
    project()
    for command in (("rehearse", "old.sql", "clicks.sql", "--job-id", "j"), ("migrate", "old.sql", "clicks.sql")):
        result = run(*command, *(("--dry-run",) if command[0] == "migrate" else ()))
        assert (result.code, result.out) == (2, "")
        assert f"{command[0]} is for open-source Flink, but the project file sets engine vvr" in result.err
        assert "By flinkcompat.toml" not in result.err
    known = run("rehearse", "old.sql", "new.sql", "--job-id", "j")
    assert "flinkcompat: By flinkcompat.toml, deployment orders: engine flink; version 2.3; settings" in known.err


def test_settings_are_laid_over_key_by_key(run: Run) -> None:
    """A time to live on the old side alone is a change: the file gives it to both sides, --old-set to one."""
    save(old=V1, new=V1)
    project()
    assert run("check", "old.sql", "new.sql").code == 0
    changed = run("check", "old.sql", "new.sql", "--old-set", "table.exec.state.ttl=2 d", "--fail-on", "unknown")
    assert "1 d" in changed.out
    assert "2 d" in changed.out


def test_without_a_deployment_or_a_file(run: Run) -> None:
    save(old=V1, new=PARTIAL)
    result = run("check", "old.sql", "new.sql", "--deployment", "orders")
    assert result.code == 2
    assert "--deployment needs a flinkcompat.toml, but none was found: add --config FILE" in result.err
    project()
    result = run("check", "old.sql", "new.sql", "--deployment", "order")
    assert result.code == 2
    assert "flinkcompat.toml: deployment 'order' is unknown; did you mean orders?" in result.err


def test_a_script_of_two_deployments_is_judged_as_a_named_one(run: Run) -> None:
    save(old=V1, new=PARTIAL)
    project(FILE.replace("clicks.sql", "new.sql"))
    result = run("check", "old.sql", "new.sql")
    assert result.code == 2
    assert "is the script of several deployments" in result.err
    assert "(orders, clicks): choose one with --deployment" in result.err
    assert run("check", "old.sql", "new.sql", "--deployment", "orders").code == 1


def test_a_deployment_that_cannot_be_used_is_told_before_its_script_is_judged_otherwise(run: Run) -> None:
    save(old=V1, new=PARTIAL, clicks=PARTIAL)
    project(FILE.replace('"vvr"', '"vrr"'))
    assert run("check", "old.sql", "new.sql").code == 1, "it is of a deployment that can be used"
    result = run("check", "old.sql", "clicks.sql")
    assert (result.code, result.out) == (2, "")
    assert (
        "flinkcompat.toml:11:1: deployment 'clicks': check.engine: 'vrr' is not one of vvr, flink, auto" in result.err
    )


def test_variables_of_the_file_are_a_programs(run: Run, repository: Path) -> None:
    project('[deployments.job]\nscript = "jobs/job.py"\nvariables.SINK = "print"\n', "jobs")
    Path("jobs/flinkcompat.toml").write_text(
        '[deployments.job]\nscript = "job.py"\nvariables.SINK = "print"\n', encoding="utf-8"
    )
    result = run("check", "jobs/job.py", "jobs/job.py")
    assert "deployment job: variables SINK" in " ".join(result.out.split())
    assert "values from the environment are assumed" not in result.out
    assert result.code == 0
