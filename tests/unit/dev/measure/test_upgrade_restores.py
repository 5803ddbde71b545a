"""Agreement of verdicts on upgrades with restores that were run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat.exec_graph.migration import MigrationExtent
from dev.measure import results
from dev.measure.corpus_restores import NOT_RUN, UNCOMPARED, Restored
from dev.measure.upgrade_restores import Upgraded, table


def upgraded(verdict: str, outcome: str, consequence: str = "") -> Upgraded:
    restored = Restored("1a2b", "owner/repository job.sql", "deduplication", outcome=outcome, fault="why")
    return Upgraded(restored, verdict, consequence, "the cause")


@pytest.mark.parametrize(
    ("verdict", "outcome", "consequence", "agreement"),
    [
        ("compatible", results.RIGHT, "", "agree"),
        ("compatible", UNCOMPARED, "", "agree"),
        ("compatible", results.NOT_PLANNED, "", "FALSE COMPATIBLE"),
        ("compatible", results.WRONG, "", "FALSE COMPATIBLE"),
        ("incompatible", results.RIGHT, "refused at restore", "too strict"),
        ("incompatible", results.NOT_PLANNED, "refused at submit", "agree"),
        ("incompatible", results.WRONG, "silently wrong rows", "agree"),
        ("incompatible", results.WRONG, "refused at restore", "agree, with another consequence"),
        ("unknown", results.RIGHT, "", "no verdict"),
    ],
)
def test_agreement(verdict: str, outcome: str, consequence: str, agreement: str) -> None:
    assert upgraded(verdict, outcome, consequence).agreement == agreement


def test_a_job_that_was_not_run_is_named_below_the_table() -> None:
    lines = [*table(iter([upgraded("compatible", results.RIGHT), upgraded("compatible", "not run")]))]
    assert "| deduplication |  |  | compatible | restored_right | 0 | agree |" in lines[2]
    assert lines[-1] == "* 1a2b owner/repository job.sql: not run, why"
    assert "1 restores: 1 agree" in lines


def test_migrated_state_is_counted_by_operator_and_outcome() -> None:
    refused = replace(upgraded("incompatible", results.REFUSED_AT_RESTORE), refused="Rank")
    ends = (("whole", results.RIGHT), ("whole", results.RIGHT), ("whole", NOT_RUN), ("none", NOT_RUN))
    found = [
        replace(refused, kept=MigrationExtent(kept), migrated=replace(refused.restored, outcome=outcome, compared=3))
        for kept, outcome in ends
    ]
    lines = [*table(iter(found))]
    assert [each for each in lines if each.startswith("| Rank")] == [
        "| Rank | none | 1 |",
        "| Rank | whole, not written | 1 |",
        "| Rank | whole, restored_right | 2 |",
    ]
    assert lines[2].endswith("| whole, restored_right, 3 rows |")
    assert "* 1a2b migrated: why" in lines
