"""The reader of the SQL fixtures: what it takes from a file, and that a malformed one is named by file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_flinkcompat.testing.fixture_cases import FixtureError, load_cases, parse_cases

GOOD = """\
-- row: 7. A title
-- rule: some-rule
--- given
CREATE TABLE t (x INT) WITH ('connector' = 'kafka');
--- case: document example
-- outcome: partial
-- fires: some-rule, other-rule
-- not: third-rule
-- functions: f=aggregate:python, g=table
-- settings-old: table.exec.state.ttl=1 h
-- settings-old: pipeline.name=a=b
-- settings-new: table.exec.state.ttl=2 h
--- old
-- a comment of the script's: kept
SELECT x FROM t;
--- new
SELECT x AS y FROM t;
--- case: near miss
-- outcome: compatible
-- flink: unknown
--- old
SELECT 1;
--- new
SELECT 2;
"""


def test_a_case_holds_what_its_section_says() -> None:
    case, second = parse_cases(GOOD, "07-some-rule.sql")
    assert (case.file, case.line, case.row, case.rule) == ("07-some-rule.sql", 5, 7, "some-rule")
    assert (case.title, case.outcome, case.id) == ("document example", "partial", "07-some-rule.sql::document example")
    assert case.old_script == (
        "CREATE TABLE t (x INT) WITH ('connector' = 'kafka');\n-- a comment of the script's: kept\nSELECT x FROM t;\n"
    )
    assert case.new_script == case.given + "SELECT x AS y FROM t;\n"
    assert (case.fires, case.not_fires) == (("some-rule", "other-rule"), ("third-rule",))
    assert case.functions == (("f", "aggregate", "python"), ("g", "table", "java"))
    assert case.settings_old == {"table.exec.state.ttl": "1 h", "pipeline.name": "a=b"}
    assert case.settings_new == {"table.exec.state.ttl": "2 h"}
    assert (case.flink, second.flink) == ("", "unknown")
    assert (second.title, second.line, second.given, second.fires) == ("near miss", 18, case.given, ())


def test_given_may_be_missing() -> None:
    assert parse_cases(GOOD.replace("--- given\nCREATE TABLE t (x INT) WITH ('connector' = 'kafka');\n", ""), "f")[
        0
    ].old_script.startswith("-- a comment")


@pytest.mark.parametrize(
    ("written", "instead", "place", "says"),
    [
        ("-- row: 7. A title", "-- row: seven", "f.sql:1:", "number"),
        ("-- row: 7. A title\n", "", "f.sql:1:", "'-- row: …' is missing"),
        ("-- rule: some-rule", "-- rule: Some Rule", "f.sql:2:", "not a rule code"),
        ("-- rule: some-rule", "-- rule: a, b", "f.sql:1:", "at most one rule"),
        ("-- rule: some-rule", "-- rule: a\n-- rule: b", "f.sql:3:", "is repeated"),
        ("--- given", "--- givens", "f.sql:3:", "not a section"),
        ("--- given", "--- given: tables", "f.sql:3:", "not accept a title"),
        ("--- case: document example", "--- case:", "f.sql:5:", "needs a title"),
        ("--- case: near miss", "--- case: document example", "f.sql:18:", "two cases"),
        ("-- outcome: partial\n", "", "f.sql:5:", "'-- outcome: …' is missing"),
        ("-- outcome: partial", "-- outcome: fine", "f.sql:6:", "not one of compatible"),
        ("-- outcome: partial", "-- outcome:", "f.sql:6:", "empty"),
        ("-- flink: unknown", "-- flink: fine", "f.sql:20:", "not one of compatible"),
        ("-- fires:", "-- fire:", "f.sql:7:", "'fire' is not one of"),
        ("-- not: third-rule", "-- not: some-rule", "f.sql:5:", "both fire"),
        ("-- not: third-rule", "SELECT 1;", "f.sql:8:", "expected a header"),
        ("g=table", "g=window", "f.sql:9:", "not a function"),
        ("f=aggregate:python", "f=aggregate:cobol", "f.sql:9:", "not a function"),
        ("pipeline.name=a=b", "pipeline.name", "f.sql:11:", "not a setting"),
        ("--- new\nSELECT x AS y FROM t;\n", "", "f.sql:16:", "expected '--- new' here, found '--- case'"),
        ("--- new\nSELECT 2;\n", "", "f.sql:21:", "ends after '--- old'"),
        ("SELECT 2;\n", "", "f.sql:23:", "no SQL"),
    ],
)
def test_a_malformed_file_is_an_error_at_its_line(written: str, instead: str, place: str, says: str) -> None:
    assert GOOD.count(written) == 1
    with pytest.raises(FixtureError) as error:
        parse_cases(GOOD.replace(written, instead), "f.sql")
    assert str(error.value).startswith(place)
    assert says in str(error.value)


def test_a_file_without_a_case_is_an_error() -> None:
    with pytest.raises(FixtureError, match=r"f\.sql:1: the file contains no case"):
        parse_cases("-- row: 1. A title\n-- rule: some-rule\n", "f.sql")


def test_a_folder_is_read_in_order_and_an_empty_one_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FixtureError, match=r"no \.sql file"):
        load_cases(tmp_path)
    (tmp_path / "b.sql").write_text(GOOD, encoding="utf-8")
    (tmp_path / "a.sql").write_text(GOOD, encoding="utf-8")
    assert [case.file for case in load_cases(tmp_path)] == ["a.sql", "a.sql", "b.sql", "b.sql"]
