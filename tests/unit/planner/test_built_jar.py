"""The planner's jar that the package ships is built from the sources as they are."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from airflow_flinkcompat.planner.installation import JAR
from scripts.build_planner import SOURCES, digests, main

REMEDY = "build it anew: make planner"


def test_the_jar_is_the_one_that_was_built_from_these_sources() -> None:
    built = json.loads((JAR.parent / "build.json").read_text(encoding="utf-8"))
    assert built["sources"] == digests(SOURCES), REMEDY
    assert built["jar"] == hashlib.sha256(JAR.read_bytes()).hexdigest(), REMEDY


@pytest.mark.slow
@pytest.mark.nightly
def test_a_build_is_the_committed_one_to_the_byte(tmp_path: Path) -> None:
    assert main(["--output", str(tmp_path)]) == 0
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {
        each.name: each.read_bytes() for each in JAR.parent.iterdir()
    }
