"""The planners of every line, for tests of upgrades."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_flinkcompat.planner.daemon import close_all
from airflow_flinkcompat.planner.installation import LINES, install


@pytest.fixture(scope="module")
def planners() -> Iterator[None]:
    for line in LINES:
        install(line)
    yield
    close_all()
