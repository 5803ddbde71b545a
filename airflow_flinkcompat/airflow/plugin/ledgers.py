"""Ledgers of the pages: those of connections of the deployment types, and those of the settings.

Airflow can list only the connections of its metadata database. Those of environment variables and secrets backends must
be listed in ``[flinkcompat] connections``. ``[flinkcompat] ledgers`` names ledgers that DAGs use directly, and the
variable ``FLINKCOMPAT_LEDGER`` one more, as for tasks.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
from airflow_flinkcompat.airflow.provider_info import CONFIG_SECTION, get_provider_info
from airflow_flinkcompat.deploy.ledger.history import Ledger, ledger_id
from airflow_flinkcompat.model.options import LEDGER_VARIABLE
from airflow_flinkcompat.secrets import mask_secrets

if TYPE_CHECKING:
    from airflow.models.connection import Connection

    from airflow_flinkcompat.deploy import LedgerEntry

_log = logging.getLogger(__name__)
# Of so many ledgers the entries stay in memory: they are read again only where there are newer ones.
_LEDGERS_KEPT = 64


class _HookOf(FlinkHook):
    """The hook of a connection that was read already: nothing is looked up by its id."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.conn_id)
        self.__dict__["connection"] = connection


@dataclass(frozen=True)
class LedgerConnection:
    """A connection that names a ledger, and its team where Airflow has teams."""

    conn_id: str
    team_name: str | None
    hook: FlinkHook


@dataclass(frozen=True)
class NamedLedger:
    """A ledger by its address, and the connections that name it."""

    uri: str
    connections: tuple[LedgerConnection, ...] = ()

    @property
    def id(self) -> str:
        """Its id in an address, stable as long as its own address is."""
        return ledger_id(self.uri)

    def open(self, deployment: str) -> Ledger:
        """The ledger of one deployment. Raises LedgerError."""
        return Ledger(self.uri, deployment)

    def entries(self, deployment: str) -> tuple[LedgerEntry, ...]:
        """Every entry of a deployment, oldest first. Raises LedgerError."""
        return _entries(self.uri, deployment, self.open(deployment).last_number())

    @property
    def _hook(self) -> FlinkHook | None:
        """The hook of its jobs; None if several connections name it, or none."""
        return self.connections[0].hook if len(self.connections) == 1 else None

    @property
    def takes_commands(self) -> bool:
        """True if its jobs are known by their Flink ids, so that Flink's own commands accept them."""
        return self._hook is not None and self._hook.names_jobs_as_flink

    def job_url(self, job_id: str | None) -> str | None:
        """The job's page in Flink's UI or the platform's console, if known without asking a target."""
        from airflow.providers.common.compat.sdk import AirflowException

        try:
            return self._hook.job_url(job_id, asking=False) or None if self._hook else None
        except AirflowException:  # the connection has no host: there is nothing to link to
            return None


@lru_cache(maxsize=_LEDGERS_KEPT)
def _entries(uri: str, deployment: str, last: int) -> tuple[LedgerEntry, ...]:
    return Ledger(uri, deployment).entries() if last else ()


@dataclass(frozen=True)
class FoundLedgers:
    """The ledgers, in order of their addresses, and what is wrong with the settings, a line each."""

    ledgers: tuple[NamedLedger, ...]
    problems: tuple[str, ...] = ()

    def by_id(self, ledger_id: str) -> NamedLedger | None:
        """The ledger of that id."""
        return next((each for each in self.ledgers if each.id == ledger_id), None)


def find_ledgers() -> FoundLedgers:
    """All ledgers that are shown."""
    from airflow.configuration import conf

    by_uri: dict[str, list[LedgerConnection]] = {}
    problems: list[str] = []
    for connection in _connections(problems):
        try:
            uri = str((connection.extra_dejson or {}).get("ledger") or "").rstrip("/")
            named = LedgerConnection(connection.conn_id, getattr(connection, "team_name", None), _HookOf(connection))
        except Exception as error:  # such as an extra that another Fernet key encrypted
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
    """Those of the metadata database, then those that the settings name."""
    from airflow.configuration import conf
    from airflow.models.connection import Connection
    from airflow.providers.common.compat.sdk import AirflowNotFoundException

    types = [str(each["connection-type"]) for each in get_provider_info()["connection-types"]]
    listed = _listed(types)
    yield from listed
    known = {each.conn_id for each in listed}
    for conn_id in conf.getlist(CONFIG_SECTION, "connections", fallback=[]) or []:
        if not conn_id or conn_id in known:  # of an empty setting Airflow 3.1 makes a list of ""
            continue
        try:
            yield Connection.get_connection_from_secrets(conn_id)
        except AirflowNotFoundException:
            problems.append(f"[{CONFIG_SECTION}] connections names {conn_id!r}, and there is no such connection")


def _listed(types: Iterable[str]) -> list[Connection]:
    from airflow.models.connection import Connection
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        wanted = select(Connection).where(Connection.conn_type.in_(list(types))).order_by(Connection.conn_id)
        found = list(session.scalars(wanted))
        session.expunge_all()
    return found
