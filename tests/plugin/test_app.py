"""The API in Airflow's own application: who is let in, who sees what, and what stands beside each answer."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Server

pytestmark = pytest.mark.slow


def names(server: Server, user: str, **params: object) -> list[str]:
    return [each["deployment"] for each in server.get(user, "deployments", **params)["deployments"]]


def test_each_user_sees_the_deployments_whose_dags_they_may_read(server: Server) -> None:
    assert names(server, "root") == ["by-hand", "elsewhere", "orders", "parcels", "shared"]
    assert names(server, "ann") == ["orders", "shared"]
    assert names(server, "bob") == ["parcels", "shared"]
    # May read connections, and no DAG of a team.
    assert names(server, "op") == ["by-hand", "elsewhere", "shared"]
