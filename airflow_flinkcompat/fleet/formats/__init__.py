"""How a fleet's reviews are shown: one small renderer for each format, all of one value."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow_flinkcompat.fleet.formats.document import render_json
from airflow_flinkcompat.fleet.formats.people import render_fleet_markdown, render_fleet_text
from airflow_flinkcompat.fleet.formats.sarif import render_sarif
from airflow_flinkcompat.fleet.formats.services import render_github, render_gitlab, render_junit
from airflow_flinkcompat.fleet.values import FleetDiff

__all__ = ["FORMATS"]

FORMATS: Mapping[str, Callable[[FleetDiff], str]] = {
    "text": render_fleet_text,
    "markdown": render_fleet_markdown,
    "json": render_json,
    "sarif": render_sarif,
    "junit": render_junit,
    "github": render_github,
    "gitlab": render_gitlab,
}
"""What renders each format; every text ends in a line break, and secrets are masked."""
