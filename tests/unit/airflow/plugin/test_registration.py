"""What Airflow is told of the pages."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from airflow.plugins_manager import ensure_plugins_loaded, is_valid_plugin

from airflow_flinkcompat.airflow.plugin.registration import FlinkcompatPlugin, react_apps

REPOSITORY = Path(__file__).parents[4]


def test_the_entry_point_names_a_plugin() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["airflow.plugins"]["flinkcompat"].partition(":")
    assert getattr(import_module(module), name) is FlinkcompatPlugin
    ensure_plugins_loaded()  # 3.1 asks whether it is among them
    assert is_valid_plugin(FlinkcompatPlugin)


def test_the_bundle_is_found_below_the_path_of_airflow() -> None:
    for path in ("", "/airflow"):
        apps = react_apps(path)
        assert {each["bundle_url"] for each in apps} == {f"{path}/flinkcompat/static/main.umd.js"}
        assert len({each["url_route"] for each in apps}) == len(apps)


@pytest.mark.slow
def test_processes_that_serve_no_pages_do_not_pay_for_them() -> None:
    """Workers and DAG processors import the plugin, too."""
    code = (
        "import airflow.plugins_manager, sys; before = set(sys.modules)\n"
        "from airflow_flinkcompat.airflow.plugin.registration import FlinkcompatPlugin; FlinkcompatPlugin()\n"
        "heavy = {'fastapi', 'starlette', 'pydantic', 'upath', 'sqlglot', 'airflow_flinkcompat.airflow.plugin.app',\n"
        "         'airflow_flinkcompat.deploy', 'airflow_flinkcompat.secrets', 'airflow_flinkcompat.airflow.hooks'}\n"
        "print(sorted((set(sys.modules) - before) & heavy),\n"
        "      'airflow_flinkcompat.airflow.plugin.registration' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert done.stdout.splitlines()[-1] == "[] True"
