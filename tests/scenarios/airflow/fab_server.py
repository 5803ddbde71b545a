"""Airflow's application with the FAB auth manager, its roles and users, and what each user gets of the plugin's API.

Run by ``test_fab.py`` in an environment that holds the wheel of this package and the FAB provider. It prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PASSWORD = "only-for-this-test"
ROLES = {"payments": "redeploy_orders", "shipping": "redeploy_parcels"}
USERS = {"root": "Admin", "op": "Op", "viewer": "Viewer", "ann": "payments", "bob": "shipping", "nobody": "Public"}
DAGS = ("redeploy_orders", "redeploy_parcels")


def configure(home: Path, ledger: Path) -> None:
    """Before Airflow is imported."""
    os.environ |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager",
        "AIRFLOW__API_AUTH__JWT_SECRET": "0123456789abcdef" * 4,
        "AIRFLOW_CONN_FLINK_DEFAULT": json.dumps({"conn_type": "flink", "extra": {"ledger": str(ledger)}}),
        "AIRFLOW__FLINKCOMPAT__CONNECTIONS": "flink_default",
    }
    migrate = [str(Path(sys.executable).parent / "airflow"), "db", "migrate"]
    subprocess.run(migrate, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def add_dags() -> None:
    from airflow.models.dag import DagModel
    from airflow.models.dagbundle import DagBundleModel
    from airflow.utils.session import create_session

    with create_session() as session:
        session.add(DagBundleModel(name="bundle"))
        session.flush()
        for dag_id in DAGS:
            session.add(DagModel(dag_id=dag_id, bundle_name="bundle", relative_fileloc="f.py", fileloc="f.py"))


def add_users() -> None:
    """Users of Airflow's own roles, and of roles that may read one DAG each."""
    from airflow.providers.fab.www.app import create_app

    with create_app(enable_plugins=False).app_context() as context:
        manager: Any = context.app.appbuilder.sm
        manager.sync_roles()
        for role, dag_id in ROLES.items():
            manager.add_role(role)
            manager.sync_perm_for_dag(dag_id, {role: {"can_read"}})
        for name, role in USERS.items():
            manager.add_user(name, name, "Test", f"{name}@example.org", manager.find_role(role), PASSWORD)


def asked(paths: dict[str, str]) -> dict[str, Any]:
    """What each user gets: the names of the list, and the status of each path."""
    from airflow.api_fastapi.app import create_app
    from fastapi.testclient import TestClient

    app, found = create_app("core"), {}
    for name in (*USERS, None):
        client = TestClient(app, base_url="http://localhost:8080", raise_server_exceptions=False)
        if name is not None:
            token = client.post("/auth/token", json={"username": name, "password": PASSWORD})
            client.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
        listed = client.get("/flinkcompat/api/v1/deployments")
        names = (
            [each["deployment"] for each in listed.json()["deployments"]] if listed.is_success else listed.status_code
        )
        statuses = {what: client.get(f"/flinkcompat/api/v1/{path}").status_code for what, path in paths.items()}
        found[name or "anonymous"] = {"deployments": names, **statuses}
    return found


def main() -> None:
    home, ledger = Path(sys.argv[1]), Path(sys.argv[2])
    configure(home, ledger)
    add_dags()
    add_users()
    from airflow_flinkcompat.airflow.plugin.ledgers import NamedLedger

    one = f"deployments/{NamedLedger(str(ledger)).id}/orders"
    paths = {"deployment": one, "change": f"{one}/changes/8", "run": "runs/redeploy_orders/manual__2"}
    print(json.dumps(asked(paths)))


if __name__ == "__main__":
    main()
