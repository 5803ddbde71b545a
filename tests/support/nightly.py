"""What only ``make test-full`` runs, never by the date, and what of many like cases the quick tests leave out.

``make test`` runs the same tests on every day. A test that takes minutes, or that has a shorter sibling, is marked
``nightly``; of a long list of like cases a fixed few run every time.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

NIGHTLY = os.environ.get("FLINKCOMPAT_NIGHTLY") == "1"
"""Whether this run takes everything, as ``make test-full`` does."""


def sample(cases: Sequence[T], few: int) -> list[T]:
    """All cases in a nightly run, else the same few of them, far from one another."""
    if NIGHTLY or len(cases) <= few:
        return list(cases)
    return [cases[number * len(cases) // few] for number in range(few)]


def mostly_nightly(cases: Sequence[Any], few: int = 1) -> list[Any]:
    """Parameters of a test: the first few cases run every time, the others are marked ``nightly``.

    Not for a test that compares with a snapshot of each case: those of the cases that do not run count as unused, and
    an unused snapshot fails a run.

    Args:
        cases: one value, or a tuple of values, for each case.
        few: how many of them every run takes; none where another test is their shorter sibling.

    Returns:
        What ``pytest.mark.parametrize`` takes.
    """
    return [*cases[:few], *(_marked(case, pytest.mark.nightly) for case in cases[few:])]


def mostly_slow(cases: Sequence[Any], every: int) -> list[Any]:
    """Parameters of a test: one case in ``every``, the first one too, is quick; the others are marked ``slow``."""
    return [_marked(case, pytest.mark.slow) if number % every else case for number, case in enumerate(cases)]


def _marked(case: Any, mark: pytest.MarkDecorator) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=mark)
