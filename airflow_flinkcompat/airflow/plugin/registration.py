"""Registration of the plugin's pages (entry point ``airflow.plugins``).

Every Airflow process imports this module, including processes that parse and run DAGs. The application is created only
when the API server requests it.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from airflow.providers.common.compat.sdk import AirflowPlugin

from airflow_flinkcompat.airflow.links import PAGE_ROUTE, path_of_airflow

PREFIX = "/flinkcompat"
"""Path at which Airflow mounts the application."""
BUNDLE = "main.umd.js"
"""File of the React bundle, which sets a component on ``globalThis`` for each of the ``react_apps``."""


def react_apps(path_of_airflow: str) -> list[dict[str, Any]]:
    bundle_url = f"{path_of_airflow}{PREFIX}/static/{BUNDLE}"
    places = [
        ("Flink", "nav", PAGE_ROUTE),
        ("Flink change", "dag_run", "flink_change"),
        ("Flink change", "task_instance", "flink_change_task"),
        ("Flink overview", "dashboard", "flink_overview"),
    ]
    return [
        {
            "name": name,
            "bundle_url": bundle_url,
            "destination": destination,
            "url_route": url_route,
            **({"nav_top_level": True} if destination == "nav" else {}),
        }
        for name, destination, url_route in places
    ]


class FlinkcompatPlugin(AirflowPlugin):
    """Plugin with the pages of Flink deployments: a FastAPI application and a bundle in four UI places."""

    name = "flinkcompat"

    @cached_property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The FastAPI application, which only the API server requests."""
        from airflow_flinkcompat.airflow.plugin.app import create_app

        return [{"app": create_app(), "url_prefix": PREFIX, "name": "Flink deployments"}]

    @cached_property
    def react_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The bundle in four places of the UI."""
        return react_apps(path_of_airflow())
