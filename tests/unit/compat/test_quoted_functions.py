"""A function that is called by its name in quotes is the one that is declared."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import ENGINES, Outcome, Side, check

SCRIPT = """
CREATE TABLE o (a STRING) WITH ('connector' = 'kafka');
CREATE TABLE s (a STRING) WITH ('connector' = 'print');
CREATE TEMPORARY FUNCTION {0} AS '{1}';
INSERT INTO s SELECT {0}(a) FROM o;
"""


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("name", ["tidy", "`tidy`", "`tidy$up`"])
def test_another_class_of_a_function_is_seen_whatever_its_name_is_written_like(name: str, engine: str) -> None:
    old, new = (Side(SCRIPT.format(name, f"com.example.{each}"), engine=engine) for each in ("Tidy", "Tidier"))
    report = check(old, new)
    assert report.outcome is Outcome.UNKNOWN
    assert {finding.rule for finding in report.deciding} == {"function-changed"}
