"""Screenshots of runs in Airflow's own UI, taken by a headless Chromium.

``python -m dev.demo pictures`` takes those of the story. It needs the Python package playwright and a Chromium of the
system (``apt-get install chromium``).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dev.demo.airflow_instance import AirflowStandalone
from dev.demo.narration import DemoError

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "images"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_PATIENCE = 60_000  # milliseconds


@dataclass(frozen=True)
class Picture:
    """``moment`` of the story, ``path`` of the page, and a text that shows that the page is there.

    ``keys`` are typed before it is taken: of a log, ``w`` wraps its lines and ``t`` hides their times.
    """

    moment: str
    name: str
    path: str
    shown: str
    graph: bool = False
    height: int = 760
    width: int = 1560
    keys: str = ""


STORY = (
    Picture("check", "check-log", "dags/{dag}/runs/{run}/tasks/check", "Verdict", height=880),
    Picture("approval", "approval", "dags/{dag}/runs/{run}/tasks/approve/required_actions", "Resume from savepoint"),
    Picture(
        "approval-migration",
        "approval-migration",
        "dags/{dag}/runs/{run}/tasks/approve/required_actions",
        "Migrate the state",
    ),
    Picture("end-backfill", "dag-graph", "dags/{dag}/runs/{run}", "backfill", graph=True, height=620),
    Picture("end-shadow", "shadow-graph", "dags/{dag}/runs/{run}", "shadow", graph=True, height=620),
)
# The left panel is wide enough for the runs of the story.
_PANELS = """localStorage.setItem('react-resizable-panels:grid-ltr',
    '{"details-panel,main-panel":{"expandToSizes":{},"layout":[23,77]}}')"""


class Photographer:
    """Goes to the pages that a moment is about. Open only as long as the ``with`` block lasts."""

    def __init__(
        self,
        airflow: AirflowStandalone,
        dag_id: str,
        say: Callable[[str], None],
        pictures: Sequence[Picture] = STORY,
        folder: Path = FOLDER,
    ) -> None:
        self._airflow = airflow
        self._dag_id = dag_id
        self._say = say
        self._pictures = pictures
        self._folder = folder
        self.page: Any  # playwright's Page; the package is not needed for anything else

    def __enter__(self) -> Photographer:
        try:
            from playwright.sync_api import sync_playwright
        except ImportError:
            raise DemoError("screenshots need playwright: pip install playwright") from None
        browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
        if browser is None:
            raise DemoError(f"screenshots need a browser: install one of {', '.join(_BROWSERS)} on the PATH")
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        self.page = self._browser.new_page(color_scheme="light")
        self.page.set_default_timeout(_PATIENCE)
        self.page.add_init_script(_PANELS)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._sign_in()
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.close()
        self._playwright.stop()

    def take(self, moment: str, run: str) -> None:
        """The screenshots of one moment; moments without screenshots are skipped."""
        for picture in (picture for picture in self._pictures if picture.moment == moment):
            self.page.set_viewport_size({"width": picture.width, "height": picture.height})
            self.page.goto(f"{self._airflow.url}/{picture.path.format(dag=self._dag_id, run=run)}")
            self.page.get_by_text(picture.shown).first.wait_for()
            if picture.graph:
                self.page.get_by_role("button", name="Show Graph").click()
                self.page.get_by_role("button", name="Collapse Details Panel").click()
                self.page.get_by_role("button", name="Fit View").click()
            for key in picture.keys:
                self.page.keyboard.press(key)
            # Panels and graphs are laid out only after their texts are visible.
            self.page.wait_for_timeout(2000)
            target = self._folder / f"{picture.name}.png"
            self.page.screenshot(path=str(target))
            if picture.graph:
                self.page.get_by_role("button", name="Show Grid").click()  # the UI remembers
            self._say(f"screenshot: {target.name}, {target.stat().st_size // 1024} KB")

    def _sign_in(self) -> None:
        airflow = self._airflow
        self.page.goto(f"{airflow.url}/auth/login/")
        self.page.locator("input[name=username]").fill(airflow.user)
        self.page.locator("input[name=password]").fill(airflow.password)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("link", name="Dags").first.wait_for()
