"""A headless Chromium of this machine that is signed in to Airflow."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.airflow.pages.airflow import REPOSITORY, ApiServer

WIDTHS, THEMES = (1280, 400), ("light", "dark")
AXE = REPOSITORY / "frontend" / "node_modules" / "axe-core" / "axe.min.js"
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 120_000  # milliseconds
_READY = "() => { const r = document.querySelector('.fc-root'); return r && !r.innerText.includes('Reading the '); }"


def executable() -> str | None:
    """The Chromium of this machine."""
    return next(filter(None, map(shutil.which, _BROWSERS)), None)


def require_chromium() -> None:
    """Installs a Chromium where that can be done; skips the test where it cannot."""
    if executable() is None:
        subprocess.run([REPOSITORY / "scripts" / "apt_install.sh", "chromium"], check=False)
    if executable() is None:
        pytest.skip("the pages are opened in a Chromium, and there is none on the PATH: apt-get install chromium")


class Browser:
    """Opens the pages, and remembers what the console said of errors."""

    def __init__(self, server: ApiServer, chromium: Any) -> None:
        self.server = server
        self.errors: list[str] = []
        self._chromium = chromium
        self._ids: dict[str, Any] = {}

    @contextmanager
    def signed_in(self, user: str | None = "admin", width: int = 1280, theme: str = "light") -> Iterator[Any]:
        """A window in which a user is signed in; None: nobody is."""
        context = self._chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        if user:
            context.add_cookies([{"name": "_token", "value": self.server.token(user), "url": self.server.url}])
        page = context.new_page()
        page.set_default_timeout(_PATIENCE)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda line: line.type == "error" and self.errors.append(line.text))
        try:
            yield page
        finally:
            context.close()

    def open(self, page: Any, path: str) -> None:
        """Goes to a page, and waits until the ledger was read."""
        page.goto(f"{self.server.url}/{path}")
        page.wait_for_function(_READY)

    def deployment(self, name: str) -> Any:
        """What the API says of a deployment: its ledger, and the change that waits."""
        if name not in self._ids:
            told = self.server.get("admin", "deployments", q=name)["deployments"]
            self._ids[name] = next(each for each in told if each["deployment"] == name)
        return self._ids[name]

    def path(self, name: str, change: int | None = None) -> str:
        """The page of a deployment, or of a change of it."""
        ledger = self.deployment(name)["ledger"]
        return f"plugin/flink?ledger={ledger}&deployment={name}" + (f"&change={change}" if change else "")

    def waiting(self, name: str) -> str:
        """The page of the change that waits."""
        return self.path(name, self.deployment(name)["pending"]["number"])


@contextmanager
def browsing(server: ApiServer) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable(), args=["--no-sandbox"])
        try:
            yield Browser(server, chromium)
        finally:
            chromium.close()


def violations(page: Any, script: Path = AXE) -> list[str]:
    """What axe finds wrong for people with disabilities on our part of the page, however slight."""
    page.add_script_tag(path=str(script))
    found = page.evaluate("rules => axe.run('.fc-root', {runOnly: rules})", _RULES)
    return [
        f"{each['impact']} {each['id']}: {each['nodes'][0]['html'][:200]}: {each['nodes'][0]['failureSummary']}"
        for each in found["violations"]
    ]
