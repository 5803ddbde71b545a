"""``flinkcompat audit`` as it is run: where jobs come from, what would change, exit codes, files written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.cli import project
from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, JobStart
from airflow_flinkcompat.fleet.audit import judging
from airflow_flinkcompat.model import JobSpec
from tests.support.cli.command import BROKEN, INCOMPATIBLE, PROGRAM, QUERY, SECRETIVE, TABLES, V1, Result, Run, save
from tests.support.fleet.repository import git
from tests.unit.cli.project import commit

UPGRADE = ("--engine", "flink", "--old-engine-version", "1.20", "--engine-version", "2.3")
REFUSED = (
    TABLES.replace("'kafka', 'topic' = 'orders'", "'datagen'").replace(
        "total BIGINT", "total BIGINT, PRIMARY KEY (customer) NOT ENFORCED"
    )
    + "INSERT INTO totals SELECT MAX(customer), SUM(amount) FROM orders GROUP BY item;\n"
)
"""Needs ON CONFLICT from Flink 2.3 on."""


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FLINKCOMPAT_LEDGER", "FLINKCOMPAT_ENGINE"):
        monkeypatch.delenv(name, raising=False)


def document(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.out)
    assert found["exit_code"] == result.code
    return found


def results(result: Result) -> dict[str, str]:
    return {each["name"]: each["result"] for each in document(result)["rows"]}


def deploy(root: Path, name: str, script: str = V1, **job: Any) -> None:
    spec = JobSpec(script, source=f"{name}.sql", **{"engine": "flink", "engine_version": "1.20.3", **job})
    start = JobStart("stateless", job_id="1" * 32)
    Ledger(root, name).append(DeployedEntry(job=spec, start=start, owner="test", message="RUNNING, verified"))


class TestFiles:
    def test_every_script_below_a_folder(self, run: Run, snapshot: SnapshotAssertion) -> None:
        Path("jobs/deep").mkdir(parents=True)
        for name, text in (("a", V1), ("deep/b", REFUSED), ("broken", BROKEN), ("ddl", TABLES)):
            Path(f"jobs/{name}.sql").write_text(text, encoding="utf-8")
        Path("jobs/notes.txt").write_text("no script", encoding="utf-8")
        result = run("audit", "jobs", *UPGRADE)
        assert result.code == 2
        assert result.out == snapshot

    def test_settings_that_the_new_version_does_not_have_are_named(self, run: Run) -> None:
        gone = "SET 'table.exec.shuffle-mode' = 'all-blocking';\n"
        save(a=gone + V1, b=V1)
        found = document(run("audit", ".", *UPGRADE, "--format", "json"))
        sentence = "a.sql:1:1: Flink 2.3 ignores the setting table.exec.shuffle-mode, which it does not have"
        assert [each.get("ignored_settings") for each in found["rows"]] == [[sentence], None]
        assert found["notes"] == [sentence]
        save(a=gone * 12 + V1)
        notes = document(run("audit", ".", *UPGRADE, "--format", "json"))["notes"]
        assert len(notes) == 11
        assert notes[-1] == "further settings that the new version does not have: 2"

    def test_the_gate(self, run: Run) -> None:
        save(orders=V1, other=REFUSED)
        assert run("audit", "orders.sql", *UPGRADE).code == 1
        assert run("audit", "orders.sql", *UPGRADE, "--fail-on", "incompatible").code == 0
        assert run("audit", ".", *UPGRADE, "--fail-on", "never").code == 0
        Path("flinkcompat.toml").write_text('fail_on = "incompatible"\n', encoding="utf-8")
        assert run("audit", "orders.sql", *UPGRADE).code == 0
        assert run("audit", ".", *UPGRADE).code == 1

    def test_a_file_that_is_no_text_and_one_that_is_gone_end_nothing(self, run: Run) -> None:
        save(orders=V1)
        Path("bytes.sql").write_bytes(b"\xff\xfe")
        Path("gone.sql").symlink_to("nowhere.sql")
        assert results(run("audit", ".", *UPGRADE, "--format", "json")) == {
            "bytes.sql": "unreadable",
            "gone.sql": "unreadable",
            "orders.sql": "unknown",
        }

    def test_by_the_options_of_the_project_file(self, run: Run) -> None:
        save(orders=QUERY)
        Path("tables.ddl").write_text(TABLES, encoding="utf-8")
        Path("flinkcompat.toml").write_text(
            'engine = "flink"\nengine_version = "1.20"\n[deployments.orders]\nscript = "orders.sql"\n'
            f"catalog = {json.dumps(TABLES)}\n",
            encoding="utf-8",
        )
        (row,) = document(
            run("audit", "orders.sql", "--engine", "flink", "--engine-version", "2.3", "--format", "json")
        )["rows"]
        assert row["result"] == "unknown"
        assert row["engines"][0]["old_version"] == "1.20"
        (same,) = document(run("audit", "--engine", "flink", "--engine-version", "2.3", "--format", "json"))["rows"]
        assert (same["name"], same["engines"]) == ("orders", row["engines"])

    def test_the_upgrade_of_the_project_file(self, run: Run) -> None:
        save(orders=V1)
        Path("flinkcompat.toml").write_text(
            '[upgrade]\nfrom = "1.20"\nto = "2.3"\nflink_conn_id = "flink_23"\nwave = ["*"]\n'
            '[deployments.orders]\nscript = "orders.sql"\n',
            encoding="utf-8",
        )
        for place in ((), ("orders.sql",)):
            found = run("audit", *place, "--format", "json")
            assert document(found)["question"] == "open-source Flink 1.20 to 2.3"
            (row,) = document(found)["rows"]
            assert row["engines"][0]["old_version"] == "1.20"
        assert "nothing would change" in run("audit", "--engine", "vvr").err
        Path("changed.sql").write_text(TABLES, encoding="utf-8")
        found = run("audit", "--change-table", "changed.sql", "--format", "json")
        assert document(found)["question"] == "changed orders, totals"

    def test_a_catalog_is_read_once_and_one_that_is_gone_ends_nothing(
        self, run: Run, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        read: list[str] = []
        script_of = project.read_script
        monkeypatch.setattr(project, "read_script", lambda path: read.append(path.name) or script_of(path))
        save(a=QUERY, b=QUERY, c=QUERY, tables=TABLES)
        Path("flinkcompat.toml").write_text(
            'catalog = "tables.sql"\n[deployments.c]\nscript = "c.sql"\ncatalog = "gone.sql"\n', encoding="utf-8"
        )
        found = results(run("audit", "a.sql", "b.sql", "c.sql", *UPGRADE, "--format", "json"))
        assert found == {"a.sql": "unknown", "b.sql": "unknown", "c.sql": "unreadable"}
        assert read.count("tables.sql") == 1

    def test_programs_of_a_folder_are_counted_and_judged_where_they_are_named(self, run: Run) -> None:
        Path("jobs").mkdir()
        for name, text in (("job.py", PROGRAM), ("plain.py", "print()"), ("orders.sql", V1)):
            Path(f"jobs/{name}").write_text(text, encoding="utf-8")
        note = "PyFlink programs in folders, which are judged only if they are passed explicitly: 1"
        found = run("audit", "jobs", *UPGRADE, "--format", "json")
        assert results(found) == {"jobs/orders.sql": "unknown"}
        assert note in document(found)["notes"]
        found = run("audit", "jobs", "jobs/job.py", *UPGRADE, "--format", "json")
        assert set(results(found)) == {"jobs/job.py", "jobs/orders.sql"}
        assert note not in document(found)["notes"]

    def test_both_engines_where_none_is_named(self, run: Run) -> None:
        save(orders=V1, changed=TABLES.split(";")[0].replace("'orders'", "'other'"))
        (row,) = document(run("audit", "orders.sql", "--change-table", "changed.sql", "--format", "json"))["rows"]
        assert {each["engine"] for each in row["engines"]} == {"flink", "vvr"}
        assert (row["result"], row["tables"]) == ("incompatible", ["orders"])

    def test_a_changed_table_that_nobody_has(self, run: Run) -> None:
        save(orders=V1, changed="CREATE TABLE order_s (a INT) WITH ('connector' = 'print')")
        result = run("audit", "orders.sql", "--change-table", "changed.sql")
        assert result.code == 2
        assert "note: order_s: no job declares or uses it; check its name" in result.out

    @pytest.mark.slow
    def test_several_processes_say_the_same(self, many: Path, run: Run) -> None:
        command = ("audit", "jobs", *UPGRADE, "--config", "/dev/null", "--format", "json")
        assert run(*command, "--processes", "2") == run(*command)


class TestProject:
    def test_its_deployments(self, many: Path, run: Run) -> None:
        found = document(run("audit", *UPGRADE, "--format", "json"))
        names = {each["name"] for each in found["rows"]}
        assert {"orders", "fresh", "renamed"} <= names
        assert "retired" not in names
        assert found["notes"][0] == "skipped, because a different engine was requested: 1 of engine vvr"
        assert "refunds" not in names

    def test_one_that_cannot_be_used(self, run: Run) -> None:
        save(orders=V1)
        Path("flinkcompat.toml").write_text(
            'engine_version = "1.20"\nengine = "flink"\n[deployments.orders]\nscript = "orders.sql"\n'
            '[deployments.odd]\nscript = "odd.txt"\n[deployments.gone]\nscript = "gone.sql"\n',
            encoding="utf-8",
        )
        result = run("audit", "--engine", "flink", "--engine-version", "2.3", "--format", "json")
        assert results(result) == {"orders": "unknown", "odd": "unreadable", "gone": "unreadable"}


class TestGit:
    def test_each_change_of_a_history(self, many: Path, run: Run) -> None:
        found = document(run("audit", "--git", "HEAD", "--format", "json"))
        by_path = {each["name"].partition("@")[0]: each["result"] for each in found["rows"]}
        assert by_path["jobs/orders.sql"] == "incompatible"
        assert by_path["jobs/broken.sql"] == "unreadable"
        assert by_path["jobs/clicks.sql"] == "compatible"
        changed = git(many, "rev-parse", "HEAD~1")[:10]
        assert f"jobs/orders.sql@{changed}" in {each["name"] for each in found["rows"]}
        assert "moved scripts without changes: 1" in found["notes"]

    def test_changes_of_programs_are_counted(self, repository: Path, run: Run) -> None:
        program = Path("jobs/job.py")
        program.write_text(f"# changed\n{program.read_text('utf-8')}", encoding="utf-8")
        Path("jobs/other.py").write_text("print()", encoding="utf-8")
        commit("of a program and a script")
        found = document(run("audit", "--git", "HEAD", "--format", "json"))
        assert [each["name"].partition("@")[0] for each in found["rows"]] == ["jobs/orders.sql"]
        assert "changes of PyFlink programs, which are not judged in a history: 1" in found["notes"]

    def test_a_range_and_a_folder(self, many: Path, run: Run) -> None:
        assert len(document(run("audit", "--git", "HEAD~1..HEAD", "--format", "json"))["rows"]) == 1
        nothing = run("audit", "--git", "HEAD", "moved", "--format", "json")
        assert nothing.code == 2
        assert document(nothing)["rows"] == []
        assert len(document(run("audit", "--git", "HEAD", "jobs/orders.sql", "--format", "json"))["rows"]) == 1

    def test_says_what_is_wrong(self, many: Path, run: Run) -> None:
        assert "--git nope: bad revision 'nope'" in run("audit", "--git", "nope").err
        result = run("audit", "--git", "HEAD", "/")
        assert (result.code, result.err) == (
            2,
            f"flinkcompat: /: is outside of the Git repository {many.resolve()}\n",
        )

    def test_a_range_without_a_change_says_so(self, project: Path, run: Run) -> None:
        result = run("audit", "--git", "HEAD..HEAD")
        assert result.code == 2
        assert "no job to judge was found in the changes of HEAD..HEAD" in " ".join(result.out.split())


class TestLedger:
    def test_what_is_deployed_on_the_version_that_runs_it(self, run: Run, tmp_path: Path) -> None:
        root = tmp_path / "ledger"
        deploy(root, "orders")
        deploy(root, "odd", REFUSED)
        deploy(root, "of_vendor", engine="vvr", engine_version="8.0.11")
        deploy(root, "nobody_said", engine_version=None)
        result = run("audit", "--ledger", str(root), "--engine", "flink", "--engine-version", "2.3", "--format", "json")
        found = document(result)
        assert results(result) == {"nobody_said": "unreadable", "odd": "incompatible", "orders": "unknown"}
        assert found["notes"] == ["skipped, because a different engine was requested: 1 of engine vvr"]
        (orders,) = (each for each in found["rows"] if each["name"] == "orders")
        assert (orders["engines"][0]["old_version"], orders["engines"][0]["new_version"]) == ("1.20", "2.3")

    def test_the_ledger_of_the_project_or_the_environment(
        self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        deploy(tmp_path / "ledger", "orders")
        asked = ("audit", "--engine", "flink", "--engine-version", "2.3", "--format", "json", "--ledger")
        assert "--ledger: the location of the ledger is unknown" in run(*asked).err
        monkeypatch.setenv("FLINKCOMPAT_LEDGER", str(tmp_path / "ledger"))
        assert results(run(*asked)) == {"orders": "unknown"}
        monkeypatch.delenv("FLINKCOMPAT_LEDGER")
        save(orders=V1)
        Path("flinkcompat.toml").write_text(
            f'ledger = "{tmp_path}/ledger"\n[deployments.orders]\nscript = "orders.sql"\n', encoding="utf-8"
        )
        assert results(run(*asked)) == {"orders": "unknown"}

    def test_a_changed_table(self, run: Run, tmp_path: Path) -> None:
        deploy(tmp_path / "ledger", "orders")
        deploy(tmp_path / "ledger", "clicks", V1.replace("orders", "clicks"))
        save(changed=TABLES.split(";")[0].replace("'orders'", "'other'"))
        result = run("audit", "--ledger", str(tmp_path / "ledger"), "--change-table", "changed.sql", "--format", "json")
        assert results(result) == {"clicks": "compatible", "orders": "incompatible"}

    def test_one_that_is_damaged_ends_nothing(self, run: Run, tmp_path: Path) -> None:
        deploy(tmp_path / "ledger", "orders")
        deploy(tmp_path / "ledger", "clicks")
        next((tmp_path / "ledger" / "clicks").glob("*.json")).write_text('{"kind": "deployed"}', encoding="utf-8")
        asked = ("audit", "--ledger", str(tmp_path / "ledger"), "--engine", "flink", "--engine-version", "2.3")
        assert results(run(*asked, "--format", "json")) == {"clicks": "unreadable", "orders": "unknown"}

    def test_a_ledger_that_is_not_there(self, run: Run) -> None:
        result = run("audit", "--ledger", "nowhere", "--engine", "flink", "--engine-version", "2.3")
        assert result.code == 3
        assert "nowhere" in result.err


class TestOutputs:
    def test_every_format_at_once(self, run: Run) -> None:
        save(orders=V1, secretive=SECRETIVE)
        options = [f"--output={name}=out.{name}" for name in ("json", "html", "markdown", "text")]
        result = run("audit", ".", *UPGRADE, *options)
        assert Path("out.text").read_text("utf-8") == result.out
        assert json.loads(Path("out.json").read_text("utf-8"))["jobs"] == 2
        assert Path("out.html").read_text("utf-8").startswith("<!DOCTYPE html>")
        assert "hunter2" not in "".join(path.read_text("utf-8") for path in Path().glob("out.*"))
        assert not list(Path().glob(".out*"))

    def test_what_is_not_whole_is_not_there(self, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
        """A source that fails half-way leaves the former file as it is."""
        save(orders=V1)
        git(Path(), "init", "--quiet", "--initial-branch", "main")
        Path("out.json").write_text("of before", encoding="utf-8")
        assert run("audit", "--git", "nope", "--output", "json=out.json").code == 2
        assert Path("out.json").read_text("utf-8") == "of before"
        assert not list(Path().glob(".out*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("jobs",), "nothing would change"),
        (("jobs", "--engine-version", "2.3"), "--engine-version: the engine of the version is unknown"),
        (("jobs", "--engine", "flink", "--engine-version", "2.3"), "the version that runs the jobs now is unknown"),
        (("nowhere", *UPGRADE), "nowhere: cannot be read: there is no such file or folder"),
        (("jobs", *UPGRADE[:-1], "two"), "engine version 'two' of --engine-version"),
        (UPGRADE, "there is no flinkcompat.toml here"),
        (("jobs", "--ledger=x", *UPGRADE), "leave out --git and every PATH"),
        (
            ("--ledger=x", "--set", "a=b", *UPGRADE),
            "the ledger contains the settings, functions and catalog",
        ),
        (("--git", "HEAD", "--change-table", "changed.sql"), "--change-table is about the present scripts"),
        (("--git", "HEAD"), "is not in a Git repository"),
        (("jobs", *UPGRADE, "--output", "pdf=x"), "is not of the form FORMAT=FILE"),
        (("jobs", *UPGRADE, "--spark", "local[2]", "--processes", "2"), "leave one out"),
        (("jobs", "--change-table", "gone.sql"), "gone.sql: cannot be read"),
    ],
)
def test_what_cannot_be_asked(run: Run, options: tuple[str, ...], message: str) -> None:
    Path("jobs").mkdir()
    save(changed=TABLES)
    Path("jobs/orders.sql").write_text(INCOMPATIBLE, encoding="utf-8")
    result = run("audit", *options)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


def test_the_help_names_every_reason_for_an_exit_code(run: Run, snapshot: SnapshotAssertion) -> None:
    assert run("audit", "--help").out == snapshot


def test_every_reason_has_a_title() -> None:
    assert all(title[0].isupper() for title in judging.REASONS.values())
