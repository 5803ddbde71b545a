"""A missing ON CONFLICT: found as Flink's own planner answers it, whatever is deployed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

from airflow_flinkcompat.compat import Outcome, Report, Side, check
from airflow_flinkcompat.compat.lint import lint
from airflow_flinkcompat.compat.reports.advice import steps

FILE = Path(__file__).parents[3] / "fixtures" / "validation" / "conflicts.toml"
RULE = "statement-refused"
OUTCOMES = {"taken": [], "refused": [Outcome.INCOMPATIBLE], "unknown": [Outcome.UNKNOWN]}


@dataclass(frozen=True)
class Case:
    """A script, the answer of Flink's planner (2.3.0) and what is found without it."""

    title: str
    planner: str
    found: str
    sql: str


CASES = [Case(**each) for each in tomllib.loads(FILE.read_text(encoding="utf-8"))["case"]]


def side(script: str, version: str = "2.3") -> Side:
    return Side(script, engine="flink", engine_version=version)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_clause_is_asked_for_where_flink_asks_for_it(case: Case) -> None:
    assert case.found in ("unknown", case.planner)
    assert [each.outcome for each in lint(side(case.sql)) if each.rule == RULE] == OUTCOMES[case.found]
    assert not [each for each in lint(side(case.sql, "2.2")) if each.rule == RULE]


REFUSED = next(case.sql for case in CASES if case.found == "refused")
UNKNOWN = next(case.sql for case in CASES if case.found == "unknown")


def refused(old: str, new: str, old_version: str = "2.3") -> Report:
    report = check(side(old, old_version), side(new))
    assert report.is_refused
    return report


def test_a_deployed_script_without_the_clause_is_no_excuse() -> None:
    for old in (side(REFUSED, "1.20"), side(REFUSED.replace("'t'", "'u'"))):
        report = refused(old.script, REFUSED, old.version)
        assert "ON CONFLICT DO DEDUPLICATE" in steps(report)[0].commands[0]
    same = check(side(UNKNOWN.replace("'t'", "'u'")), side(UNKNOWN))
    assert RULE not in {finding.rule for finding in same.findings}


@pytest.mark.parametrize(
    "script",
    [
        REFUSED.rstrip().removesuffix(";") + " ON CONFLICT DO DEDUPLICATE;",
        "SET 'table.exec.sink.require-on-conflict' = 'false';\n" + REFUSED,
        "SET 'table.exec.sink.upsert-materialize' = 'NONE';\n" + REFUSED,
        "SET 'execution.runtime-mode' = 'batch';\n" + REFUSED,
    ],
    ids=["clause", "setting", "no materializer", "batch"],
)
def test_what_the_message_names_mends_the_script(script: str) -> None:
    assert not [each for each in lint(side(script)) if each.rule == RULE]
