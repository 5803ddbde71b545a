"""Flink SQL as text and tree: the dialect, scripts with places, masking of secrets.

This package knows nothing of Airflow, Spark or a network. Tree shapes are described in
:mod:`airflow_flinkcompat.sql.nodes`.
"""

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.dialect import Flink, parse_statement
from airflow_flinkcompat.sql.script import (
    Script,
    ScriptError,
    Span,
    Statement,
    parse_script,
    read_script,
    span_of,
)

__all__ = [
    "Flink",
    "Script",
    "ScriptError",
    "Span",
    "Statement",
    "nodes",
    "parse_script",
    "parse_statement",
    "read_script",
    "span_of",
]
