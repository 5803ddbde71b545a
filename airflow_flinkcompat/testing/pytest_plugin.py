"""A pytest plugin that runs the contract tests on an installed target.

    pytest -p airflow_flinkcompat.testing.pytest_plugin --flinkcompat-target my-platform
        --flinkcompat-connection connection.json --pyargs airflow_flinkcompat.testing.installed_target

Only the option ``-p`` loads the plugin. A ``conftest.py`` may override the plugin's fixtures.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, cast

import pytest

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.target import Target
from airflow_flinkcompat.deploy.targets import GROUP, Access, OpenTarget, TargetClass, names, target_class
from airflow_flinkcompat.secrets.placeholders import environment_lookup

Opens = Callable[[], OpenTarget]
Misfits = Callable[[Target, str], None]
_TARGET, _CONNECTION = "flinkcompat_target", "flinkcompat_connection"
_SETTLE, _STEP = "flinkcompat_settle_seconds", "flinkcompat_step_seconds"
_HELP = {
    _TARGET: "the target to test: a name in the entry point group flinkcompat.targets, or module:Class",
    _CONNECTION: (
        "the extra of the target's connection: JSON, the path of a JSON file, or the id of an Airflow connection "
        "(default: the environment variables that the command line uses)"
    ),
    _SETTLE: "seconds to watch a job after its start (default: 10)",
    _STEP: "maximum seconds for a stop or a start (default: 600)",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, and settings of the same names for ``pytest.ini``."""
    group = parser.getgroup("flinkcompat", "contract tests of targets")
    for name, words in _HELP.items():
        group.addoption(f"--{name.replace('_', '-')}", dest=name, default=None, help=words)
        parser.addini(name, words, default="")


def pytest_report_header(config: pytest.Config) -> str | None:
    """The target's name, without the connection, because the connection may contain secrets."""
    name = _setting(config, _TARGET)
    return f"flinkcompat: target {name}" if name else None


@pytest.fixture(scope="session")
def flinkcompat_open(pytestconfig: pytest.Config) -> Opens:
    """Return a function that opens the target anew, like a different process would."""
    name, connection = _setting(pytestconfig, _TARGET), _setting(pytestconfig, _CONNECTION)
    if not name:
        installed = ", ".join(names()) or "none"
        pytest.exit(
            f"name the target with --flinkcompat-target NAME (installed: {installed})", pytest.ExitCode.USAGE_ERROR
        )
    try:
        found = _class(name)
        settings = _settings(connection)
        if isinstance(settings, str):
            return _by_airflow(settings, name)
    except (DeployError, ValueError, OSError, ImportError, AttributeError) as error:
        pytest.exit(f"flinkcompat: {error}", pytest.ExitCode.USAGE_ERROR)
    place = "--flinkcompat-connection" if settings else "the environment"
    access = Access(lambda which: _address(settings, which), settings, place, environment_lookup(os.environ))
    return lambda: found.connect(access)


@pytest.fixture
def flinkcompat_misfits() -> Misfits:
    """Make a platform without real state refuse the next start from a savepoint."""
    return lambda _target, _name: None


@pytest.fixture(scope="session")
def flinkcompat_settle_seconds(pytestconfig: pytest.Config) -> float:
    """Seconds to watch a job after its start."""
    return _seconds(pytestconfig, _SETTLE, 10.0)


@pytest.fixture(scope="session")
def flinkcompat_step_seconds(pytestconfig: pytest.Config) -> float:
    """Maximum seconds for a stop or a start."""
    return _seconds(pytestconfig, _STEP, 600.0)


def _setting(config: pytest.Config, name: str) -> str:
    return str(config.getoption(name, None) or config.getini(name) or "")


def _seconds(config: pytest.Config, name: str, default: float) -> float:
    setting = _setting(config, name)
    try:
        return float(setting) if setting else default
    except ValueError:
        pytest.exit(f"--{name.replace('_', '-')} {setting!r} is not a number of seconds", pytest.ExitCode.USAGE_ERROR)


def _class(name: str) -> TargetClass:
    """The class of a target. Raises DeployError, ImportError or AttributeError if there is no class."""
    return cast(TargetClass, EntryPoint(name, name, GROUP).load()) if ":" in name else target_class(name)


def _settings(connection: str) -> Mapping[str, Any] | str | None:
    """The settings in the option, the id of an Airflow connection, or None. Raises ValueError, OSError."""
    if not connection:
        return None
    text = connection
    if not text.lstrip().startswith("{"):
        if not Path(connection).is_file():
            return connection
        text = Path(connection).read_text("utf-8")
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"--flinkcompat-connection is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError('--flinkcompat-connection is not a JSON object such as {"key": "value"}')
    return found


def _by_airflow(conn_id: str, name: str) -> Opens:
    """Open the target of an Airflow connection. Raises ValueError if the connection does not fit."""
    try:
        from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
    except ImportError as error:
        raise ValueError(
            f"--flinkcompat-connection {conn_id!r} is neither JSON nor a file, and Airflow, which could have a "
            f"connection of this id, is not installed ({error})"
        ) from None
    hook = FlinkHook(conn_id)
    if not hook.exists:
        raise ValueError(f"--flinkcompat-connection {conn_id!r} is neither JSON, nor a file, nor an Airflow connection")
    if hook.target_name != name:
        raise ValueError(
            f"connection {conn_id!r} belongs to target {hook.target_name!r}, but the target to test is {name!r}"
        )
    return hook.get_conn


def _address(settings: Mapping[str, Any] | None, which: str) -> str:
    """Address of one part of a target, such as its SQL Gateway. Raises DeployError."""
    found = (settings or {}).get(f"{which}_url")
    if not found:
        raise DeployError(f"the target needs the address of its {which}. Set {which}_url in --flinkcompat-connection")
    return str(found)
