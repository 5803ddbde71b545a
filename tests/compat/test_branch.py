"""The branch a gate takes on a report."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_flinkcompat import check
from airflow_flinkcompat.compat.branch import branch_of, is_unchanged, planner_decides
from airflow_flinkcompat.model import Policy
from tests.cli.command import OF_OUTCOME, TABLES, V1


@pytest.mark.parametrize(
    ("outcome", "branch", "with_backfill"),
    [
        ("compatible", "resume", "resume"),
        ("partial", "approve", "approve"),
        ("unknown", "approve", "approve"),
        ("incompatible", "approve", "restart"),
    ],
)
def test_each_outcome_takes_what_the_policy_says(outcome: str, branch: str, with_backfill: str) -> None:
    report = check(V1, OF_OUTCOME[outcome])
    assert branch_of(report, Policy(), migrates=False) == branch
    assert branch_of(report, Policy.of(None, backfill=True), migrates=False) == with_backfill


def test_what_flink_refuses_asks_a_person_whatever_the_policy_says() -> None:
    old = TABLES + "INSERT INTO totals SELECT customer, amount FROM orders;"
    report = check(old, old.replace("amount FROM", "amount, item FROM"), "flink")
    assert report.is_refused
    assert branch_of(report, Policy(incompatible="restart"), migrates=False) == "approve"
    assert branch_of(report, Policy(incompatible="reject"), migrates=False) == "reject"


def test_state_that_may_be_kept_is_given_up_only_where_the_policy_says_so_of_it() -> None:
    report = check(V1, OF_OUTCOME["incompatible"], "flink")
    assert report.migration_is_unknown
    by_default, explicit = Policy.of(None, backfill=True), Policy.of({"incompatible": "restart"})
    for migrates in (False, True):
        assert branch_of(report, by_default, migrates=migrates) == "approve"
        assert planner_decides(report, by_default, migrates=migrates)
        assert branch_of(report, explicit, migrates=migrates) == "restart"
        assert not planner_decides(report, explicit, migrates=migrates)
    assert not planner_decides(report, Policy(), migrates=False), "a person is asked in any case"
    assert planner_decides(report, Policy(), migrates=True), "the state may be migrated unasked"


def test_unchanged_is_what_says_nothing_else() -> None:
    report = check(V1, f"-- a comment\n{V1}")
    assert is_unchanged(report)
    assert not is_unchanged(check(V1, OF_OUTCOME["compatible"]))
    assert not is_unchanged(replace(report, findings=()))
