"""Flink SQL as text and as trees: the dialect, and scripts with places.

This package uses neither Airflow nor Spark nor a network. :mod:`airflow_flinkcompat.sql.nodes` describes the trees.
"""

# ruff: noqa: E402 -- sqlglot may only be imported after this
from airflow_flinkcompat.sql.pure_sqlglot import prefer_sources

prefer_sources()

from airflow_flinkcompat.model import ScriptError
from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.script import Script, Statement, parse_script

__all__ = ["Script", "ScriptError", "Statement", "nodes", "parse_script"]
