"""Run the tests that depend on Airflow and Python on each supported version, and write a table.

Usage: python scripts/version_matrix.py [--airflow 3.1 …] [--python 3.12 …] [--slow] [--write FILE]

Each pair of versions has a separate environment in .matrix/, created with uv. It contains the newest packages that
are compatible with that line of Airflow; only Airflow is pinned. With --slow, tests marked slow also run; these need
a JVM. Tests of the pages' API (rights, routes) always run. The table lists failures, and a failure results in exit
code 1. The table also lists the lines of Flink, with the restores that were run on them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENTS = ROOT / ".matrix"
AIRFLOWS = ("3.1", "3.2", "3.3")
# Tests that depend on Airflow (operators, hooks, DAGs); for the newest Airflow also those that depend on Python.
OF_AIRFLOW = (
    *(f"tests/unit/airflow/{name}" for name in ("operators", "sensors", "triggers", "hooks", "tasks")),
    "tests/unit/airflow/test_cli.py", "tests/unit/airflow/test_links.py",
    "tests/unit/deploy/targets/test_aws.py", "tests/repository/test_dags.py",
)  # fmt: skip
# Airflow's own API server in the process of the tests: slow, but without a JVM.
OF_PAGES = ("tests/unit/airflow/plugin",)
OF_PYTHON = (
    *(f"tests/unit/{name}" for name in ("model", "secrets", "project", "fleet", "sql", "plan", "exec_graph", "cli")),
    "tests/unit/savepoint", "tests/unit/migration", "tests/unit/deploy", "tests/scenarios/deploy",
    "tests/scenarios/exec_graph", "tests/scenarios/fleet", "tests/scenarios/migration",
    "tests/unit/test_lazy.py", "tests/repository/test_docstrings.py",
)  # fmt: skip
EXTRAS = "airflow,aws,dev,jars,kubernetes,lsp,spark,vvr"
LONGEST_RUN = 3600


@dataclass(frozen=True)
class Cell:
    """One environment, and the result of its tests."""

    airflow: str
    python: str
    versions: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 0
    wrong: tuple[str, ...] = ()

    @property
    def place(self) -> Path:
        return ENVIRONMENTS / f"airflow-{self.airflow}-python-{self.python}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--airflow", action="append", choices=AIRFLOWS, help="lines of Airflow (default: all)")
    parser.add_argument("--python", action="append", metavar="X.Y", help="versions of Python (default: all)")
    parser.add_argument("--slow", action="store_true", help="also what is marked slow")
    parser.add_argument("--write", type=Path, metavar="FILE", help="where the table goes (default: it is printed)")
    given = parser.parse_args()
    cells = [
        run(Cell(airflow, python), slow=given.slow)
        for airflow in given.airflow or AIRFLOWS
        for python in given.python or pythons()
    ]
    text = "\n".join(table(cells, slow=given.slow)) + "\n"
    if given.write:
        given.write.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    sys.exit(any(cell.wrong for cell in cells))


def pythons() -> list[str]:
    """Python versions that the package supports according to its metadata."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    names = [each.rpartition(" :: ")[2] for each in classifiers if each.startswith("Programming Language :: Python ::")]
    return [name for name in names if "." in name]


def run(cell: Cell, *, slow: bool) -> Cell:
    """Table cell with the result of the tests, or the reason why the environment is missing."""
    interpreter = cell.place / "bin" / "python"
    print(f"Airflow {cell.airflow}, Python {cell.python}: environment", flush=True)
    wanted = [f"--editable={ROOT}[{EXTRAS}]", f"apache-airflow=={cell.airflow}.*"]
    for command in (
        ["uv", "venv", "--quiet", "--allow-existing", "--python", cell.python, cell.place],
        ["uv", "pip", "install", "--quiet", "--python", interpreter, *wanted],
    ):
        made = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if made.returncode:
            return Cell(cell.airflow, cell.python, wrong=(f"no environment: {' '.join(made.stderr.split())[-600:]}",))
    names = "apache-airflow", "apache-airflow-task-sdk", "apache-airflow-providers-standard"
    code = f"import platform, importlib.metadata as m; print(platform.python_version(), *map(m.version, {names!r}))"
    found = subprocess.run([interpreter, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    versions = f"Python {found[0]}, Airflow {found[1]}, task SDK {found[2]}, standard provider {found[3]}"
    print(f"  {versions}: tests", flush=True)
    return _tested(cell, interpreter, versions, slow=slow)


def _tested(cell: Cell, interpreter: Path, versions: str, *, slow: bool) -> Cell:
    counts, seconds, wrong = Counter[str](), 0.0, list[str]()
    chosen = (*OF_AIRFLOW, *(OF_PYTHON if cell.airflow == AIRFLOWS[-1] else ()))
    for places, marked in ((chosen, "not nightly" if slow else "not slow"), (OF_PAGES, "not nightly")):
        found = _read_run(cell, interpreter, places, marked)
        counts, seconds, wrong = counts + found[0], seconds + found[1], wrong + found[2]
    print(f"  {summary(counts)}, {seconds:.0f} s", flush=True)
    return Cell(cell.airflow, cell.python, versions, counts, seconds, tuple(wrong))


def _read_run(
    cell: Cell, interpreter: Path, places: Sequence[str], marked: str
) -> tuple[Counter[str], float, list[str]]:
    """Result of one run of pytest, or the reason for its failure."""
    report = cell.place / "report.xml"
    report.unlink(missing_ok=True)
    command = [interpreter, "-m", "pytest", "-q", "-n0", f"--junitxml={report}", "-m", marked]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HYPOTHESIS_PROFILE": "quick"}
    try:
        done = subprocess.run(
            [*map(str, command), *places], cwd=ROOT, env=environment, capture_output=True, text=True,
            timeout=LONGEST_RUN, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Counter(), 0.0, [f"no end after {LONGEST_RUN} s"]
    if not report.exists():
        return Counter(), 0.0, [f"no report: {(done.stdout + done.stderr)[-600:]}"]
    return read_report(report.read_text(encoding="utf-8"))


def read_report(text: str) -> tuple[Counter[str], float, list[str]]:
    """Numbers of passed, failed and skipped tests, their seconds, and the message of each failed test."""
    counts: Counter[str] = Counter()
    wrong = []
    suites = ET.fromstring(text)
    for case in suites.iter("testcase"):
        bad = next((child for child in case if child.tag in ("failure", "error")), None)
        kind = "failed" if bad is not None else "skipped" if case.find("skipped") is not None else "passed"
        counts[kind] += 1
        if bad is not None:
            said = (bad.get("message") or "").strip().partition("\n")[0]
            wrong.append(f"{case.get('classname')}.{case.get('name')}: {said[:200]}")
    return counts, sum(float(suite.get("time") or 0) for suite in suites.iter("testsuite")), wrong


def summary(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[kind]} {kind}" for kind in ("passed", "failed", "skipped") if counts[kind]) or "none ran"


def table(cells: Sequence[Cell], *, slow: bool) -> Iterator[str]:
    commit = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    yield f"# Versions of Airflow and Python, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
    yield ""
    yield (
        f"`make test-matrix` on commit {commit}: an environment for each pair, with the newest of everything that fits "
        "that line of Airflow; the tests that ask something of Airflow, the pages' API in its server among them, "
        "with the newest Airflow also those of Python "
        f"({'those marked slow, too' if slow else 'without those marked slow, which need a JVM or a scheduler'})."
    )
    yield ""
    yield "| Airflow | Python | tests | seconds | versions |"
    yield "|---|---|---|--:|---|"
    for cell in cells:
        said = summary(cell.counts) if cell.counts else "not run"
        yield f"| {cell.airflow} | {cell.python} | {said} | {cell.seconds:.0f} | {cell.versions} |"
    for cell in cells:
        if cell.wrong:
            yield ""
            yield f"Airflow {cell.airflow}, Python {cell.python}:"
            yield ""
            for line in cell.wrong:
                yield f"* `{line}`"
    yield ""
    yield "Lines of Flink, by the restores that were run on them (`make measure-pairs`):"
    yield ""
    yield "| Flink | restores |"
    yield "|---|--:|"
    for line, count in flink_lines():
        yield f"| {line} | {count} |"


def flink_lines() -> list[tuple[str, int]]:
    """Each line of Flink, and the number of its restores in the evidence."""
    path = ROOT / "airflow_flinkcompat" / "compat" / "evidence" / "restores.json"
    restores = json.loads(path.read_text(encoding="utf-8"))
    counts = Counter(line for each in restores.values() for line in each if " " not in line)  # "1.20 to 2.3"
    return sorted(counts.items(), key=lambda pair: [int(part) for part in pair[0].split(".")])


if __name__ == "__main__":
    main()
