"""Every statement of the SQL fixtures becomes a real tree and prints back to an equal one."""

from pathlib import Path

import pytest
from sqlglot import exp

from airflow_flinkcompat.sql import Statement
from airflow_flinkcompat.sql.script import read_script
from airflow_flinkcompat.sql.statement_parser import parse_statement

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "sql").glob("*.sql"))
STATEMENTS = [statement for path in FIXTURES for statement in read_script(path).statements]


def place(statement: Statement) -> str:
    return f"{Path(statement.span.source).name}:{statement.span.line}:{statement.span.column}"


@pytest.mark.parametrize("statement", STATEMENTS, ids=place)
def test_prints_back_to_an_equal_tree(statement: Statement) -> None:
    assert statement.error is None
    assert statement.tree is not None
    printed = statement.tree.sql("flink")
    again = parse_statement(printed)
    assert again == statement.tree
    assert again.sql("flink") == printed
    assert parse_statement(statement.tree.sql("flink", pretty=True)) == statement.tree


@pytest.mark.parametrize("statement", STATEMENTS, ids=place)
def test_keeps_no_raw_text(statement: Statement) -> None:
    assert statement.tree is not None
    assert not list(statement.tree.find_all(exp.Command))
    # A parser that falls back to raw text files it as a name or word with blanks in it.
    words = [node.name for node in statement.tree.find_all(exp.Var)]
    allowed = {"JSON VALUE", "JSON OBJECT"}
    assert [word for word in words if " " in word and word not in allowed] == []


def test_the_fixtures_are_there() -> None:
    assert {path.stem for path in FIXTURES} >= {
        *("window_tvf", "group_window", "window_top_n", "windowing_functions"),
        *("definitions", "alterations", "session", "relations", "queries"),
    }
    assert len(STATEMENTS) > 200


def test_trees_differ_where_the_statements_differ() -> None:
    """The comparison above means something: only statements that differ in the case of calls share a tree."""
    by_text = {statement.tree.sql("flink").lower(): statement.tree for statement in STATEMENTS if statement.tree}
    assert len(by_text) > 200
    assert len({hash(tree) for tree in by_text.values()}) == len(by_text)
