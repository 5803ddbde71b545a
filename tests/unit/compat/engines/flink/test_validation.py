"""What Flink refuses of a proposed statement: told by the check as Flink's own planner says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from airflow_flinkcompat.compat import Outcome, Report, Side, check
from airflow_flinkcompat.compat.engines.flink.validation.functions import is_implicitly_cast
from airflow_flinkcompat.plan.types import BIGINT, NULL, STRING, UNKNOWN, DataType
from airflow_flinkcompat.sql import parse_script
from airflow_flinkcompat.testing import fixture_cases

FILE = Path(__file__).parents[4] / "fixtures" / "validation" / "statements.sql"
RULE = "statement-refused"


@dataclass(frozen=True)
class Case:
    """A change of a script that Flink takes; ``refused`` are words with which it refuses the new one, "" for none."""

    title: str
    refused: str
    old: str
    new: str

    @property
    def report(self) -> Report:
        return check(Side(self.old, engine="flink"), Side(self.new, engine="flink"))


def _cases() -> Iterator[Case]:
    _, given, cases = fixture_cases.read(FILE.read_text(encoding="utf-8"), FILE.name)
    for head, old, new in cases:
        found = fixture_cases.headers(head, {"refused", "taken"}, FILE.name)
        ((_, words),) = found.get("refused", [(0, "")])
        yield Case(head.title, words, given + old.text, given + new.text)


CASES = list(_cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_a_statement_that_flink_refuses_is_told_and_no_other(case: Case) -> None:
    report = case.report
    told = [finding for finding in report.findings if finding.rule == RULE]
    assert [finding.outcome for finding in told] == [Outcome.INCOMPATIBLE] * len(told)
    assert bool(told) == bool(case.refused)
    assert not case.refused or report.outcome is Outcome.INCOMPATIBLE


@pytest.mark.parametrize("case", [each for each in CASES if each.refused], ids=lambda case: case.title)
def test_what_the_deployed_script_has_too_keeps_it_from_nothing(case: Case) -> None:
    for old in (case.new, case.new.replace("orders", "bought")):
        report = check(Side(old, engine="flink"), Side(case.new, engine="flink"))
        assert RULE not in {finding.rule for finding in report.findings}


def test_whether_results_change_may_depend_on_what_is_not_known() -> None:
    script = (
        "CREATE TABLE orders (a STRING, b BIGINT) WITH ('connector' = 'own');\n"
        "CREATE TABLE totals (a STRING, b BIGINT) WITH ('connector' = '{}');\n"
        "INSERT INTO totals SELECT a, b FROM orders;"
    )
    report = check(Side(script.format("print"), engine="flink"), Side(script.format("filesystem"), engine="flink"))
    told = [finding for finding in report.findings if finding.rule == RULE]
    assert [finding.outcome for finding in told] == [Outcome.UNKNOWN]
    assert "may refuse" in told[0].message


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (BIGINT, STRING, False),
        (STRING, UNKNOWN, None),
        (NULL, STRING, None),
        (DataType("ARRAY", elements=(DataType("INT"),)), DataType("ARRAY", elements=(BIGINT,)), True),
        (DataType("ARRAY", elements=(BIGINT,)), DataType("ARRAY", elements=(DataType("INT"),)), False),
        (DataType("ARRAY", elements=(BIGINT,)), STRING, False),
        (BIGINT.with_nullability(False), BIGINT, True),
    ],
)
def test_casts(source: DataType, target: DataType, expected: bool | None) -> None:
    assert is_implicitly_cast(source, target) is expected


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_flink_says_the_same() -> None:
    from airflow_flinkcompat.local_flink.jars import fetch
    from dev.services.flink_batch import flink_batch

    jars = ("flink-sql-connector-kafka", "flink-connector-jdbc-core", "flink-connector-jdbc-postgres")
    with flink_batch(map(fetch, jars)) as flink:

        def refusal(script: str) -> str:
            texts = [statement.text.strip() for statement in parse_script(script).statements]
            try:
                flink.run([*texts[:-1], f"EXPLAIN {texts[-1]}"], streaming=True)
            except Py4JJavaError as error:
                return str(error)
            return ""

        for case in CASES:
            assert refusal(case.old) == "", f"{case.title}: the deployed script"
            said = refusal(case.new)
            assert bool(said) == bool(case.refused), f"{case.title}: {said}"
            assert case.refused in said, f"{case.title}: {said}"
