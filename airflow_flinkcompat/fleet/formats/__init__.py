"""Renderers of a fleet's reviews: one small module for each format, all from one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from airflow_flinkcompat.fleet.values import FleetDiff

__all__ = ["FORMATS"]


def _renderer(module: str, name: str) -> Callable[[FleetDiff], str]:
    """The renderer of that name, whose module is imported when it is called."""
    return lambda fleet: str(getattr(import_module(f"{__name__}.{module}"), name)(fleet))


FORMATS: Mapping[str, Callable[[FleetDiff], str]] = {
    "text": _renderer("people", "render_fleet_text"),
    "markdown": _renderer("people", "render_fleet_markdown"),
    "json": _renderer("document", "render_json"),
    "sarif": _renderer("sarif", "render_sarif"),
    "junit": _renderer("services", "render_junit"),
    "github": _renderer("services", "render_github"),
    "gitlab": _renderer("services", "render_gitlab"),
}
"""Renderers by format; every text ends in a line break, and secrets are masked."""
