"""What a release uploads is checked: by a script that the release workflow calls, and by this."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import release_check
from scripts.release_check import ReleaseError

ROOT = Path(__file__).resolve().parents[2]
CHANGES = "# Changes\n\n## [Unreleased]\n\n## [1.2.0] - 2026-12-01\n"


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    return yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_tag_version_and_list_of_changes_agree() -> None:
    release_check.require_agreement("v1.2.0", "1.2.0", CHANGES)
    with pytest.raises(ReleaseError, match=r"the tag is v1\.3\.0, __version__ is 1\.2\.0: tag v1\.2\.0"):
        release_check.require_agreement("v1.3.0", "1.2.0", CHANGES)
    with pytest.raises(ReleaseError, match=r"no heading '## \[1\.3\.0\] - YYYY-MM-DD'"):
        release_check.require_agreement("v1.3.0", "1.3.0", CHANGES)


def test_the_version_has_one_home() -> None:
    import airflow_flinkcompat

    assert release_check.version() == airflow_flinkcompat.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", airflow_flinkcompat.__version__)
    assert "## [Unreleased]\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_extra_is_tried() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {"", *extras} - release_check.NOT_TRIED == set(release_check.TRIES)


def test_what_an_extra_does_not_do_is_named(tmp_path: Path) -> None:
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment" / "bin").symlink_to(Path(sys.executable).parent)
    release_check.require(release_check.python("print('here')", "here"), tmp_path, "x")
    with pytest.raises(ReleaseError, match=r"\[x\] python -c import nowhere: exit code 1, expected 0"):
        release_check.require(release_check.python("import nowhere"), tmp_path, "x")
    with pytest.raises(ReleaseError, match="expected 0 and 'there'"):
        release_check.require(release_check.python("print('here')", "there"), tmp_path, "x")


def test_the_workflow_names_actions_by_commit(workflow: dict[str, Any]) -> None:
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    assert len(used) > 4
    assert [each for each in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", each)] == []


def test_the_workflow_checks_before_it_signs_and_uploads(workflow: dict[str, Any]) -> None:
    check, upload = workflow["jobs"]["check"], workflow["jobs"]["upload"]
    assert 'python scripts/release_check.py --tag "$TAG"' in [step.get("run") for step in check["steps"]]
    assert upload["needs"] == "check"
    # Who may sign and upload runs no code of the repository, and the check may do neither.
    assert (check["permissions"], workflow["permissions"]) == ({"contents": "read"}, {})
    assert upload["permissions"]["id-token"] == "write"
    assert all("run" not in step for step in upload["steps"])
    assert upload["steps"][-1]["with"] == {"attestations": True}
    assert not re.search(r"secrets\.", (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))


@pytest.mark.nightly
@pytest.mark.slow
def test_the_bare_install_of_what_is_uploaded(tmp_path: Path) -> None:
    """The script itself, from a clone, with the one extra that costs least; `make release-check` tries them all."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{ROOT}", clone], check=True, timeout=120)
    command = [sys.executable, "scripts/release_check.py", "--out", str(tmp_path / "dist"), "--extra", ""]
    done = subprocess.run(command, cwd=clone, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[] 3 distributions, all tests passed" in done.stdout
    (clone / "airflow_flinkcompat" / "py.typed").unlink()
    broken = subprocess.run(command, cwd=clone, capture_output=True, text=True, timeout=900, check=False)
    assert broken.returncode == 1
    assert "in the repository or there alone: airflow_flinkcompat/py.typed" in broken.stderr
