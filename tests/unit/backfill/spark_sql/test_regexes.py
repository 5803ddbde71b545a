"""Patterns that mean the same in Flink and Spark, and the reasons against the others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_flinkcompat.backfill.compile.compiler import compile_program
from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.backfill.protocols import Range
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark_sql.regexes import RegexRefused, read
from airflow_flinkcompat.plan import build_program
from airflow_flinkcompat.sql import parse_script
from tests.support.backfill.scripts import script, table


@pytest.mark.parametrize(
    ("pattern", "groups", "certain", "empty"),
    [
        ("", 0, set(), True), ("abc", 0, set(), False), ("a*", 0, set(), True), ("a{0,3}?", 0, set(), True),
        ("a{2}+", 0, set(), False), ("^$", 0, set(), True), ("(a)(b)", 2, {1, 2}, False),
        ("(a)?(b)", 2, {2}, False), ("((a)|b)c(d)", 3, {1, 3}, False), ("(a)|b", 1, set(), False),
        ("(?:(a)b)+", 1, {1}, False), ("(?:(a)b)*", 1, set(), True), ("([^;=]+)=(.*?);", 2, {1, 2}, False),
        (r"\d{4}-\d{2}", 0, set(), False), (r"[-a\]\\w.|(]", 0, set(), False), ("[ü-ÿ]", 0, set(), False),
        (r"\Aa\z", 0, set(), False), ("(a){0}", 1, set(), True), ("|a", 0, set(), True), ("()", 1, {1}, True),
    ],
)  # fmt: skip
def test_what_is_known_of_a_pattern(pattern: str, groups: int, certain: set[int], empty: bool) -> None:
    found = read(pattern)
    assert (found.groups, found.certain, found.empty) == (groups, certain, empty)
    assert re.compile(pattern.replace(r"\z", r"\Z")).groups == groups


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"\bword", r"\\b may match differently"), (r"\p{L}", r"\\p"), (r"(a)\1", r"\\1"), (r"\Qa\E", r"\\Q"),
        ("(?=a)", r"\(\?="), ("(?<name>a)", r"\(\?<"), ("(?i)a", r"\(\?i"), ("[a[b]]", "class within"),
        ("[a-z&&[^b]]", "&&"), ("[]a]", "begins with"), ("[z-a]", "range z-a"), (r"[a-\d]", "range a-"),
        ("[\u4e00-\uffff]", "range"), ("😀", "above U"), ("[😀]", "above"), ("(a", "no closing"), ("a)", "no opening"),
        ("[a", "too early"), ("a\\", "too early"), ("*a", "be escaped"), ("a**", "be escaped"), ("a{,2}", "be escaped"),
        ("a{3,2}", "maximum below"), ("[\\A]", "not a character"), ("a]", "be escaped"), ("a{1000}", "be escaped"),
    ],
)  # fmt: skip
def test_why_a_pattern_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(RegexRefused, match=words):
        read(pattern)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("REGEXP(s, r)", "its pattern is not a constant"),
        ("REGEXP(s, '')", "its pattern is empty"),
        ("REGEXP_REPLACE(s, 'a*', 'b')", "may match an empty text"),
        ("REGEXP_REPLACE(s, '(?i)a', 'b')", "(?i may not match the same"),
        ("REGEXP_EXTRACT(s, '(a)|b', 1)", "group 1 may be outside the match"),
        ("REGEXP_EXTRACT(s, '(a)', 2)", "its pattern has 1 groups, but the group number is 2"),
        ("REGEXP_EXTRACT(s, '(a)', CHAR_LENGTH(s))", "its group number is not a constant"),
    ],
)
def test_the_reason_stands_beside_function_and_place(call: str, reason: str, tmp_path: Path) -> None:
    source = table("t", "s STRING, r STRING", tmp_path)
    text = script(
        source, table("o", "v STRING", tmp_path / "out"), f"INSERT INTO o\nSELECT CAST({call} AS STRING) FROM t"
    )
    with pytest.raises(BackfillError) as refused:
        compile_program(build_program(parse_script(text, "job.sql")), TableLocations(), Range())
    assert "job.sql:4:" in str(refused.value)
    assert f"{call.partition('(')[0]} has no exact translation to Spark: " in str(refused.value)
    assert reason in str(refused.value)
