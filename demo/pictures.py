"""Pictures of the story in Airflow's own UI, taken by a headless Chromium: ``python -m demo pictures``.

Needs the Python package playwright and a Chromium of the system (``apt-get install chromium``); nothing else does.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from demo.parts import Parts
from demo.waiting import DemoError
from demo.world import DAG_ID

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "images"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_WIDTH, _HEIGHT = 1440, 900
_PATIENCE = 60_000  # milliseconds


class Photographer:
    """Goes to the pages that a moment of the story is about. Open only as long as the ``with`` block lasts."""

    def __init__(self, parts: Parts, say: Callable[[str], None], folder: Path = FOLDER) -> None:
        self._parts = parts
        self._say = say
        self._folder = folder
        self.page: Any  # playwright's Page; the package is not needed for anything else

    def __enter__(self) -> Photographer:
        try:
            from playwright.sync_api import sync_playwright
        except ImportError:
            raise DemoError("pictures need playwright: pip install playwright") from None
        browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
        if browser is None:
            raise DemoError(f"pictures need a browser; looked for {', '.join(_BROWSERS)} on the PATH")
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        self.page = self._browser.new_page(viewport={"width": _WIDTH, "height": _HEIGHT}, color_scheme="light")
        self.page.set_default_timeout(_PATIENCE)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._sign_in()
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.close()
        self._playwright.stop()

    def take(self, moment: str, run: str) -> None:
        """The pictures of one moment; moments without any are passed over."""
        for name, path, shown in _PICTURES.get(moment, ()):
            self.page.goto(f"{self._parts.airflow.url}/{path.format(dag=DAG_ID, run=run)}")
            self.page.get_by_text(shown).first.wait_for()
            self._save(name)

    def _save(self, name: str) -> None:
        # Panels slide in and graphs are laid out after their text is there.
        self.page.wait_for_timeout(1500)
        target = self._folder / f"{name}.png"
        self.page.screenshot(path=str(target))
        self._say(f"picture: {target.name}, {target.stat().st_size // 1024} KB")

    def _sign_in(self) -> None:
        airflow = self._parts.airflow
        self.page.goto(f"{airflow.url}/auth/login/")
        self.page.locator("input[name=username]").fill(airflow.user)
        self.page.locator("input[name=password]").fill(airflow.password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("link", name="Dags").first.wait_for()


# moment → (file name, page, a text that shows that it is there)
_PICTURES = {
    "check-incompatible": (("check_log", "dags/{dag}/runs/{run}/tasks/check", "Verdict"),),
    "approval": (("approval", "dags/{dag}/runs/{run}/tasks/approve/required_actions", "Resume from savepoint"),),
    "end": (("dag_graph", "dags/{dag}/runs/{run}", "backfill"),),
}
