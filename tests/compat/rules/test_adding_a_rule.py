"""A rule takes one edit: added to a copy of the package, it is found, judges its example and has a page."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import airflow_flinkcompat

PACKAGE = Path(airflow_flinkcompat.__file__).parent
RULE = """\
from collections.abc import Iterable

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch, RuleScope, inferred
from airflow_flinkcompat.compat.rule import windowed
from airflow_flinkcompat.model import Outcome


def find(change: Change) -> Iterable[RuleMatch]:
    for difference in change.parts("setting"):
        if difference.key == "setting/made.up":
            yield RuleMatch("the made-up setting changed", (difference.key,), str(difference.before), "")


MADE_UP = Rule(
    code="made-up",
    title="A made-up setting changed",
    scope=RuleScope.SCRIPT,
    verdicts={"vvr": inferred(Outcome.PARTIAL, "made up"), "flink": inferred(Outcome.INCOMPATIBLE, "made up")},
    rationale="It shows that a rule takes one edit.",
    example=Example(
        windowed("customer, SUM(amount)"), "SET 'made.up' = 'true';\\n" + windowed("customer, SUM(amount)")
    ),
    find=find,
)
RULES = (MADE_UP,)
"""
SEEN = """\
import sys
from pathlib import Path
from airflow_flinkcompat.compat import pages
from airflow_flinkcompat.compat.rules import BY_CODE
for engine in BY_CODE["made-up"].verdicts:
    report = pages.judged("made-up", engine)
    print(engine, [(f.rule, f.outcome.value) for f in report.findings if f.rule == "made-up"])
print("made-up.md" in pages.write_pages(Path(sys.argv[1])))
"""


@pytest.mark.slow
def test_a_rule_takes_one_edit(tmp_path: Path) -> None:
    copy = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, copy)
    (copy / "compat" / "rules" / "made_up.py").write_text(RULE, encoding="utf-8")
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
        "vvr [('made-up', 'partial')]",
        "flink [('made-up', 'incompatible')]",
        "True",
    ], done.stderr
    page = (tmp_path / "pages" / "made-up.md").read_text(encoding="utf-8")
    assert "# A made-up setting changed" in page
    assert "SET 'made.up' = 'true';" in page
    assert "made-up.md" in (tmp_path / "pages" / "README.md").read_text(encoding="utf-8")
