"""Tables, verdicts and results of Flink's restore tests on a newer line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dev.measure import results
from dev.measure.upgrade_tests import NOT_RUN, Ran, outcome_of, tables, with_connectors

RAN = Ran("1.20", "rank_1", "rank-simple", results.RIGHT, verdict="compatible")
SCRIPT = """\
CREATE TABLE {name} (
  id INT,
  t AS PROCTIME()
) PARTITIONED BY (id) WITH ({options});
INSERT INTO s SELECT o.id FROM o JOIN customers FOR SYSTEM_TIME AS OF o.proc_time AS c ON o.id = c.id;
"""
KAFKA = "'topic' = 't', 'properties.bootstrap.servers' = 'localhost:9092'"
JDBC = "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://localhost/x', 'table-name' = 't'"


@pytest.mark.parametrize(
    ("name", "changes", "connector"),
    [
        ("o", "", f"'connector' = 'kafka', {KAFKA}, 'format' = 'json'"),
        ("o", "I,UB,UA,D", f"'connector' = 'kafka', {KAFKA}, 'format' = 'debezium-json'"),
        ("o", "I,UA,D", f"'connector' = 'upsert-kafka', {KAFKA}, 'key.format' = 'json', 'value.format' = 'json'"),
        ("customers", "", JDBC),
    ],
)
def test_sources_of_the_tests_get_real_connectors(name: str, changes: str, connector: str) -> None:
    options = f"'changelog-mode' = '{changes or 'I'}', 'use' = 'source'"
    assert with_connectors(SCRIPT.format(name=name, options=options)) == SCRIPT.format(name=name, options=connector)


def test_sinks_of_the_tests_print_unless_they_have_a_key() -> None:
    printed = SCRIPT.format(name="s", options="'connector' = 'print'")
    assert with_connectors(SCRIPT.format(name="s", options="'use' = 'sink', 'writable-metadata' = 'c'")) == printed
    keyed = SCRIPT.replace("PROCTIME()", "PROCTIME(), PRIMARY KEY (id) NOT ENFORCED")
    upserted = keyed.format(name="s", options=JDBC)
    assert with_connectors(keyed.format(name="s", options="'use' = 'sink'")) == upserted


@pytest.mark.parametrize(
    ("result", "message", "outcome"),
    [
        ("right", "", results.RIGHT),
        ("not run", "NotRun: the test has no SQL", NOT_RUN),
        ("wrong", "AssertionError: [] and not [+I[1]]", results.WRONG),
        ("late", "", results.WRONG),
        ("failed", "RuntimeException: not planned <- ValidationException: ON CONFLICT", results.NOT_PLANNED),
        ("failed", "IllegalStateException: set allowNonRestoredState", results.REFUSED_AT_SUBMIT),
        ("failed", "StateMigrationException: must not be incompatible", results.REFUSED_AT_RESTORE),
        ("failed", "NullPointerException: null", results.FAILED_LATER),
    ],
)
def test_results_of_the_runs_have_the_names_of_outcomes(result: str, message: str, outcome: str) -> None:
    assert outcome_of(result, message) == outcome


@pytest.mark.parametrize(
    ("verdict", "consequence", "outcome", "agreement"),
    [
        ("compatible", "", results.RIGHT, "agree"),
        ("compatible", "", results.WRONG, "FALSE COMPATIBLE"),
        ("compatible", "", results.NOT_PLANNED, "FALSE COMPATIBLE"),
        ("incompatible", "silently wrong rows", results.WRONG, "agree"),
        ("incompatible", "refused at submit", results.NOT_PLANNED, "agree"),
        ("incompatible", "refused at submit", results.WRONG, "agree, with another consequence"),
        ("incompatible", "refused at restore", results.FAILED_LATER, "agree, with another consequence"),
        ("incompatible", "silently wrong rows", results.RIGHT, "too strict"),
        ("conditional", "", results.RIGHT, "no verdict"),
        ("unknown", "", results.WRONG, "no verdict"),
    ],
)
def test_a_verdict_agrees_with_the_restore(verdict: str, consequence: str, outcome: str, agreement: str) -> None:
    assert replace(RAN, verdict=verdict, consequence=consequence, outcome=outcome).agreement == agreement


def test_results_are_counted_by_line_and_by_exec_node() -> None:
    plans = [
        replace(RAN, verdict=""),
        replace(RAN, verdict="", outcome=results.WRONG, message="E: ? <- F: '/a/b' is wrong"),
    ]
    scripts = [RAN, replace(RAN, node="join_1", program="j", verdict="conditional", cause="why")]
    found = "\n".join(tables(plans, scripts, "2.3"))
    assert "| 1.20 | 1 | 0 | 1 | 0 |" in found
    assert "* 1.20 rank_1 rank-simple: restored_WRONG, F: … is wrong" in found
    assert "| 1.20 | 2 | 1 | 0 | 1 | 0 | 0 |" in found
    assert "* 1.20 join_1 j: conditional, why; restored_right" in found
    assert "| rank_1 | 2 | 1 | 1 | 1 | 1 | 0 | 0 | 0 |" in found
    assert "| join_1 | 0 | 0 | 1 | 1 | 0 | 1 | 0 | 0 |" in found
