"""Compiled loops return what plain Python returns, on damaged bytes too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import mmh3
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_flinkcompat.savepoint import compiled
from airflow_flinkcompat.savepoint.compiled import COMPILED, add_hash, group_of_key, hash_sum, readable
from airflow_flinkcompat.savepoint.keyed_state import key_group

ROOT = Path(__file__).parents[3]


def results(last: int, **environment: str) -> tuple[str, str]:
    """The printed results for the seeds up to ``last``, and the form of the loops."""
    command = [sys.executable, "-m", "tests.support.loop_results", "0", str(last)]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=True)
    return done.stdout, done.stderr.split()[-1]


@pytest.mark.nightly
@pytest.mark.slow
def test_both_forms_return_the_same() -> None:
    assert COMPILED
    seeds = 3000
    compiled, plain = results(seeds), results(seeds, NUMBA_DISABLE_JIT="1")
    assert (compiled[1], plain[1]) == ("compiled", "plain")
    assert compiled[0].splitlines() == plain[0].splitlines()
    assert len(compiled[0].splitlines()) == seeds


@given(st.lists(st.binary(max_size=70), min_size=1, max_size=5), st.integers(0, (1 << 32) - 1))
def test_hashes_are_added_modulo_2_to_the_128(contents: list[bytes], times: int) -> None:
    total = hash_sum()
    for content in contents:
        add_hash(readable(b"x" + content), 1, 1 + len(content), total, times)
    expected = times * sum(map(mmh3.mmh3_x64_128_uintdigest, contents)) % (1 << 128)
    assert int(total[1]) << 64 | int(total[0]) == expected


@given(st.binary(max_size=70), st.integers(1, 32768))
def test_the_key_group_of_a_row(row: bytes, groups: int) -> None:
    assert group_of_key(readable(b"x" + row), 1, 1 + len(row), groups) == key_group(row, groups)


def test_a_large_state_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "COMPILED", False)
    assert compiled.interpreted_hint(99 << 20) == ""
    assert "numba is missing, so that 2,048 MB of state are read at some 4 MB/s: pip" in compiled.interpreted_hint(
        2 << 30
    )
    monkeypatch.setattr(compiled, "COMPILED", True)
    assert compiled.interpreted_hint(2 << 30) == ""
