"""Place of a rule's page: on the web, by a command, or as a file of the installed package."""

from __future__ import annotations

import os
from pathlib import Path

URL_VARIABLE = "FLINKCOMPAT_RULES_URL"
"""Environment variable with the address of the published ``docs/rules``."""

_PACKAGE = Path(__file__).parents[2]
_FOLDERS = (_PACKAGE / "rule_pages", _PACKAGE.parent / "docs" / "rules")
"""Folders of the pages in the wheel and in a checkout."""


def page_url(code: str) -> str | None:
    """The published page of a rule."""
    base = os.environ.get(URL_VARIABLE, "").strip()
    if "://" not in base:
        return None
    return base.replace("{code}", code) if "{code}" in base else f"{base.rstrip('/')}/{code}.md"


def page_address(code: str) -> str:
    """Address of a rule's page for a reader: its URL, else the command that shows it.

    A report is read on other machines than the one that wrote it, so it names no file.
    """
    return page_url(code) or f"flinkcompat rules {code}"


def page_file(code: str) -> Path:
    """The page of a rule in the installed package, or in the checkout."""
    places = [folder / f"{code}.md" for folder in _FOLDERS]
    return next((place for place in places if place.is_file()), places[0])


def page_text(code: str) -> str:
    """The page of a rule, to be shown in another document."""
    lines = page_file(code).read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith(("<!--", "[All rules]"))).strip()
