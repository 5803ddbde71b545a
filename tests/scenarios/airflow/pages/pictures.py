"""Pictures of the pages for the docs: ``python -m tests.scenarios.airflow.pages.pictures``.

Needs a Chromium, and the right to make a folder in /srv. Make them small afterwards: ``pngquant --ext .png --force``.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.scenarios.airflow.pages.airflow import REPOSITORY, serving
from tests.scenarios.airflow.pages.browser import Browser, browsing

FOLDER = REPOSITORY / "docs" / "images"
HOME = Path("/srv/flink")  # the pages show where ledgers lie


def take(browser: Browser, folder: Path) -> None:
    """Every picture: name, page, width, theme, and how much of the page is in it."""
    run = "dags/redeploy_revenue/runs/manual__2/plugin/flink_change"
    question = "dags/redeploy_loyalty/runs/manual__2/tasks/approve/required_actions"
    for name, path, width, height, theme in (
        ("pages-deployments", "plugin/flink", 1280, 760, "light"),
        ("pages-deployment", browser.path("orders"), 1280, 1000, "light"),
        ("pages-change", browser.waiting("revenue"), 1280, 1280, "light"),
        ("pages-change-dark", run, 1280, 900, "dark"),
        ("pages-change-narrow", browser.waiting("revenue"), 400, 1100, "light"),
        ("shadow-change", browser.waiting("loyalty"), 1280, 1500, "light"),
        ("shadow-approval", question, 1280, 1000, "light"),
    ):
        with browser.signed_in(width=width, theme=theme) as page:
            page.set_viewport_size({"width": width, "height": height})
            page.goto(f"{browser.server.url}/{path}")
            page.locator(".fc-root h2, :text('The complete result')").first.wait_for()
            page.wait_for_load_state("networkidle")
            page.screenshot(path=str(folder / f"{name}.png"))


if __name__ == "__main__":
    HOME.mkdir()
    try:
        with serving(HOME) as server, browsing(server) as chromium:
            take(chromium, FOLDER)
    finally:
        shutil.rmtree(HOME)
