"""What changes the columns, the order or the number of a table's rows: as SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    Expr,
    NotRead,
    TableValue,
    Value,
)
from airflow_flinkcompat.model.text import sql_name

Args = Sequence[Value]
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


def made(table: TableValue, query: str, *steps: str, columns: tuple[str, ...] | None = None) -> TableValue:
    """A table that stands behind another one, as a query."""
    return TableValue(
        f"({query})", query=query, steps=(*table.steps, *steps), epoch=table.epoch, columns=columns
    )  # fmt: skip


def behind_from(table: TableValue) -> str:
    condition = " WHERE " + " AND ".join(f"({part})" for part in table.where) if table.where else ""
    return f"{table.source}{condition}"


def named(columns: Sequence[Expr], table: TableValue) -> tuple[str, ...] | None:
    """What a select calls its columns, "" where Flink finds a name for one; None where it is not known which."""
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
    """``union``, ``intersect``, ``minus`` and their like."""
    if name not in _SETS:
        return None
    step = "union" if name == "union_all" else name
    found = made(table, f"({table.sql}) {_SETS[name]} ({other.sql})", step, columns=table.columns)
    return replace(found, steps=(*found.steps, *other.steps, f"end of {step}"))


def ordered(table: TableValue, keys: Sequence[Expr]) -> TableValue:
    written = []
    for key in keys:
        operand, direction = key.parts if key.kind == "order" else (key, "ASC")
        written.append(f"{e.sql(operand)} {direction}")
    query = f"SELECT * FROM {behind_from(table)} ORDER BY {', '.join(written)}"
    return made(table, query, "order_by", columns=table.columns)


def limited(table: TableValue, name: str, args: Args) -> TableValue | None:
    """``fetch(n)``, ``offset(n)`` and ``limit(n, offset)``."""
    counts = [arg.value for arg in args if isinstance(arg, Const) and isinstance(arg.value, int)]
    if len(counts) != len(args) or any(count < 0 for count in counts):
        raise NotRead(f"{name} takes whole numbers that are known")
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
    # A limit right behind a sort, or behind an offset, belongs to it.
    open_ends = ("order_by",) if name == "offset" else ("order_by", "offset")
    open_end = not table.where and table.steps[-1:] and table.steps[-1] in open_ends
    start = table.query if open_end else f"SELECT * FROM {behind_from(table)}"
    return made(table, f"{start} {clause}", name, columns=table.columns)


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
                raise NotRead(f"{name} of what is no plain column of the table is not read")
    if not kept:
        raise NotRead("no column is left")
    return _projected(table, name, list(kept.values()), tuple(kept))


def renamed(table: TableValue, names: Sequence[str]) -> TableValue:
    """``alias('a', 'b')``: the first columns by other names."""
    before = table.columns or _known(table, "alias")
    if len(names) > len(before):
        raise NotRead("alias names more columns than there are")
    after = (*names, *before[len(names) :])
    if len(set(after)) < len(after):
        raise NotRead("alias names two columns alike")
    if "" in before:
        if "" in after:
            raise NotRead("alias leaves a column whose name Flink finds")
        source = f"({table.sql}) AS {sql_name('T')}({', '.join(map(sql_name, after))})"
        return made(table, f"SELECT * FROM {source}", f"alias: {', '.join(after)}", columns=tuple(after))
    written = [
        sql_name(old) + (f" AS {sql_name(new)}" if new != old else "") for old, new in zip(before, after, strict=True)
    ]
    return _projected(table, "alias", written, after)


def _known(table: TableValue, name: str) -> tuple[str, ...]:
    if table.columns is None or "" in table.columns:
        raise NotRead(f"{name} needs the columns of the table, and these are not known here")
    return table.columns


def _projected(table: TableValue, name: str, written: Sequence[str], columns: tuple[str, ...] | None) -> TableValue:
    outputs = ", ".join(written)
    return made(table, f"SELECT {outputs} FROM {behind_from(table)}", f"{name}: {outputs}", columns=columns)


# ------------------------------------------------------------------------------------------------ table functions
def lateral(table: TableValue, name: str, call: Expr) -> TableValue:
    """``join_lateral(function(col('a')).alias('b', 'c'))``."""
    match call:
        case Expr("alias", (Expr("call" | "own") as inner, str(one))):
            names: tuple[str, ...] = (one,)
        case Expr("aliases", (Expr("call" | "own") as inner, tuple(several))):
            names = several
        case _:
            raise NotRead(f"{name} takes a call of a table function with .alias(a name for each column)")
    source = f"({table.sql})" if table.where else table.source
    listed = ", ".join(map(sql_name, names))
    on = " ON TRUE" if name.startswith("left") else ""
    query = f"SELECT * FROM {source} {LATERAL[name]} LATERAL TABLE({e.sql(inner)}) AS {sql_name('T')}({listed}){on}"
    every = None if table.columns is None else (*table.columns, *names)
    return made(table, query, name, columns=every)
