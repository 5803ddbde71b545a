"""A run that is killed at any step leaves no savepoint or a whole one, and the next run that of one that was not."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_flinkcompat.savepoint.store import METADATA
from tests.bootstrap.killed import BEHIND
from tests.bootstrap.stored import Held, stored

REPOSITORY = Path(__file__).parents[2]
CASE = REPOSITORY / "tests" / "fixtures" / "migrations" / "a-metric-is-added-to-a-tumbling-window"
ROWS = REPOSITORY / "measure" / "data" / "orders" / "before.csv"

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("killed")
    (made / "orders").mkdir()
    (made / "orders" / "before.csv").write_bytes(ROWS.read_bytes())
    script = (CASE / "new.sql").read_text("utf-8").replace("file://DATA", made.as_uri())
    (made / "new.sql").write_text(script, "utf-8")
    return made


def run(folder: Path, to: Path, step: str) -> int:
    command = [sys.executable, "-m", "tests.bootstrap.killed", step, str(CASE / "new.json"), str(folder / "new.sql")]
    command += ["--history", "orders", "--template", str(CASE / "template"), "--to", to.as_uri()]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, timeout=400, check=False).returncode


@pytest.fixture(scope="module")
def clean(folder: Path) -> Held:
    """What a run leaves that is not killed."""
    assert run(folder, folder / "clean", "never") == 0
    return stored(str(folder / "clean"))


@pytest.mark.parametrize("step", BEHIND)
def test_the_next_run_comes_to_the_end(step: str, folder: Path, clean: Held) -> None:
    target = folder / step.replace(" ", "-")
    assert run(folder, target, step) == -signal.SIGKILL
    published = step == "it was published"
    assert (target / METADATA).exists() is published
    assert run(folder, target, "never") == int(published), "a savepoint that is there is not written over"
    assert stored(str(target)) == clean
    assert not [path for path in target.iterdir() if path.name.startswith("_unfinished")]
