"""What the calls of the Table API are given: expressions, texts and tables."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    Expr,
    NotRead,
    Ref,
    TableValue,
    Unknown,
    Value,
)

Args = Sequence[Value]


def expression(value: Value) -> Expr:
    """A value where the Table API takes an expression. Raises :class:`NotRead` for what is none."""
    if isinstance(value, Ref) and value.name in e.BOUNDS and value.module == "pyflink":
        return Expr("bound", (value.name,))
    return e.literal(value)


def columns(args: Args) -> tuple[Expr, ...]:
    """Arguments that must be expressions: a text is one of the old string expressions."""
    if any(isinstance(arg, Const) for arg in args):
        raise NotRead("the old string expressions are not read: write col('a')")
    return tuple(map(expression, args))


def text_of(value: Value, what: str) -> str:
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    raise NotRead(f"{what} is not known: {value.reason if isinstance(value, Unknown) else 'it is no text'}")


def table_of(value: Value, session: ScriptBuilder) -> TableValue:
    if isinstance(value, TableValue):
        return session.read(value)
    raise NotRead(f"the table is not known: {value.reason if isinstance(value, Unknown) else 'it is no table'}")
