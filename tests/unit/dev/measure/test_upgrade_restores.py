"""Agreement of verdicts on upgrades with restores that were run."""

from __future__ import annotations

import pytest

from dev.measure import results
from dev.measure.corpus_restores import UNCOMPARED, Restored
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
