"""Flink SQL as text and tree: the dialect, and scripts with places.

This package knows nothing of Airflow, Spark or a network. Tree shapes are described in
:mod:`airflow_flinkcompat.sql.nodes`.
"""

# ruff: noqa: E402 -- sqlglot may only be imported after this
from airflow_flinkcompat.sql.pure_sqlglot import prefer_sources

prefer_sources()

from airflow_flinkcompat.model import ScriptError
from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.grammar import nodes_of
from airflow_flinkcompat.sql.script import (
    NO_PROGRAM,
    Script,
    Statement,
    decode_script,
    parse_script,
    read_script,
    read_text,
    span_of,
)
from airflow_flinkcompat.sql.statement_parser import Flink, parse_statement

__all__ = [
    "Flink", "NO_PROGRAM", "Script", "ScriptError", "Statement", "nodes", "nodes_of", "parse_script",
    "parse_statement", "decode_script", "read_script", "read_text", "span_of",
]  # fmt: skip
