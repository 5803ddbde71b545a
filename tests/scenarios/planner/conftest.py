"""The planners of two lines, for tests of upgrades."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from airflow_flinkcompat.planner.daemon import close_all
from airflow_flinkcompat.planner.installation import install


@pytest.fixture(scope="module")
def planners() -> Iterator[None]:
    for line in ("1.20", "2.3"):
        install(line)
    yield
    close_all()
