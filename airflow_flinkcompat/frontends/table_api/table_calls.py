"""Methods of tables, grouped tables and windows, as SQL queries."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.frontends.table_api import descriptors, validation
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
from airflow_flinkcompat.model.text import sql_name

_SETS = {
    "union": "UNION",
    "union_all": "UNION ALL",
    "intersect": "INTERSECT",
    "intersect_all": "INTERSECT ALL",
    "minus": "EXCEPT",
    "minus_all": "EXCEPT ALL",
}
LATERAL = {"join_lateral": "CROSS JOIN", "left_outer_join_lateral": "LEFT JOIN"}
ROWS = ("map", "flat_map", "aggregate", "flat_aggregate")


def table_after(table: TableValue, query: str, *steps: str, columns: tuple[str, ...] | None = None) -> TableValue:
    """The table that a query on a table yields."""
    return TableValue(
        f"({query})", query=query, steps=(*table.steps, *steps), epoch=table.epoch, columns=columns
    )  # fmt: skip


def behind_from(table: TableValue) -> str:
    condition = " WHERE " + " AND ".join(f"({part})" for part in table.where) if table.where else ""
    return f"{table.source}{condition}"


def named(columns: Sequence[Expr], table: TableValue) -> tuple[str, ...] | None:
    """Names of the selected columns, with "" for a generated name; None if the names are unknown."""
    names: list[str] = []
    for column in columns:
        match column:
            case Expr("column", ("*",)) if table.columns is not None:
                names += table.columns
            case Expr("alias", (_, name)) | Expr("column", (name,)) if name != "*":
                names.append(name)
            case Expr("column" | "aliases"):
                return None
            case _:
                names.append("")
    return tuple(names)


# ------------------------------------------------------------------------------------------------ rows
def combined(table: TableValue, name: str, other: TableValue) -> TableValue | None:
    """Result of ``union``, ``intersect``, ``minus`` and their ``_all`` forms."""
    if name not in _SETS:
        return None
    step = "union" if name == "union_all" else name
    found = table_after(table, f"({table.sql}) {_SETS[name]} ({other.sql})", step, columns=table.columns)
    return replace(found, steps=(*found.steps, *other.steps, f"end of {step}"))


def ordered(table: TableValue, keys: Sequence[Expr]) -> TableValue:
    written = []
    for key in keys:
        operand, direction = key.parts if key.kind == "order" else (key, "ASC")
        written.append(f"{e.sql(operand)} {direction}")
    query = f"SELECT * FROM {behind_from(table)} ORDER BY {', '.join(written)}"
    return table_after(table, query, "order_by", columns=table.columns)


def limited(table: TableValue, name: str, args: Args) -> TableValue | None:
    """``fetch(n)``, ``offset(n)`` and ``limit(n, offset)``."""
    counts = [arg.value for arg in args if isinstance(arg, Const) and isinstance(arg.value, int)]
    if len(counts) != len(args) or any(count < 0 for count in counts):
        raise NotRead(f"{name} needs known whole numbers")
    match name, counts:
        case "limit", [count, skipped]:
            return _limit(_limit(table, "offset", skipped), "fetch", count)
        case (("limit" | "fetch"), [count]):
            return _limit(table, "fetch", count)
        case "offset", [count]:
            return _limit(table, "offset", count)
    return None


def _limit(table: TableValue, name: str, count: int) -> TableValue:
    clause = f"OFFSET {count} ROWS" if name == "offset" else f"FETCH NEXT {count} ROWS ONLY"
    # A limit directly after a sort or an offset extends that query, without a subquery.
    open_ends = ("order_by",) if name == "offset" else ("order_by", "offset")
    open_end = not table.where and table.steps[-1:] and table.steps[-1] in open_ends
    start = table.query if open_end else f"SELECT * FROM {behind_from(table)}"
    return table_after(table, f"{start} {clause}", name, columns=table.columns)


# ------------------------------------------------------------------------------------------------ columns
def reshaped(table: TableValue, name: str, columns: Sequence[Expr]) -> TableValue | None:
    """``add_columns``, ``add_or_replace_columns``, ``drop_columns`` and ``rename_columns``."""
    if name == "add_columns":
        added = named(columns, table)
        every = None if table.columns is None or added is None else (*table.columns, *added)
        return _projected(table, name, ["*", *map(e.sql, columns)], every)
    if name not in ("add_or_replace_columns", "drop_columns", "rename_columns"):
        return None
    before = _known(table, name)
    kept: dict[str, str] = {column: sql_name(column) for column in before}
    for column in columns:
        match name, column:
            case "drop_columns", Expr("column", (gone,)) if gone in kept:
                del kept[gone]
            case "rename_columns", Expr("alias", (Expr("column", (old,)), new)) if old in kept and new not in kept:
                kept = {new if each == old else each: sql for each, sql in kept.items()}
                kept[new] = f"{sql_name(old)} AS {sql_name(new)}"
            case "add_or_replace_columns", Expr("alias", (_, new)):
                kept[new] = e.sql(column)
            case _:
                raise NotRead(f"{name} of anything but a plain column of the table is not supported")
    if not kept:
        raise NotRead("no column remains")
    return _projected(table, name, list(kept.values()), tuple(kept))


def renamed(table: TableValue, names: Sequence[str]) -> TableValue:
    """``alias('a', 'b')``, which renames the first columns."""
    before = table.columns or _known(table, "alias")
    if len(names) > len(before):
        raise NotRead("alias names more columns than there are")
    after = (*names, *before[len(names) :])
    if len(set(after)) < len(after):
        raise NotRead("alias gives two columns the same name")
    if "" in before:
        if "" in after:
            raise NotRead("alias does not rename a column whose name Flink generates")
        source = f"({table.sql}) AS {sql_name('T')}({', '.join(map(sql_name, after))})"
        return table_after(table, f"SELECT * FROM {source}", f"alias: {', '.join(after)}", columns=tuple(after))
    written = [
        sql_name(old) + (f" AS {sql_name(new)}" if new != old else "") for old, new in zip(before, after, strict=True)
    ]
    return _projected(table, "alias", written, after)


def _known(table: TableValue, name: str) -> tuple[str, ...]:
    if table.columns is None or "" in table.columns:
        raise NotRead(f"{name} needs the columns of the table, which are unknown here")
    return table.columns


def _projected(table: TableValue, name: str, written: Sequence[str], columns: tuple[str, ...] | None) -> TableValue:
    outputs = ", ".join(written)
    return table_after(table, f"SELECT {outputs} FROM {behind_from(table)}", f"{name}: {outputs}", columns=columns)


# ------------------------------------------------------------------------------------------------ table functions
def lateral(table: TableValue, name: str, call: Expr) -> TableValue:
    """Result of ``join_lateral(function(col('a')).alias('b', 'c'))``."""
    match call:
        case Expr("alias", (Expr("call" | "own") as inner, str(one))):
            names: tuple[str, ...] = (one,)
        case Expr("aliases", (Expr("call" | "own") as inner, tuple(several))):
            names = several
        case _:
            raise NotRead(f"{name} needs a call of a table function with .alias(a name for each column)")
    source = f"({table.sql})" if table.where else table.source
    listed = ", ".join(map(sql_name, names))
    on = " ON TRUE" if name.startswith("left") else ""
    query = f"SELECT * FROM {source} {LATERAL[name]} LATERAL TABLE({e.sql(inner)}) AS {sql_name('T')}({listed}){on}"
    every = None if table.columns is None else (*table.columns, *names)
    return table_after(table, query, name, columns=every)


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
    """Result of a method of a table; None if it is unsupported with these arguments."""
    if name in ROWS:
        raise NotRead(f"{name} passes whole rows to a Python function, which SQL cannot express")
    if name in _METHODS and len(args) in _METHODS[name][0]:
        return _METHODS[name][1](table, name, args, names, session, node)
    if args and name.endswith("_columns"):
        return reshaped(table, name, columns(args))
    if len(args) == 1 and isinstance(args[0], TableValue):
        return combined(table, name, table_of(args[0], session))
    return None


def _filtered(table: TableValue, condition: Expr) -> TableValue:
    validation.condition(condition)
    return replace(table, where=(*table.where, e.sql(condition)), steps=(*table.steps, "filter"))


def _grouped(table: TableValue, keys: tuple[Expr, ...]) -> GroupedTable:
    validation.keys(GroupedTable(table), keys)
    return GroupedTable(table, keys=keys)


def _windowed(table: TableValue, name: str, args: Args) -> GroupedTable | None:
    """Result of ``window`` with a group window, or ``over_window`` with a row window."""
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
    found = table_after(table, query, name, columns=every)
    return replace(found, steps=(*found.steps, *other.steps, "end of join"))


def _inserted(
    table: TableValue, name: str, args: Args, names: Names, session: ScriptBuilder, node: ast.AST
) -> Value | None:
    """Result of ``execute_insert``, or of ``insert_into``, which starts its job on ``execute``."""
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
        lambda t, *_: table_after(t, f"SELECT DISTINCT * FROM ({t.sql})", "distinct", columns=t.columns),
    ),
    "group_by": (_SOME, lambda t, _, args, *__: _grouped(t, columns(args))),
    "window": (range(1, 2), lambda t, name, args, *_: _windowed(t, name, args)),
    "over_window": (_SOME, lambda t, name, args, *_: _windowed(t, name, args)),
    "order_by": (_SOME, lambda t, _, args, *__: ordered(t, columns(args))),
    **dict.fromkeys(("fetch", "offset", "limit"), (range(1, 3), lambda t, name, args, *_: limited(t, name, args))),
    "alias": (_SOME, lambda t, _, args, *__: renamed(t, [text_of(arg, "the name of a column") for arg in args])),
    **dict.fromkeys(LATERAL, (range(1, 2), lambda t, name, args, *_: lateral(t, name, columns(args)[0]))),
    **dict.fromkeys(_JOINS, (range(2, 3), lambda t, name, args, _, session, __: _joined(t, name, args, session))),
    "join": (range(1, 3), lambda t, name, args, _, session, __: _joined(t, name, args, session)),
    **dict.fromkeys(("execute_insert", "insert_into"), (range(1, 3), _inserted)),
    **dict.fromkeys(
        ("execute", "to_pandas"), (range(1), lambda t, name, _, __, session, node: _executed(t, name, session, node))
    ),
}
"""The allowed numbers of arguments and the reader of each table method."""


def sink(value: Value, session: ScriptBuilder, node: ast.AST) -> Value:
    """The target of an INSERT: a path, or a table descriptor that is declared first."""
    if isinstance(value, DescriptorValue):
        return Const(descriptors.inline(value, session, node).strip("`"))
    return value


def insert(path: Value, table: TableValue, overwrite: Args, node: ast.AST) -> tuple[str, ast.AST, tuple[str, ...]]:
    sink = e.path(text_of(path, "the path of the sink"))
    if not all(isinstance(flag, Const) and isinstance(flag.value, bool) for flag in overwrite):
        raise NotRead("it is unknown if the insert overwrites")
    verb = "OVERWRITE" if any(isinstance(flag, Const) and flag.value for flag in overwrite) else "INTO"
    return f"INSERT {verb} {sink} {table.sql}", node, (*table.steps, "insert")


def _outputs(columns: Sequence[Expr], special: e.Special) -> str:
    return ", ".join(e.sql(column, special) for column in columns)


def _select(table: TableValue, columns: Sequence[Expr], session: ScriptBuilder, node: ast.AST) -> TableValue:
    validation.selected(columns)
    query = f"SELECT {_outputs(columns, lambda expr: None)} FROM {behind_from(table)}"
    if any(map(e.aggregates, columns)):
        session.note(node, validation.WITHOUT_WINDOW)
        return table_after(table, query, "aggregate", columns=named(columns, table))
    # The columns that remain in the input of a window determine its downstream operators (measured).
    step = f"select: {_outputs([_bare(column) for column in columns], lambda expr: None)}"
    return table_after(table, query, step, columns=named(columns, table))


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
        query = f"SELECT {_outputs(outputs, special)} FROM {behind_from(table)}"
        return table_after(table, query, "over", columns=named(outputs, table))
    validation.grouped(prepared, outputs)
    if any(key.kind == "alias" for key in keys):
        raise NotRead("a grouping key with an alias is not supported")
    if prepared.window is None:
        session.note(node, validation.WITHOUT_WINDOW)
        group = ", ".join(map(e.sql, keys))
        query = f"SELECT {_outputs(outputs, lambda expr: None)} FROM {behind_from(table)} GROUP BY {group}"
        return table_after(table, query, "aggregate", columns=named(outputs, table))
    window, special = e.group_window(prepared.window)
    session.window(node, prepared.window, outputs)
    alias = Expr("column", (prepared.window.alias,))
    # The position of the window among the keys has no effect (measured), so it is first.
    group = ", ".join((window, *(e.sql(key) for key in keys if key != alias)))
    query = f"SELECT {_outputs(outputs, special)} FROM {behind_from(table)} GROUP BY {group}"
    return table_after(table, query, "window", columns=named(outputs, table))


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
                raise NotRead("a name was dropped or declared again after a query of the statement set was added")
            body = "".join(f"{sql}\n;\n" for sql, _, _ in inserts.inserts)
            session.say(f"EXECUTE STATEMENT SET BEGIN\n{body}END", node, *(steps for _, steps, _ in inserts.inserts))
            inserts.inserts.clear()
            return JobResult()
    return None
