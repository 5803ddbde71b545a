"""What a check of five lines costs, in modules entered and functions called: neither depends on the machine."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

import airflow_flinkcompat
from airflow_flinkcompat.cli.rules import example_sides
from airflow_flinkcompat.compat import check
from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.rule import Level, RuleScope
from airflow_flinkcompat.compat.rules import ALL, applicable_rules
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.model import ENGINES
from airflow_flinkcompat.testing.fixture_cases import load_cases
from dev.benchmarks.check import SMALL, changed
from tests.support.nightly import sample

PACKAGE = str(Path(airflow_flinkcompat.__file__).parent)
FIXTURES = Path(__file__).parents[2] / "fixtures" / "vvr"


MOST_MODULES, MOST_CALLS = 90, 3000


def entered(old: str, new: str, engine: str) -> Counter[str]:
    """The calls of one check by module of the package, resumed generators included."""
    found: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            found[frame.f_code.co_filename] += 1

    check(old, new, engine)  # what is loaded once is no part of a check
    sys.setprofile(count)
    try:
        check(old, new, engine)
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "new",
    [
        SMALL.replace("GROUP BY customer", "GROUP BY amount, customer"),
        SMALL.replace("'1' MINUTE", "'2' MINUTE"),
        SMALL.replace("SELECT customer", "SELECT UPPER(customer)"),
        changed(SMALL),
    ],
    ids=["key", "window", "projection", "metric and projection"],
)
def test_a_check_of_five_lines_is_cheap(new: str, engine: str) -> None:
    assert new != SMALL
    found = entered(SMALL, new, engine)
    assert len(found) <= MOST_MODULES, sorted(found)
    assert found.total() <= MOST_CALLS, found.most_common(20)


def test_no_rule_applies_without_its_operators_and_parts() -> None:
    """A rule is not asked where none of its operators and parts is there, so it must have nothing to say there."""
    sides = [example_sides(rule, "flink") for rule in ALL]
    cases = [case for folder in sorted(FIXTURES.iterdir()) for case in load_cases(folder)]
    sides += [(Side(case.old_script), Side(case.new_script)) for case in sample(cases, 150)]
    asked = skipped = 0
    for old, new in sides:
        change = Change(old, new)
        if change.unchanged or any(side.program.problems for side in (old, new)):
            continue
        found = {(rule.code, id(target)) for rule, target in applicable_rules(change)}
        targets = {
            RuleScope.SCRIPT: [change],
            RuleScope.PIPELINE: change.pipelines,
            RuleScope.OPERATOR: [operator for pair in change.pipelines for operator in pair.operators],
        }
        asked += len(found)
        applicable = [
            each for each in ALL if each.level is not Level.UNCHANGED and change.engine not in each.not_applicable
        ]
        for rule in applicable:
            for target in targets[rule.scope]:
                if (rule.code, id(target)) not in found:
                    skipped += 1
                    assert not tuple(rule.find(target)), (rule.code, old.script, new.script)
    assert skipped > asked > len(sides)
