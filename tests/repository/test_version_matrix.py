"""The script of ``make test-matrix``: what it runs, reads and writes; the environments themselves are made by hand."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

from packaging.requirements import Requirement

from scripts import version_matrix
from scripts.version_matrix import Cell

ROOT = Path(__file__).resolve().parents[2]
REPORT = """\
<testsuites><testsuite name="pytest" time="12.5">
  <testcase classname="tests.operators.test_x" name="test_a"/>
  <testcase classname="tests.operators.test_x" name="test_b"><failure message="assert 1 == 2&#10; more"/></testcase>
  <testcase classname="tests.operators.test_x" name="test_c"><error message="no fixture"/></testcase>
  <testcase classname="tests.operators.test_x" name="test_d"><skipped message="later"/></testcase>
</testsuite></testsuites>
"""


def test_the_matrix_has_the_versions_that_the_package_takes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    airflow = next(
        Requirement(each) for each in project["optional-dependencies"]["airflow"] if "apache-airflow>" in each
    )
    assert all(airflow.specifier.contains(f"{line}.0") for line in version_matrix.AIRFLOWS)
    assert not airflow.specifier.contains("3.0.6")
    assert version_matrix.pythons() == ["3.11", "3.12", "3.13"]


def test_what_is_chosen_is_there() -> None:
    chosen = (*version_matrix.OF_AIRFLOW, *version_matrix.OF_PAGES, *version_matrix.OF_PYTHON)
    assert [each for each in chosen if not (ROOT / each).exists()] == []


def test_every_file_that_asks_something_of_airflow_is_chosen() -> None:
    asks = re.compile(r"^\s*(?:from|import) airflow(?:\.| )", re.MULTILINE)
    asking = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests" / "unit").rglob("test_*.py")
        if asks.search(path.read_text(encoding="utf-8"))
    }
    chosen = (*version_matrix.OF_AIRFLOW, *version_matrix.OF_PAGES)
    with_spark = ("tests/unit/backfill/",)
    assert [each for each in sorted(asking) if not each.startswith((*chosen, *with_spark))] == []


def test_a_report_is_read() -> None:
    counts, seconds, wrong = version_matrix.read_report(REPORT)
    assert (counts, seconds) == (Counter(passed=1, failed=2, skipped=1), 12.5)
    assert wrong == [
        "tests.operators.test_x.test_b: assert 1 == 2",
        "tests.operators.test_x.test_c: no fixture",
    ]


def test_the_table_names_what_failed_and_what_was_not_run() -> None:
    counts, seconds, wrong = version_matrix.read_report(REPORT)
    cells = [
        Cell("3.2", "3.12", "Airflow 3.2.1", counts, seconds, tuple(wrong)),
        Cell("3.1", "3.13", wrong=("no environment: no solution found",)),
    ]
    text = "\n".join(version_matrix.table(cells, slow=False))
    assert "| 3.2 | 3.12 | 1 passed, 2 failed, 1 skipped | 12 | Airflow 3.2.1 |" in text
    assert "* `tests.operators.test_x.test_b: assert 1 == 2`" in text
    assert "| 3.1 | 3.13 | not run | 0 |" in text
    assert "* `no environment: no solution found`" in text
    lines = dict(version_matrix.flink_lines())
    assert list(lines) == ["1.19", "1.20", "2.0", "2.1", "2.2", "2.3"]
    assert f"| 2.3 | {lines['2.3']} |" in text
