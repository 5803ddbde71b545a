"""What Flink counts of a group in any case: a COUNT(*) behind the other calls over rows that may be taken back."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Outcome, check

SCRIPT = """\
CREATE TABLE orders (id STRING, customer STRING, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = '{connector}', 'path' = '/in', 'topic' = 't', 'format' = '{format}');
{settings}SELECT customer, {calls} FROM orders GROUP BY customer;
"""


def script(calls: str, format: str = "debezium-json", connector: str = "filesystem", settings: str = "") -> str:
    return SCRIPT.format(calls=calls, format=format, connector=connector, settings=settings)


def test_a_count_of_rows_behind_the_others_is_there_already() -> None:
    for calls in ("SUM(amount)", "SUM(amount), MAX(id)", "COUNT(amount)"):
        assert check(script(calls), script(f"{calls}, COUNT(*)"), "flink").outcome is Outcome.COMPATIBLE, calls


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SUM(amount)", "COUNT(*), SUM(amount)"),
        ("SUM(amount)", "SUM(amount), COUNT(amount)"),
        ("SUM(amount)", "SUM(amount), COUNT(*) FILTER (WHERE amount > 1)"),
        ("SUM(amount)", "SUM(amount), MAX(amount), COUNT(*)"),
        ("SUM(amount), COUNT(*)", "SUM(amount), COUNT(*), MAX(amount)"),
    ],
)
def test_any_other_call_is_new(old: str, new: str) -> None:
    assert check(script(old), script(new), "flink").outcome is Outcome.INCOMPATIBLE


@pytest.mark.parametrize(
    "given",
    [
        {"format": "csv"},
        {"connector": "own", "format": "own"},
        {"settings": "SET 'table.exec.mini-batch.enabled' = 'true';\n"},
    ],
    ids=["rows that are only added", "not known", "two phases"],
)
def test_rows_of_which_that_is_not_sure_are_not_counted_for_sure(given: dict[str, str]) -> None:
    report = check(script("SUM(amount)", **given), script("SUM(amount), COUNT(*)", **given), "flink")
    assert report.outcome is not Outcome.COMPATIBLE
