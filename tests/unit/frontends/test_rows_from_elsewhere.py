"""Rows that come from no table: their columns are not known, and that is no fault of the program."""

from __future__ import annotations

import pytest

from airflow_flinkcompat.compat import Outcome, Side, check

HEAD = """\
from pyflink.table import EnvironmentSettings, TableEnvironment
t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
rows = t_env.from_elements([(1, "a"), (2, "b")], ["id", "name"])
t_env.create_temporary_view("src", rows)
t_env.execute_sql("CREATE TABLE s (id BIGINT, name STRING) WITH ('connector' = 'print')")
"""


@pytest.mark.parametrize("engine", ["vvr", "flink"])
@pytest.mark.parametrize(
    "query",
    [
        't_env.execute_sql("INSERT INTO s SELECT * FROM src")',
        't_env.execute_sql("INSERT INTO s SELECT x.* FROM src AS x")',
        't_env.execute_sql("INSERT INTO s SELECT x.* FROM src AS x JOIN src AS y ON x.id = y.id")',
        't_env.from_path("src").execute_insert("s")',
    ],
)
def test_star_over_them_is_not_refused(engine: str, query: str) -> None:
    side = Side(HEAD + query + "\n", engine=engine, language="python")
    report = check(side, side)
    assert {finding.rule for finding in report.findings} == {"unchanged"}


@pytest.mark.parametrize("engine", ["vvr", "flink"])
def test_other_rows_are_never_compatible(engine: str) -> None:
    text = HEAD + 't_env.execute_sql("INSERT INTO s SELECT * FROM src")\n'
    old, new = (Side(each, engine=engine, language="python") for each in (text, text.replace('"b")', '"c")')))
    assert check(old, new).outcome is not Outcome.COMPATIBLE


def test_an_undeclared_table_that_shows_no_column_is_undeclared() -> None:
    (pipeline,) = Side("SELECT * FROM nowhere;").program.pipelines
    assert getattr(pipeline.sink.input, "error", "") == "undeclared-table"
    (pipeline,) = Side("SELECT z.* FROM (VALUES (1)) AS t(a);").program.pipelines
    assert getattr(pipeline.sink.input, "error", "") == "unknown-column"
