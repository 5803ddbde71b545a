"""The recipes for CI, run: the steps of the GitHub action, the script of the GitLab job, the hooks of pre-commit."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

from airflow_flinkcompat.local_flink.processes import find_java
from airflow_flinkcompat.planner.installation import LINES, install
from tests.support.fleet.repository import git, make_repository

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
GH = """\
#!/usr/bin/env bash
# In place of GitHub's command: notes what it was asked for, and lists the comment of FOUND.
echo "$*" >>"$CALLS"
case "$*" in *--paginate*) echo "$FOUND" ;; esac
[ "${GH_CODE:-0}" = 0 ] || echo "gh: body is too long (HTTP 422)" >&2
exit "${GH_CODE:-0}"
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("template") / "jobs")


@pytest.fixture
def jobs(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(template, tmp_path / "jobs"))


def load(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def command_path(folder: Path) -> str:
    """A PATH whose ``flinkcompat`` is this checkout's, and which has no GitHub."""
    folder.mkdir(exist_ok=True)
    script = folder / "flinkcompat"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m airflow_flinkcompat.cli "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return f"{folder}:{BIN}:/usr/bin:/bin"


class TestGitHub:
    @pytest.fixture
    def environment(self, jobs: Path, tmp_path: Path) -> dict[str, str]:
        """What GitHub gives the step, and a ``gh`` that only notes."""
        path = command_path(tmp_path / "bin")
        (tmp_path / "bin" / "gh").write_text(GH, encoding="utf-8")
        (tmp_path / "bin" / "gh").chmod(0o755)
        (tmp_path / "event.json").write_text('{"pull_request": {"number": 7}}', encoding="utf-8")
        files = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "CALLS")}
        step = next(each for each in load("action.yml")["runs"]["steps"] if each.get("id") == "diff")
        inputs = {name: details["default"] for name, details in load("action.yml")["inputs"].items()}
        given = {key: value.replace("${{ inputs.", "").replace(" }}", "") for key, value in step["env"].items()}
        return {
            **{key: inputs[name] for key, name in given.items()},
            **files,
            "PATH": path,
            "PYTHONPATH": str(ROOT),
            "FLINKCOMPAT_PLANNER": "never",
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
            "GITHUB_REPOSITORY": "shop/jobs",
            "FOUND": "",
        }

    def step(self, jobs: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        script = ROOT / "ci" / "github.sh"
        return subprocess.run([script], cwd=jobs, env=environment, capture_output=True, text=True)

    def test_the_step_tells_in_every_place(self, jobs: Path, environment: dict[str, str], tmp_path: Path) -> None:
        done = self.step(jobs, {**environment, "AGAINST": "git:origin/main"})
        assert done.returncode == 2, done.stderr
        assert "::error file=jobs/orders.sql,line=7," in done.stdout
        outputs = dict(line.split("=", 1) for line in Path(environment["GITHUB_OUTPUT"]).read_text().splitlines())
        assert outputs["exit-code"] == "2"
        assert json.loads(Path(outputs["sarif"]).read_text())["version"] == "2.1.0"
        assert json.loads(Path(outputs["report"]).read_text())["exit_code"] == 2
        assert "| `orders` | **incompatible** |" in Path(environment["GITHUB_STEP_SUMMARY"]).read_text()
        listed, written = Path(environment["CALLS"]).read_text().splitlines()
        assert listed.startswith("api --paginate repos/shop/jobs/issues/7/comments --jq ")
        assert written.startswith("api --silent --method POST repos/shop/jobs/issues/7/comments --field body=@")

    def test_the_step_asks_flink(self, environment: dict[str, str], tmp_path: Path) -> None:
        install("2.3")
        folder = tmp_path / "one"
        folder.mkdir()
        (folder / "flinkcompat.toml").write_text('engine = "flink"\n[deployments.a]\nscript = "a.sql"\n')
        (folder / "a.sql").write_text((ROOT / "tests/fixtures/readme/orders_v1.sql").read_text())
        git(folder, "init", "--quiet")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "--message", "first")
        (folder / "a.sql").write_text((ROOT / "tests/fixtures/readme/orders_v2.sql").read_text())
        asks = {"FLINKCOMPAT_PLANNER": "always", "JAVA_HOME": str(find_java().parents[1]), "AGAINST": "git:HEAD"}
        done = self.step(folder, {**environment, **asks})
        outputs = dict(line.split("=", 1) for line in Path(environment["GITHUB_OUTPUT"]).read_text().splitlines())
        (row,) = json.loads(Path(outputs["report"]).read_text())["deployments"]
        assert row["report"]["ground"] == "planned by Flink 2.3.0", done.stderr

    def test_the_comment_of_before_is_changed(self, jobs: Path, environment: dict[str, str]) -> None:
        self.step(jobs, {**environment, "FOUND": "4711"})
        assert "--method PATCH repos/shop/jobs/issues/comments/4711 " in Path(environment["CALLS"]).read_text()

    def test_a_token_that_only_reads_costs_the_comment_alone(self, jobs: Path, environment: dict[str, str]) -> None:
        done = self.step(jobs, {**environment, "GH_CODE": "1", "FAIL_ON": "never"})
        assert "::warning::the comment" in done.stdout
        assert "HTTP 422" in done.stderr
        assert done.returncode == 2, "of the broken script, not of the comment"

    def test_bad_input_leaves_no_file_of_before(self, jobs: Path, environment: dict[str, str]) -> None:
        self.step(jobs, environment)
        Path(environment["GITHUB_OUTPUT"]).unlink()
        done = self.step(jobs, {**environment, "AGAINST": "git:nowhere"})
        assert done.returncode == 2
        assert "nowhere: is not a revision of this Git repository" in done.stderr
        assert Path(environment["GITHUB_OUTPUT"]).read_text() == "exit-code=2\n"

    @pytest.mark.parametrize("wrong", [{"AGAINST": "git:nowhere"}, {"AGAINST": "bogus"}, {"FAIL_ON": "100%\n::x"}])
    def test_bad_input_replaces_the_comment_of_before(
        self, jobs: Path, environment: dict[str, str], tmp_path: Path, wrong: dict[str, str]
    ) -> None:
        """One that said "passed" would stand on for a commit that nobody judged."""
        self.step(jobs, {**environment, "AGAINST": "git:origin/main"})
        (before,) = tmp_path.glob("flinkcompat-out.*/comment.md")
        marker = before.read_text(encoding="utf-8").splitlines()[0]
        environment = {**environment, **wrong, "RUNNER_TEMP": str(tmp_path / "next"), "FOUND": "4711"}
        (tmp_path / "next").mkdir()
        done = self.step(jobs, environment)
        assert done.returncode == 2
        (error,) = (line for line in done.stdout.splitlines() if line.startswith("::"))
        assert error.startswith("::error::could not be judged: ")
        (comment,) = (tmp_path / "next").glob("flinkcompat-out.*/comment.md")
        assert comment.read_text(encoding="utf-8").startswith(
            f"{marker}\n### Flink SQL jobs: could not be judged\n\n    "
        )
        changed = Path(environment["CALLS"]).read_text().splitlines()[-1]
        assert changed.startswith("api --silent --method PATCH repos/shop/jobs/issues/comments/4711 --field body=@")
        assert "could not be judged" in Path(environment["GITHUB_STEP_SUMMARY"]).read_text()

    def test_bad_input_begins_no_comment(self, jobs: Path, environment: dict[str, str]) -> None:
        self.step(jobs, {**environment, "AGAINST": "git:nowhere"})
        (listed,) = Path(environment["CALLS"]).read_text().splitlines()
        assert "--paginate" in listed

    def test_a_folder_that_is_not_there_is_bad_input(self, jobs: Path, environment: dict[str, str]) -> None:
        done = self.step(jobs, {**environment, "FOLDER": "nowhere"})
        assert done.returncode == 2
        assert "::error::could not be judged: the input folder names no folder of the repository" in done.stdout
        assert Path(environment["GITHUB_OUTPUT"]).read_text() == "exit-code=2\n"

    def test_each_step_of_a_job_has_its_own_files(self, jobs: Path, environment: dict[str, str]) -> None:
        self.step(jobs, environment)
        self.step(jobs, {**environment, "AGAINST": "git:HEAD"})
        lines = Path(environment["GITHUB_OUTPUT"]).read_text().splitlines()
        reports = [Path(line.removeprefix("report=")) for line in lines if line.startswith("report=")]
        against = [json.loads(each.read_text())["against"] for each in reports]
        assert len(set(against)) == 2, against

    def test_the_action_runs_that_script_and_names_its_outputs(self) -> None:
        action = load("action.yml")
        assert action["runs"]["using"] == "composite"
        assert any("ci/github.sh" in each.get("run", "") for each in action["runs"]["steps"])
        script = (ROOT / "ci" / "github.sh").read_text(encoding="utf-8")
        assert all(f'"{name}=' in script for name in action["outputs"])


def planner_lines() -> dict[str, str]:
    """What each recipe runs to have the planner there."""
    (of_action,) = (each["run"] for each in load("action.yml")["runs"]["steps"] if each.get("id") == "planner")
    (of_gitlab,) = (line for line in load("ci/gitlab.yml")["flinkcompat"]["script"] if "planner install" in line)
    dockerfile = (ROOT / "ci" / "Dockerfile").read_text(encoding="utf-8")
    (of_image,) = re.findall(r"^RUN (flinkcompat planner install .*)$", dockerfile, re.MULTILINE)
    return {"action": of_action, "gitlab": of_gitlab, "image": of_image}


@pytest.mark.parametrize(
    ("recipe", "mode", "works", "code"),
    [
        ("action", "auto", True, 0),
        ("action", "auto", False, 0),
        ("action", "always", False, 1),
        ("gitlab", "never", False, 0),
        ("gitlab", "auto", True, 0),
        ("gitlab", "auto", False, 0),
        ("gitlab", "always", False, 1),
        ("image", "auto", True, 0),
        ("image", "auto", False, 1),
    ],
)
def test_the_planner_is_installed(recipe: str, mode: str, works: bool, code: int, tmp_path: Path) -> None:
    """Where it cannot be, a check goes without it, unless it must be asked."""
    (tmp_path / "flinkcompat").write_text(f'#!/bin/sh\necho "$PWD $*" >>"$CALLS"; exit {0 if works else 5}\n')
    (tmp_path / "flinkcompat").chmod(0o755)
    (tmp_path / "jobs").mkdir()
    folder = tmp_path if recipe == "action" else tmp_path / "jobs"
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CALLS": str(tmp_path / "calls"), "FOLDER": "jobs"}
    environment |= {"FLINKCOMPAT_PLANNER": mode, "FLINK": "2.3 1.20", "FLINKCOMPAT_CACHE": str(tmp_path)}
    environment["RUNNER_TEMP"] = str(tmp_path / "none")
    done = subprocess.run(["bash", "-e", "-c", planner_lines()[recipe]], cwd=folder, env=environment)
    assert bool(done.returncode) == bool(code)
    said = "planner install 2.3 1.20" if recipe == "image" else "planner install"
    calls = tmp_path / "calls"
    assert (calls.read_text() if calls.exists() else "") == ("" if mode == "never" else f"{tmp_path}/jobs {said}\n")


def test_the_image_is_made_of_what_is_there() -> None:
    dockerfile = (ROOT / "ci" / "Dockerfile").read_text(encoding="utf-8")
    arguments = dict(re.findall(r'^ARG (\w+)="?([^"\n]*)', dockerfile, re.MULTILINE))
    assert set(arguments["FLINK"].split()) <= set(LINES)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(arguments["EXTRAS"].split(",")) <= set(extras)


def test_the_gitlab_job(jobs: Path, tmp_path: Path) -> None:
    """Its own lines, as GitLab runs them, but for the installation."""
    job = load("ci/gitlab.yml")["flinkcompat"]
    git(jobs, "remote", "add", "origin", str(jobs))
    variables = {key: str(value) for key, value in job["variables"].items()} | {"FLINKCOMPAT_PLANNER": "never"}
    done = subprocess.run(
        ["bash", "-e", "-c", "\n".join(job["script"])],
        cwd=jobs,
        env={
            **variables,
            "PATH": command_path(tmp_path / "bin"),
            "PYTHONPATH": str(ROOT),
            "HOME": str(tmp_path),
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2, done.stderr
    reports = job["artifacts"]["reports"]
    rows = json.loads((jobs / reports["codequality"]).read_text(encoding="utf-8"))
    assert {row["location"]["path"] for row in rows} >= {"jobs/orders.sql", "jobs/broken.sql", "flinkcompat.toml"}
    assert (jobs / reports["junit"]).read_text(encoding="utf-8").count("<testcase ") == 31
    assert (jobs / job["artifacts"]["paths"][0]).exists()


def test_the_hooks_of_pre_commit(jobs: Path, tmp_path: Path) -> None:
    """pre-commit runs both, as they are but for the environment of their own, which would be installed from outside."""
    hooks = load(".pre-commit-hooks.yaml")
    subprocess.run([BIN / "pre-commit", "validate-manifest", ROOT / ".pre-commit-hooks.yaml"], check=True)
    local = {"repos": [{"repo": "local", "hooks": [{**hook, "language": "system"} for hook in hooks]}]}
    (jobs / ".pre-commit-config.yaml").write_text(yaml.safe_dump(local), encoding="utf-8")
    git(jobs, "add", ".pre-commit-config.yaml")
    environment = {**os.environ, "PATH": command_path(tmp_path / "bin"), "PYTHONPATH": str(ROOT)}
    environment |= {"PRE_COMMIT_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(BIN / "pre-commit"), "run", "--color", "never", *arguments]
        return subprocess.run(command, cwd=jobs, env=environment, capture_output=True, text=True)

    done = run("--all-files")
    assert done.returncode == 1
    assert "Flink SQL jobs, each by itself" in done.stdout
    assert "jobs/broken.sql:8:7: error: input-not-readable" in done.stdout
    assert "against what is deployed" not in done.stdout, "that one comes before a push"
    done = run("--all-files", "--hook-stage", "pre-push", "flinkcompat-diff")
    assert done.returncode == 1
    assert "orders      incompatible" in done.stdout


def test_the_files_that_the_page_shows(tmp_path: Path) -> None:
    """They name what there is: outputs of the action, variables of the job, hooks and the stages of these."""
    page = (ROOT / "docs" / "pull-requests.md").read_text(encoding="utf-8")
    workflow, gitlab, hooks = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    used = set(re.findall(r"steps\.flink\.outputs\.([a-z-]+)", yaml.safe_dump(workflow)))
    assert used
    assert used <= load("action.yml")["outputs"].keys()
    job = load("ci/gitlab.yml")["flinkcompat"]
    (remote,) = (each["remote"] for each in gitlab["include"])
    assert (ROOT / remote.partition("/COMMIT/")[2]).is_file()
    assert gitlab["flinkcompat"]["variables"].keys() <= job["variables"].keys()
    assert Requirement(gitlab["flinkcompat"]["variables"]["FLINKCOMPAT_PACKAGE"]).extras == {"jars"}
    (repository,) = hooks["repos"]
    known = {each["id"]: each.get("stages", ["pre-commit"]) for each in load(".pre-commit-hooks.yaml")}
    stages = {stage for hook in repository["hooks"] for stage in known[hook["id"]]}
    assert stages == set(hooks["default_install_hook_types"])
    config = tmp_path / ".pre-commit-config.yaml"
    config.write_text(yaml.safe_dump(hooks), encoding="utf-8")
    subprocess.run([BIN / "pre-commit", "validate-config", config], check=True)
