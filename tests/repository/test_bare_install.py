"""The bare install, in an environment of its own: the wheel without extras runs ``flinkcompat check``."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.fleet.repository import git

ROOT = Path(__file__).resolve().parents[2]
UV = Path(sys.executable).parent / "uv"

pytestmark = pytest.mark.slow

OLD = """\
CREATE TABLE clicks (
    user_id STRING,
    price BIGINT,
    ts TIMESTAMP(3),
    WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) WITH ('connector' = 'filesystem', 'path' = 'clicks', 'format' = 'csv');

CREATE TABLE totals (
    window_start TIMESTAMP(3),
    user_id STRING,
    total BIGINT
) WITH ('connector' = 'filesystem', 'path' = 'totals', 'format' = 'csv');

INSERT INTO totals
SELECT window_start, user_id, SUM(price)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '10' MINUTES))
GROUP BY window_start, window_end, user_id;
"""
NEW = OLD.replace("'10' MINUTES", "'1' HOUR")


@dataclass(frozen=True)
class Environment:
    """A virtual environment that holds the wheel and what the wheel itself asks for."""

    home: Path
    wheel: Path

    def run(self, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment outside the checkout, with nothing of the caller's settings."""
        return subprocess.run(
            [self.home / "bin" / program, *map(str, arguments)],
            cwd=self.home,
            env={"PATH": f"{self.home / 'bin'}:/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8"},
            capture_output=True,
            text=True,
            timeout=120,
        )


def install_wheel(folder: Path, extras: str = "", *others: str) -> Environment:
    """A new environment with the wheel of this tree, its extras and other packages, as the lock file has them."""

    def uv(*arguments: str | Path) -> None:
        subprocess.run([UV, "--quiet", *map(str, arguments)], cwd=ROOT, check=True, timeout=900)

    uv("build", "--wheel", "--out-dir", folder / "dist", ROOT)
    (wheel,) = (folder / "dist").glob("airflow_flinkcompat-*.whl")
    home = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, timeout=120)
    python, locked = home / "bin" / "python", ROOT / "constraints.txt"
    uv("pip", "install", "--python", python, "--constraint", locked, f"{wheel}{extras}", *others)
    return Environment(home, wheel)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return install_wheel(tmp_path_factory.mktemp("bare"))


@pytest.fixture
def scripts(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old.sql", tmp_path / "new.sql"
    old.write_text(OLD, encoding="utf-8")
    new.write_text(NEW, encoding="utf-8")
    return old, new


def test_wheel_holds_the_package_and_its_licence_alone(bare: Environment) -> None:
    names = zipfile.ZipFile(bare.wheel).namelist()
    assert {name.split("/")[0].removesuffix(".dist-info") for name in names} == {
        "airflow_flinkcompat",
        "-".join(bare.wheel.name.split("-")[:2]),
    }
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert "airflow_flinkcompat/py.typed" in names
    package = ROOT / "airflow_flinkcompat"
    tracked = subprocess.run(
        ["git", "ls-files", "-z", package], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    assert set(filter(None, tracked)) <= set(names)


def test_the_page_of_a_rule_ships_and_has_an_address(bare: Environment, scripts: tuple[Path, Path]) -> None:
    shipped = zipfile.ZipFile(bare.wheel).read("airflow_flinkcompat/rule_pages/window-changed.md").decode()
    assert shipped == (ROOT / "docs" / "rules" / "window-changed.md").read_text(encoding="utf-8")
    report = bare.run("flinkcompat", "check", *scripts, "--engine", "flink", "--verbose")
    (command,) = {
        line.strip().removeprefix("page    ") for line in report.stdout.splitlines() if line.startswith("    page ")
    }
    explained = bare.run(*command.split())
    place = Path(explained.stdout.splitlines()[-1].removeprefix("page   "))
    assert place.is_relative_to(bare.home)
    assert place.read_text(encoding="utf-8") == shipped


@pytest.mark.parametrize("module", ["airflow", "pyspark", "httpx", "upath", "kubernetes"])
def test_nothing_else_came_along(bare: Environment, module: str) -> None:
    found = bare.run("python", "-c", f"import importlib.util as u; print(u.find_spec({module!r}))")
    assert found.stdout.strip() == "None", found.stderr


def test_a_compatible_change_passes(bare: Environment, scripts: tuple[Path, Path]) -> None:
    old, _ = scripts
    done = bare.run("flinkcompat", "check", old, old)
    assert (done.returncode, done.stderr) == (0, "")
    assert "compatible" in done.stdout


def test_an_incompatible_change_fails_the_gate(bare: Environment, scripts: tuple[Path, Path]) -> None:
    done = bare.run("flinkcompat", "check", *scripts, "--engine", "vvr", "--format", "json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert (report["schema"], report["engine"], report["outcome"]) == ("flinkcompat-report/1", "vvr", "incompatible")
    assert "window-changed" in {finding["rule"] for finding in report["findings"]}


def test_a_project_is_compared_with_a_revision(bare: Environment, tmp_path: Path) -> None:
    """Nothing but the bare install; a ledger needs more, and that is said."""
    (tmp_path / "clicks.sql").write_text(OLD, encoding="utf-8")
    initialised = bare.run("flinkcompat", "init", tmp_path)
    assert initialised.returncode == 0, initialised.stderr
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    (tmp_path / "clicks.sql").write_text(NEW, encoding="utf-8")
    file = ("--config", tmp_path / "flinkcompat.toml", "--engine", "flink")
    done = bare.run("flinkcompat", "diff", *file, "--against", "git:HEAD", "--format", "sarif")
    assert done.returncode == 1, done.stderr
    (rule,) = json.loads(done.stdout)["runs"][0]["tool"]["driver"]["rules"]
    assert rule["id"] == "window-changed"
    assert rule["help"]["markdown"].startswith("# Window type")
    assert bare.run("flinkcompat", "lint", *file).returncode == 0
    refused = bare.run("flinkcompat", "diff", *file, "--against", "ledger:/nowhere")
    assert refused.returncode == 2
    assert f"pip install 'airflow-flinkcompat[deploy] @ {bare.wheel.as_uri()}'" in refused.stderr


def test_all_jobs_are_audited(bare: Environment, scripts: tuple[Path, Path]) -> None:
    """In processes too; a ledger and Spark need more, and that is said."""
    upgrade = ("--engine", "flink", "--old-engine-version", "1.20", "--engine-version", "2.3")
    done = bare.run("flinkcompat", "audit", scripts[0].parent, *upgrade, "--processes", "2", "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    assert [row["name"].rpartition("/")[2] for row in json.loads(done.stdout)["rows"]] == ["new.sql", "old.sql"]
    by_ledger = bare.run("flinkcompat", "audit", "--ledger", scripts[0].parent, *upgrade)
    assert (by_ledger.returncode, "airflow-flinkcompat[deploy]" in by_ledger.stderr) == (2, True), by_ledger.stderr
    on_spark = bare.run("flinkcompat", "audit", scripts[0], *upgrade, "--spark", "local[2]")
    assert (on_spark.returncode, "airflow-flinkcompat[native]" in on_spark.stderr) == (2, True), on_spark.stderr


def test_bad_input_is_said_plainly(bare: Environment, scripts: tuple[Path, Path]) -> None:
    old, new = scripts
    done = bare.run("flinkcompat", "check", old, new.with_name("missing.sql"))
    assert done.returncode == 2
    assert "missing.sql" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_library_says_the_same(bare: Environment, scripts: tuple[Path, Path]) -> None:
    code = (
        "import sys; from pathlib import Path; from airflow_flinkcompat import check; "
        "print(check(*(Path(name).read_text() for name in sys.argv[1:]), engine='vvr').outcome)"
    )
    done = bare.run("python", "-c", code, *scripts)
    assert done.stdout.strip() == "incompatible", done.stderr


def test_a_command_that_needs_an_extra_names_it(bare: Environment, scripts: tuple[Path, Path]) -> None:
    done = bare.run("flinkcompat", "backfill", scripts[0])
    assert done.returncode == 2
    assert "airflow-flinkcompat[spark]" in done.stderr
    assert "Traceback" not in done.stderr
