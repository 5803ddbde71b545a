"""The dialect in an environment that holds sqlglot's compiled build."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UV = Path(sys.executable).parent / "uv"
PARSES = (
    "from airflow_flinkcompat.sql import parse_script; print(parse_script('SELECT SUM(a) FROM t').statements[0].tree)"
)


def run(python: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        [python, "-c", code],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python of a fresh environment with ``sqlglot[c]``, at the version under test."""
    folder = tmp_path_factory.mktemp("compiled") / "venv"
    python = folder / "bin" / "python"
    requirement = f"sqlglot[c]=={version('sqlglot')}"
    for command in (["venv", "--python", sys.executable, folder], ["pip", "install", "--python", python, requirement]):
        subprocess.run([UV, "--quiet", *command], check=True, timeout=300)
    return python


@pytest.mark.slow
def test_the_compiled_build_is_really_there(compiled: Path) -> None:
    result = run(compiled, "import sqlglot.parser; print(sqlglot.parser.__file__)")
    assert not result.stdout.strip().endswith(".py")


@pytest.mark.slow
def test_parses_beside_the_compiled_build(compiled: Path) -> None:
    result = run(compiled, PARSES)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "SELECT SUM(a) FROM t"


@pytest.mark.slow
def test_other_users_of_sqlglot_still_work_in_the_same_process(compiled: Path) -> None:
    result = run(compiled, f"{PARSES}; import sqlglot; print(sqlglot.transpile('SELECT 1', write='duckdb'))")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "['SELECT 1']"


@pytest.mark.slow
def test_fails_with_one_sentence_when_the_compiled_build_is_already_loaded(compiled: Path) -> None:
    attempt = "try:\n    import airflow_flinkcompat.sql\nexcept ImportError as error:\n    print(error)"
    result = run(compiled, f"import sqlglot.parser\n{attempt}")
    assert result.returncode == 0, result.stderr
    (sentence,) = result.stdout.strip().splitlines()
    assert "pip uninstall sqlglotc" in sentence
    assert sentence.count(". ") == 0


def test_without_the_compiled_build_nothing_is_changed() -> None:
    code = f"import sys, airflow_flinkcompat; before = list(sys.meta_path); {PARSES}; print(sys.meta_path == before)"
    result = run(Path(sys.executable), code)
    assert result.stdout.splitlines()[-1] == "True", result.stderr
