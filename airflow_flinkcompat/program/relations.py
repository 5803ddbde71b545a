"""Tables of a program: what ``filter``, ``select``, ``group_by`` and their like make of them, as SQL."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.program import expressions as e
from airflow_flinkcompat.program import validation
from airflow_flinkcompat.program.session import Session
from airflow_flinkcompat.program.values import (
    Expr,
    Known,
    NotRead,
    Prepared,
    Ref,
    Relation,
    Result,
    Spec,
    Unknown,
    Value,
)

Args = Sequence[Value]
Names = Mapping[str, Value]
_JOINS = {
    "join": "JOIN",
    "left_outer_join": "LEFT JOIN",
    "right_outer_join": "RIGHT JOIN",
    "full_outer_join": "FULL JOIN",
}


def expression(value: Value) -> Expr:
    """A value where the Table API takes an expression. Raises :class:`NotRead` for what is none."""
    if isinstance(value, Ref) and value.name in e.BOUNDS and value.module == "pyflink":
        return Expr("bound", (value.name,))
    return e.literal(value)


def columns(args: Args) -> tuple[Expr, ...]:
    """Arguments that must be expressions: a text is one of the old string expressions."""
    if any(isinstance(arg, Known) for arg in args):
        raise NotRead("the old string expressions are not read: write col('a')")
    return tuple(map(expression, args))


def text_of(value: Value, what: str) -> str:
    if isinstance(value, Known) and isinstance(value.value, str):
        return value.value
    raise NotRead(f"{what} is not known: {value.reason if isinstance(value, Unknown) else 'it is no text'}")


def table_of(value: Value, session: Session) -> Relation:
    if isinstance(value, Relation):
        return session.read(value)
    raise NotRead(f"the table is not known: {value.reason if isinstance(value, Unknown) else 'it is no table'}")


def relation(table: Relation, name: str, args: Args, names: Names, session: Session, node: ast.AST) -> Value | None:
    match name, len(args):
        case (("filter" | "where"), 1):
            given = columns(args)[0]
            validation.condition(given)
            condition = e.sql(given)
            return replace(table, where=(*table.where, condition), steps=(*table.steps, "filter"))
        case "select", count if count:
            return _select(table, columns(args), session, node)
        case "distinct", 0:
            return _made(table, f"SELECT DISTINCT * FROM ({table.sql})", "distinct")
        case "group_by", count if count:
            keys = columns(args)
            validation.keys(Prepared(table), keys)
            return Prepared(table, keys=keys)
        case "window", 1:
            if isinstance(args[0], Spec):
                validation.used(args[0], name)
                return Prepared(table, window=args[0])
        case "over_window", count if count:
            validation.one_row_window(count)
            if isinstance(args[0], Spec):
                validation.used(args[0], name)
                return Prepared(table, over=args[0])
        case "union_all", 1:
            other = table_of(args[0], session)
            made = _made(table, f"({table.sql}) UNION ALL ({other.sql})", "union")
            return replace(made, steps=(*made.steps, *other.steps, "end of union"))
        case joined, (1 | 2) if joined in _JOINS and (joined == "join" or len(args) == 2):
            other = table_of(args[0], session)
            kind = _JOINS[joined] if len(args) == 2 else "CROSS JOIN"
            on = f" ON {e.sql(columns(args[1:])[0])}" if len(args) == 2 else ""
            made = _made(table, f"SELECT * FROM ({table.sql}) {kind} ({other.sql}){on}", joined)
            return replace(made, steps=(*made.steps, *other.steps, "end of join"))
        case "execute_insert", (1 | 2):
            session.say(*insert(args[0], table, [*args[1:], *names.values()], node))
            return Result()
        case "execute", 0:
            session.say(table.sql, node, (*table.steps, "execute"))
            return Result()
    return None


def insert(path: Value, table: Relation, overwrite: Args, node: ast.AST) -> tuple[str, ast.AST, tuple[str, ...]]:
    sink = e.path(text_of(path, "the path of the sink"))
    if not all(isinstance(flag, Known) and isinstance(flag.value, bool) for flag in overwrite):
        raise NotRead("whether the insert overwrites is not known")
    verb = "OVERWRITE" if any(isinstance(flag, Known) and flag.value for flag in overwrite) else "INTO"
    return f"INSERT {verb} {sink} {table.sql}", node, (*table.steps, "insert")


def _made(table: Relation, query: str, *steps: str) -> Relation:
    """A table that stands behind another one, as a query."""
    return Relation(f"({query})", query=query, steps=(*table.steps, *steps), epoch=table.epoch)


def _outputs(columns: Sequence[Expr], special: e.Special) -> str:
    return ", ".join(e.sql(column, special) for column in columns)


def _behind_from(table: Relation) -> str:
    condition = " WHERE " + " AND ".join(f"({part})" for part in table.where) if table.where else ""
    return f"{table.source}{condition}"


def _select(table: Relation, columns: Sequence[Expr], session: Session, node: ast.AST) -> Relation:
    validation.selected(columns)
    query = f"SELECT {_outputs(columns, lambda expr: None)} FROM {_behind_from(table)}"
    if any(map(e.aggregates, columns)):
        session.note(node, validation.WITHOUT_WINDOW)
        return _made(table, query, "aggregate")
    # Which columns are left below a window decides about the operators above (measured).
    return _made(table, query, f"select: {_outputs([_bare(column) for column in columns], lambda expr: None)}")


def _bare(column: Expr) -> Expr:
    return _bare(column.parts[0]) if column.kind == "alias" else column


def prepared(prepared: Prepared, name: str, args: Args, session: Session, node: ast.AST) -> Value | None:
    validation.window_first(prepared, name)
    if name not in ("group_by", "select"):
        return None
    outputs = columns(args)
    if name == "group_by" and outputs and prepared.keys is None and prepared.over is None:
        validation.keys(prepared, outputs)
        return replace(prepared, keys=outputs)
    if name != "select" or not outputs:
        return None
    table, keys = prepared.table, prepared.keys or ()
    if prepared.over is not None:
        windows = (prepared.over, *prepared.others)
        validation.over(prepared, outputs)
        for each in windows:
            session.window(node, each, outputs)
        special = e.row_windows(windows)
        if not any(map(e.over, outputs)):
            raise NotRead("no aggregate names the row window")
        return _made(table, f"SELECT {_outputs(outputs, special)} FROM {_behind_from(table)}", "over")
    validation.grouped(prepared, outputs)
    if any(key.kind == "alias" for key in keys):
        raise NotRead("a grouping key with an alias of its own is not read")
    if prepared.window is None:
        session.note(node, validation.WITHOUT_WINDOW)
        group = ", ".join(map(e.sql, keys))
        query = f"SELECT {_outputs(outputs, lambda expr: None)} FROM {_behind_from(table)} GROUP BY {group}"
        return _made(table, query, "aggregate")
    window, special = e.group_window(prepared.window)
    session.window(node, prepared.window, outputs)
    alias = Expr("column", (prepared.window.alias,))
    # Where the window stands among the keys says nothing (measured): it comes first.
    group = ", ".join((window, *(e.sql(key) for key in keys if key != alias)))
    query = f"SELECT {_outputs(outputs, special)} FROM {_behind_from(table)} GROUP BY {group}"
    return _made(table, query, "window")
