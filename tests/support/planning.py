"""Plans many scripts through one SQL Gateway: several sessions, each declaring only what it does not know yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from uuid import uuid4

from airflow_flinkcompat.deploy.flink.gateway import GatewayError, Session, SqlGateway
from airflow_flinkcompat.deploy.flink.statements import Role, planned_sql, role
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, read_plan
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.sql import parse_script

_DECLARED = re.compile(r"CREATE\s+(TEMPORARY\s+)?(TABLE|VIEW)\s+`?(\w+)`?", re.IGNORECASE)
Planned = tuple[str, ...] | GatewayError
"""The texts of a script's compiled plans, or why Flink does not take the script."""


class Planner:
    """Compiles scripts that declare tables and views and set nothing but what is passed as ``settings``."""

    def __init__(self, gateway: SqlGateway, folder: Path) -> None:
        self._gateway = gateway
        self._folder = folder

    def plan(self, scripts: Iterable[tuple[str, Mapping[str, str]]], sessions: int = 2) -> list[Planned]:
        """For every script and its settings the plans, in order."""
        work = list(scripts)
        idle: SimpleQueue[_Session] = SimpleQueue()
        with ThreadPoolExecutor(sessions) as pool:
            contexts = [self._gateway.session() for _ in range(sessions)]
            try:
                for context in contexts:
                    idle.put(_Session(context.__enter__(), self._folder))

                def one(script: tuple[str, Mapping[str, str]]) -> Planned:
                    session = idle.get()
                    try:
                        return session.plan(*script)
                    except GatewayError as error:
                        return error
                    finally:
                        idle.put(session)

                return list(pool.map(one, work))
            finally:
                for context in contexts:
                    context.__exit__(None, None, None)


class _Session:
    def __init__(self, session: Session, folder: Path) -> None:
        self._session = session
        self._folder = folder
        self._declared: dict[str, tuple[str, str]] = {}

    def plan(self, script: str, settings: Mapping[str, str]) -> tuple[str, ...]:
        plans = []
        for statement in parse_script(script).statements:
            match role(statement):
                case Role.JOB:
                    plans.append(self._compiled(planned_sql(statement), settings))
                case Role.SETUP:
                    self._declare(statement.text)
                case Role.QUERY:
                    raise AssertionError("a bare query has no plan of its own here")
        return tuple(plans)

    def _declare(self, text: str) -> None:
        match = _DECLARED.match(text)
        assert match, text
        temporary, kind, name = match.groups()
        known = self._declared.get(name)
        if known == (kind, text):
            return
        if known is not None:
            self._session.execute(f"DROP {temporary or ''} {known[0]} `{name}`")
            del self._declared[name]
        self._session.execute(text)
        self._declared[name] = (kind, text)

    def _compiled(self, sql: str, settings: Mapping[str, str]) -> str:
        file = self._folder / f"{uuid4().hex}.json"
        config = {**settings, "table.plan.compile.catalog-objects": "SCHEMA"}
        self._session.execute(f"COMPILE PLAN '{file.as_uri()}' FOR {sql}", config)
        text = file.read_text(encoding="utf-8")
        file.unlink()
        return text


def read(planned: Planned) -> tuple[CompiledPlan, ...]:
    """The plans of a script that Flink took."""
    assert not isinstance(planned, GatewayError), planned
    return tuple(map(read_plan, planned))


@contextmanager
def local_planner(folder: Path, jars: Sequence[Path] = ()) -> Iterator[Planner]:
    """A planner of its own: the SQL Gateway alone, without a cluster; ``jars`` hold connectors."""
    (folder / "plans").mkdir(parents=True)
    with (
        LocalFlink(folder / "client", gateway_only=True, extra_jars=jars) as client,
        SqlGateway(client.gateway_url) as gateway,
    ):
        yield Planner(gateway, folder / "plans")
