"""Damaged savepoints: a correct read or one named error, in bounded time and memory."""

from __future__ import annotations

import subprocess
import sys
from os import environ
from pathlib import Path

import pytest

from tests.support import fuzzing
from tests.support.nightly import NIGHTLY
from tests.support.savepoint.damage import ERRORS

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
CASES = 60


@pytest.mark.timeout(3600)
def test_a_damaged_savepoint_is_read_or_named(tmp_path: Path) -> None:
    """In a process of its own, which a read outside of a buffer may end; a nightly run checks each index."""
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path / "numba")} if NIGHTLY else {}
    cases = fuzzing.number_of_cases(CASES)
    command = [sys.executable, "-m", "tests.support.savepoint.damage", fuzzing.seed(), "0", str(cases), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, env=environ | checked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    results = {line.rpartition(": ")[2] for line in done.stdout.splitlines()}
    assert {"read", "SavepointUnreadable"} <= results <= {"read", *(error.__name__ for error in ERRORS)}
