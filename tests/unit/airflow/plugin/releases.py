"""What differs between the releases of Airflow that pages are tested on."""

from __future__ import annotations

import importlib.metadata

from airflow import plugins_manager

KNOWS_TEAMS = importlib.metadata.version("apache-airflow") >= "3.2"
"""Whether the simple auth manager has users of teams."""


def forget_plugins() -> None:
    """Let Airflow look for its plugins anew."""
    if hasattr(plugins_manager, "_get_plugins"):
        for cached in ("_get_plugins", "_get_ui_plugins", "get_fastapi_plugins"):
            getattr(plugins_manager, cached).cache_clear()
        return
    for name in ("plugins", "external_views", "react_apps", "fastapi_apps", "fastapi_root_middlewares"):
        setattr(plugins_manager, name, None)  # 3.1 keeps them so
    plugins_manager.loaded_plugins.clear()
