"""Tables of a program: what ``filter``, ``select``, ``group_by`` and their like make of them, as SQL."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.program.table_api import descriptors, shapes, validation
from airflow_flinkcompat.program.table_api import expressions as e
from airflow_flinkcompat.program.table_api.arguments import columns, table_of, text_of
from airflow_flinkcompat.program.table_api.session import Session
from airflow_flinkcompat.program.values import (
    Descriptor,
    Expr,
    Known,
    NotRead,
    Pipe,
    Prepared,
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


def relation(table: Relation, name: str, args: Args, names: Names, session: Session, node: ast.AST) -> Value | None:
    if name in shapes.ROWS:
        raise NotRead(f"{name} hands whole rows to a Python function: no SQL says the same")
    match name, len(args):
        case (("filter" | "where"), 1):
            given = columns(args)[0]
            validation.condition(given)
            condition = e.sql(given)
            return replace(table, where=(*table.where, condition), steps=(*table.steps, "filter"))
        case "select", count if count:
            return _select(table, columns(args), session, node)
        case "distinct", 0:
            return shapes.made(table, f"SELECT DISTINCT * FROM ({table.sql})", "distinct", columns=table.columns)
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
        case "order_by", count if count:
            return shapes.ordered(table, columns(args))
        case (("fetch" | "offset" | "limit"), (1 | 2)):
            return shapes.limited(table, name, args)
        case "alias", count if count:
            return shapes.renamed(table, [text_of(arg, "the name of a column") for arg in args])
        case lateral, 1 if lateral in shapes.LATERAL:
            return shapes.lateral(table, name, columns(args)[0])
        case _, count if count and name.endswith("_columns"):
            return shapes.reshaped(table, name, columns(args))
        case _, 1 if isinstance(args[0], Relation) and name not in _JOINS:
            return shapes.combined(table, name, table_of(args[0], session))
        case joined, (1 | 2) if joined in _JOINS and (joined == "join" or len(args) == 2):
            other = table_of(args[0], session)
            kind = _JOINS[joined] if len(args) == 2 else "CROSS JOIN"
            on = f" ON {e.sql(columns(args[1:])[0])}" if len(args) == 2 else ""
            every = None if table.columns is None or other.columns is None else (*table.columns, *other.columns)
            query = f"SELECT * FROM ({table.sql}) {kind} ({other.sql}){on}"
            made = shapes.made(table, query, joined, columns=every)
            return replace(made, steps=(*made.steps, *other.steps, "end of join"))
        case "execute_insert", (1 | 2):
            sql, _, steps = insert(sink(args[0], session, node), table, [*args[1:], *names.values()], node)
            session.say(sql, node, steps)
            return Result()
        case "insert_into", (1 | 2):
            sql, _, steps = insert(sink(args[0], session, node), table, [*args[1:], *names.values()], node)
            return Pipe(sql, steps, session.epoch)
        case (("execute" | "to_pandas"), 0):
            session.say(table.sql, node, (*table.steps, name))
            return Result() if name == "execute" else Unknown("the rows of a query are not known")
    return None


def sink(value: Value, session: Session, node: ast.AST) -> Value:
    """Where an insert goes: a path, or a table that is described in place."""
    if isinstance(value, Descriptor):
        return Known(descriptors.inline(value, session, node).strip("`"))
    return value


def insert(path: Value, table: Relation, overwrite: Args, node: ast.AST) -> tuple[str, ast.AST, tuple[str, ...]]:
    sink = e.path(text_of(path, "the path of the sink"))
    if not all(isinstance(flag, Known) and isinstance(flag.value, bool) for flag in overwrite):
        raise NotRead("whether the insert overwrites is not known")
    verb = "OVERWRITE" if any(isinstance(flag, Known) and flag.value for flag in overwrite) else "INTO"
    return f"INSERT {verb} {sink} {table.sql}", node, (*table.steps, "insert")


def _outputs(columns: Sequence[Expr], special: e.Special) -> str:
    return ", ".join(e.sql(column, special) for column in columns)


def _select(table: Relation, columns: Sequence[Expr], session: Session, node: ast.AST) -> Relation:
    validation.selected(columns)
    query = f"SELECT {_outputs(columns, lambda expr: None)} FROM {shapes.behind_from(table)}"
    if any(map(e.aggregates, columns)):
        session.note(node, validation.WITHOUT_WINDOW)
        return shapes.made(table, query, "aggregate", columns=shapes.named(columns, table))
    # Which columns are left below a window decides about the operators above (measured).
    step = f"select: {_outputs([_bare(column) for column in columns], lambda expr: None)}"
    return shapes.made(table, query, step, columns=shapes.named(columns, table))


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
        query = f"SELECT {_outputs(outputs, special)} FROM {shapes.behind_from(table)}"
        return shapes.made(table, query, "over", columns=shapes.named(outputs, table))
    validation.grouped(prepared, outputs)
    if any(key.kind == "alias" for key in keys):
        raise NotRead("a grouping key with an alias of its own is not read")
    if prepared.window is None:
        session.note(node, validation.WITHOUT_WINDOW)
        group = ", ".join(map(e.sql, keys))
        query = f"SELECT {_outputs(outputs, lambda expr: None)} FROM {shapes.behind_from(table)} GROUP BY {group}"
        return shapes.made(table, query, "aggregate", columns=shapes.named(outputs, table))
    window, special = e.group_window(prepared.window)
    session.window(node, prepared.window, outputs)
    alias = Expr("column", (prepared.window.alias,))
    # Where the window stands among the keys says nothing (measured): it comes first.
    group = ", ".join((window, *(e.sql(key) for key in keys if key != alias)))
    query = f"SELECT {_outputs(outputs, special)} FROM {shapes.behind_from(table)} GROUP BY {group}"
    return shapes.made(table, query, "window", columns=shapes.named(outputs, table))
