"""Rights without an Airflow: what the auth manager would say is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_flinkcompat.airflow.plugin.ledgers import Rights


class _AuthManager:
    def __init__(self, readable: Iterable[str], connections: bool) -> None:
        self.readable, self.connections = set(readable), connections

    def get_authorized_dag_ids(self, **_: Any) -> set[str]:
        return self.readable

    def is_authorized_connection(self, **_: Any) -> bool:
        return self.connections


class OnlyDags(Rights):
    """A user who may read some DAGs of an Airflow."""

    def __init__(self, dags: Iterable[str], readable: Iterable[str], *, connections: bool = False) -> None:
        super().__init__(None, _AuthManager(readable, connections))  # type: ignore[arg-type]
        self.__dict__["_dags"] = set(dags)
