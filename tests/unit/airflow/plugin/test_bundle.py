"""The React bundle that the package ships is the build of ``frontend/``, for the API as it is."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from airflow_flinkcompat.airflow.operators.approval import _CHOICES
from airflow_flinkcompat.airflow.operators.asking import REASON, REJECT
from airflow_flinkcompat.airflow.operators.summary import QUESTION

REPOSITORY = Path(__file__).parents[4]
FRONTEND = REPOSITORY / "frontend"
STATIC = REPOSITORY / "airflow_flinkcompat" / "airflow" / "plugin" / "static"
REMEDY = "build it anew: make frontend"


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def built() -> Any:
    return json.loads((STATIC / "build.json").read_text(encoding="utf-8"))


def test_the_bundle_is_the_one_that_was_built_from_these_sources(built: Any) -> None:
    beside = ["package.json", "package-lock.json", "tsconfig.json", "build.mjs", "openapi.json", ".prettierrc.json"]
    sources = [
        *(FRONTEND / name for name in beside),
        *(each for each in (FRONTEND / "src").rglob("*") if each.is_file()),
    ]
    assert built["sources"] == {each.relative_to(FRONTEND).as_posix(): sha256(each) for each in sources}, REMEDY
    assert built["bundle"] == sha256(STATIC / "main.umd.js"), REMEDY


def test_the_form_knows_every_answer_of_the_question() -> None:
    source = (FRONTEND / "src" / "decide.tsx").read_text(encoding="utf-8")
    table = source.partition("const BRANCHES")[2].partition("};")[0].replace("[REJECT]", f'"{REJECT}"')
    assert dict(re.findall(r'"([^"]+)": "([a-z]+)"', table)) == _CHOICES
    for name, value in (("REJECT", REJECT), ("REASON", REASON), ("QUESTION", QUESTION)):
        assert f'const {name} = "{value}";' in source


OF_FASTAPI = {"HTTPValidationError", "ValidationError"}
"""What FastAPI answers to a request that it refuses; the pages read nothing of it."""


def described(value: Any) -> Any:
    """What the types of the pages are made of, without what releases of Pydantic and FastAPI may word otherwise."""
    if isinstance(value, list):
        return [described(each) for each in value]
    if not isinstance(value, dict):
        return value
    # A title is made of a field's name; a field that is called so is an object here.
    kept = {key: each for key, each in value.items() if not (key == "title" and isinstance(each, str))}
    return {key: described(each) for key, each in kept.items() if key not in OF_FASTAPI | {"422", "openapi"}}


@pytest.mark.slow
def test_the_sources_are_typed_by_the_api_as_it_is() -> None:
    """``make frontend`` writes the whole; another release of what describes the API is no reason to build anew."""
    from airflow_flinkcompat.airflow.plugin.app import create_app

    told = described(json.loads(json.dumps(create_app().openapi())))
    assert described(json.loads((FRONTEND / "openapi.json").read_text(encoding="utf-8"))) == told, REMEDY
    assert told["components"]["schemas"]["ChangePage"]["properties"]["next_steps"]


def test_every_version_is_pinned(built: Any) -> None:
    package = json.loads((FRONTEND / "package.json").read_text(encoding="utf-8"))
    lock = json.loads((FRONTEND / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    wanted = package["dependencies"] | package["devDependencies"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    assert {name: lock[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    assert all(each.get("integrity") for path, each in lock.items() if path)
    assert built["esbuild"] == wanted["esbuild"]


def test_the_bundle_is_small_and_loads_and_evaluates_nothing() -> None:
    bundle = (STATIC / "main.umd.js").read_text(encoding="utf-8")
    assert len(bundle) < 100_000
    found = re.findall(
        r"\beval\(|new Function|innerHTML|dangerouslySet|document\.write|\bimport\(|https?://[\w.]+", bundle
    )
    assert not found, "a strict content security policy refuses it, or a text could become markup"
    assert "__CLIENT_INTERNALS" not in bundle, "React is the host's"


def test_the_bundle_gives_every_app_its_component() -> None:
    from airflow_flinkcompat.airflow.plugin.registration import BUNDLE, react_apps

    bundle = (STATIC / BUNDLE).read_text(encoding="utf-8")
    assert all(re.search(f"""[{{,]"?{app["name"]}"?:""", bundle) for app in react_apps(""))


def test_the_licenses_of_what_is_in_the_bundle_come_with_it() -> None:
    package = json.loads((FRONTEND / "package.json").read_text(encoding="utf-8"))
    told = (STATIC / "licenses.txt").read_text(encoding="utf-8")
    assert all(name in told for name in package["dependencies"])
    assert "Redistribution and use in source and binary forms" in told
