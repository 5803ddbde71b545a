"""Hook of mkdocs: keep the repository's folders in the site, and add every linked file.

A page links to pages, DAGs, schemas and results by their paths in the repository. The site contains all linked files
at the same paths. So a link is dead on the site only if it is dead in a checkout, and `mkdocs build --strict` finds
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"\]\(([^)#\s]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Replace a folder in the navigation with its pages."""
    named = set(_pages(config.nav or []))
    config.nav = _with_folders(config.nav or [], named)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and the files that they link to, at their paths in the repository."""
    of_theme = [each for each in files if each.src_dir != config.docs_dir]
    pages = {ROOT / page for page in _pages(config.nav or [])} | set((ROOT / "docs").rglob("*.md"))
    places = sorted({path for path in pages | set(_linked(pages)) if path.is_file()})
    return Files([*of_theme, *(_file(path, config) for path in places)])


def _file(path: Path, config: MkDocsConfig) -> File:
    return File(path.relative_to(ROOT).as_posix(), str(ROOT), config.site_dir, config.use_directory_urls)


def _linked(pages: set[Path]) -> Iterator[Path]:
    """Linked files; for a linked folder its README, or else its pages."""
    for page in pages:
        if not page.is_file():
            continue
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            path = (page.parent / link).resolve()
            if "://" not in link and path.is_relative_to(ROOT):
                yield path


def _pages(items: list[Any]) -> Iterator[str]:
    """Pages of a navigation, in its order."""
    for item in items:
        if isinstance(item, dict):
            for value in item.values():
                yield from _pages(value if isinstance(value, list) else [value])
        else:
            yield item


def _with_folders(items: list[Any], named: set[str]) -> list[Any]:
    """The navigation in which each folder is followed by its remaining pages."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, dict):
            found += [{title: _within(value, named) for title, value in item.items()}]
        elif item.endswith("/"):
            places = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / item).glob("*.md")))
            found += [place for place in places if place not in named]
        else:
            found.append(item)
    return found


def _within(value: str | list[Any], named: set[str]) -> str | list[Any]:
    if isinstance(value, list):
        return _with_folders(value, named)
    return _with_folders([value], named) if value.endswith("/") else value
