"""How SQL writes names and texts that hold its own quotes."""

from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp

from airflow_flinkcompat.model.text import duckdb_name, sql_name, sql_text
from airflow_flinkcompat.sql.statement_parser import parse_statement


@pytest.mark.parametrize("said", ["plain", "a`b", "it's", "``", "''", "a`'b", "-- no comment", "two words"])
def test_the_parser_reads_what_was_said(said: str) -> None:
    tree = parse_statement(f"SELECT {sql_text(said)} AS {sql_name(said)} FROM t")
    (column,) = tree.expressions
    assert isinstance(column, exp.Alias)
    assert (column.this.this, column.alias) == (said, said)


@pytest.mark.parametrize("said", ["plain", 'a"b', '""', "it's", "two words"])
def test_duckdb_reads_what_was_said(said: str) -> None:
    found = duckdb.sql(f"SELECT {sql_text(said)} AS {duckdb_name(said)}")
    assert (found.columns, found.fetchall()) == ([said], [(said,)])
