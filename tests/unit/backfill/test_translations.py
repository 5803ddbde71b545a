"""The translations of functions into Spark SQL are well formed, and no check loads them."""

from __future__ import annotations

import string
import subprocess
import sys

import pytest

from airflow_flinkcompat.backfill.spark_sql.translations import AGGREGATES, BRANCHES, PARTS, SCALARS, translations_of
from airflow_flinkcompat.plan.functions import lookup

_PLACEHOLDERS = {
    *(str(i) for i in range(3)), *(f"d{i}" for i in range(3)), "args", "rest", "drest", "and", "or", "type", "length",
    "end", "end0", "scale0", "regex1", "plain1", "unknown", *PARTS,
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), [*((n, "scalar") for n in SCALARS), *((n, "aggregate") for n in AGGREGATES)])
def test_translations_belong_to_a_known_function_and_hold_known_placeholders(name: str, kind: str) -> None:
    spec = lookup(name)
    assert spec is not None
    assert spec.kind == kind
    assert translations_of(spec)
    for translation in translations_of(spec):
        used = {field for _, field, _, _ in string.Formatter().parse(translation.spark) if field is not None}
        assert used <= _PLACEHOLDERS
        positions = {int(field.lstrip("d")) for field in used if field.lstrip("d").isdigit()}
        assert all(position < max(len(translation.takes), 2) for position in positions)


def test_calls_of_alternatives_are_known() -> None:
    assert all(lookup(name) is not None for name in BRANCHES)


@pytest.mark.slow
def test_a_check_of_sql_loads_nothing_of_a_backfill_or_of_another_language() -> None:
    code = """
import sys
from airflow_flinkcompat import check
PARTS = ("pyflink", "table_api", "flip11")
table = "CREATE TABLE t (k STRING, n INT) WITH ('connector' = 'datagen'); "
table += "CREATE TABLE s (k STRING, n INT) WITH ('connector' = 'print'); "
query = table + "INSERT INTO s SELECT k, {}(n) FROM t GROUP BY k;"
report = check(query.format("SUM"), query.format("MAX"), engine="flink")
assert report.outcome != "unchanged", report.outcome
heavy = ("airflow_flinkcompat.backfill", "pyspark", *(f"airflow_flinkcompat.frontends.{part}" for part in PARTS))
print(*(name for name in sys.modules if name.startswith(heavy)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
