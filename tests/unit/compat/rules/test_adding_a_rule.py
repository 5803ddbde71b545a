"""A rule that ``dev.new_rule`` writes is found, judges its example and its cases, and has a page."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import airflow_flinkcompat
from airflow_flinkcompat.testing.fixture_cases import parse_cases
from dev.new_rule import write_rule

PACKAGE = Path(airflow_flinkcompat.__file__).parent
SEEN = """\
import sys
from pathlib import Path
from airflow_flinkcompat.cli import rules as pages
from airflow_flinkcompat.compat.rules import BY_CODE
for engine in BY_CODE["made-up"].verdicts:
    report = pages.judged("made-up", engine)
    print(engine, [(f.rule, f.outcome.value) for f in report.findings if f.rule == "made-up"])
print("made-up.md" in pages.write_pages(Path(sys.argv[1])))
"""


@pytest.mark.slow
def test_a_rule_takes_one_edit(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / PACKAGE.name)
    (tmp_path / "tests" / "fixtures" / "vvr" / "settings").mkdir(parents=True)
    _, cases = write_rule("made-up", tmp_path)
    for case in parse_cases(cases.read_text(encoding="utf-8"), cases.name):
        assert case.fires == ("made-up",)
    done = subprocess.run(
        [
            sys.executable,
            "-B",
            "-c",
            f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SEEN}",
            str(tmp_path / "pages"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "vvr [('made-up', 'incompatible')]",
        "flink [('made-up', 'incompatible')]",
        "True",
    ], done.stderr
    page = (tmp_path / "pages" / "made-up.md").read_text(encoding="utf-8")
    assert "# Made up" in page
    assert "SET 'made-up' = 'true';" in page
    assert "made-up.md" in (tmp_path / "pages" / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("code", "message"), [("window-changed", "exists"), ("Made Up", "is not a valid rule code")])
def test_a_code_that_cannot_be_is_refused(code: str, message: str, tmp_path: Path) -> None:
    rules = tmp_path / PACKAGE.name / "compat" / "rules"
    rules.mkdir(parents=True)
    (rules / "window_changed.py").touch()
    with pytest.raises(ValueError, match=message):
        write_rule(code, tmp_path)
