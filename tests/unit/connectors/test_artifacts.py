"""Options that connectors' artifacts declare: the data is well formed, and no definition speaks against it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from airflow_flinkcompat.compat import Side, check
from airflow_flinkcompat.connectors.artifacts import counts, declared, stored
from airflow_flinkcompat.connectors.facts import OptionEffect, TableUse
from airflow_flinkcompat.connectors.registry import catalogue, option
from airflow_flinkcompat.model import Outcome

USES = {"source": TableUse.SOURCE, "sink": TableUse.SINK, "lookup": TableUse.LOOKUP}
MAY_MOVE = frozenset({OptionEffect.STATE, OptionEffect.NOT_KNOWN, OptionEffect.READ, OptionEffect.KEY})


def tables() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for artifact, row in stored()["artifacts"].items():
        for connector, table in row["connectors"].items():
            yield artifact, connector, table


def test_every_table_says_of_each_use_what_moves_or_why_it_is_not_planned() -> None:
    assert stored()["not served"]
    for artifact, connector, table in tables():
        for use in USES:
            row = table[use]
            assert row.keys() == {"not planned"} or "moves" in row, (artifact, connector, use)
            assert row.get("moves", {}).keys() <= table["options"].keys()
            for shown in row.get("moves", {}).values():
                assert shown == "=" or shown.keys() in ({"not planned"}, {"moves", "groups"})
                values = [value for group in shown["groups"] for value in group] if "groups" in shown else []
                assert len(values) == len(set(values))


def test_no_definition_calls_harmless_what_moves_in_a_plan() -> None:
    wrong = [
        (artifact, connector, use, key, fact.effect.name)
        for artifact, connector, table in tables()
        for use, row in table.items()
        if use in USES and connector in catalogue()
        for key, shown in row.get("moves", {}).items()
        if shown != "=" and "moves" in shown
        and (fact := catalogue()[connector].option(USES[use], key)) is not None
        and fact.effect not in MAY_MOVE
    ]  # fmt: skip
    assert wrong == []


def test_an_option_that_moves_ids_is_named_so() -> None:
    found = option("kafka", TableUse.SOURCE, "scan.parallelism")
    assert found is not None
    assert found.effect is OptionEffect.STATE
    assert declared("kafka", TableUse.SOURCE, "scan.parallelism")[0].moves == ("ids",)


def test_an_option_that_moves_nothing_keeps_its_unknown_meaning() -> None:
    found = option("jdbc", TableUse.SINK, "filter.handling.policy")
    assert found is not None
    assert found.effect is OptionEffect.NOT_KNOWN
    assert found.document.startswith("code of flink-connector-jdbc")


TABLE = "CREATE TABLE t (a STRING, b BIGINT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://h/d', {});\n"
QUERY = "CREATE TABLE o (a STRING) WITH ('connector' = 'print');\nINSERT INTO o SELECT a FROM t;\n"


@pytest.mark.parametrize(
    ("more", "outcome", "words"),
    [
        ("'scan.fetch-size' = '5'", Outcome.COMPATIBLE, ""),
        ("'filter.handling.policy' = 'never'", Outcome.UNKNOWN, "the meaning of the option is unknown"),
        ("'sink.buffer-flush.max-rows' = '5'", Outcome.COMPATIBLE, ""),
        ("'made.up' = '5'", Outcome.UNKNOWN, "was not measured"),
    ],
)
def test_a_report_tells_an_option_that_is_declared_from_one_that_is_not(
    more: str, outcome: Outcome, words: str
) -> None:
    old, new = (
        Side(TABLE.format(f"'table-name' = 't'{each}") + QUERY, {"parallelism.default": "1"}, engine="flink")
        for each in ("", f", {more}")
    )
    report = check(old, new)
    assert report.outcome is outcome
    assert any(words in finding.message for finding in report.findings)


def test_artifacts_are_counted() -> None:
    assert counts()["flink-connector-jdbc-core:4.0.0-2.0"]["jdbc"].planned > 15
