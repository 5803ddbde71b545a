"""Flink SQL as text and tree: the dialect, scripts with places, masking of secrets.

This package knows nothing of Airflow, Spark or a network. Tree shapes are described in
:mod:`airflow_flinkcompat.sql.nodes`.
"""

# ruff: noqa: E402 -- sqlglot may only be imported after this
from airflow_flinkcompat.sql.pure_sqlglot import prefer_sources

prefer_sources()

from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.dialect import Flink, parse_statement
from airflow_flinkcompat.sql.grammar import nodes_of
from airflow_flinkcompat.sql.masking import MASK, Secret, find_secrets, mask_option, mask_secrets
from airflow_flinkcompat.sql.placeholders import PLACEHOLDER, Placeholder, placeholders, resolve_placeholders
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
    language_of,
    parse_script,
    read_script,
    read_text,
    span_of,
)
from airflow_flinkcompat.sql.secret_keys import is_secret_key

__all__ = [
    "Flink",
    "LANGUAGES",
    "MASK",
    "NO_PROGRAM",
    "Note",
    "PLACEHOLDER",
    "PROGRAM",
    "FUNCTION_KIND",
    "STEPS",
    "Placeholder",
    "Secret",
    "Script",
    "ScriptError",
    "Span",
    "Statement",
    "Unread",
    "WindowUse",
    "find_secrets",
    "is_secret_key",
    "language_of",
    "mask_option",
    "mask_secrets",
    "nodes",
    "nodes_of",
    "parse_script",
    "parse_statement",
    "placeholders",
    "read_script",
    "read_text",
    "resolve_placeholders",
    "span_of",
]
