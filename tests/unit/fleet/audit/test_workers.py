"""Several processes say what one says, in the same order, and none that ends takes anything else with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from airflow_flinkcompat.fleet.audit.judging import audit_here, audit_in_processes
from airflow_flinkcompat.fleet.audit.values import AuditPair, AuditResult
from tests.support.fleet.audit.pairs import pairs

pytestmark = pytest.mark.slow


class Deadly(str):
    """A name over which a process that is given it ends."""

    def __reduce__(self) -> Any:
        return os._exit, (1,)


def test_the_same_rows_in_the_same_order() -> None:
    asked = pairs(70)
    assert list(audit_in_processes(asked, (), 2)) == list(audit_here(asked))


def test_pairs_are_read_a_few_at_a_time() -> None:
    read = 0

    def endless() -> Iterator[AuditPair]:
        nonlocal read
        while True:
            read += 1
            yield AuditPair("one", fault="not there")

    rows = audit_in_processes(endless(), (), 2)
    for _ in range(100):
        next(rows)
    assert read < 500
    rows.close()  # type: ignore[attr-defined]


@pytest.mark.nightly
def test_a_process_that_ends_costs_one_row() -> None:
    asked = pairs(40)
    asked[5] = AuditPair(Deadly("deadly"), asked[5].old, asked[5].new)
    rows = list(audit_in_processes(asked, (), 2))
    assert [row.name for row in rows] == [pair.name for pair in asked]
    assert [cause.reason for cause in rows[5].causes] == ["process-ended"]
    assert rows[5].result is AuditResult.UNREADABLE
    others = [*asked[:5], *asked[6:]]
    assert [*rows[:5], *rows[6:]] == list(audit_here(others))
