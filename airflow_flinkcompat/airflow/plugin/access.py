"""Access rights. Airflow's auth manager decides, for the DAG that owns a deployment.

A deployment belongs to the DAGs that wrote the list's facts about it (what is in force, an open redeploy, the last
check, the last failure). It is visible to users who may read all of those that are in this Airflow. Of entries by other
DAGs they see only that they exist (:meth:`Rights.reads_entry`). A deployment without such a DAG, because the command
line or another Airflow wrote it, is visible to users who may read a connection that names its ledger: they know its
address and the credentials anyway. If no connection names the ledger, it is visible to users who may read connections.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from airflow_flinkcompat.deploy.ledger.entries import LedgerEntry
from airflow_flinkcompat.deploy.ledger.rows import DeploymentRow

if TYPE_CHECKING:
    from airflow.api_fastapi.auth.managers.base_auth_manager import BaseAuthManager
    from airflow.api_fastapi.auth.managers.models.base_user import BaseUser

    from airflow_flinkcompat.airflow.plugin.ledgers import LedgerConnection, NamedLedger
    from airflow_flinkcompat.deploy.ledger.store import LedgerError
from dataclasses import dataclass
from typing import Any, Self

_AIRFLOW = "airflow:"


@dataclass(frozen=True)
class Writer:
    """A task of a DAG run."""

    dag_id: str
    run_id: str
    task_id: str

    @classmethod
    def of(cls, owner: str) -> Self | None:
        """The task that an entry's ``owner`` names."""
        if not owner.startswith(_AIRFLOW):
            return None
        dag_id, _, rest = owner.removeprefix(_AIRFLOW).partition("/")
        run_id, _, task_id = rest.rpartition("/")
        return cls(dag_id, run_id, task_id) if dag_id and run_id and task_id else None


def deployments_of(dag_id: str, run_id: str) -> frozenset[str]:
    """Deployments that tasks of a run name, whatever their ledgers hold by now."""
    from airflow.models.renderedtifields import RenderedTaskInstanceFields
    from airflow.models.serialized_dag import SerializedDagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    rendered = select(RenderedTaskInstanceFields.rendered_fields).where(
        RenderedTaskInstanceFields.dag_id == dag_id, RenderedTaskInstanceFields.run_id == run_id
    )
    with create_session() as session:
        kept = SerializedDagModel.get(dag_id, session=session)
        dag: dict[str, Any] = ((kept.data if kept else None) or {}).get("dag", {})
        of_run = list(session.scalars(rendered))
    tasks = [task["__var"] for task in dag.get("tasks", ())]
    named = [*tasks, *(task.get("partial_kwargs", {}) for task in tasks), *of_run]
    return frozenset(name for each in named if isinstance(name := each.get("deployment"), str))


def dags_of(row: DeploymentRow | LedgerError) -> tuple[str, ...]:
    """DAGs that wrote the entries of a row, in order."""
    if not isinstance(row, DeploymentRow):
        return ()
    shown = (row.head, row.unfinished, row.pending, row.checked, row.failed)
    writers = (Writer.of(each.owner) for each in shown if each is not None)
    return tuple(sorted({each.dag_id for each in writers if each is not None}))


class Rights:
    """Rights of one user by Airflow's auth manager, evaluated once per request."""

    def __init__(self, user: BaseUser, auth_manager: BaseAuthManager[BaseUser]) -> None:
        self._user = user
        self._auth_manager = auth_manager

    @cached_property
    def _readable_dags(self) -> set[str]:
        return self._auth_manager.get_authorized_dag_ids(user=self._user, method="GET")

    @cached_property
    def _dags(self) -> set[str]:
        """All DAGs of this Airflow."""
        from airflow.models.dag import DagModel
        from airflow.utils.session import create_session
        from sqlalchemy import select

        with create_session() as session:
            return set(session.scalars(select(DagModel.dag_id)))

    def reads_dag(self, dag_id: str) -> bool:
        """True if the user may read a DAG of this Airflow."""
        return dag_id in self._readable_dags

    def known_dags(self, row: DeploymentRow | LedgerError) -> tuple[str, ...]:
        """The DAGs of this Airflow that own a deployment."""
        return tuple(dag_id for dag_id in dags_of(row) if dag_id in self._dags)

    def sees(self, ledger: NamedLedger, row: DeploymentRow | LedgerError) -> bool:
        """True if the user may see a deployment."""
        owners = self.known_dags(row)
        return all(map(self.reads_dag, owners)) if owners else self.reads_ledger(ledger)

    def reads_entry(self, entry: LedgerEntry) -> bool:
        """True if the user may read the content of an entry of a visible deployment."""
        return self.reads_owner(entry.owner)

    def reads_owner(self, owner: str) -> bool:
        """True if the user may read entries of this owner in the history of a visible deployment."""
        writer = Writer.of(owner)
        return writer is None or writer.dag_id not in self._dags or self.reads_dag(writer.dag_id)

    def reads_ledger(self, ledger: NamedLedger | None) -> bool:
        """True if the user may read the source of a ledger's address; None: it has none."""
        if ledger is None or not ledger.connections:
            return self.reads_connections
        return any(map(self.reads_connection, ledger.connections))

    def reads_connection(self, connection: LedgerConnection) -> bool:
        """True if the user may read a connection."""
        from airflow.api_fastapi.auth.managers.models.resource_details import ConnectionDetails

        # Releases without teams do not know the argument.
        team = {"team_name": connection.team_name} if connection.team_name else {}
        details = ConnectionDetails(conn_id=connection.conn_id, **team)
        return bool(self._auth_manager.is_authorized_connection(method="GET", details=details, user=self._user))

    @cached_property
    def reads_connections(self) -> bool:
        """True if the user may read connections at all."""
        return bool(self._auth_manager.is_authorized_connection(method="GET", user=self._user))
