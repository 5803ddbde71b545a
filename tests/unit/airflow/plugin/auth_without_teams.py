"""Rights by DAG on releases whose simple auth manager knows no teams: the same users read the same DAGs."""

from __future__ import annotations

from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

DAGS = {"redeploy_orders": "payments", "redeploy_parcels": "shipping", "redeploy_shared": None}
TEAMS = {"ann": "payments", "bob": "shipping"}


class AuthManagerByDag(SimpleAuthManager):
    """The simple auth manager, which asks for the team of a DAG beside the role, as it does itself from 3.2 on."""

    def is_authorized_dag(self, *, user: Any, details: Any = None, **asked: Any) -> bool:
        if not super().is_authorized_dag(user=user, details=details, **asked):
            return False
        team = DAGS.get(details.id) if details is not None else None
        return team is None or user.get_role() == "admin" or TEAMS.get(user.get_id()) == team
