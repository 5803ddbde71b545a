"""Airflow's own API server application, in this process, with the plugin in it and users of several kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from airflow_flinkcompat.airflow.operators import FlinkSqlApprovalOperator
from tests.support.airflow.plugin.ledgers import fill_interrupted, fill_orders, fill_rejected
from tests.unit.airflow.plugin.auth_without_teams import DAGS
from tests.unit.airflow.plugin.releases import KNOWS_TEAMS, forget_plugins

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.testclient import TestClient

USERS = {"root": "admin", "op": "op", "ann": "viewer:payments", "bob": "viewer:shipping"}


@dataclass(frozen=True)
class Server:
    """The application, and its ledgers: one that a connection names, and one of the settings."""

    app: FastAPI
    named: Path
    unnamed: Path
    home: Path

    def client(self, user: str | None) -> TestClient:
        """A browser that this user is signed in with; None: nobody is."""
        from airflow.api_fastapi.app import get_auth_manager
        from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
        from fastapi.testclient import TestClient

        client = TestClient(self.app, base_url="http://localhost:8080", raise_server_exceptions=False)
        if user is not None:
            role, _, team = USERS[user].partition(":")
            teams = {"teams": [team] if team else []} if KNOWS_TEAMS else {}
            one = SimpleAuthManagerUser(username=user, role=role, **teams)
            client.headers["Authorization"] = f"Bearer {get_auth_manager().generate_jwt(one)}"
        return client

    def get(self, user: str | None, path: str, **params: Any) -> Any:
        """What a user gets of the API, where it is an answer."""
        found = self.client(user).get(f"/flinkcompat/api/v1/{path}", params=params)
        assert found.status_code == 200, found.text
        return found.json()

    @contextmanager
    def add_connection(self, conn_id: str, conn_type: str, extra: dict[str, Any]) -> Iterator[None]:
        """A connection in Airflow's database."""
        from airflow import settings
        from airflow.models.connection import Connection

        connection = Connection(conn_id=conn_id, conn_type=conn_type, host="host", extra=json.dumps(extra))
        with settings.Session() as session:
            session.add(connection)
            session.commit()
        try:
            yield
        finally:
            with settings.Session() as session:
                session.delete(connection)
                session.commit()

    @contextmanager
    def airflow_knows(self, dag_id: str, run_id: str, deployment: str, rendered: str) -> Iterator[None]:
        """A DAG with one gate, as Airflow keeps it, and a run of it that asks."""
        from airflow import settings
        from airflow.models.dag_version import DagVersion
        from airflow.models.renderedtifields import RenderedTaskInstanceFields
        from airflow.models.serialized_dag import SerializedDagModel
        from airflow.sdk import DAG
        from airflow.serialization.serialized_objects import LazyDeserializedDAG
        from sqlalchemy import delete, insert

        with DAG(dag_id, schedule=None) as dag:
            branches = {"resume": "resume", "restart": "restart"}
            FlinkSqlApprovalOperator(task_id="approve", deployment=deployment, branches=branches)
        fields = {"deployment": rendered, "body": ""}
        row = {"dag_id": dag_id, "run_id": run_id, "task_id": "approve", "map_index": -1, "rendered_fields": fields}
        SerializedDagModel.write_dag(LazyDeserializedDAG.from_dag(dag), bundle_name=f"bundle_{DAGS[dag_id]}")
        with settings.Session() as session:
            session.execute(insert(RenderedTaskInstanceFields).values(row))
            session.commit()
        try:
            yield
        finally:
            with settings.Session() as session:
                for model in (RenderedTaskInstanceFields, SerializedDagModel, DagVersion):
                    session.execute(delete(model).where(model.dag_id == dag_id))
                session.commit()


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("pages")
    named, unnamed = home / "ledger", home / "unnamed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__CORE__MULTI_TEAM", str(KNOWS_TEAMS))
        users = USERS if KNOWS_TEAMS else {name: role.partition(":")[0] for name, role in USERS.items()}
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", ",".join(f"{n}:{r}" for n, r in users.items()))
        if not KNOWS_TEAMS:
            patch.setenv("AIRFLOW__CORE__AUTH_MANAGER", "tests.unit.airflow.plugin.auth_without_teams.AuthManagerByDag")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(home / "passwords.json"))
        patch.setenv("AIRFLOW__FLINKCOMPAT__LEDGERS", str(unnamed))
        patch.delenv("FLINKCOMPAT_LEDGER", raising=False)
        yield from _served(home, named, unnamed, patch)


def _served(home: Path, named: Path, unnamed: Path, patch: pytest.MonkeyPatch) -> Iterator[Server]:
    from airflow import settings
    from airflow.api_fastapi.app import create_app, purge_cached_app
    from airflow.models import import_all_models
    from airflow.models.base import Base
    from sqlalchemy import create_engine
    from sqlalchemy.orm import scoped_session, sessionmaker

    engine = create_engine(f"sqlite:///{home / 'airflow.db'}", connect_args={"check_same_thread": False})
    sessions = scoped_session(sessionmaker(autocommit=False, autoflush=False, bind=engine, expire_on_commit=False))
    patch.setattr(settings, "engine", engine)
    patch.setattr(settings, "Session", sessions)
    import_all_models()
    Base.metadata.create_all(engine)
    _fill_database(sessions, named)
    fill_orders(named)
    fill_rejected(named, "redeploy_parcels", "parcels")
    fill_interrupted(named, "redeploy_shared", "shared")
    fill_rejected(named, None, "by-hand")
    (named / "damaged").mkdir()
    (named / "damaged" / "000001.json").write_text('{"number": 1}')
    fill_rejected(unnamed, "dag_of_another_airflow", "elsewhere")
    forget_plugins()
    purge_cached_app()
    try:
        yield Server(create_app("core"), named, unnamed, home)
    finally:
        purge_cached_app()
        forget_plugins()
        sessions.remove()
        engine.dispose()


def _team(name: str) -> Any:
    from airflow.models.team import Team

    return Team(name=name) if KNOWS_TEAMS else Team(id=str(uuid4()), name=name)


def _fill_database(sessions: Any, named: Path) -> None:
    """DAGs of two teams and of none, and the connection that names the ledger."""
    from airflow.models.connection import Connection
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel

    with sessions() as session:
        teams = {team: _team(team) for team in filter(None, DAGS.values())}
        session.add_all(teams.values())
        for dag_id, team in DAGS.items():
            bundle = DagBundleModel(name=f"bundle_{team}")
            if team:
                bundle.teams.append(teams[team])
            session.add(bundle)
            session.flush()
            session.add(DagModel(dag_id=dag_id, bundle_name=bundle.name, relative_fileloc="f.py", fileloc="f.py"))
        extra = {"ledger": str(named), "jobmanager_url": "http://flink:8081", "ui_url": "https://ui.example.org/flink"}
        session.add(Connection(conn_id="flink_default", conn_type="flink", host="gateway", extra=extra))
        session.commit()
