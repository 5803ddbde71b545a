"""Ledgers that the pages show, and the rights of a user on deployments.

Airflow can list only the connections of its metadata database. Connections from environment variables and secrets
backends must be listed in ``[flinkcompat] connections``. ``[flinkcompat] ledgers`` lists ledgers that DAGs use
directly. The environment variable ``FLINKCOMPAT_LEDGER``, which tasks also read, adds one ledger.

A DAG owns a deployment if it wrote an entry that the list shows: the version in force, an open redeploy, the last check
or the last failure. Airflow's auth manager decides which DAGs a user may read. A deployment is visible to users who may
read every owning DAG that exists in this Airflow. If a user may not read the DAG that wrote an entry, the user sees
only that the entry exists (:meth:`Rights.reads_entry`). If the command line or a different Airflow wrote the entries,
no DAG of this Airflow owns the deployment. The deployment is then visible to users who may read a connection with its
ledger, because these users already know the ledger's address and credentials. If no connection has the ledger, the
deployment is visible to users who may read connections in general.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Self

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.provider_info import CONFIG_SECTION, get_provider_info
from airflow_flinkcompat.deploy.ledger.entries import LedgerEntry
from airflow_flinkcompat.deploy.ledger.ledger import Ledger, ledger_id
from airflow_flinkcompat.deploy.ledger.status import DeploymentRow
from airflow_flinkcompat.model.options import LEDGER_VARIABLE
from airflow_flinkcompat.secrets import mask_secrets

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.base_auth_manager import BaseAuthManager
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
    from airflow.models.connection import Connection

    from airflow_flinkcompat.deploy.ledger.store import LedgerError

_log = logging.getLogger(__name__)
# Number of ledgers whose entries stay in memory; only newer entries are then read.
_LEDGERS_KEPT = 64


class _HookOf(FlinkHook):
    """Hook of a loaded connection, which is not looked up again."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.conn_id)
        self.__dict__["connection"] = connection


@dataclass(frozen=True)
class LedgerConnection:
    """A connection with a ledger, and its team if Airflow has teams."""

    conn_id: str
    team_name: str | None
    hook: FlinkHook


@dataclass(frozen=True)
class NamedLedger:
    """The address of a ledger, and the connections that contain it."""

    uri: str
    connections: tuple[LedgerConnection, ...] = ()

    @property
    def id(self) -> str:
        """Id of the ledger in URLs, derived from its address."""
        return ledger_id(self.uri)

    def open(self, deployment: str) -> Ledger:
        return Ledger(self.uri, deployment)

    def entries(self, deployment: str) -> tuple[LedgerEntry, ...]:
        return _entries(self.uri, deployment, self.open(deployment).last_number())

    @property
    def _hook(self) -> FlinkHook | None:
        """The hook for the ledger's jobs; None unless exactly one connection contains the ledger."""
        return self.connections[0].hook if len(self.connections) == 1 else None

    @property
    def takes_commands(self) -> bool:
        """True if jobs are identified by Flink's ids, which Flink's own commands accept."""
        return self._hook is not None and self._hook.names_jobs_as_flink

    def job_url(self, job_id: str | None) -> str | None:
        """Address of the job in Flink's UI or the platform's console, if known without a query."""
        from airflow.providers.common.compat.sdk import AirflowException

        try:
            return self._hook.job_url(job_id, asking=False) or None if self._hook else None
        except AirflowException:  # the connection has no host, so there is no link
            return None


@lru_cache(maxsize=_LEDGERS_KEPT)
def _entries(uri: str, deployment: str, last: int) -> tuple[LedgerEntry, ...]:
    return Ledger(uri, deployment).entries() if last else ()


@dataclass(frozen=True)
class FoundLedgers:
    """The ledgers, sorted by address, and one line for each problem of the settings."""

    ledgers: tuple[NamedLedger, ...]
    problems: tuple[str, ...] = ()

    def by_id(self, ledger_id: str) -> NamedLedger | None:
        return next((each for each in self.ledgers if each.id == ledger_id), None)


def find_ledgers() -> FoundLedgers:
    from airflow.configuration import conf

    by_uri: dict[str, list[LedgerConnection]] = {}
    problems: list[str] = []
    for connection in _connections(problems):
        try:
            uri = str((connection.extra_dejson or {}).get("ledger") or "").rstrip("/")
            named = LedgerConnection(connection.conn_id, getattr(connection, "team_name", None), _HookOf(connection))
        except Exception as error:  # for example, the extra was encrypted with a different Fernet key
            problems.append(f"connection {connection.conn_id!r} cannot be read: {mask_secrets(str(error))}")
            continue
        if uri:
            by_uri.setdefault(uri, []).append(named)
    named_alone = conf.getlist(CONFIG_SECTION, "ledgers", fallback=[]) or []
    for uri in (*named_alone, os.environ.get(LEDGER_VARIABLE, "")):
        if uri := uri.strip().rstrip("/"):
            by_uri.setdefault(uri, [])
    return FoundLedgers(tuple(NamedLedger(uri, tuple(by_uri[uri])) for uri in sorted(by_uri)), tuple(problems))


def _connections(problems: list[str]) -> Iterator[Connection]:
    """Connections of the metadata database, and then the connections in the settings."""
    from airflow.configuration import conf
    from airflow.models.connection import Connection
    from airflow.providers.common.compat.sdk import AirflowNotFoundException

    types = [str(each["connection-type"]) for each in get_provider_info()["connection-types"]]
    listed = _listed(types)
    yield from listed
    known = {each.conn_id for each in listed}
    for conn_id in conf.getlist(CONFIG_SECTION, "connections", fallback=[]) or []:
        if not conn_id or conn_id in known:  # Airflow 3.1 reads an empty setting as [""]
            continue
        try:
            yield Connection.get_connection_from_secrets(conn_id)
        except AirflowNotFoundException:
            problems.append(f"[{CONFIG_SECTION}] connections lists {conn_id!r}, but there is no such connection")


def _listed(types: Iterable[str]) -> list[Connection]:
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        wanted = select(Connection).where(Connection.conn_type.in_(list(types))).order_by(Connection.conn_id)
        found = list(session.scalars(wanted))
        session.expunge_all()
    return found


_AIRFLOW = "airflow:"


@dataclass(frozen=True)
class Writer:
    """A task of a DAG run."""

    dag_id: str
    run_id: str
    task_id: str

    @classmethod
    def of(cls, owner: str) -> Self | None:
        if not owner.startswith(_AIRFLOW):
            return None
        dag_id, _, rest = owner.removeprefix(_AIRFLOW).partition("/")
        run_id, _, task_id = rest.rpartition("/")
        return cls(dag_id, run_id, task_id) if dag_id and run_id and task_id else None


def deployments_of(dag_id: str, run_id: str) -> frozenset[str]:
    """Deployments of the tasks of a run, regardless of the ledgers' content."""
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    rendered = select(RenderedTaskInstanceFields.rendered_fields).where(
        RenderedTaskInstanceFields.dag_id == dag_id, RenderedTaskInstanceFields.run_id == run_id
    )
    with create_session() as session:
        stored = SerializedDagModel.get(dag_id, session=session)
        dag: dict[str, Any] = ((stored.data if stored else None) or {}).get("dag", {})
        of_run = list(session.scalars(rendered))
    tasks = [task["__var"] for task in dag.get("tasks", ())]
    named = [*tasks, *(task.get("partial_kwargs", {}) for task in tasks), *of_run]
    return frozenset(name for each in named if isinstance(name := each.get("deployment"), str))


def dags_of(row: DeploymentRow | LedgerError) -> tuple[str, ...]:
    """Sorted ids of the DAGs that wrote the entries of a row."""
    if not isinstance(row, DeploymentRow):
        return ()
    summaries = (row.head, row.unfinished, row.pending, row.checked, row.failed)
    writers = (Writer.of(each.owner) for each in summaries if each is not None)
    return tuple(sorted({each.dag_id for each in writers if each is not None}))


class Rights:
    """Rights of one user according to Airflow's auth manager, evaluated once per request."""

    def __init__(self, user: BaseUser, auth_manager: BaseAuthManager[BaseUser]) -> None:
        self._user = user
        self._auth_manager = auth_manager

    @cached_property
    def _readable_dags(self) -> set[str]:
        return self._auth_manager.get_authorized_dag_ids(user=self._user, method="GET")

    @cached_property
    def _dags(self) -> set[str]:
        from airflow.models.dag import DagModel
        from airflow.utils.session import create_session
        from sqlalchemy import select

        with create_session() as session:
            return set(session.scalars(select(DagModel.dag_id)))

    def reads_dag(self, dag_id: str) -> bool:
        return dag_id in self._readable_dags

    def known_dags(self, row: DeploymentRow | LedgerError) -> tuple[str, ...]:
        return tuple(dag_id for dag_id in dags_of(row) if dag_id in self._dags)

    def sees(self, ledger: NamedLedger, row: DeploymentRow | LedgerError) -> bool:
        owners = self.known_dags(row)
        return all(map(self.reads_dag, owners)) if owners else self.reads_ledger(ledger)

    def reads_entry(self, entry: LedgerEntry) -> bool:
        """True if the user may read the content of an entry of a visible deployment."""
        return self.reads_owner(entry.owner)

    def reads_owner(self, owner: str) -> bool:
        """True if the user may read the entries that ``owner`` wrote in a visible deployment's history."""
        writer = Writer.of(owner)
        return writer is None or writer.dag_id not in self._dags or self.reads_dag(writer.dag_id)

    def reads_ledger(self, ledger: NamedLedger | None) -> bool:
        """True if the user may read a connection with the ledger, or all connections if there is none."""
        if ledger is None or not ledger.connections:
            return self.reads_connections
        return any(map(self.reads_connection, ledger.connections))

    def reads_connection(self, connection: LedgerConnection) -> bool:
        from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails

        # Releases without teams do not know the argument.
        team = {"team_name": connection.team_name} if connection.team_name else {}
        details = ConnectionDetails(conn_id=connection.conn_id, **team)
        return bool(self._auth_manager.is_authorized_connection(method="GET", details=details, user=self._user))

    @cached_property
    def reads_connections(self) -> bool:
        return bool(self._auth_manager.is_authorized_connection(method="GET", user=self._user))
