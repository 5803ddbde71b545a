"""What Airflow is told about this package."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import airflow
import jsonschema
import pytest

from airflow_flinkcompat.hooks.flink import FlinkHook
from airflow_flinkcompat.provider_info import get_provider_info

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
    (connection,) = INFO["connection-types"]
    for path in [*INFO["extra-links"], connection["hook-class-name"]]:
        module, name = path.rsplit(".", 1)
        assert hasattr(import_module(module), name)
    assert connection["connection-type"] == FlinkHook.conn_type
    assert connection["hook-name"] == FlinkHook.hook_name


def test_every_connection_field_is_read_by_the_hook() -> None:
    source = Path(import_module(FlinkHook.__module__).__file__ or "").read_text()
    for name in INFO["connection-types"][0]["conn-fields"]:
        assert f'"{name}"' in source
