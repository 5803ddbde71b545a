"""Words and operators that the grammar reads and Flink's parser refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from sqlglot import exp

from airflow_flinkcompat.model import Span
from airflow_flinkcompat.sql import lexer, nodes
from airflow_flinkcompat.sql.script import Statement, span_of

DATA = Path(__file__).with_suffix(".json")
"""Reserved words by line of Flink, written by ``python -m measure.reserved_words``."""
EVERY_LINE = "every line"
_CLIENT_STATEMENTS = (nodes.SetOption, nodes.ResetOption)


@lru_cache
def reserved_words(line: str) -> frozenset[str]:
    """Return the words, in upper case, that one line of Flink refuses as a name without backticks.

    Args:
        line: A line of Flink, such as ``2.3``.

    Returns:
        The words of that line; none if its parser was not asked.
    """
    by_line = json.loads(DATA.read_text())
    return frozenset(by_line[EVERY_LINE]).union(by_line[line]) if line in by_line else frozenset()


def refused_words(statement: Statement, line: str) -> Iterator[tuple[Span, str]]:
    """Find reserved words that stand as names, and comparisons that Flink does not read.

    Args:
        statement: A statement in Flink's own dialect.
        line: The line of Flink that is to read it.

    Yields:
        The place, and the fault with its remedy.
    """
    reserved = reserved_words(line)
    if not reserved or isinstance(statement.tree, _CLIENT_STATEMENTS):
        return
    for node in statement.nodes:
        if isinstance(node, exp.Identifier) and not node.args.get("quoted") and node.name.upper() in reserved:
            yield (
                span_of(node, statement),
                f"{node.name} is a reserved word in Flink {line}; write the name in backticks, `{node.name}`",
            )
    yield from _unread_comparisons(statement)


def _unread_comparisons(statement: Statement) -> Iterator[tuple[Span, str]]:
    if "!=" not in statement.text:
        return
    previous = None
    for lexeme in lexer.lexemes(statement.text):
        if lexeme.text == "=" and previous is not None and previous.text == "!" and previous.end == lexeme.start:
            yield statement.place(previous.start, lexeme.end), "Flink does not read !=; write <>"
        previous = lexeme
