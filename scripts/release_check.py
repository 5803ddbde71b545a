"""Build and test the files of a release: contents, metadata, and the wheel with each extra.

Usage: python scripts/release_check.py [--out FOLDER] [--tag vX.Y.Z] [--extra NAME …] [--write FILE]

Needs twine and uv (extra dev). With --tag, the script checks that the tag, the package's version and the list of
changes agree. The variable FLINKCOMPAT_REPOSITORY sets the addresses of the README's links. If a check fails, the
script prints the reason and exits with 1.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# The README's links become absolute. For a test, any address works.
EXAMPLE = "https://github.com/OWNER/airflow-flinkcompat"
SCRIPTS = ROOT / "tests" / "fixtures" / "readme"
TARGET = "from airflow_flinkcompat.deploy.targets import target_class as t; print(t({!r}))"
MODULES = (
    "import importlib, pkgutil, airflow_flinkcompat as a\n"
    "names = [m.name for m in pkgutil.walk_packages(a.__path__, a.__name__ + '.') if '.testing' not in m.name]\n"
    "[importlib.import_module(name) for name in names if not name.endswith('__main__')]\n"
    "print(len(names), 'modules')"
)


@dataclass(frozen=True)
class Try:
    """Test of an environment: a command, its exit code, and words in its output."""

    command: tuple[str, ...]
    code: int = 0
    said: str = ""


def python(code: str, said: str = "") -> Try:
    return Try(("python", "-c", code), said=said)


CHECK = Try(("flinkcompat", "check", "orders_v1.sql", "orders_v2.sql", "--engine", "flink"), 1, "INCOMPATIBLE")
TRIES: dict[str, tuple[Try, ...]] = {
    "": (Try(("flinkcompat", "ledger", "list", "--ledger", "nowhere"), 2, "airflow-flinkcompat[deploy]"),),
    "deploy": (
        Try(("flinkcompat", "ledger", "list", "--ledger", "nowhere"), 2, "no deployment in nowhere"),
        python("from airflow_flinkcompat.deploy import deploy, SqlGateway, JobManager, Ledger"),
        python(TARGET.format("sql-gateway"), "SqlGatewayTarget"),
        python(TARGET.format("jobmanager"), "JobManagerTarget"),
    ),
    "s3": (python("import s3fs, upath; print(upath.UPath('s3://bucket/ledger'))", "s3://bucket/ledger"),),
    "gcs": (python("import gcsfs, upath; print(upath.UPath('gs://bucket/ledger'))", "gs://bucket/ledger"),),
    "airflow": (
        python(
            "from airflow_flinkcompat.airflow.operators import *; from airflow_flinkcompat.airflow.sensors import *"
        ),
        Try(("airflow", "flinkcompat", "--help"), said="adopt"),
        Try(("airflow", "flinkcompat", "list"), 2, "there is no Airflow connection 'flink_default'"),
    ),
    "aws": (python(TARGET.format("aws"), "ManagedFlinkTarget"),),
    "vvr": (python(TARGET.format("realtime-compute"), "RealtimeComputeTarget"),),
    "kubernetes": (python(TARGET.format("kubernetes"), "KubernetesTarget"),),
    "spark": (
        python("import pyspark, airflow_flinkcompat.backfill.run; print(pyspark.__version__)", "4."),
        Try(
            (
                "flinkcompat",
                "backfill",
                "orders_v1.sql",
                "--dry-run",
                "--table",
                "orders=parquet:file:///nowhere",
                "--sink",
                "totals=parquet:file:///nowhere-else",
            ),
            said="orders: file:///nowhere",
        ),
    ),
    "state": (python("from airflow_flinkcompat.savepoint.compiled import COMPILED; print(COMPILED)", "True"),),
    "native": (python("import duckdb, pyarrow, airflow_flinkcompat.backfill.duckdb.partials"),),
    "jars": (
        python("from airflow_flinkcompat.local_flink.jars import pinned; print(len(pinned()))"),
        Try(("flinkcompat", "planner", "status"), said="2.3: "),
    ),
    "local-flink": (python("from airflow_flinkcompat.local_flink import local_cluster"),),
    "lsp": (python("import airflow_flinkcompat.lsp.server"),),
    "docs": (Try(("mkdocs", "--version"), said="mkdocs, version 1."),),
    "all": (python(MODULES, "modules"),),
}
# An extra for developers of the package; `make test` tests it.
NOT_TRIED = {"dev"}


class ReleaseError(Exception):
    """A fault that prevents the upload."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the two files go (default: dist)")
    parser.add_argument("--tag", help="the tag that is released")
    parser.add_argument("--extra", action="append", metavar="NAME", help="try these alone; '' is the bare install")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write what was tried as a table")
    given = parser.parse_args()
    try:
        if given.tag:
            require_agreement(given.tag, version(), (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
        sdist, wheel = build(given.out)
        require_contents(sdist, wheel)
        extras = require_metadata(wheel)
        rows = [(extra, *try_extra(wheel, extra)) for extra in given.extra or extras]
    except ReleaseError as error:
        sys.exit(f"release check: {error}")
    if given.write:
        given.write.write_text(table(wheel, rows), encoding="utf-8")


def version() -> str:
    text = (ROOT / "airflow_flinkcompat" / "__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)[0]


def require_agreement(tag: str, version: str, changes: str) -> None:
    """Raise ReleaseError if tag, version and list of changes name different releases."""
    if tag != f"v{version}":
        raise ReleaseError(f"the tag is {tag}, __version__ is {version}: tag v{version}, or change the version")
    if not re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        raise ReleaseError(f"CHANGELOG.md has no heading '## [{version}] - YYYY-MM-DD'")


def build(out: Path) -> tuple[Path, Path]:
    """The source distribution, and the wheel that is built from it."""
    for former in out.glob("airflow_flinkcompat-*"):
        former.unlink()
    repository = os.environ.get("FLINKCOMPAT_REPOSITORY") or EXAMPLE
    say(f"build, links lead to {repository}")
    call(
        "uv",
        "build",
        "--python",
        sys.executable,
        "--out-dir",
        out,
        ROOT,
        environment={"FLINKCOMPAT_REPOSITORY": repository},
    )
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    call(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    return sdist, wheel


def require_contents(sdist: Path, wheel: Path) -> None:
    """Raise ReleaseError if a tracked file is in neither file, or if an untracked file is in one."""
    tracked = {name for name in call("git", "-C", ROOT, "ls-files", "-z").split("\0") if name and name[:4] != ".ci/"}
    with tarfile.open(sdist) as files:
        held = {name.partition("/")[2] for name in files.getnames() if not files.getmember(name).isdir()}
    if wrong := sorted((tracked ^ held) - {"PKG-INFO"}):
        raise ReleaseError(f"{sdist.name}: only in the repository or only in this file: {', '.join(wrong[:10])}")
    names = set(zipfile.ZipFile(wheel).namelist())
    package = {name for name in tracked if name.startswith("airflow_flinkcompat/")}
    pages = {f"airflow_flinkcompat/rule_pages/{Path(name).name}" for name in tracked if name.startswith("docs/rules/")}
    if missing := sorted((package | pages) - names):
        raise ReleaseError(f"{wheel.name} lacks {', '.join(missing[:10])}")


def require_metadata(wheel: Path) -> list[str]:
    """The extras to test. Raises ReleaseError if a README link is not absolute or an extra has no test."""
    metadata = metadata_of(wheel)
    if links := [link for link in re.findall(r"\]\(([^)#\s]+)", metadata.get_payload()) if "://" not in link]:
        raise ReleaseError(f"{wheel.name}: the README links to {links[0]}, which an index does not have")
    if "Repository" not in str(metadata.get_all("Project-URL")):
        raise ReleaseError(f"{wheel.name} contains no repository address: set FLINKCOMPAT_REPOSITORY")
    extras = {"", *metadata.get_all("Provides-Extra", [])} - NOT_TRIED
    if odd := extras ^ set(TRIES):
        raise ReleaseError(f"extras without a test, or tests without an extra: {', '.join(sorted(odd))}; see TRIES")
    return [extra for extra in TRIES if extra in extras]


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        return HeaderParser().parsestr(files.read(name).decode())


def try_extra(wheel: Path, extra: str) -> tuple[int, int]:
    """Number of installed distributions and seconds. Raises ReleaseError if the extra does not work."""
    begin = time.monotonic()
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    with tempfile.TemporaryDirectory(prefix="flinkcompat-release-") as folder:
        home = Path(folder)
        uv("venv", "--python", sys.executable, home / "environment")
        interpreter = home / "environment" / "bin" / "python"
        uv("pip", "install", "--python", interpreter, "--constraint", ROOT / "constraints.txt", wanted)
        uv("pip", "check", "--python", interpreter)
        count = len(uv("pip", "list", "--python", interpreter, "--format", "freeze").splitlines())
        for path in SCRIPTS.iterdir():
            shutil.copy(path, home)
        for each in (Try(("flinkcompat", "--version"), said=version()), CHECK, *TRIES[extra]):
            require(each, home, extra)
    seconds = round(time.monotonic() - begin)
    say(f"[{extra}] {count} distributions, all tests passed, {seconds} s")
    return count, seconds


def require(each: Try, home: Path, extra: str) -> None:
    """Raise ReleaseError if the exit code or the output is not as expected."""
    path = home / "environment" / "bin"
    # Run without the caller's settings, and outside of the checkout.
    own = {"PATH": f"{path}:/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8", "AIRFLOW_HOME": str(home / "home")}
    command = [str(path / each.command[0]), *each.command[1:]]
    done = subprocess.run(command, cwd=home, env=own, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != each.code or each.said not in done.stdout + done.stderr:
        raise ReleaseError(
            f"[{extra}] {' '.join(each.command)}: exit code {done.returncode}, expected {each.code} and {each.said!r}\n"
            f"{done.stdout[-1500:]}{done.stderr[-3000:]}"
        )


def table(wheel: Path, rows: Sequence[tuple[str, int, int]]) -> str:
    """Results of the tests, as Markdown."""
    return "\n".join(_lines(wheel, rows)) + "\n"


def _lines(wheel: Path, rows: Sequence[tuple[str, int, int]]) -> Iterator[str]:
    commit = call("git", "-C", ROOT, "rev-parse", "--short", "HEAD").strip()
    dirty = " and changes that are not committed" if call("git", "-C", ROOT, "status", "--porcelain").strip() else ""
    yield f"# What a release uploads, tried, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    yield ""
    yield (
        f"`make release-check` on commit {commit}{dirty}, Python {platform.python_version()}: source distribution and "
        f"wheel were built (`{wheel.name}`), `twine check --strict` passed, the source distribution holds what is "
        "tracked, and the README's links are addresses. Then the wheel with each extra went into an environment of its "
        "own, with the versions of `constraints.txt`: `uv pip check`, `flinkcompat --version`, a check, and what "
        "belongs to the extra (`TRIES` of `scripts/release_check.py`)."
    )
    yield ""
    yield "| extra | distributions | seconds | tried |"
    yield "|---|--:|--:|---|"
    for extra, count, seconds in rows:
        tried = "; ".join(f"`{_short(each)}`" for each in TRIES[extra])
        yield f"| {extra or '(none)'} | {count} | {seconds} | {tried} |"


def _short(each: Try) -> str:
    if each.command[:2] == ("python", "-c"):
        return "python: every module is imported" if each.command[2] == MODULES else f"python: {each.command[2]}"
    return " ".join(each.command)


def uv(*arguments: object) -> str:
    return call("uv", *arguments)


def call(*command: object, environment: dict[str, str] | None = None) -> str:
    """Output of a command. Raises ReleaseError if it fails."""
    words = [str(part) for part in command]
    done = subprocess.run(
        words, env={**os.environ, **(environment or {})}, capture_output=True, text=True, timeout=1800, check=False
    )
    if done.returncode:
        raise ReleaseError(f"{' '.join(words)} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
