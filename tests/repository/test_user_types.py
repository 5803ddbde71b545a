"""Types for users: pyright has nothing to say of a DAG file that uses all that there is, and finds its mistakes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from airflow_flinkcompat import operators, sensors

ROOT = Path(__file__).parents[2]
TYPED = ROOT / "tests" / "fixtures" / "typed"
PYRIGHT = "pyright@1.1.414"


def test_the_file_uses_every_name_that_is_offered() -> None:
    text = (TYPED / "user_dag.py").read_text(encoding="utf-8")
    assert [name for name in (*operators.__all__, *sensors.__all__) if text.count(name) < 2] == []


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[int]]:
    """The lines with an error, by file; pyright is installed for it, and is no dependency."""
    folder = tmp_path_factory.mktemp("pyright")
    install = ["npm", "install", "--no-audit", "--no-fund", "--silent", PYRIGHT]
    subprocess.run(install, cwd=folder, check=True, timeout=300)
    for each in (*TYPED.glob("*.py"), *(ROOT / "dags").glob("*.py")):
        shutil.copy(each, folder)
    config = {
        "include": ["*.py"],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "strict",
        "reportMissingTypeStubs": False,  # of Airflow's providers
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config), encoding="utf-8")
    command = [folder / "node_modules" / ".bin" / "pyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    told = json.loads(done.stdout)
    lines: dict[str, set[int]] = {path.name: set() for path in folder.glob("*.py")}
    assert told["summary"]["filesAnalyzed"] == len(lines)
    for each in told["generalDiagnostics"]:
        lines[Path(each["file"]).name].add(each["range"]["start"]["line"] + 1)
    return lines


@pytest.mark.slow
@pytest.mark.nightly
def test_pyright_is_content_with_the_dags_of_users(found: dict[str, set[int]]) -> None:
    """In strict mode, and with the DAGs of this repository."""
    assert len(found) > 4
    assert {file: lines for file, lines in found.items() if lines and file != "user_mistakes.py"} == {}


@pytest.mark.slow
@pytest.mark.nightly
def test_pyright_finds_the_mistakes(found: dict[str, set[int]]) -> None:
    lines = (TYPED / "user_mistakes.py").read_text(encoding="utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, start=1) if line.endswith("# error")}
    assert found["user_mistakes.py"] == marked
    assert len(marked) == 9
