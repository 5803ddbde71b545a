"""What is no table of a program: rows it holds itself, and DataStreams, each one source or sink not looked into.

Rows that stand in the program are a table with a connector of its own and a digest of the rows as an option. Any other
rows, and DataStreams, are tables that nobody declares, and the script says a digest of all the program: what they keep
is not known, so a change of anything is an unknown one.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping, Sequence

from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Const,
    Container,
    Expr,
    JobResult,
    SchemaValue,
    Stream,
    TableValue,
    Type,
    Value,
)
from airflow_flinkcompat.model.text import sql_name, sql_text

Args = Sequence[Value]
BEGINS = (
    "from_collection", "from_source", "add_source", "read_text_file", "create_input", "from_elements",
    "generate_sequence",
)  # fmt: skip
"""What begins a DataStream."""
FROM_ELSEWHERE = ("from_data_stream", "from_changelog_stream", "from_pandas", "from_elements", "from_collection")
"""What makes a table of rows that come from no table."""
TO_STREAMS = ("to_data_stream", "to_changelog_stream", "to_append_stream", "to_retract_stream")
"""What makes a DataStream of a table."""
_ROWS = ("from_elements", "from_collection")
_TYPES = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "STRING"}
_NOT_KNOWN = "{} is one opaque {}: what is kept of it is not known, and any change of it is an unknown one"


def stream(session: ScriptBuilder, node: ast.AST) -> Stream:
    """A DataStream begins here."""
    session.streams = session.opaque = True
    session.note(node, _NOT_KNOWN.format("a DataStream", "part of the job"))
    return Stream()


def from_elsewhere(
    name: str, args: Args, names: Mapping[str, Value], session: ScriptBuilder, node: ast.AST
) -> TableValue:
    """A table of rows that come from no table; where these and their types are known, it is declared with them."""
    given = [*args, *names.values()]
    schema = next((each for each in given[1:] if isinstance(each, SchemaValue | Type | Container)), None)
    columns, types = _columns(schema, given)
    if not columns and all(isinstance(each, Expr) and each.kind in ("column", "alias") for each in given[1:]):
        columns = tuple(str(each.parts[-1]) for each in given[1:] if isinstance(each, Expr))
    rows = _rows(given) if name in _ROWS and types else ""
    path = _path("elements" if name in _ROWS else "pandas" if name == "from_pandas" else "stream", session)
    if rows:
        listed = ", ".join(f"{sql_name(column)} {type}" for column, type in zip(columns, types, strict=True))
        options = f"'connector' = 'rows of the program', 'rows' = {sql_text(rows)}"
        session.say(f"CREATE TEMPORARY TABLE {path} ({listed}) WITH ({options})", node)
    else:
        session.opaque = True
        session.note(node, _NOT_KNOWN.format(f"what {name} gives", "source"))
    return TableValue(path, steps=(name,), epoch=session.epoch, columns=columns or None)


def to_stream(name: str, table: TableValue, session: ScriptBuilder, node: ast.AST) -> Stream:
    """The rows of a table as a DataStream: its query is read, what is done with the rows is one opaque sink."""
    session.say(f"INSERT INTO {_path('stream', session)} {table.sql}", node, (*table.steps, name))
    return stream(session, node)


def executed(session: ScriptBuilder, node: ast.AST) -> Value:
    """The DataStreams of the program are started: from one opaque source into one opaque sink."""
    source, sink = _path("stream", session), _path("stream", session)
    session.say(f"INSERT INTO {sink} SELECT * FROM {source}", node, ("execute",))
    return JobResult()


def _path(kind: str, session: ScriptBuilder) -> str:
    """The path of a table that stands for rows from elsewhere, which nobody else names."""
    session.sources += 1
    return sql_name(f"{kind}_{session.sources}")


def _columns(schema: Value | None, given: Args) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the columns and their types, as far as either is known."""
    match schema:
        case SchemaValue(lines, columns):
            plain = [line.removeprefix(f"{sql_name(name)} ") for line, name in zip(lines, columns, strict=False)]
            stored = len(lines) == len(columns) and not any(line.startswith("AS ") for line in plain)
            return columns, tuple(plain) if stored else ()
        case Type(fields=fields) if fields:
            return tuple(name for name, _ in fields), tuple(type for _, type in fields)
        case Container(list(inner), ""):
            names = [each.value for each in inner if isinstance(each, Const) and isinstance(each.value, str)]
            if len(names) == len(inner) and schema is not given[0]:
                return tuple(names), _inferred(given[0], len(names))
    return (), ()


def _inferred(rows: Value, width: int) -> tuple[str, ...]:
    """The types of columns, where the values of each are of one plain type in all rows; none where they are not."""
    listed = [_items(row) for row in _items(rows)]
    if not listed or any(len(row) != width for row in listed):
        return ()
    found = []
    for column in zip(*listed, strict=True):
        types = {type(each.value) if isinstance(each, Const) else None for each in column}
        (one, *others) = types
        if others or one not in _TYPES:
            return ()
        found.append(_TYPES[one])
    return tuple(found)


def _items(value: Value) -> list[Value]:
    return value.value if isinstance(value, Container) and isinstance(value.value, list) and not value.broken else []


def _rows(given: Args) -> str:
    """A digest of rows that the program holds as they are; empty where one of them is not known."""
    written = _written(given[0]) if given else ""
    if not written:
        return ""
    return hashlib.sha256(
        f"{written} {[_written(each) or type(each).__name__ for each in given[1:]]}".encode()
    ).hexdigest()[:16]


def _written(value: Value) -> str:
    match value:
        case Const(given):
            return repr(given)
        case Type(sql):
            return sql
        case Container(list(inner), "", kind) if kind in ("list", "tuple"):
            parts = [_written(each) for each in inner]
            return f"{kind}({', '.join(parts)})" if all(parts) else ""
    return ""
