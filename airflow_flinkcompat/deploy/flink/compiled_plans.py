"""Compiled plans of a script's jobs, from Flink's planner in a SQL Gateway, without a job start.

The Gateway writes each plan to a folder (``COMPILE PLAN``). This process then reads the plan and deletes the file.
The script's other statements run in a separate session, but their DDL changes permanent catalogs. Plans contain no
table options and so no secrets. The script supplies the options that decide if a source is append-only.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx
from upath import UPath

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.connectors.artifacts import artifacts
from airflow_flinkcompat.deploy.errors import PlansUnavailable, TargetError
from airflow_flinkcompat.deploy.flink.gateway import ScriptRunner, Session, SqlGateway
from airflow_flinkcompat.deploy.flink.rest import is_loopback
from airflow_flinkcompat.deploy.flink.statements import Role, planned_sql, role
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, PlanError, read_plan
from airflow_flinkcompat.exec_graph.from_compiled import QUERY_SINK
from airflow_flinkcompat.model.text import sql_name
from airflow_flinkcompat.plan.nodes import Scan
from airflow_flinkcompat.sql import Statement, parse_script

_CONFIG = {"table.plan.compile.catalog-objects": "SCHEMA"}
_VIEW = f"{QUERY_SINK}_view"
_APPEND_ONLY_OPTIONS = ("connector", "format", "value.format")
_TIME_ATTRIBUTES = (" *ROWTIME*", " *PROCTIME*")


_NO_FACTORY = re.compile(r"Could not find any [\w ]*factor\w+ (?:for identifier '([^']+)'|[\w ]*url '(jdbc:\w+))")


def compile_plans(
    gateway: SqlGateway, runner: ScriptRunner, side: Side, folder: str | None
) -> tuple[CompiledPlan, ...]:
    """Compile every job of a script: one plan for each INSERT, statement set and bare query.

    The Gateway and this machine share ``folder``. If ``folder`` is None, a temporary folder is created, for a Gateway
    on this machine. The plans are returned in the order of the script. Raises PlansUnavailable (the folder is not
    shared, or a connector is missing), TargetError (a statement was refused), ScriptRefused, GatewayError.
    """
    catalog = parse_script(side.catalog, "<catalog>").statements if side.catalog.strip() else ()
    options = options_of_tables(side)
    widths = {pipeline.span: len(pipeline.sink.schema) for pipeline in side.program.pipelines}
    plans: list[CompiledPlan] = []
    with (
        _naming_jars(side.version),
        _shared(gateway, folder) as place,
        gateway.session(runner.settings(side.settings)) as session,
    ):
        for statement in (*catalog, *side.parsed.statements):
            match role(statement):
                case Role.SETUP:
                    _run(runner, session, statement, statement.text)
                case Role.JOB:
                    plans.append(_compile_job(runner, session, statement, planned_sql(statement), place, options))
                case Role.QUERY:
                    _create_query_sink(runner, session, statement, widths.get(statement.span, 0))
                    insert = f"INSERT INTO `{QUERY_SINK}` {statement.text}"
                    plans.append(_compile_job(runner, session, statement, insert, place, options))
    return tuple(plans)


def _run(
    runner: ScriptRunner, session: Session, statement: Statement, sql: str, prefix: int = 0
) -> list[tuple[str, ...]]:
    return [tuple(map(str, row)) for row in runner.run(session, statement, sql, _CONFIG, prefix=prefix).rows]


@contextmanager
def _naming_jars(line: str) -> Iterator[None]:
    """Add the names of the missing jar and its folder to errors about a missing connector or function."""
    try:
        yield
    except TargetError as error:
        found = _NO_FACTORY.search(str(error))
        if found is None and "ClassNotFoundException" not in str(error):
            raise
        jars = artifacts(found[1] or found[2], line) if found else ()
        named = f"{' and '.join(jars)} (Maven coordinates)" if jars else "the jar that contains it"
        remedy = "Put the jar into the lib folder of the SQL Gateway's Flink, and restart the Gateway"
        raise PlansUnavailable(f"{error}. Flink {line}, which plans the script, lacks {named}. {remedy}") from None


Options = Mapping[str, Mapping[str, str]]


def options_of_tables(side: Side) -> Options:
    """Connector and format options by table name, for tables declared once and used without hints."""
    counted = Counter(table.path[2] for table in side.program.tables)
    sinks = (pipeline.sink for pipeline in side.program.pipelines)
    hinted = {node.table.path[2] for sink in sinks for node in sink.nodes if isinstance(node, Scan) and node.hints}
    return {
        table.path[2]: {key: value for key, value in table.options if key in _APPEND_ONLY_OPTIONS}
        for table in side.program.tables
        if counted[table.path[2]] == 1 and table.path[2] not in hinted
    }


def give_options(plan: CompiledPlan, options: Options) -> None:
    """Add the table options that decide if a source is append-only, because plans lack table options."""
    for node in plan.nodes:
        table = node.config.get("scanTableSource", {}).get("table", {})
        resolved = table.get("resolvedTable")
        if resolved is not None and "options" not in resolved:
            resolved["options"] = options.get(table["identifier"].rpartition(".")[2].strip("`"), {})


def _compile_job(
    runner: ScriptRunner, session: Session, statement: Statement, sql: str, folder: str, options: Options
) -> CompiledPlan:
    file = UPath(folder) / f"flinkcompat-{uuid.uuid4().hex}.json"
    uri = file.as_uri() if file.protocol in ("", "file") else str(file)
    head = f"COMPILE PLAN '{uri.replace(chr(39), chr(39) * 2)}' FOR "
    try:
        _run(runner, session, statement, head + sql, prefix=len(head) + len(sql) - len(statement.text))
        plan = read_plan(file.read_text(encoding="utf-8"))
        give_options(plan, options)
        return plan
    except FileNotFoundError:
        raise PlansUnavailable(
            f"the SQL Gateway wrote a compiled plan to {folder}, but this machine cannot read that folder. Name a "
            "folder that both can access (--plan-dir, plan_dir)"
        ) from None
    except OSError as error:
        raise PlansUnavailable(f"the compiled plan in {folder} cannot be read: {error}") from None
    except PlanError as error:
        raise PlansUnavailable(f"{statement.span}: {error}") from None
    finally:
        with contextlib.suppress(OSError):
            file.unlink()


def _create_query_sink(runner: ScriptRunner, session: Session, query: Statement, width: int) -> None:
    """Create a sink for a query without INSERT; ``width`` is its number of columns, or 0 if unknown."""
    for kind, name in (("TABLE", QUERY_SINK), ("VIEW", _VIEW)):  # left by the script's previous query
        _run(runner, session, query, f"DROP TEMPORARY {kind} IF EXISTS `{name}`")
    renamed = f" ({', '.join(f'c{i}' for i in range(width))})" if width else ""
    for names in dict.fromkeys(("", renamed)):
        head = f"CREATE TEMPORARY VIEW `{_VIEW}`{names} AS "
        try:
            _run(runner, session, query, head + query.text, prefix=len(head))
            break
        except TargetError as error:
            if names == renamed or "column with the same name" not in str(error):
                raise PlansUnavailable(f"{error} (a bare query is planned as a view)") from None
    columns = []
    for name, kind, *_ in _run(runner, session, query, f"DESCRIBE `{_VIEW}`"):
        for attribute in _TIME_ATTRIBUTES:
            kind = kind.replace(attribute, "")
        columns.append(f"{sql_name(name)} {kind}")
    _run(
        runner,
        session,
        query,
        f"CREATE TEMPORARY TABLE `{QUERY_SINK}` ({', '.join(columns)}) WITH ('connector' = 'blackhole')",
    )


@contextmanager
def _shared(gateway: SqlGateway, folder: str | None) -> Iterator[str]:
    if folder is not None:
        yield folder
        return
    if not is_loopback(httpx.URL(gateway.endpoint.url).host):
        raise PlansUnavailable(
            f"the SQL Gateway at {gateway.endpoint.place} writes compiled plans to a folder. Name a folder that the "
            "Gateway and this machine can both access (--plan-dir, plan_dir)"
        )
    with tempfile.TemporaryDirectory(prefix="flinkcompat-plans-") as folder:
        yield folder
