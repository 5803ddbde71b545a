"""Arguments of functions that Flink takes and refuses: told by the check as Flink's own planner says it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError

from airflow_flinkcompat.compat import Outcome, Side, check
from airflow_flinkcompat.compat.deployable import obstacles
from airflow_flinkcompat.compat.engines.flink.validation.functions import refused_call
from airflow_flinkcompat.plan.types import BIGINT, INT, NULL, STRING, UNKNOWN, DataType
from airflow_flinkcompat.sql import parse_script

FILE = Path(__file__).parents[4] / "fixtures" / "validation" / "calls.toml"
RULES = ("program-refused", "statement-refused")
GIVEN = tomllib.loads(FILE.read_text(encoding="utf-8"))
TABLES: str = GIVEN["tables"]


@dataclass(frozen=True)
class Case:
    """A statement in place of another one that Flink takes; whether Flink refuses it."""

    old: str
    new: str
    refused: bool


CASES = [
    Case(change["old"], new, word == "refused")
    for change in GIVEN["changes"]
    for word in ("refused", "taken")
    for new in change[word]
]


def _told(old: str, new: str) -> tuple[Outcome, bool]:
    report = check(Side(TABLES + old, engine="flink"), Side(TABLES + new, engine="flink"))
    return report.outcome, any(finding.rule in RULES for finding in report.findings)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.new)
def test_a_call_that_flink_refuses_is_told_and_no_other(case: Case) -> None:
    if any(obstacles(Side(TABLES + case.new, engine="flink"))):
        assert case.refused
        return
    outcome, told = _told(case.old, case.new)
    assert told == case.refused
    assert not case.refused or outcome is Outcome.INCOMPATIBLE


def test_what_the_deployed_script_has_too_keeps_it_from_nothing() -> None:
    new = "INSERT INTO s SELECT COALESCE(a, 0) FROM o"
    assert not _told(new, new.replace("0", "1"))[1]


@pytest.mark.parametrize(
    "declaration",
    ["CREATE FUNCTION char_length AS 'own.Length'", "CREATE TEMPORARY SYSTEM FUNCTION CHAR_LENGTH AS 'own.L'"],
)
def test_a_declared_function_may_hide_one_of_flinks(declaration: str) -> None:
    old = f"{declaration};\nINSERT INTO s SELECT a FROM o"
    assert not _told(old, f"{declaration};\nINSERT INTO s SELECT a FROM o WHERE CHAR_LENGTH(b) > 1")[1]


@pytest.mark.parametrize(
    ("function", "types"),
    [
        ("UPPER", [UNKNOWN]),
        ("UPPER", [DataType("VARIANT")]),
        ("OWN", [BIGINT, STRING]),
        ("COALESCE", [NULL, BIGINT, INT]),
        ("CASE", [DataType("BOOLEAN"), NULL, STRING]),
        ("CONCAT", [STRING, STRING, STRING, STRING]),
    ],
)
def test_what_is_not_known_is_not_spoken_of(function: str, types: list[DataType]) -> None:
    assert refused_call(function, types, UNKNOWN) == ""


def _explained(statement: str) -> str:
    return f"EXPLAIN {statement}" if statement.startswith(("INSERT", "SELECT", "VALUES", "WITH")) else statement


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.nightly
def test_flink_says_the_same() -> None:
    from airflow_flinkcompat.local_flink.jars import fetch
    from dev.services.flink_batch import flink_batch

    jars = ("flink-sql-connector-kafka", "flink-connector-jdbc-core", "flink-connector-jdbc-postgres")
    with flink_batch(map(fetch, jars)) as flink:
        tables = [statement.text.strip() for statement in parse_script(TABLES).statements]
        for case in CASES:
            said = ""
            try:
                statements = [each.text.strip() for each in parse_script(case.new).statements]
                flink.run([*tables, *map(_explained, statements)], streaming=True)
            except Py4JJavaError as error:
                said = str(error)
            assert bool(said) == case.refused, f"{case.new}: {said}"
