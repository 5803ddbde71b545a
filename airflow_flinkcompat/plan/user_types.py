"""Types with names that Flink lacks: its validator looks each up in the catalog, and finds none."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from airflow_flinkcompat.plan.program import REFUSED, Problem
from airflow_flinkcompat.sql import Statement, nodes, span_of
from airflow_flinkcompat.sql.normal_form import normal_form, unquoted
from airflow_flinkcompat.sql.type_parser import USER_TYPE, meant_type


def type_problems(statement: Statement) -> Iterator[Problem]:
    """Problems with types of a statement that are not Flink's, at any place.

    Flink 2.3 was seen to refuse each of them. A name with a database may be a type that somebody declared elsewhere, so
    its effect is unknown.
    """
    for node in statement.nodes:
        if not isinstance(node, nodes.FlinkType) or node.this != USER_TYPE:
            continue
        (name,) = node.expressions
        written, span = unquoted(name), span_of(node, statement)
        if isinstance(name, exp.Dot):
            reason = "user-type"
            words = f"what the type {written} is made of is not known; write it as ROW<…> or STRUCTURED<…>"
        else:
            reason = REFUSED
            flink = f"Unknown identifier '{name.name}'"
            words = f"{written} is none of Flink's types; {meant_type(name.name)} (Flink: {flink})"
        yield Problem(reason, words, normal_form(node), span)
