"""The Flink dialect of sqlglot, registered under the name ``flink``."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy

from airflow_flinkcompat.sql.generator import FlinkGenerator
from airflow_flinkcompat.sql.statement_parser import FlinkParser
from airflow_flinkcompat.sql.tokenizer import FlinkTokenizer


class Flink(Dialect):
    """Flink SQL (Apache Flink 1.20 to 2.3, and VVR's additional syntax)."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE
    NORMALIZE_FUNCTIONS: bool | str = False
    SUPPORTS_USER_DEFINED_TYPES = False
    TYPED_DIVISION = True
    INDEX_OFFSET = 0

    Tokenizer = FlinkTokenizer
    Parser = FlinkParser
    Generator = FlinkGenerator


def parse_statement(text: str) -> exp.Expr:
    """Parse exactly one statement.

    Args:
        text: One statement of Flink SQL.

    Returns:
        The root of its syntax tree.

    Raises:
        sqlglot.errors.ParseError: The text is no statement.
        sqlglot.errors.TokenError: The text cannot be split into tokens.
    """
    dialect = Flink()
    tree = dialect.parse(text)[0]
    assert tree is not None
    return tree
