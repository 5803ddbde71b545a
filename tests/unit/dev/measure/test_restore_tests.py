"""Flink's restore tests: every predicted layout is the stored one, and a migration to the same plan keeps all state."""

from __future__ import annotations

from collections import Counter

import pytest

from airflow_flinkcompat.local_flink.jars import fetch
from dev.measure.restore_tests import (
    EQUAL,
    JARS,
    RestoreTest,
    Verdict,
    carried,
    compared,
    distinct_tests,
    read_states,
    rewritten_otherwise,
)

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def tests() -> list[RestoreTest]:
    return distinct_tests(map(fetch, JARS))


def test_no_prediction_is_wrong(tests: list[RestoreTest]) -> None:
    found = [each for test in tests for each in compared(test)]
    assert [each for each in found if each.verdict in (Verdict.WRONG, Verdict.UNREADABLE)] == []
    assert Counter(each.verdict for each in found)[Verdict.EXACT] >= 253


@pytest.mark.parametrize(("max_parallelism", "equal"), [(None, 298), (200, 270)])
def test_a_migration_to_the_same_plan_keeps_all_state_or_refuses(
    tests: list[RestoreTest], max_parallelism: int | None, equal: int
) -> None:
    found = Counter(carried(test, max_parallelism) for test in tests)
    assert found[EQUAL] >= equal


def test_every_state_is_a_table_with_the_rows_of_the_slow_reader(tests: list[RestoreTest]) -> None:
    found = [(test.name, each) for test in tests for each in read_states(test)]
    assert len(found) >= 960
    assert [each for each in found if not each[1].equal] == []


def test_what_is_read_and_written_again_is_the_same(tests: list[RestoreTest]) -> None:
    assert [test.name for test in tests if rewritten_otherwise(test)] == []
