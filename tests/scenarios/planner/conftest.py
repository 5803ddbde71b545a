"""The planners of two lines, or of every line in a nightly run, for tests of upgrades."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_flinkcompat.planner.daemon import close_all
from airflow_flinkcompat.planner.installation import LINES, install
from tests.support.nightly import NIGHTLY


@pytest.fixture(scope="module")
def planners() -> Iterator[None]:
    for line in LINES if NIGHTLY else ("1.20", "2.3"):
        install(line)
    yield
    close_all()
