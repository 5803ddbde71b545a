"""Flink's restore tests: every predicted layout is the stored one, and a migration to the same plan keeps all state."""

from __future__ import annotations

from collections import Counter

import pytest

from airflow_flinkcompat.local_flink.jars import fetch
from dev.measure.restore_tests import EQUAL, JAR, RestoreTest, Verdict, carried, compared, restore_tests

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def tests() -> list[RestoreTest]:
    return list(restore_tests(fetch(JAR)))


def test_no_prediction_is_wrong(tests: list[RestoreTest]) -> None:
    found = [each for test in tests for each in compared(test)]
    assert [each for each in found if each.verdict in (Verdict.WRONG, Verdict.UNREADABLE)] == []
    assert Counter(each.verdict for each in found)[Verdict.EXACT] >= 240


@pytest.mark.parametrize(("max_parallelism", "equal"), [(None, 283), (200, 260)])
def test_a_migration_to_the_same_plan_keeps_all_state_or_refuses(
    tests: list[RestoreTest], max_parallelism: int | None, equal: int
) -> None:
    found = Counter(carried(test, max_parallelism) for test in tests)
    assert found[EQUAL] >= equal
