"""The committed bundle is what its sources are built into, to the byte."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[4]
STATIC = REPOSITORY / "airflow_flinkcompat" / "airflow" / "plugin" / "static"


@pytest.mark.slow
@pytest.mark.nightly
def test_a_build_from_the_lock_file_is_the_committed_bundle(tmp_path: Path) -> None:
    types = (REPOSITORY / "frontend" / "src" / "api.gen.ts").read_bytes()
    subprocess.run([REPOSITORY / "scripts" / "build_frontend.sh", tmp_path], check=True, timeout=500)
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {
        each.name: each.read_bytes() for each in STATIC.iterdir()
    }
    assert (REPOSITORY / "frontend" / "src" / "api.gen.ts").read_bytes() == types
