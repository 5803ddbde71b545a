"""A run that is killed at any step leaves no savepoint or a whole one, and the next run that of one that was not."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from airflow_flinkcompat.savepoint.store import METADATA
from tests.scenarios.history.killed import BEHIND
from tests.scenarios.history.stored import Held, stored

REPOSITORY = Path(__file__).parents[3]
CASE = REPOSITORY / "tests" / "fixtures" / "migrations" / "a-metric-is-added-to-a-tumbling-window"
ROWS = REPOSITORY / "dev" / "measure" / "data" / "orders" / "before.csv"

COMMANDS = ("bootstrap", "migrate")

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return laid_out(tmp_path_factory.mktemp("killed"))


def laid_out(made: Path) -> Path:
    """A folder with the scripts, and with the rows that the job of the savepoint had read."""
    (made / "orders").mkdir()
    (made / "orders" / "before.csv").write_bytes(ROWS.read_bytes())
    for side in ("old", "new"):
        script = (CASE / f"{side}.sql").read_text("utf-8").replace("file://DATA", made.as_uri())
        (made / f"{side}.sql").write_text(script, "utf-8")
    return made


def run(folder: Path, step: str, command: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A command, which kills itself at a step; what it says is given back."""
    old = "new" if command == "bootstrap" else "old"
    called = [sys.executable, "-m", "tests.scenarios.history.killed", step, str(folder)]
    called += [str(CASE / f"{side}.json") for side in (old, "new")]
    scripts = [str(folder / f"{side}.sql") for side in dict.fromkeys((old, "new"))]
    given = [command, *scripts, "--history", "orders", *options]
    return subprocess.run([*called, *given], cwd=REPOSITORY, capture_output=True, text=True, timeout=400, check=False)


def written(folder: Path, to: Path, step: str, command: str) -> subprocess.CompletedProcess[str]:
    """A savepoint: by a migration from what was prepared."""
    options = ["--template", str(CASE / "template"), "--to", to.as_uri()]
    if command == "migrate":
        options += ["--savepoint", str(CASE / "old"), "--prepared", str(folder / "prepared")]
    return run(folder, step, command, *options)


@pytest.fixture(scope="module")
def prepared(folder: Path) -> Path:
    """What a run prepared; what one left that was killed is refused."""
    options = ["--savepoint", str(CASE / "old"), "--prepare"]
    broken = folder / "broken"
    assert run(folder, "what was aggregated is told", "migrate", *options, str(broken)).returncode == -signal.SIGKILL
    assert broken.exists()
    refused = [*options[:-1], "--prepared", str(broken), "--to", str(folder / "nothing")]
    assert run(folder, "never", "migrate", *refused, "--template", str(CASE / "template")).returncode == 2
    assert not (folder / "nothing").exists()
    whole = folder / "prepared"
    assert run(folder, "never", "migrate", *options, str(whole)).returncode == 0
    return whole


@pytest.fixture(scope="module")
def clean(folder: Path, prepared: Path) -> Mapping[str, Held]:
    """What a run of each command leaves that is not killed."""
    for command in COMMANDS:
        assert written(folder, folder / f"clean-{command}", "never", command).returncode == 0
    return {command: stored(str(folder / f"clean-{command}")) for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("step", BEHIND)
def test_the_next_run_comes_to_the_end(step: str, command: str, folder: Path, clean: Mapping[str, Held]) -> None:
    target = folder / f"{command}-{step}".replace(" ", "-")
    assert written(folder, target, step, command).returncode == -signal.SIGKILL
    published = step == "it was published"
    assert (target / METADATA).exists() is published
    again = written(folder, target, "never", command)
    assert again.returncode == int(published), "a savepoint that is there is not written over"
    assert stored(str(target)) == clean[command]
    assert not [path for path in target.iterdir() if path.name.startswith("_unfinished")]
