"""Statement sets: several INSERTs that are one job."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from airflow_flinkcompat.frontends.table_api import table_calls as r
from airflow_flinkcompat.frontends.table_api.arguments import table_of
from airflow_flinkcompat.frontends.table_api.session import ScriptBuilder
from airflow_flinkcompat.frontends.table_api.values import (
    Inserts,
    JobResult,
    NotRead,
    TablePipeline,
    Value,
)

Args = Sequence[Value]
Names = Mapping[str, Value]


def method(
    inserts: Inserts, name: str, args: Args, names: Names, session: ScriptBuilder, node: ast.AST
) -> Value | None:
    match name, len(args):
        case "add_insert", (2 | 3):
            table = table_of(args[1], session)
            sql, _, steps = r.insert(r.sink(args[0], session, node), table, [*args[2:], *names.values()], node)
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
