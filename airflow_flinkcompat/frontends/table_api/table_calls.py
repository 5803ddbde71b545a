"""Tables of a program: what ``filter``, ``select``, ``group_by`` and their like make of them, as SQL."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.frontends.table_api import descriptors, table_sql, validation
from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api.arguments import columns, table_of, text_of
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    DescriptorValue,
    Expr,
    GroupedTable,
    Inserts,
    JobResult,
    NotRead,
    Spec,
    TablePipeline,
    TableValue,
    UnknownValue,
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


def relation(
    table: TableValue, name: str, args: Args, names: Names, session: ScriptBuilder, node: ast.AST
) -> Value | None:
    """What a method of a table gives; None where it is not read, or not with these arguments."""
    if name in table_sql.ROWS:
        raise NotRead(f"{name} hands whole rows to a Python function: no SQL says the same")
    if name in _METHODS and len(args) in _METHODS[name][0]:
        return _METHODS[name][1](table, name, args, names, session, node)
    if args and name.endswith("_columns"):
        return table_sql.reshaped(table, name, columns(args))
    if len(args) == 1 and isinstance(args[0], TableValue):
        return table_sql.combined(table, name, table_of(args[0], session))
    return None


def _filtered(table: TableValue, condition: Expr) -> TableValue:
    validation.condition(condition)
    return replace(table, where=(*table.where, e.sql(condition)), steps=(*table.steps, "filter"))


def _grouped(table: TableValue, keys: tuple[Expr, ...]) -> GroupedTable:
    validation.keys(GroupedTable(table), keys)
    return GroupedTable(table, keys=keys)


def _windowed(table: TableValue, name: str, args: Args) -> GroupedTable | None:
    """``window`` takes a group window, ``over_window`` a row window."""
    if name == "over_window":
        validation.one_row_window(len(args))
    if not isinstance(args[0], Spec):
        return None
    validation.used(args[0], name)
    return GroupedTable(table, over=args[0]) if name == "over_window" else GroupedTable(table, window=args[0])


def _joined(table: TableValue, name: str, args: Args, session: ScriptBuilder) -> TableValue:
    other = table_of(args[0], session)
    kind = _JOINS[name] if len(args) == 2 else "CROSS JOIN"
    on = f" ON {e.sql(columns(args[1:])[0])}" if len(args) == 2 else ""
    every = None if table.columns is None or other.columns is None else (*table.columns, *other.columns)
    query = f"SELECT * FROM ({table.sql}) {kind} ({other.sql}){on}"
    made = table_sql.made(table, query, name, columns=every)
    return replace(made, steps=(*made.steps, *other.steps, "end of join"))


def _inserted(
    table: TableValue, name: str, args: Args, names: Names, session: ScriptBuilder, node: ast.AST
) -> Value | None:
    """``execute_insert`` starts a job, ``insert_into`` one that waits for its ``execute``."""
    if len(args) == 1 and isinstance(args[0], TableValue):
        return None
    sql, _, steps = insert(sink(args[0], session, node), table, [*args[1:], *names.values()], node)
    if name == "insert_into":
        return TablePipeline(sql, steps, session.epoch)
    session.say(sql, node, steps)
    return JobResult()


def _executed(table: TableValue, name: str, session: ScriptBuilder, node: ast.AST) -> Value:
    session.say(table.sql, node, (*table.steps, name))
    return JobResult() if name == "execute" else UnknownValue("the rows of a query are not known")


_Method = Callable[[TableValue, str, Args, Names, ScriptBuilder, ast.AST], Value | None]
_SOME = range(1, sys.maxsize)
_METHODS: Mapping[str, tuple[range, _Method]] = {
    **dict.fromkeys(("filter", "where"), (range(1, 2), lambda t, _, args, *__: _filtered(t, columns(args)[0]))),
    "select": (_SOME, lambda t, _, args, __, session, node: _select(t, columns(args), session, node)),
    "distinct": (
        range(1),
        lambda t, *_: table_sql.made(t, f"SELECT DISTINCT * FROM ({t.sql})", "distinct", columns=t.columns),
    ),
    "group_by": (_SOME, lambda t, _, args, *__: _grouped(t, columns(args))),
    "window": (range(1, 2), lambda t, name, args, *_: _windowed(t, name, args)),
    "over_window": (_SOME, lambda t, name, args, *_: _windowed(t, name, args)),
    "order_by": (_SOME, lambda t, _, args, *__: table_sql.ordered(t, columns(args))),
    **dict.fromkeys(
        ("fetch", "offset", "limit"), (range(1, 3), lambda t, name, args, *_: table_sql.limited(t, name, args))
    ),
    "alias": (
        _SOME,
        lambda t, _, args, *__: table_sql.renamed(t, [text_of(arg, "the name of a column") for arg in args]),
    ),
    **dict.fromkeys(
        table_sql.LATERAL, (range(1, 2), lambda t, name, args, *_: table_sql.lateral(t, name, columns(args)[0]))
    ),
    **dict.fromkeys(_JOINS, (range(2, 3), lambda t, name, args, _, session, __: _joined(t, name, args, session))),
    "join": (range(1, 3), lambda t, name, args, _, session, __: _joined(t, name, args, session)),
    **dict.fromkeys(("execute_insert", "insert_into"), (range(1, 3), _inserted)),
    **dict.fromkeys(
        ("execute", "to_pandas"), (range(1), lambda t, name, _, __, session, node: _executed(t, name, session, node))
    ),
}
"""Methods of a table: how many arguments are read, and what they make of it."""


def sink(value: Value, session: ScriptBuilder, node: ast.AST) -> Value:
    """Where an insert goes: a path, or a table that is described in place."""
    if isinstance(value, DescriptorValue):
        return Const(descriptors.inline(value, session, node).strip("`"))
    return value


def insert(path: Value, table: TableValue, overwrite: Args, node: ast.AST) -> tuple[str, ast.AST, tuple[str, ...]]:
    sink = e.path(text_of(path, "the path of the sink"))
    if not all(isinstance(flag, Const) and isinstance(flag.value, bool) for flag in overwrite):
        raise NotRead("whether the insert overwrites is not known")
    verb = "OVERWRITE" if any(isinstance(flag, Const) and flag.value for flag in overwrite) else "INTO"
    return f"INSERT {verb} {sink} {table.sql}", node, (*table.steps, "insert")


def _outputs(columns: Sequence[Expr], special: e.Special) -> str:
    return ", ".join(e.sql(column, special) for column in columns)


def _select(table: TableValue, columns: Sequence[Expr], session: ScriptBuilder, node: ast.AST) -> TableValue:
    validation.selected(columns)
    query = f"SELECT {_outputs(columns, lambda expr: None)} FROM {table_sql.behind_from(table)}"
    if any(map(e.aggregates, columns)):
        session.note(node, validation.WITHOUT_WINDOW)
        return table_sql.made(table, query, "aggregate", columns=table_sql.named(columns, table))
    # Which columns are left below a window decides about the operators above (measured).
    step = f"select: {_outputs([_bare(column) for column in columns], lambda expr: None)}"
    return table_sql.made(table, query, step, columns=table_sql.named(columns, table))


def _bare(column: Expr) -> Expr:
    return _bare(column.parts[0]) if column.kind == "alias" else column


def prepared(prepared: GroupedTable, name: str, args: Args, session: ScriptBuilder, node: ast.AST) -> Value | None:
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
        query = f"SELECT {_outputs(outputs, special)} FROM {table_sql.behind_from(table)}"
        return table_sql.made(table, query, "over", columns=table_sql.named(outputs, table))
    validation.grouped(prepared, outputs)
    if any(key.kind == "alias" for key in keys):
        raise NotRead("a grouping key with an alias of its own is not read")
    if prepared.window is None:
        session.note(node, validation.WITHOUT_WINDOW)
        group = ", ".join(map(e.sql, keys))
        query = f"SELECT {_outputs(outputs, lambda expr: None)} FROM {table_sql.behind_from(table)} GROUP BY {group}"
        return table_sql.made(table, query, "aggregate", columns=table_sql.named(outputs, table))
    window, special = e.group_window(prepared.window)
    session.window(node, prepared.window, outputs)
    alias = Expr("column", (prepared.window.alias,))
    # Where the window stands among the keys says nothing (measured): it comes first.
    group = ", ".join((window, *(e.sql(key) for key in keys if key != alias)))
    query = f"SELECT {_outputs(outputs, special)} FROM {table_sql.behind_from(table)} GROUP BY {group}"
    return table_sql.made(table, query, "window", columns=table_sql.named(outputs, table))


def statement_set(
    inserts: Inserts, name: str, args: Args, names: Names, session: ScriptBuilder, node: ast.AST
) -> Value | None:
    match name, len(args):
        case "add_insert", (2 | 3):
            table = table_of(args[1], session)
            sql, _, steps = insert(sink(args[0], session, node), table, [*args[2:], *names.values()], node)
            inserts.inserts.append((sql, steps, session.epoch))
            return inserts
        case "add", 1 if isinstance(args[0], TablePipeline):
            inserts.inserts.append((args[0].sql, args[0].steps, args[0].epoch))
            return inserts
        case "add_insert_sql", 1:
            sql = session.sql(args[0]).rstrip().rstrip(";")
            inserts.inserts.append((sql, (), session.epoch))
            return inserts
        case "execute", 0 if inserts.inserts:
            if any(epoch != session.epoch for _, _, epoch in inserts.inserts):
                raise NotRead("a name was dropped or declared anew after a query of the statement set was added")
            body = "".join(f"{sql}\n;\n" for sql, _, _ in inserts.inserts)
            session.say(f"EXECUTE STATEMENT SET BEGIN\n{body}END", node, *(steps for _, steps, _ in inserts.inserts))
            inserts.inserts.clear()
            return JobResult()
    return None
