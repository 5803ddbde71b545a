"""One Airflow and one Chromium for all tests of the pages."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.scenarios.airflow.pages.airflow import REPOSITORY, ApiServer, serving
from tests.scenarios.airflow.pages.browser import AXE, Browser, browsing, require_chromium


@pytest.fixture(scope="package")
def pages_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    require_chromium()
    if not AXE.exists():
        subprocess.run([REPOSITORY / "scripts" / "build_frontend.sh", tmp_path_factory.mktemp("built")], check=True)
    with serving(tmp_path_factory.mktemp("pages-airflow")) as server:
        yield server


@pytest.fixture(scope="package")
def chromium(pages_server: ApiServer) -> Iterator[Browser]:
    with browsing(pages_server) as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The browser; a test fails where the console told of an error that it did not take out of the list."""
    chromium.errors.clear()
    yield chromium
    assert not chromium.errors
