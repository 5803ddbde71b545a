"""The contract of targets as a pytest plugin, for an installed target by name and connection settings.

    pytest -p airflow_flinkcompat.testing.pytest_plugin --flinkcompat-target my-platform
        --flinkcompat-connection connection.json --pyargs airflow_flinkcompat.testing.installed_target

The plugin is loaded by ``-p`` only. A ``conftest.py`` may override each of its fixtures.
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
    _TARGET: "the tested target: a name of the group flinkcompat.targets, or module:Class",
    _CONNECTION: "the extra of its connection: JSON, the path of a JSON file, or the id of an Airflow connection "
    "(default: the environment, as on the command line)",
    _SETTLE: "seconds for which a start is watched (default: 10)",
    _STEP: "seconds that a stop or a start may take (default: 600)",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options, and settings of the same names for ``pytest.ini``."""
    group = parser.getgroup("flinkcompat", "the contract of targets")
    for name, words in _HELP.items():
        group.addoption(f"--{name.replace('_', '-')}", dest=name, default=None, help=words)
        parser.addini(name, words, default="")


def pytest_report_header(config: pytest.Config) -> str | None:
    """The target's name, without its connection, which may contain secrets."""
    name = _setting(config, _TARGET)
    return f"flinkcompat: target {name}" if name else None


@pytest.fixture(scope="session")
def flinkcompat_open(pytestconfig: pytest.Config) -> Opens:
    """Open the target again, as another process would, by the options or an override."""
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
    """Make a platform without real state refuse the next start from a savepoint, as real ones do."""
    return lambda _target, _name: None


@pytest.fixture(scope="session")
def flinkcompat_settle_seconds(pytestconfig: pytest.Config) -> float:
    """Seconds for which a start is watched."""
    return _seconds(pytestconfig, _SETTLE, 10.0)


@pytest.fixture(scope="session")
def flinkcompat_step_seconds(pytestconfig: pytest.Config) -> float:
    """Seconds that a stop or a start may take."""
    return _seconds(pytestconfig, _STEP, 600.0)


def _setting(config: pytest.Config, name: str) -> str:
    return str(config.getoption(name, None) or config.getini(name) or "")


def _seconds(config: pytest.Config, name: str, default: float) -> float:
    setting = _setting(config, name)
    try:
        return float(setting) if setting else default
    except ValueError:
        pytest.exit(f"--{name.replace('_', '-')} {setting!r} is no number of seconds", pytest.ExitCode.USAGE_ERROR)


def _class(name: str) -> TargetClass:
    """The class of a target. Raises DeployError, ImportError, AttributeError without one."""
    return cast(TargetClass, EntryPoint(name, name, GROUP).load()) if ":" in name else target_class(name)


def _settings(connection: str) -> Mapping[str, Any] | str | None:
    """The option's settings, the id of an Airflow connection, or nothing. Raises ValueError, OSError."""
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
        raise ValueError(f"--flinkcompat-connection is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise ValueError('--flinkcompat-connection is no object of JSON, {"key": "value"}')
    return found


def _by_airflow(conn_id: str, name: str) -> Opens:
    """Open the target of an Airflow connection. Raises ValueError if that is missing or of another target."""
    try:
        from airflow_flinkcompat.airflow.hooks.flink import FlinkHook
    except ImportError as error:
        raise ValueError(
            f"--flinkcompat-connection {conn_id!r} is neither JSON nor a file, and no Airflow is installed that "
            f"would have a connection of this id ({error})"
        ) from None
    hook = FlinkHook(conn_id)
    if not hook.exists:
        raise ValueError(f"--flinkcompat-connection {conn_id!r} is neither JSON, nor a file, nor an Airflow connection")
    if hook.target_name != name:
        raise ValueError(f"connection {conn_id!r} is of target {hook.target_name!r}, and {name!r} is to be tested")
    return hook.get_conn


def _address(settings: Mapping[str, Any] | None, which: str) -> str:
    """Address of a target's part. Raises DeployError."""
    found = (settings or {}).get(f"{which}_url")
    if not found:
        raise DeployError(f"the target is reached by its {which}: give {which}_url in --flinkcompat-connection")
    return str(found)
