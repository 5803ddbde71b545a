"""Paths of a program as far as they are known without its environment, and the texts of files next to it.

The folder of the program is written ``${program}``, the working directory ``${cwd}``. Nothing is known about the
letters of a text that holds one of them.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.table_api.values import INPUT_BEGINS, TooMuch

PROGRAM = "${program}"
STARTED = "${cwd}"
Loader = Callable[[str], str | None]
"""The text of a file by its path from the program's folder, with ``/``; None where there is none to be read."""
FILE_LIMIT = 1_000_000
"""Maximum number of characters of one file."""
FILES_LIMIT = 100
"""Maximum number of files of a program."""
LOOKUPS_LIMIT = 2_000
"""Maximum number of files that a program looks for, whether they exist or not."""


def symbolic(text: object) -> bool:
    """Whether a text holds a folder, or another input, that only the environment knows."""
    return isinstance(text, str) and (PROGRAM in text or STARTED in text or INPUT_BEGINS in text)


def normal(path: str) -> str:
    """The path without ``.`` and with each ``..`` resolved where a folder precedes it."""
    head, rest = _head(path)
    parts: list[str] = []
    for part in rest.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    if head == "/":
        return "/" + "/".join(part for part in parts if part != "..")
    return "/".join([*([head] if head else []), *parts]) or "."


def absolute(path: str) -> str:
    """``os.path.abspath``."""
    return normal(path if _head(path)[0] else f"{STARTED}/{path}")


def join(*paths: str) -> str:
    """``os.path.join``: a path from the root replaces those before it."""
    found = ""
    for path in paths:
        found = path if not found or _head(path)[0] else f"{found.rstrip('/')}/{path}"
    return found


def parent(path: str) -> str:
    """``os.path.dirname``."""
    head, rest = _head(path)
    if head in (PROGRAM, STARTED) and not rest.strip("/"):
        return f"{head}/.."
    return f"{path}/.." if posixpath.basename(path) == ".." else posixpath.dirname(path)


def inside(path: str) -> str | None:
    """The path from the program's folder; None for one that leads out of it, or starts elsewhere.

    A relative path counts as one from there too, because programs are usually started in their folder.
    """
    head, rest = _head(path)
    if head == "/" or "\\" in path or "\0" in path or re.match(r"[A-Za-z]:", path):
        return None
    found = normal(rest.lstrip("/"))
    return None if found.startswith("..") or found == "." or symbolic(found) else found


def _head(path: str) -> tuple[str, str]:
    for head in (PROGRAM, STARTED):
        if path == head or path.startswith(f"{head}/"):
            return head, path.removeprefix(head)
    return ("/", path) if path.startswith("/") else ("", path)


@dataclass
class Files:
    """Reader of files next to a program; ``used`` are the texts that it found, by path."""

    load: Loader
    used: dict[str, str] = field(default_factory=dict)
    _looked_up: dict[str, str | None] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """The text of a file, or None. Raises :class:`TooMuch` beyond the limits."""
        if path not in self._looked_up:
            if len(self._looked_up) >= LOOKUPS_LIMIT or len(self.used) >= FILES_LIMIT:
                raise TooMuch(f"it reads more than {FILES_LIMIT} files")
            found = self.load(path)
            if found is not None and len(found) > FILE_LIMIT:
                raise TooMuch(f"{path} is longer than {FILE_LIMIT} characters")
            self._looked_up[path] = found
            if found is not None:
                self.used[path] = found
        return self._looked_up[path]

    def beside(self, path: str) -> str | None:
        """The text of a file by a path as the program writes it; None outside of the program's folder.

        A file elsewhere can only be passed under its whole path: nothing is looked up there.
        """
        found = path if path.startswith("/") and normal(path) == path and not symbolic(path) else inside(path)
        return None if found is None else self.text(found)


def loader(files: Mapping[str, str] | Loader | None) -> Loader:
    """The loader of files that are passed as a mapping from path to text, or as a function."""
    if files is None:
        return lambda path: None
    return files.get if isinstance(files, Mapping) else files
