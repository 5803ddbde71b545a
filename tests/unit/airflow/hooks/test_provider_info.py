"""What Airflow is told about this package."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import airflow
import jsonschema
import pytest

from airflow_flinkcompat.airflow.hooks.flink import FlinkHook, RealtimeComputeHook
from airflow_flinkcompat.airflow.provider_info import get_provider_info
from airflow_flinkcompat.deploy.flink.access import KEYS

INFO = get_provider_info()
MODULES = [
    name
    for kind in ("operators", "sensors", "triggers", "hooks")
    for row in INFO[kind]
    for name in row["python-modules"]
]


def test_it_is_what_airflow_expects() -> None:
    schema = json.loads((Path(airflow.__file__).parent / "provider_info.schema.json").read_text())
    jsonschema.validate(INFO, schema)


def test_the_connection_fields_are_what_airflow_expects() -> None:
    schema = json.loads((Path(airflow.__file__).parent / "provider.yaml.schema.json").read_text())
    properties = schema["properties"]["connection-types"]
    jsonschema.validate(INFO["connection-types"], {**properties, "definitions": schema.get("definitions", {})})


@pytest.mark.parametrize("module", MODULES)
def test_every_module_it_names_is_there(module: str) -> None:
    import_module(module)


def test_the_classes_it_names_are_there() -> None:
    connections = {row["hook-class-name"]: row for row in INFO["connection-types"]}
    for path in [*INFO["extra-links"], *connections]:
        module, name = path.rsplit(".", 1)
        assert hasattr(import_module(module), name)
    for hook, connection in zip((FlinkHook, RealtimeComputeHook), connections.values(), strict=True):
        assert (connection["connection-type"], connection["hook-name"]) == (hook.conn_type, hook.hook_name)


def test_every_connection_field_is_read_and_every_key_has_a_field() -> None:
    fields = INFO["connection-types"][0]["conn-fields"]
    source = Path(import_module(FlinkHook.__module__).__file__ or "").read_text()
    own = {name for name in ("jobmanager_url", "ui_url", "ledger", "target") if f'"{name}"' in source}
    # Login and password are fields of every connection; a toggle and a number cannot be empty in the form.
    gateway = set(KEYS) - {"login", "password"}
    jobmanager = {f"jobmanager_{key}" for key in KEYS} - {"jobmanager_verify", "jobmanager_timeout"}
    assert set(fields) == own | gateway | jobmanager


def test_passwords_are_hidden_in_the_form() -> None:
    fields = INFO["connection-types"][0]["conn-fields"]
    hidden = {name for name, field in fields.items() if field["schema"].get("format") == "password"}
    assert hidden == {name for name in fields if name.endswith("password")}
