"""Columns of the queries of a statement, and types that several queries have in common."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import exp

from airflow_flinkcompat.planner.assumed_table import TEXT, Parts
from airflow_flinkcompat.sql import nodes
from airflow_flinkcompat.sql.grammar import nodes_of

_TEXTS = re.compile(r"\b(?:VAR)?CHAR\(\d+\)")
_NUMBERS = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
"""Types of numbers, each of which Flink converts to the types after it."""


def output_names(query: exp.Expr | None) -> list[str]:
    """The names of a query's columns; empty if the query does not name all of them, or names one twice."""
    found = _names(query, _ctes(query))
    return found if len(set(found)) == len(found) else []


def _ctes(query: exp.Expr | None) -> dict[str, exp.Expr]:
    nested = nodes_of(query) if query is not None else ()
    return {each.alias: each.this for each in nested if isinstance(each, exp.CTE)}


def _names(query: exp.Expr | None, ctes: Mapping[str, exp.Expr]) -> list[str]:
    match query:
        case exp.Subquery() | exp.Paren():
            return _names(query.this, ctes)
        case exp.SetOperation():
            return _names(query.this, ctes) or _names(query.expression, ctes)
        case exp.Select():
            names: list[str] = []
            for each in query.expressions:
                inner = _names_of_star(query, ctes) if isinstance(each, exp.Star) else [each.alias_or_name]
                if not inner or "" in inner or "*" in inner:
                    return []
                names += inner
            return names
    return []


def _names_of_star(select: exp.Select, ctes: Mapping[str, exp.Expr]) -> list[str]:
    source = None if select.args.get("joins") else _source(select)
    if isinstance(source, exp.Table):
        others = {name: each for name, each in ctes.items() if name != source.name}
        return _names(ctes.get(source.name), others)
    return _names(source, ctes) if isinstance(source, exp.Subquery) else []


def _source(select: exp.Select) -> exp.Expr | None:
    return select.args["from_"].this if select.args.get("from_") is not None else None


def united_tables(tree: exp.Expr) -> Iterator[tuple[Parts, list[str]]]:
    """Tables that one side of a set operation reads whole, each with the columns of the other side."""
    ctes = _ctes(tree)
    for each in nodes_of(tree):
        if isinstance(each, exp.SetOperation):
            for side, other in ((each.this, each.expression), (each.expression, each.this)):
                names = _names(other, ctes)
                source = _source(side) if isinstance(side, exp.Select) else None
                if names and isinstance(source, exp.Table) and isinstance(side.expressions[0], exp.Star):
                    yield tuple(part.name for part in source.parts), names


def output_at(tree: exp.Expr, sink: str, place: int) -> str:
    """The expressions of the column at a place in the queries that write into a table, as one text."""
    found = []
    for each in nodes_of(tree):
        if isinstance(each, nodes.InsertInto | nodes.CreateTable) and each.this.name == sink:
            query = each.args.get("expression")
            if isinstance(query, exp.Select) and place < len(query.expressions):
                found.append(query.expressions[place].sql("flink"))
    return " ".join(found)


def common_type(one: str, other: str) -> str:
    """A type to which Flink converts both types; the second type if there is none."""
    one, other = (_TEXTS.sub(TEXT, each).replace(" NOT NULL", "") for each in (one, other))
    if one in _NUMBERS and other in _NUMBERS:
        return max(one, other, key=_NUMBERS.index)
    return other
