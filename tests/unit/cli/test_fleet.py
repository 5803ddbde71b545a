"""``flinkcompat diff``, ``plan`` and ``lint`` as they are run: what is compared, exit codes, files written."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from airflow_flinkcompat.deploy import Ledger
from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, JobStart
from airflow_flinkcompat.model import JobSpec
from tests.support.cli.command import (
    BROKEN,
    FUNCTIONS_OF_PYTHON,
    INCOMPATIBLE,
    PARTIAL,
    PROGRAM,
    QUERY,
    SECRETIVE,
    TABLES,
    UNREADABLE_PROGRAM,
    V1,
    VALIDATOR_OF_FLEET,
    Result,
    Run,
)
from tests.support.fleet.repository import git, project_text, script_of
from tests.unit.cli.project import CLICKS, HEAD, ORDERS, change, commit, project_file, write

AGAINST_HEAD = ("diff", "--against", "git:HEAD", "--format", "json")
WAY_OUT = "to pass an intended change, waive its failing findings: flinkcompat accept"


def deploy(root: Path, name: str, script: str = V1, **job: Any) -> None:
    spec = JobSpec(script, engine="flink", engine_version="2.3.0", source=f"{name}.sql", **job)
    start = JobStart("stateless", job_id="1" * 32)
    Ledger(root, name).append(DeployedEntry(job=spec, start=start, owner="test", message="RUNNING, verified"))


def results(result: Result) -> dict[str, str]:
    return {each["name"]: each["result"] for each in json.loads(result.out)["deployments"]}


def verdicts(result: Result) -> tuple[int, dict[str, str]]:
    return result.code, results(result)


class TestAgainstGit:
    def test_by_default_where_the_branch_left(self, many: Path, run: Run) -> None:
        result = run("diff", "--format", "json")
        data = json.loads(result.out)
        assert (result.code, data["exit_code"]) == (2, 2)
        assert data["against"].startswith("commit ")
        assert data["against"].endswith(", where this branch left origin/HEAD")
        found = results(result)
        assert (found["orders"], found["renamed"], found["retired"], found["fresh"]) == (
            "incompatible", "unchanged", "deleted", "added",
        )  # fmt: skip

    @pytest.mark.parametrize("against", ["git", "ledger"])
    def test_new_scripts_that_the_file_does_not_name(
        self, project: Path, run: Run, tmp_path: Path, against: str
    ) -> None:
        """A job that joins is judged by nothing as long as the file does not name it."""
        root = tmp_path / "ledger"
        for name in ("orders", "clicks"):
            deploy(root, name)
        git(project, "update-ref", "refs/remotes/origin/main", "main")
        git(project, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
        options = () if against == "git" else ("--against", f"ledger:{root}")

        def notes() -> list[str]:
            result = run("diff", "--format", "json", *options)
            assert result.code == 0
            return json.loads(result.out)["notes"]

        write(".gitignore", "scratch/\n")
        for name in ("scratch", "other", "eu"):
            Path(name).mkdir()
        write("other/flinkcompat.toml", HEAD)
        foreign = "INSERT INTO a VALUES (1);\nDELETE FROM a;\n"
        for name, text in {"scratch/job": V1, "other/job": V1, "tables": TABLES, "foreign": foreign}.items():
            write(f"{name}.sql", text)
        assert notes() == []
        change("views", V1)
        write("eu/views.sql", V1)
        git(project, "add", "eu")
        words = "new scripts with a job but without a deployment in the project file, so they are not judged"
        assert notes() == [f"{words}: eu/views.sql, jobs/views.sql"]
        views = ORDERS.replace("orders", "views")
        project_file(HEAD + ORDERS + CLICKS + views)
        assert notes() == [f"{words}: eu/views.sql"]
        write("functions.py", FUNCTIONS_OF_PYTHON)
        write("job2.py", PROGRAM)
        write("job3.py", UNREADABLE_PROGRAM)
        assert notes() == [f"{words}: eu/views.sql, job2.py, job3.py"]

    def test_what_others_merged_meanwhile_is_no_change_of_this_branch(self, many: Path, run: Run) -> None:
        git(many, "checkout", "--quiet", "main")
        (many / "jobs/job_01.sql").write_text(INCOMPATIBLE, encoding="utf-8")
        git(many, "add", "--all")
        git(many, "commit", "--quiet", "--message", "of others")
        git(many, "update-ref", "refs/remotes/origin/main", "main")
        git(many, "checkout", "--quiet", "change")
        assert results(run("diff", "--format", "json"))["job_01"] == "unchanged"
        assert results(run("diff", "--format", "json", "--against", "git:main"))["job_01"] != "unchanged"

    @pytest.mark.parametrize("variable", ["GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"])
    def test_ci_says_which_branch_it_is(
        self, many: Path, run: Run, monkeypatch: pytest.MonkeyPatch, variable: str
    ) -> None:
        git(many, "update-ref", "refs/remotes/origin/release", "HEAD~1")
        monkeypatch.setenv(variable, "release")
        found = results(run("diff", "--format", "json"))
        assert (found["orders"], found["retired"]) == ("unchanged", "deleted")

    def test_neither_the_working_tree_nor_the_index_is_touched(self, project: Path, run: Run) -> None:
        change("orders", INCOMPATIBLE)
        git(project, "add", "jobs/orders.sql")
        change("clicks", PARTIAL)
        before = git(project, "status", "--porcelain=v2")
        assert run("diff", "--against", "git:HEAD").code == 1
        assert git(project, "status", "--porcelain=v2") == before

    def test_a_file_that_is_new_serves_scripts_that_are_older(self, project: Path, run: Run) -> None:
        git(project, "rm", "--quiet", "--cached", "flinkcompat.toml")
        git(project, "commit", "--quiet", "--amend", "--message", "scripts alone")
        change("orders", INCOMPATIBLE)
        result = run(*AGAINST_HEAD)
        assert results(result) == {"orders": "incompatible", "clicks": "unchanged"}
        assert json.loads(result.out)["notes"] == [
            "HEAD has no flinkcompat.toml: the paths of the present file are used",
            f"{WAY_OUT} orders window-changed --against git:HEAD --reason '…' --until YYYY-MM-DD",
        ]

    def test_the_catalog_and_the_settings_of_then(self, project: Path, run: Run) -> None:
        """A column that joins in the catalog, and a version that is raised in the file, are changes."""
        write("tables.sql", TABLES)
        text = 'engine = "flink"\nengine_version = "1.20"\ncatalog = "tables.sql"\n'
        project_file(text + ORDERS)
        change("orders", QUERY)
        commit("with a catalog")
        assert run("diff", "--against", "git:HEAD").code == 0
        write("tables.sql", TABLES.replace("amount BIGINT", "amount INT"))
        result = run(*AGAINST_HEAD)
        assert results(result) == {"orders": "incompatible"}
        write("tables.sql", TABLES)
        project_file(text.replace("1.20", "2.3") + ORDERS)
        (review,) = json.loads(run(*AGAINST_HEAD).out)["deployments"]
        assert "engine-version-changed" in {each["rule"] for each in review["report"]["findings"]}

    def test_a_finding_of_the_catalog_is_told_at_its_place_there(self, project: Path, run: Run) -> None:
        """GitHub shows a finding only at a line that was changed; a table of other jobs is no change of this one."""
        spare = "CREATE TABLE spare (a INT) WITH ('connector' = 'kafka', 'topic' = 'spare');\n"
        Path("ddl").mkdir()
        write("ddl/tables.sql", spare + TABLES)
        project_file(f'{HEAD}catalog = "ddl/tables.sql"\n{ORDERS}{CLICKS}')
        change("orders", QUERY)
        commit("with a catalog")
        write("ddl/tables.sql", spare.replace("'spare'", "'x'") + TABLES)
        assert results(run(*AGAINST_HEAD)) == {"orders": "unchanged", "clicks": "unchanged"}
        write("ddl/tables.sql", spare + TABLES.replace("'orders'", "'x'"))
        result = run("diff", "--against", "git:HEAD", "--format", "github")
        (command, notice, _) = result.out.splitlines()
        assert notice.startswith(f"::notice title=flinkcompat diff::{WAY_OUT} ")
        assert (result.code, command.partition(",col=")[0]) == (1, "::error file=ddl/tables.sql,line=4,endLine=4")
        out = run("diff", "--against", "git:HEAD").out
        assert "before HEAD:ddl/tables.sql:4:" in out
        assert "after ddl/tables.sql:4:" in out

    def test_several_files_of_a_catalog_count_as_one_and_each_finding_is_told_in_its_own(
        self, project: Path, run: Run
    ) -> None:
        orders, totals = TABLES.split("CREATE TABLE totals")
        spare = "CREATE TABLE spare (a INT) WITH ('connector' = 'print')\n-- no semicolon ends it\n"
        texts = {"a": spare, "b": f"-- orders\n{orders}", "c": f"CREATE TABLE totals{totals}"}
        Path("ddl").mkdir()
        for name, text in texts.items():
            write(f"ddl/{name}.sql", text)
        files = ", ".join(f'"ddl/{name}.sql"' for name in texts)
        project_file(f"{HEAD}catalog = [{files}]\n{ORDERS}{CLICKS}")
        change("orders", QUERY)
        commit("with catalogs")
        write("ddl/a.sql", f"-- one line more\n{spare.replace('INT', 'BIGINT')}")
        assert results(run(*AGAINST_HEAD)) == {"orders": "unchanged", "clicks": "unchanged"}
        write("ddl/b.sql", "-- orders\n\n" + orders.replace("'orders'", "'x'"))
        result = run("diff", "--against", "git:HEAD", "--format", "github")
        place = result.out.partition(",col=")[0]
        assert (result.code, place) == (1, "::error file=ddl/b.sql,line=5,endLine=5")
        out = run("diff", "--against", "git:HEAD").out
        assert "before HEAD:ddl/b.sql:4:" in out
        assert "after ddl/b.sql:5:" in out
        write("ddl/c.sql", texts["c"].replace("BIGINT", "BIGINTT"))
        assert "ddl/c.sql:1:45: error: program-refused: " in run("lint").out
        named = [word for name in texts for word in ("--catalog", f"ddl/{name}.sql")]
        alone = ("lint", "jobs/orders.sql", "--config", "/dev/null", "--engine", "flink")
        assert "ddl/c.sql:1:45: error: program-refused: " in run(*alone, *named).out
        assert "undeclared-table: table orders" in run(*alone, *named[-2:]).out
        checked = run("check", "/dev/null", "jobs/orders.sql", "--config", "/dev/null", "--engine", "flink", *named).out
        assert "ddl/c.sql:1:45" in checked
        Path("ddl/b.sql").unlink()
        (review, _) = json.loads(run(*AGAINST_HEAD).out)["deployments"]
        assert review["faults"][0]["message"] == "ddl/b.sql: cannot be read: there is no such file (catalog)"

    def test_both_engines_where_none_is_named(self, project: Path, run: Run) -> None:
        project_file(ORDERS)
        commit("no engine")
        change("orders", PARTIAL)
        result = run(*AGAINST_HEAD)
        (review,) = json.loads(result.out)["deployments"]
        assert {name: each["outcome"] for name, each in review["report"]["engines"].items()} == {
            "flink": "incompatible",
            "vvr": "partial",
        }
        assert result.code == 1
        assert "INCOMPATIBLE on open-source Flink" in run("diff", "--against", "git:HEAD").out
        assert run("diff", "--against", "git:HEAD", "--engine", "vvr").code == 0

    @pytest.mark.parametrize(
        ("then", "now", "options", "outcome"),
        [
            ('engine = "flink"\n', 'engine = "vvr"\n', (), "unknown"),
            ('engine = "flink"\n', 'engine = "flink"\n', ("--engine", "vvr"), "unknown"),
            ('engine = "vvr"\nengine_version = "8.0.11"\n', 'engine = "flink"\n', (), "unknown"),
            ('engine = "flink"\n', 'engine = "auto"\n', (), "unknown"),
            ('engine = "flink"\nengine_version = "1.20"\n', 'engine = "flink"\nengine_version = "1.20"\n',
             ("--engine", "flink", "--engine-version", "2.3"), "unknown"),
            ("", 'engine = "vvr"\n', (), "unchanged"),
            ('engine = "flink"\n', 'engine = "flink"\n', ("--engine-version", "1.20"), "unchanged"),
        ],
    )  # fmt: skip
    def test_another_engine_than_the_one_named_then_is_a_change(
        self, project: Path, run: Run, then: str, now: str, options: tuple[str, ...], outcome: str
    ) -> None:
        project_file(then + ORDERS)
        commit("as it is deployed")
        project_file(now + ORDERS)
        assert verdicts(result := run(*AGAINST_HEAD, *options)) == (int(outcome == "unknown"), {"orders": outcome})
        if outcome == "unknown":
            assert "engine-version-changed" in result.out
            shown = " ".join(run("diff", "--against", "git:HEAD", *options).out.split())
            assert "engine or its version differs" in shown or "Flink 1.20 to 2.3: only the planners" in shown

    def test_a_program_is_read_with_the_files_beside_it(self, project: Path, run: Run) -> None:
        write("jobs/job.py", PROGRAM.replace("import os", "import os\nfrom names import SINK"))
        write("jobs/names.py", 'SINK = "print"\n')
        table = '\n[deployments.job]\nscript = "jobs/job.py"\nvariables = { SINK = "print" }\n'
        project_file(HEAD + table)
        commit("a program")
        assert results(run(*AGAINST_HEAD)) == {"job": "unchanged"}
        project_file(HEAD + table.replace('"print"', '"kafka"'))
        assert results(run(*AGAINST_HEAD))["job"] != "unchanged"

    @pytest.mark.parametrize(
        ("against", "message"),
        [
            ("git:nowhere", "nowhere: is not a revision of this Git repository"),
            ("git:--help", "--help: is not a revision of"),
            ("git:", "--against 'git:' must be ledger, ledger:URI or git:REF"),
            ("main", "--against 'main' must be ledger, ledger:URI or git:REF"),
            ("ledger", "deployment 'orders' has no ledger: set it with --against ledger:URI"),
        ],
    )
    def test_what_cannot_be_compared_with_is_bad_input(
        self, project: Path, run: Run, against: str, message: str
    ) -> None:
        result = run("diff", "--against", against)
        assert result.code == 2
        assert message in result.err + result.out

    def test_without_a_known_base(self, project: Path, run: Run) -> None:
        result = run("diff")
        assert (result.code, result.out) == (2, "")
        assert "the commit to compare with is unknown: there is no origin/HEAD here" in result.err
        assert "--against git:REF" in result.err

    def test_outside_of_a_repository(self, run: Run) -> None:
        project_file(ORDERS)
        result = run("diff")
        assert result.code == 2
        assert "is not in a Git repository (or git is not installed), so there is no revision to compare" in result.err
        assert "Set a ledger: --against ledger:URI" in result.err


MINIMUM = V1.replace("SUM", "MIN")


class TestPlaces:
    def test_a_folder_whose_name_is_not_utf_8(self, project: Path, run: Run) -> None:
        folder = Path(os.fsdecode(os.fsencode(project) + b"/\xff"))
        shutil.copytree(project, folder, ignore=lambda *_: [folder.name])
        os.chdir(folder)
        change("orders", MINIMUM)
        assert verdicts(run(*AGAINST_HEAD)) == (1, {"orders": "incompatible", "clicks": "unchanged"})

    @pytest.mark.parametrize("place", ["jobs/clicks.sql", "jobs/clicks.sql.waivers.toml"])
    def test_what_is_no_regular_file_is_bad_input(self, project: Path, run: Run, place: str) -> None:
        Path(place).unlink(missing_ok=True)
        Path(place).symlink_to("/dev/zero")
        assert verdicts(result := run(*AGAINST_HEAD)) == (2, {"orders": "unchanged", "clicks": "not readable"})
        assert f"{place}: cannot be read: it is not a regular file" in result.out

    def test_a_byte_order_mark_has_a_remedy(self, project: Path, run: Run) -> None:
        project_file(f"\ufeff{HEAD}{ORDERS}")
        result = run("diff", "--against", "git:HEAD")
        assert result.code == 2
        assert (
            "flinkcompat.toml: begins with a byte order mark, which TOML does not allow; save it as UTF-8" in result.err
        )

    def test_faults_are_the_same_in_every_clone(self, project: Path, run: Run) -> None:
        project_file(HEAD + ORDERS + CLICKS + "ownr = 'me'\n")
        result = run(*AGAINST_HEAD)
        assert re.search(r"\"flinkcompat\.toml:[0-9]+:1: deployment 'clicks': ownr", result.out)
        assert str(project) not in result.out


class TestWhatOfARevisionIsRead:
    """A deployment that the revision names is compared with what was there, or it is bad input: never "added"."""

    @pytest.mark.parametrize("kind", ["folder", "file", "catalog"])
    def test_links_are_followed(self, project: Path, run: Run, kind: str) -> None:
        Path("real").mkdir()
        write("real/v1.sql", QUERY if kind == "catalog" else V1)
        write("real/tables.sql", TABLES)
        Path("ddl.sql").symlink_to("real/tables.sql")
        Path("current.sql").symlink_to("real/v1.sql")
        Path("linked").symlink_to("real")
        script = "linked/v1.sql" if kind == "folder" else "current.sql"
        catalog = 'catalog = "ddl.sql"\n' if kind == "catalog" else ""
        text = f'{HEAD}\n[deployments.orders]\nscript = "{script}"\n{catalog}'
        project_file(text)
        commit("links")
        assert results(run(*AGAINST_HEAD)) == {"orders": "unchanged"}
        if kind == "catalog":
            write("real/tables.sql", TABLES.replace("amount BIGINT", "amount INT"))
        else:
            write("real/v1.sql", MINIMUM)
        assert verdicts(run(*AGAINST_HEAD)) == (1, {"orders": "incompatible"})

    def test_an_absolute_path_is_that_of_the_revision(self, project: Path, run: Run) -> None:
        text = f'{HEAD}\n[deployments.orders]\nscript = "{project}/jobs/orders.sql"\n'
        project_file(text)
        commit("absolute")
        assert results(run(*AGAINST_HEAD)) == {"orders": "unchanged"}
        change("orders", MINIMUM)
        assert verdicts(run(*AGAINST_HEAD)) == (1, {"orders": "incompatible"})

    def test_what_is_no_file_of_the_revision_is_bad_input(
        self, project: Path, run: Run, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        outside = tmp_path_factory.mktemp("outside")
        (outside / "x.sql").write_text(V1, encoding="utf-8")
        Path("absolute.sql").symlink_to(project / "jobs/orders.sql")
        module = tmp_path_factory.mktemp("module")
        git(module, "init", "--quiet")
        (module / "x.sql").write_text(V1, encoding="utf-8")
        git(module, "add", "--all")
        git(module, "commit", "--quiet", "--message", "module")
        git(project, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(module), "module")
        write(".gitignore", "ignored.sql\n")
        write("ignored.sql", V1)
        scripts = {
            "absolute.sql": "is reached by absolute.sql, a link to an absolute path",
            "module/x.sql": "lies in the submodule module",
            f"../{outside.name}/x.sql": "leads out of the repository",
            str(outside / "x.sql"): "leads out of the repository",
            "ignored.sql": "there is no such file, although deployment",
        }
        tables = [f'\n[deployments.d{i}]\nscript = "{script}"\n' for i, script in enumerate(scripts)]
        project_file(HEAD + ORDERS + "".join(tables))
        commit("elsewhere")
        result = run(*AGAINST_HEAD)
        assert result.code == 2
        found = {each["name"]: each for each in json.loads(result.out)["deployments"]}
        assert found.pop("orders")["result"] == "unchanged"
        for review, message in zip(found.values(), scripts.values(), strict=True):
            assert review["result"] == "not readable"
            assert message in review["sentence"]
            assert "--against ledger:URI" in review["sentence"]

    def test_in_a_hook_of_a_linked_worktree(
        self, project: Path, run: Run, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What Git does there: it names its folder, and the root of the working tree is the current one then."""
        Path("p").mkdir()
        for name in ("flinkcompat.toml", "jobs"):
            git(project, "mv", name, "p")
        commit("in a subfolder")
        linked = tmp_path_factory.mktemp("linked") / "tree"
        git(project, "worktree", "add", "--quiet", str(linked))
        monkeypatch.chdir(linked / "p")
        change("orders", MINIMUM)
        monkeypatch.setenv("GIT_DIR", git(linked, "rev-parse", "--absolute-git-dir"))
        assert verdicts(run(*AGAINST_HEAD)) == (1, {"orders": "incompatible", "clicks": "unchanged"})

    @pytest.mark.parametrize("former", ["flinkcompat.toml", "pyproject.toml"])
    def test_a_project_that_was_moved(self, project: Path, run: Run, former: str) -> None:
        if former == "pyproject.toml":
            git(project, "rm", "--quiet", "flinkcompat.toml")
            tables = (HEAD + ORDERS + CLICKS).replace("[deployments", "[tool.flinkcompat.deployments")
            Path(former).write_text(f"[project]\nname = 'x'\n[tool.flinkcompat]\n{tables}", encoding="utf-8")
            commit("as a table")
            assert run(*AGAINST_HEAD).code == 0
        Path("sub").mkdir()
        git(project, "mv", former, "jobs", "sub")
        os.chdir("sub")
        if former == "pyproject.toml":
            Path(former).unlink()
        project_file(HEAD + ORDERS)
        change("orders", MINIMUM)
        assert verdicts(result := run(*AGAINST_HEAD)) == (1, {"orders": "incompatible", "clicks": "deleted"})
        assert json.loads(result.out)["notes"][0] == f"HEAD has the project file at {former}"

    def test_several_projects_that_are_gone(self, project: Path, run: Run) -> None:
        Path("a").mkdir()
        write("a/flinkcompat.toml", HEAD + ORDERS)
        commit("two")
        Path("sub").mkdir()
        git(project, "mv", "flinkcompat.toml", "sub")
        git(project, "rm", "--quiet", "a/flinkcompat.toml")
        os.chdir("sub")
        result = run(*AGAINST_HEAD)
        assert result.code == 2
        assert "the former name of the project file is unknown" in result.err

    def test_a_table_that_is_new_in_a_pyproject(self, project: Path, run: Run) -> None:
        git(project, "rm", "--quiet", "flinkcompat.toml")
        write("pyproject.toml", "[project]\nname = 'x'\n")
        commit("a package")
        table = ORDERS.replace("[deployments", "[tool.flinkcompat.deployments")
        write("pyproject.toml", f"[project]\nname = 'x'\n{table}")
        assert results(run(*AGAINST_HEAD)) == {"orders": "unchanged"}

    def test_a_project_file_that_is_a_link(
        self, project: Path, run: Run, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        Path("conf").mkdir()
        git(project, "mv", "flinkcompat.toml", "conf/flinkcompat.toml")
        Path("flinkcompat.toml").symlink_to("conf/flinkcompat.toml")
        commit("a link inside")
        change("orders", MINIMUM)
        assert results(run(*AGAINST_HEAD)) == {"orders": "incompatible", "clicks": "unchanged"}
        outside = tmp_path_factory.mktemp("outside") / "x.toml"
        outside.write_text(HEAD + ORDERS, encoding="utf-8")
        Path("flinkcompat.toml").unlink()
        Path("flinkcompat.toml").symlink_to(outside)
        commit("a link to the outside")
        result = run(*AGAINST_HEAD)
        assert result.code == 2
        assert "HEAD:flinkcompat.toml: is reached by flinkcompat.toml, a link to an absolute path" in result.err

    def test_a_former_file_that_is_no_toml_has_a_remedy(self, project: Path, run: Run) -> None:
        project_file("engine = \n")
        commit("broken")
        project_file(HEAD + ORDERS)
        result = run("diff", "--against", "git:HEAD")
        assert result.code == 2
        assert "HEAD:flinkcompat.toml:1:10: is not valid TOML" in result.err
        assert "if the correction is intended, compare with a different revision (--against git:REF)" in result.err
        assert run("diff", "--against", "git:HEAD~1").code == 1, "clicks is named no more"

    def test_deleted_ones_that_cannot_be_read_leave_the_others(self, project: Path, run: Run) -> None:
        Path("jobs/clicks.sql").write_bytes(b"\xff")
        odd = '\n[deployments.odd]\nscript = "jobs/orders.sql"\nownr = "me"\n'
        project_file(HEAD + ORDERS + CLICKS + odd)
        commit("not UTF-8")
        project_file(HEAD + ORDERS)
        result = run(*AGAINST_HEAD)
        assert result.code == 2
        assert results(result) == {"orders": "unchanged", "clicks": "not readable", "odd": "not readable"}
        assert run("diff", "orders", "--against", "git:HEAD").code == 0


class TestAgainstTheLedger:
    def test_what_is_deployed_counts(
        self, project: Path, run: Run, tmp_path: Path, snapshot: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Git knows of no change; the ledger says that something else is deployed, with settings of its own."""
        root = tmp_path / "ledger"
        deploy(root, "orders", INCOMPATIBLE)
        deploy(root, "clicks", settings={"parallelism.default": "4"})
        assert run("diff", "--against", "git:HEAD").code == 0
        monkeypatch.setenv("FLINKCOMPAT_LEDGER", str(root))
        result = run("diff", "orders")
        assert result.code == 1
        assert result.out.replace(str(root), "LEDGER") == snapshot
        found = json.loads(run("diff", "--format", "json").out)["deployments"]
        assert {each["name"]: (each["status"], each["entry"]) for each in found} == {
            "orders": ("changed", 1),
            "clicks": ("changed", 1),
        }

    def test_the_engine_is_that_of_the_job_where_the_file_names_none(
        self, project: Path, run: Run, tmp_path: Path
    ) -> None:
        project_file(ORDERS)
        deploy(tmp_path / "ledger", "orders")
        change("orders", PARTIAL)
        data = json.loads(run("diff", "--against", f"ledger:{tmp_path / 'ledger'}", "--format", "json").out)
        report = data["deployments"][0]["report"]
        assert (report["engine"], report["engine_version"], report["outcome"]) == ("flink", "2.3", "incompatible")

    def test_another_engine_than_the_one_that_runs_is_a_change(self, project: Path, run: Run, tmp_path: Path) -> None:
        project_file(f'engine = "vvr"\n{ORDERS}')
        deploy(tmp_path / "ledger", "orders")
        assert verdicts(run("diff", "--against", f"ledger:{tmp_path / 'ledger'}", "--format", "json")) == (
            1,
            {"orders": "unknown"},
        )

    def test_added_and_deleted(self, project: Path, run: Run, tmp_path: Path) -> None:
        """Deleted is what the file named where the branch began; a ledger may hold the jobs of others, too."""
        root = tmp_path / "ledger"
        for name in ("orders", "clicks", "of_others"):
            deploy(root, name)
        git(project, "update-ref", "refs/remotes/origin/main", "main")
        git(project, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
        fresh = ORDERS.replace("orders", "fresh")
        change("fresh", V1)
        project_file(f'ledger = "{root}"\n{HEAD}{ORDERS}{fresh}')
        result = run("diff", "--format", "json")
        assert result.code == 1
        assert results(result) == {"orders": "unchanged", "fresh": "added", "clicks": "deleted"}
        (note,) = json.loads(result.out)["notes"]
        assert note == f"{root} contains deployments that the project file does not contain: of_others"
        assert "its job keeps running" in " ".join(run("diff", "clicks").out.split())

    def test_where_the_branch_began_is_not_known(self, project: Path, run: Run, tmp_path: Path) -> None:
        """As in a shallow clone: whether the file named what it names no more nobody can tell."""
        root = tmp_path / "ledger"
        for name in ("orders", "clicks"):
            deploy(root, name)
        project_file(f'ledger = "{root}"\n{HEAD}{ORDERS}{CLICKS}')
        assert run("diff").code == 0
        project_file(f'ledger = "{root}"\n{HEAD}{ORDERS}')
        result = run("diff", "--format", "json")
        assert verdicts(result) == (2, {"orders": "unchanged", "clicks": "not readable"})
        (review,) = (each for each in json.loads(result.out)["deployments"] if each["name"] == "clicks")
        assert (
            "contains clicks, which the project file does not contain. It is unknown if the file contained clicks when"
            in review["sentence"]
        )
        assert run("diff", "orders").code == 0

    def test_a_ledger_that_is_not_there_passes_nothing(self, project: Path, run: Run, tmp_path: Path) -> None:
        result = run("diff", "--against", f"ledger:{tmp_path / 'nowhere'}", "--format", "json")
        assert result.code == 3
        assert set(results(result).values()) == {"out of reach"}
        assert "no deployment in" in json.loads(result.out)["deployments"][0]["sentence"]
        assert "compare with --against git:REF" in run("diff", "--against", f"ledger:{tmp_path / 'nowhere'}").out

    def test_one_ledger_that_cannot_be_read_is_told_of_its_deployment(
        self, project: Path, run: Run, tmp_path: Path
    ) -> None:
        root = tmp_path / "ledger"
        deploy(root, "orders")
        deploy(root, "clicks")
        (root / "clicks" / "000001.json").write_text('{\n "schema": 1\n}', encoding="utf-8")
        assert verdicts(run("diff", "--against", f"ledger:{root}", "--format", "json")) == (
            3,
            {"orders": "unchanged", "clicks": "out of reach"},
        )


class TestExitCodes:
    def test_each_is_worse_than_the_one_before(self, project: Path, run: Run) -> None:
        assert run("diff", "--against", "git:HEAD").code == 0
        change("orders", INCOMPATIBLE)
        assert run("diff", "--against", "git:HEAD").code == 1
        assert run("diff", "--against", "git:HEAD", "clicks").code == 0
        assert run("diff", "--against", "git:HEAD", "--fail-on", "never").code == 0
        change("clicks", BROKEN)
        assert run("diff", "--against", "git:HEAD", "--fail-on", "never").code == 2

    def test_a_deleted_deployment_fails_under_every_gate(self, project: Path, run: Run) -> None:
        project_file(f'fail_on = "never"\n{HEAD}{ORDERS}')
        assert run("diff", "--against", "git:HEAD").code == 1
        result = run("diff", "--against", "git:HEAD", "--fail-on", "never", "--format", "github")
        assert (result.code, result.out.count("::error file=flinkcompat.toml")) == (1, 1)

    def test_a_deleted_deployment_passes_where_the_file_says_that_its_job_was_stopped(
        self, project: Path, run: Run, tmp_path: Path, snapshot: SnapshotAssertion
    ) -> None:
        stopped = '\n[stopped]\nclicks = "2026-11-27 by Ann, savepoint s3://savepoints/clicks/1"\n'
        project_file(f"{HEAD}{ORDERS}{stopped}")
        result = run("diff", "--against", "git:HEAD")
        assert result.code == 0
        assert result.out == snapshot
        data = json.loads(run(*AGAINST_HEAD).out)
        VALIDATOR_OF_FLEET.validate(data)
        assert [each["status"] for each in data["deployments"]] == ["unchanged", "stopped"]
        assert "::" not in run("diff", "--against", "git:HEAD", "--format", "github").out
        project_file(f"{HEAD}{stopped}orders = 'with it'\n")
        assert run("diff", "--against", "git:HEAD").code == 0, "the last ones were deleted"

    def test_a_ledger_that_holds_a_stopped_deployment(self, project: Path, run: Run, tmp_path: Path) -> None:
        """Also where the branch began is not known, as in a shallow clone."""
        root = tmp_path / "ledger"
        for name in ("orders", "clicks"):
            deploy(root, name)
        stopped = '\n[stopped]\nclicks = "2026-11-27 by Ann"\n'
        project_file(f'ledger = "{root}"\n{HEAD}{ORDERS}{stopped}')
        assert verdicts(result := run("diff", "--format", "json")) == (0, {"orders": "unchanged", "clicks": "stopped"})
        git(project, "update-ref", "refs/remotes/origin/main", "main")
        git(project, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
        commit("merged")
        git(project, "update-ref", "refs/remotes/origin/main", "HEAD")
        assert verdicts(result := run("diff", "--format", "json")) == (0, {"orders": "unchanged"})
        assert json.loads(result.out)["notes"] == []

    @pytest.mark.parametrize("text", [BROKEN, SECRETIVE, "", "-- nothing\n"])
    def test_what_cannot_be_deployed_is_bad_input(self, project: Path, run: Run, text: str) -> None:
        change("orders", text)
        result = run("diff", "--against", "git:HEAD", "orders")
        assert result.code == 2
        assert "hunter2" not in result.out

    def test_placeholders_that_what_deploys_the_jobs_fills_in(self, project: Path, run: Run) -> None:
        """A shop may deploy by a tool of its own, whose placeholders are none of Airflow's."""
        text = V1.replace("'topic' =", "'properties.sasl.password' = '${PASSWORD}', 'topic' =")
        change("orders", text)
        result = run("diff", "--against", "git:HEAD")
        assert result.code == 2
        assert "placeholders_filled_elsewhere = true into the project file" in result.out
        project_file(f"placeholders_filled_elsewhere = true\n{HEAD}{ORDERS}")
        commit("with placeholders")
        change("orders", text.replace("'1' MINUTE", "'2' MINUTE"))
        (review,) = json.loads(run(*AGAINST_HEAD).out)["deployments"]
        assert (review["result"], review["branches"]) == ("incompatible", [])
        assert review["action"].startswith("refuses it: jobs/orders.sql:3:")
        assert run("check", "HEAD:jobs/orders.sql", "jobs/orders.sql").code == 1
        result = run("lint")
        assert (result.code, "note" in result.out) == (0, False)
        change("orders", SECRETIVE)
        assert run("lint").code == 2, "a literal secret is one"

    def test_a_deployment_with_a_secret_is_judged_and_cannot_be_deployed(self, project: Path, run: Run) -> None:
        change("orders", SECRETIVE.replace("'1' MINUTE", "'2' MINUTE"))
        (review,) = json.loads(run("diff", "orders", "--against", "git:HEAD", "--format", "json").out)["deployments"]
        assert (review["exit_code"], review["result"], review["branches"]) == (2, "not deployable", [])
        assert review["outcome"] == "incompatible"
        git(project, "commit", "-qam", "with a secret")
        result = run("diff", "--against", "git:HEAD")
        assert (result.code, "not deployable" in result.out) == (2, True), "unchanged, it still cannot be deployed"

    def test_a_script_that_is_gone_while_the_file_names_it(self, project: Path, run: Run) -> None:
        Path("jobs/orders.sql").unlink()
        result = run("diff", "--against", "git:HEAD")
        assert result.code == 2
        assert "jobs/orders.sql: cannot be read: there is no such file; if the deployment was deleted, remove it" in (
            " ".join(result.out.split())
        )

    def test_what_is_broken_on_the_other_side_can_be_mended(self, project: Path, run: Run) -> None:
        """Nobody can tell what a broken script left running: unknown, which a person may pass; not bad input."""
        change("orders", BROKEN)
        commit("broken")
        change("orders", V1)
        result = run(*AGAINST_HEAD)
        assert (result.code, results(result)["orders"]) == (1, "unknown")

    def test_a_deployment_that_is_not_there(self, project: Path, run: Run) -> None:
        result = run("diff", "--against", "git:HEAD", "order")
        assert result.code == 2
        assert "there is no deployment 'order'; choose from orders, clicks" in result.err

    def test_without_a_file(self, run: Run) -> None:
        for command in (("diff",), ("plan", "orders"), ("lint",)):
            result = run(*command)
            assert result.code == 2
            assert "there is no flinkcompat.toml here or in a folder above" in result.err

    def test_a_mistake_of_one_deployment_leaves_the_others(self, project: Path, run: Run) -> None:
        project_file(HEAD + ORDERS + CLICKS + "ownr = 'me'\n")
        assert verdicts(result := run(*AGAINST_HEAD)) == (2, {"orders": "unchanged", "clicks": "not readable"})
        assert "did you mean owner?" in json.loads(result.out)["deployments"][1]["sentence"]


def test_formats_go_to_files_beside_what_is_printed(project: Path, run: Run) -> None:
    change("orders", INCOMPATIBLE)
    result = run(
        "diff",
        "--against",
        "git:HEAD",
        "--format",
        "github",
        "--output",
        "sarif=out.sarif",
        "--output",
        "junit=out.xml",
    )
    assert result.code == 1
    assert result.out.startswith("::error file=jobs/orders.sql,line=7,")
    assert json.loads(Path("out.sarif").read_text())["version"] == "2.1.0"
    assert Path("out.xml").read_text().startswith("<?xml")
    for wrong in ("sarif", "sarif=", "html=x"):
        assert run("diff", "--output", wrong).code == 2


def test_from_a_folder_below_paths_are_those_of_the_repository(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A monorepo: the file lies in a folder of its own, and the command runs in one below."""
    Path("team/sub").mkdir(parents=True)
    shutil.move("jobs", "team/jobs")
    shutil.move("flinkcompat.toml", "team/flinkcompat.toml")
    commit("a monorepo")
    write("team/jobs/orders.sql", INCOMPATIBLE)
    monkeypatch.chdir("team/sub")
    result = run("diff", "--against", "git:HEAD", "--format", "github")
    assert result.code == 1
    assert "::error file=team/jobs/orders.sql,line=7," in result.out


class TestPlan:
    POLICY = 'policy = { incompatible = "restart" }\n'

    def test_what_the_gate_would_do(self, project: Path, run: Run) -> None:
        change("orders", INCOMPATIBLE)
        result = run("plan", "orders", "--against", "git:HEAD")
        assert result.code == 1
        assert "In Airflow the gate asks a person (branch approve)." in result.out
        project_file(HEAD + ORDERS + self.POLICY)
        result = run("plan", "orders", "--against", "git:HEAD")
        assert "In Airflow the gate restarts it without state (branch restart)." in result.out
        project_file(HEAD + ORDERS + "backfill.to = '2026-01-01'\n")
        result = run("plan", "orders", "--against", "git:HEAD")
        assert "the gate asks Flink's planner about the state that can be kept" in " ".join(result.out.split())
        assert "Then the backfill of this deployment recomputes" in result.out

    def test_a_rehearsal_comes_before_a_resume(self, project: Path, run: Run) -> None:
        project_file(HEAD + ORDERS + "rehearse = true\n")
        change("orders", V1.replace("SUM(amount)", "SUM(amount) * 100"))
        data = json.loads(run("plan", "orders", "--against", "git:HEAD", "--format", "json").out)
        assert data["command"] == "plan"
        (review,) = data["deployments"]
        assert (review["branches"], review["action"]) == (
            ["resume"],
            "rehearses the restore, then resumes it from a savepoint",
        )

    def test_a_shadow_run_comes_before_a_start_from_state(self, project: Path, run: Run) -> None:
        change("orders", V1.replace("SUM(amount)", "SUM(amount) * 100"))
        for more, then in (
            ("", "resumes it if they are equal, or asks a person"),
            ("policy.compatible = 'approve'", "asks a person"),
        ):
            project_file(f"{HEAD}{ORDERS}start_mode = 'shadow'\n{more}\n")
            data = json.loads(run("plan", "orders", "--against", "git:HEAD", "--format", "json").out)
            (review,) = data["deployments"]
            assert review["action"] == f"compares the rows of both scripts in a shadow run, then {then}"

    def test_a_script_that_is_deployed_by_no_task(self, project: Path, run: Run) -> None:
        change("orders", V1.replace("SUM(amount)", "SUM(amount) * 2") + QUERY)
        (review,) = json.loads(run("plan", "orders", "--against", "git:HEAD", "--format", "json").out)["deployments"]
        assert review["branches"] == []
        assert review["action"].startswith("refuses it: the script defines 2 jobs")

    def test_nothing_changed(self, project: Path, run: Run) -> None:
        result = run("plan", "orders", "--against", "git:HEAD")
        assert result.code == 0
        assert "touches nothing" in result.out


class TestLint:
    def test_every_kind_of_finding(self, run: Run, snapshot: SnapshotAssertion) -> None:
        scripts = {
            "good": V1,
            "undeclared": QUERY,
            "refused": TABLES + "INSERT INTO totals SELECT customer, amount, item FROM orders;",
            "broken": BROKEN,
            "secretive": SECRETIVE,
            "several": V1 + QUERY,
        }
        for name, text in scripts.items():
            write(f"{name}.sql", text)
        result = run("lint", *(f"{name}.sql" for name in scripts), "gone.sql", "--engine", "flink")
        assert result.code == 2
        assert result.out == snapshot

    def test_a_script_with_a_secret_is_read(self, run: Run) -> None:
        Path("job.sql").write_text(SECRETIVE + "SELECT * FROM nowhere;", "utf-8")
        result = run("lint", "job.sql", "--engine", "flink")
        assert result.code == 2
        assert "is a secret in plain text" in result.out
        assert "the columns of * are not known" in result.out, "what else is wrong is reported with it"
        allowed = run("lint", "job.sql", "--engine", "flink", "--allow-secrets")
        assert allowed.code == 1
        assert "note: job.sql:3:" in allowed.out

    @pytest.mark.parametrize(
        ("text", "options", "code"),
        [
            (V1, (), 0),
            (SECRETIVE, ("--allow-secrets",), 0),
            (QUERY, (), 1),
            (QUERY, ("--engine", "vvr"), 0),
            (QUERY, ("--fail-on", "incompatible"), 0),
            (QUERY, ("--catalog", "tables.sql"), 0),
            (TABLES + "INSERT INTO totals SELECT customer, nope FROM orders;", (), 1),
            (BROKEN, ("--fail-on", "never"), 2),
        ],
    )
    def test_exit_codes(self, run: Run, text: str, options: tuple[str, ...], code: int) -> None:
        write("tables.sql", TABLES)
        write("job.sql", text)
        assert run("lint", "job.sql", *options).code == code

    @pytest.mark.parametrize("named", ["file", "option"])
    def test_what_is_wrong_in_the_catalog_is_told_there(self, project: Path, run: Run, named: str) -> None:
        Path("ddl").mkdir()
        Path("ddl/tables.sql").write_text(TABLES.replace(") WITH", " WITH"), encoding="utf-8")
        if named == "file":
            project_file(f'{HEAD}catalog = "ddl/tables.sql"\n{ORDERS}')
        options = () if named == "file" else ("--catalog", "ddl/tables.sql")
        out = run("lint", "jobs/orders.sql", *options, "--format", "github").out
        assert "::error file=ddl/tables.sql,line=1," in out

    def test_the_scripts_of_the_file(self, many: Path, run: Run) -> None:
        result = run("lint", "--format", "json")
        data = json.loads(result.out)
        assert result.code == 2
        assert {each["name"] for each in data["deployments"] if each["result"] != "read"} == {
            "jobs/broken.sql",
            "jobs/secretive.sql",
        }
        assert len(data["deployments"]) == 30
        assert run("lint", "--format", "github").out.count("::error ") == 2

    def test_a_file_that_names_no_deployment_is_bad_input(self, project: Path, run: Run) -> None:
        project_file(HEAD)
        lint, diff = run("lint"), run("diff")
        assert (lint.code, lint.err) == (diff.code, diff.err)
        assert lint.code == 2
        assert "names no deployment: add [deployments.NAME] with its script" in lint.err

    def test_a_broken_deployment_silences_no_other(self, project: Path, run: Run) -> None:
        broken = '\n[deployments.templated]\nscript = "{{ x }}.sql"\n'
        project_file(HEAD + ORDERS + CLICKS + broken)
        change("orders", BROKEN)
        result = run("lint")
        assert result.code == 2
        assert "jobs/orders.sql" in result.out
        assert "read: jobs/clicks.sql" in result.out
        assert "deployment 'templated'" in result.out
        assert "3 scripts: 2 not readable, 1 read; Flink did not plan them" in result.out


def test_the_file_of_the_tests_holds_thirty_deployments(many: Path) -> None:
    former = git(many, "show", "main:flinkcompat.toml")
    assert former.count("[deployments.") == 30
    assert project_text({"refunds": "a.sql"}, "").endswith('engine = "vvr"\n')
    assert script_of("x") != script_of("y")


@pytest.mark.parametrize("command", [("lint",), ("diff", "--against", "git:HEAD")])
def test_a_secret_among_the_settings_is_told_in_the_project_file(
    project: Path, run: Run, command: tuple[str, ...]
) -> None:
    settings = '[deployments.orders.settings]\n"table.exec.state.ttl" = "1 d"\n"s3.secret-key" = "hunter2hunter2"\n'
    text = HEAD + ORDERS + settings + CLICKS
    project_file(text)
    line = text[: text.index('"s3.secret-key"')].count("\n") + 1
    result = run(*command, "--format", "github")
    assert result.code == 2
    assert f"::error file=flinkcompat.toml,line={line},endLine={line},col=1," in result.out
    assert "::the setting 's3.secret-key' contains a secret in plain text" in result.out
    assert "hunter2" not in result.out + result.err
