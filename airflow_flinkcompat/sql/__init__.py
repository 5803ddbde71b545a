"""Flink SQL as text and tree: the dialect, and scripts with places.

This package knows nothing of Airflow, Spark or a network. Tree shapes are described in
:mod:`airflow_flinkcompat.sql.nodes`.
"""

# ruff: noqa: E402 -- sqlglot may only be imported after this
from airflow_flinkcompat.sql.pure_sqlglot import prefer_sources

prefer_sources()

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.dialect import Flink, parse_statement
from airflow_flinkcompat.sql.grammar import nodes_of
from airflow_flinkcompat.sql.script import (
    FUNCTION_KIND,
    LANGUAGES,
    NO_PROGRAM,
    PROGRAM,
    STEPS,
    Note,
    Script,
    ScriptError,
    Span,
    Statement,
    Unread,
    WindowUse,
    decode_script,
    language_of,
    parse_script,
    read_script,
    read_text,
    span_of,
)

__all__ = [
    "Flink",
    "LANGUAGES",
    "NO_PROGRAM",
    "Note",
    "PROGRAM",
    "FUNCTION_KIND",
    "STEPS",
    "Script",
    "ScriptError",
    "Span",
    "Statement",
    "Unread",
    "WindowUse",
    "language_of",
    "nodes",
    "nodes_of",
    "parse_script",
    "parse_statement",
    "decode_script",
    "read_script",
    "read_text",
    "span_of",
]
