"""A repository of 30 different jobs with a history, through the installed command: every format as its readers take it.

The scripts are cases of the fixtures, old side and new, so that what is to come of each is known beforehand.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for

from airflow_flinkcompat.model import PLANNER_VARIABLE
from airflow_flinkcompat.testing.fixture_cases import Case, load_cases
from tests.support.cli.command import ENVIRONMENT, QUERY, SECRETIVE, V1
from tests.support.fleet.repository import git
from tests.unit.fleet.consumers import code_quality, commands, test_cases
from tests.unit.fleet.github_sarif import GITHUB_SARIF
from tests.unit.fleet.test_formats import VALIDATOR_OF_FLEET

FIXTURES = Path(__file__).parents[2] / "fixtures" / "vvr"
COMMAND = Path(sys.executable).with_name("flinkcompat")
FORMATS = ("text", "markdown", "json", "sarif", "junit", "github", "gitlab")
CHANGED, KEPT = 20, 6
BROKEN, SECRET, RETIRED, MOVED, ADDED = "broken", "secretive", "retired", "moved", "added"
SPECIAL = (BROKEN, SECRET, RETIRED, MOVED)
BASE, MIDDLE = "base", "middle"
MULTITOOL = "@microsoft/sarif-multitool-linux@5.7.0"
"""The validator of SARIF of its authors' own, which knows the schema of OASIS and what GitHub asks for."""

pytestmark = pytest.mark.slow


def _alone(case: Case) -> bool:
    """Whether a case needs nothing beside its scripts, and says how it ends on open-source Flink."""
    return bool(case.flink and case.old.strip() and case.new.strip()) and not (
        case.functions or case.settings_old or case.settings_new
    )


@cache
def cases() -> dict[str, Case]:
    """One case of each of so many files of the fixtures, by the deployment that it becomes, of all outcomes."""
    first: dict[str, Case] = {}
    for folder in sorted(each for each in FIXTURES.iterdir() if each.is_dir()):
        for number, case in enumerate(filter(_alone, load_cases(folder))):
            # Not always the first case of a file: that is the example of the documents.
            first.setdefault(f"{folder.name}-{Path(case.file).stem}-{number % 2}", case)
    names = sorted(first)
    chosen = names[:: max(1, len(names) // (CHANGED + KEPT))][: CHANGED + KEPT]
    assert len(chosen) == CHANGED + KEPT
    return {name: first[name] for name in chosen}


def changed() -> dict[str, Case]:
    return dict(list(cases().items())[:CHANGED])


def write(folder: Path, name: str, text: str) -> None:
    path = folder / "jobs" / f"{name}.sql"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def commit(folder: Path, message: str, tag: str = "") -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    if tag:
        git(folder, "tag", tag)


def name_jobs(folder: Path, paths: dict[str, str]) -> None:
    tables = (f'\n[deployments.{name}]\nscript = "{path}"\n' for name, path in paths.items())
    (folder / "flinkcompat.toml").write_text('engine = "flink"\nengine_version = "2.3"\n' + "".join(tables), "utf-8")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    paths = {name: f"jobs/{name}.sql" for name in (*cases(), *SPECIAL)}
    for name, case in cases().items():
        write(folder, name, case.old_script)
    for name in SPECIAL:
        write(folder, name, V1)
    name_jobs(folder, paths)
    assert len(paths) == 30
    commit(folder, "thirty jobs", BASE)
    each = list(changed().items())
    for name, case in each[: CHANGED // 2]:
        write(folder, name, case.new_script)
    commit(folder, "ten of them change", MIDDLE)
    for name, case in each[CHANGED // 2 :]:
        write(folder, name, case.new_script)
    commit(folder, "ten more do")
    write(folder, BROKEN, V1.replace("GROUP BY", "GRUOP BY"))
    write(folder, SECRET, SECRETIVE)
    (folder / "moved").mkdir()
    git(folder, "mv", paths[MOVED], "moved/elsewhere.sql")
    paths |= {MOVED: "moved/elsewhere.sql", ADDED: f"jobs/{ADDED}.sql"}
    commit(folder, "two that cannot be deployed, one moved")
    (folder / paths.pop(RETIRED)).unlink()
    commit(folder, "one retired")
    write(folder, ADDED, V1)
    name_jobs(folder, paths)
    commit(folder, "one more")
    return folder


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The installed command, in a process of its own."""
    own = {name: value for name, value in ENVIRONMENT.items() if not name.startswith(("FLINKCOMPAT_", "GITHUB_", "CI"))}
    own[PLANNER_VARIABLE] = "never"  # the expected outcomes are those of the rules
    done = subprocess.run([COMMAND, *arguments], cwd=folder, env=own, capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stderr
    return done


def in_every_format(folder: Path, into: Path, *arguments: str) -> tuple[int, dict[str, str]]:
    into.mkdir(exist_ok=True)
    outputs = [f"--output={style}={into / style}" for style in FORMATS]
    code = run(folder, *arguments, *outputs).returncode
    return code, {style: (into / style).read_text("utf-8") for style in FORMATS}


def checked(shown: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The deployments by name, when every format was taken by its reader and all say the same."""
    data = json.loads(shown["json"])
    VALIDATOR_OF_FLEET.validate(data)
    found = {each["name"]: each for each in data["deployments"]}
    annotations = [(each["severity"], each["path"]) for row in found.values() for each in row["annotations"]]
    results = json.loads(shown["sarif"])
    Draft202012Validator(GITHUB_SARIF).validate(results)
    levels = [
        (each["level"], each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])
        for each in results["runs"][0]["results"]
    ]
    assert sorted(levels) == sorted(annotations)
    assert sorted(commands(shown["github"])) == sorted(
        (level.replace("note", "notice"), path) for level, path in annotations
    )
    assert len(code_quality(json.loads(shown["gitlab"]))) == len(annotations)
    ends = {"": 0, "failure": 1, "error": 2}
    assert {name: ends[kind] for name, kind in test_cases(shown["junit"]).items()} == {
        name: each["exit_code"] for name, each in found.items()
    }
    assert shown["markdown"].startswith(f"<!-- flinkcompat {data['command']} flinkcompat.toml -->\n")
    assert len(shown["markdown"]) < 65_536
    assert shown["text"].endswith(f"\n{data['summary']}\n")
    assert "hunter2" not in "".join(shown.values())
    return found


@pytest.fixture(scope="module")
def diff(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    code, shown = in_every_format(repository, tmp_path_factory.mktemp("diff"), "diff", "--against", f"git:{BASE}")
    assert code == 2, "one cannot be read"
    return shown


def outcomes(rows: dict[str, dict[str, Any]], names: Sequence[str] | dict[str, Case]) -> dict[str, str]:
    return {name: rows[name]["outcome"] for name in names}


def expected(of: dict[str, Case]) -> dict[str, str]:
    return {name: case.flink for name, case in of.items()}


def test_the_cases_are_of_every_outcome() -> None:
    assert {case.flink for case in changed().values()} == {"compatible", "unknown", "incompatible"}


def test_every_format_of_a_diff(diff: dict[str, str]) -> None:
    found = checked(diff)
    assert len(found) == 31
    assert outcomes(found, changed()) == expected(changed())
    special = {name: found[name]["result"] for name in (*SPECIAL, ADDED)}
    assert special == {
        BROKEN: "not readable", SECRET: "not deployable", RETIRED: "deleted", MOVED: "unchanged", ADDED: "added",
    }  # fmt: skip
    kept = [name for name in cases() if name not in changed()]
    assert {found[name]["status"] for name in kept} == {"unchanged"}
    assert found[MOVED]["script"] == "moved/elsewhere.sql"


@pytest.mark.nightly
def test_a_later_revision_leaves_less_to_say(repository: Path) -> None:
    done = run(repository, "diff", "--against", f"git:{MIDDLE}", "--format", "json")
    found = {each["name"]: each for each in json.loads(done.stdout)["deployments"]}
    first, second = (dict(part) for part in (list(changed().items())[:10], list(changed().items())[10:]))
    assert {found[name]["status"] for name in first} == {"unchanged"}
    assert outcomes(found, second) == expected(second)


@pytest.mark.nightly
def test_a_plan_of_one(repository: Path, diff: dict[str, str]) -> None:
    found = checked(diff)
    name = next(name for name in changed() if found[name]["outcome"] == "incompatible" and found[name]["branches"])
    done = run(repository, "plan", name, "--against", f"git:{BASE}")
    assert done.returncode == 1
    assert found[name]["sentence"] in " ".join(done.stdout.split())
    assert f"(branch {found[name]['branches'][0]})" in done.stdout


@pytest.mark.nightly
def test_every_format_of_lint(repository: Path, tmp_path: Path) -> None:
    code, shown = in_every_format(repository, tmp_path / "lint", "lint")
    found = checked(shown)
    assert (code, len(found)) == (2, 30)
    unreadable = {name for name, each in found.items() if each["exit_code"] == 2}
    assert unreadable == {f"jobs/{BROKEN}.sql", f"jobs/{SECRET}.sql"}


def test_an_audit_of_the_history_says_what_the_diff_says(repository: Path) -> None:
    done = run(repository, "audit", "--git", f"{BASE}..HEAD", "--format", "json")
    data = json.loads(done.stdout)
    rows = {Path(each["name"].partition("@")[0]).stem: each["result"] for each in data["rows"]}
    assert {name: rows[name] for name in changed()} == expected(changed())
    assert (rows[BROKEN], data["exit_code"], done.returncode) == ("unreadable", 2, 2)
    assert "moved scripts without changes: 1" in data["notes"]
    assert "added or deleted scripts, which cannot be compared: 2" in data["notes"]


@pytest.mark.nightly
def test_an_audit_of_an_upgrade_and_of_a_changed_table(repository: Path, tmp_path: Path) -> None:
    upgrade = ("--engine", "flink", "--old-engine-version", "1.20", "--engine-version", "2.3")
    files = [f"--output={style}={tmp_path / style}" for style in ("json", "html", "markdown", "text")]
    done = run(repository, "audit", "jobs", *upgrade, *files)
    data = json.loads((tmp_path / "json").read_text("utf-8"))
    assert (done.returncode, data["jobs"]) == (2, 29)
    assert all(each["engines"][0]["old_version"] == "1.20" for each in data["rows"] if each["engines"])
    table = V1.partition(";")[0].replace("'topic' = 'orders'", "'topic' = 'others'")
    (tmp_path / "orders.sql").write_text(table, encoding="utf-8")
    one = run(repository, "audit", f"jobs/{ADDED}.sql", "--change-table", str(tmp_path / "orders.sql"), "--format=json")
    (row,) = json.loads(one.stdout)["rows"]
    assert (one.returncode, row["result"], row["tables"]) == (1, "incompatible", ["orders"])
    assert QUERY in (repository / f"jobs/{ADDED}.sql").read_text("utf-8"), "an audit changes nothing"


@pytest.mark.nightly
def test_sarif_is_valid_by_the_schema_of_oasis(repository: Path, diff: dict[str, str], tmp_path: Path) -> None:
    """The schema, and the rules for GitHub, as SARIF's authors ship them in their validator."""
    install = ["npm", "install", "--no-audit", "--no-fund", "--silent", MULTITOOL]
    subprocess.run(install, cwd=tmp_path, check=True, timeout=300)
    (tool,) = (tmp_path / "node_modules").rglob("Sarif.Multitool")
    tool.chmod(0o755)
    schema = json.loads((tool.parent / "sarif-2.1.0.json").read_text("utf-8-sig"))
    validator = validator_for(schema)(schema)

    def faults(name: str, log: dict[str, Any]) -> list[str]:
        """Messages by the schema, and the codes of the validator's rules."""
        given, told = tmp_path / f"{name}.sarif", tmp_path / f"{name}.log"
        given.write_text(json.dumps(log), encoding="utf-8")
        asked = ["--rule-kind", "Sarif;Gh", "--level", "Error;Warning", "--output", told, "--log", "ForceOverwrite"]
        environment = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
        subprocess.run([tool, "validate", given, *asked], env=environment, check=True, capture_output=True, timeout=300)
        (run_,) = json.loads(told.read_text("utf-8-sig"))["runs"]
        return [*(each.message for each in validator.iter_errors(log)), *(each["ruleId"] for each in run_["results"])]

    found = checked(diff)
    name = next(name for name in changed() if found[name]["outcome"] == "unknown")
    copy = Path(shutil.copytree(repository, tmp_path / "copy"))
    said = ("--reason", "seen", "--until", "2999-12-31", "--by", "ann", "--even-silently-wrong")
    rule = found[name]["annotations"][0]["rule"]
    assert run(copy, "accept", name, rule, *said, "--against", f"git:{BASE}").returncode == 0
    _, waived = in_every_format(copy, tmp_path / "waived", "diff", "--against", f"git:{BASE}")
    assert [each["severity"] for each in checked(waived)[name]["annotations"]].count("note") == 1
    linted = run(repository, "lint", "--format", "sarif").stdout
    logs = {"diff": diff["sarif"], "lint": linted, "waived": waived["sarif"]}
    # The address of the tool, which is known where it is published and not here.
    assert {each: faults(each, json.loads(text)) for each, text in logs.items()} == {key: ["SARIF2005"] for key in logs}
    wrong = json.loads(diff["sarif"])
    wrong["runs"][0]["results"][0]["level"] = "fatal"
    assert "'fatal' is not one of ['none', 'note', 'warning', 'error']" in faults("wrong", wrong)
