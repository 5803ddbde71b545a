"""The command in a folder of its own, and in a Git repository."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_flinkcompat.cli import main
from tests.support.cli.command import INCOMPATIBLE, PROGRAM, V1, Result, Run
from tests.support.fleet.repository import git, make_repository
from tests.unit.cli.project import CLICKS, HEAD, ORDERS, commit


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs the command in a folder of its own, as the installed entry point does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*args: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "argv", ["flinkcompat", *args])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        with pytest.raises(SystemExit) as exited:
            main()
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Result(int(exited.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture(autouse=True)
def no_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a CI that runs these tests tells its jobs is not about the repositories made here."""
    for name in ("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME", "FLINKCOMPAT_LEDGER", "FLINKCOMPAT_ENGINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(run: Run) -> Path:
    """Two deployments in the current folder, committed as they are deployed."""
    Path("jobs").mkdir()
    for name in ("orders", "clicks"):
        Path(f"jobs/{name}.sql").write_text(V1, encoding="utf-8")
    Path("flinkcompat.toml").write_text(HEAD + ORDERS + CLICKS, encoding="utf-8")
    git(Path(), "init", "--quiet", "--initial-branch", "main")
    commit("first")
    return Path().resolve()


@pytest.fixture
def repository(run: Run, tmp_path: Path) -> Path:
    """A repository whose only commit holds ``jobs/orders.sql``; in the working tree its window is another one."""
    Path("jobs").mkdir()
    Path("jobs/orders.sql").write_text(V1, encoding="utf-8")
    Path("jobs/job.py").write_text(PROGRAM, encoding="utf-8")
    for command in (
        ("init", "--quiet"),
        ("add", "--all"),
        ("-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "--quiet", "--message", "first"),
    ):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    Path("jobs/orders.sql").write_text(INCOMPATIBLE, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def thirty_jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("thirty") / "jobs")


@pytest.fixture
def many(run: Run, tmp_path: Path, thirty_jobs: Path) -> Path:
    """The repository of thirty jobs in the current folder."""
    shutil.copytree(thirty_jobs, tmp_path, dirs_exist_ok=True)
    return tmp_path
