"""Where files lie, as far as a program can know without its environment, and the texts of those that are handed in.

The folder of the program is written ``${program}``, the folder it is started in ``${cwd}``: texts that hold one of them
stand for what they are, but nothing about their letters is known.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.table_api.values import INPUT_BEGINS, TooMuch

PROGRAM = "${program}"
STARTED = "${cwd}"


def symbolic(text: object) -> bool:
    """Whether a text holds a folder, or another input, that only the environment knows."""
    return isinstance(text, str) and (PROGRAM in text or STARTED in text or INPUT_BEGINS in text)


def normal(path: str) -> str:
    """The path without ``.`` and without what ``..`` takes back; it never goes above its folder without a ``..``."""
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
    return normal(path if _head(path)[0] else f"{STARTED}/{path}")


def join(*paths: str) -> str:
    """``os.path.join``: a path from the root takes the place of those before it."""
    found = ""
    for path in paths:
        found = path if not found or _head(path)[0] else f"{found.rstrip('/')}/{path}"
    return found


def parent(path: str) -> str:
    head, rest = _head(path)
    if head in (PROGRAM, STARTED) and not rest.strip("/"):
        return f"{head}/.."
    return f"{path}/.." if posixpath.basename(path) == ".." else posixpath.dirname(path)


def inside(path: str) -> str | None:
    """The path as one from the program's folder; None for one that leads out of it, or starts elsewhere.

    A path without a root is taken as one from there too: that is where a program is started as a rule.
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


Loader = Callable[[str], str | None]
"""The text of a file by its path from the program's folder, with ``/``; None where there is none to be read."""
FILE_LIMIT = 1_000_000
"""Characters of one file."""
FILES_LIMIT = 100
"""Files of a program."""
ASKED_LIMIT = 2_000
"""Files that a program looks for, there or not."""


@dataclass
class Files:
    """What is read beside a program; ``used`` are the texts that were found, by path."""

    load: Loader
    used: dict[str, str] = field(default_factory=dict)
    _asked: dict[str, str | None] = field(default_factory=dict)

    def text(self, path: str) -> str | None:
        """The text of a file, or None. Raises :class:`TooMuch` for more files, or longer ones, than are read."""
        if path not in self._asked:
            if len(self._asked) >= ASKED_LIMIT or len(self.used) >= FILES_LIMIT:
                raise TooMuch(f"it asks for more than {FILES_LIMIT} files")
            found = self.load(path)
            if found is not None and len(found) > FILE_LIMIT:
                raise TooMuch(f"{path} is longer than {FILE_LIMIT} characters")
            self._asked[path] = found
            if found is not None:
                self.used[path] = found
        return self._asked[path]

    def beside(self, path: str) -> str | None:
        """The text of a file by a path as the program writes it; None outside of the program's folder.

        A file elsewhere is one that was handed in under its whole path: nothing is looked for there.
        """
        found = path if path.startswith("/") and normal(path) == path and not symbolic(path) else inside(path)
        return None if found is None else self.text(found)


def loader(files: Mapping[str, str] | Loader | None) -> Loader:
    """Files as they are handed in: as a mapping from path to text, or as what finds them."""
    if files is None:
        return lambda path: None
    return files.get if isinstance(files, Mapping) else files
