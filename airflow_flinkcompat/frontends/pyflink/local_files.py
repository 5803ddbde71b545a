"""The texts that lie beside a program: its own modules and the files it reads, from its folder or its repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from airflow_flinkcompat.frontends.pyflink.paths import FILE_LIMIT, Loader
from airflow_flinkcompat.frontends.pyflink.reader import read_program
from airflow_flinkcompat.model import language_of
from airflow_flinkcompat.sql import ScriptError

READINGS_LIMIT = 1_000
"""Readings of a program in which its files are looked for."""
_ROOT = ".git"
"""What lies at the root of a repository."""


@dataclass(frozen=True)
class LocalFile:
    """A text beside a program, and the file it was read from."""

    path: Path
    text: str


def find_local_files(
    path: str | Path,
    text: str,
    given: Mapping[str, str],
    root: Path | None = None,
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, LocalFile]:
    """The files that the program at ``path`` imports or reads, by their path from its folder; none for another text.

    ``given`` are its variables. Looked for in the program's folder and at the root of its repository, where there is
    one, else in the folder ``root`` above it; never outside of these, by a link either. A file that lies in both and
    differs is left out, for how the program is started decides. A text that is no Python has none. ``elsewhere`` are
    texts of other files that the program may read, by the path it writes.
    """
    if language_of(path) != "python":
        return {}
    folder = Path(path).resolve().parent
    fallback = folder if root is None else root.resolve()
    above = next((each for each in (folder, *folder.parents) if (each / _ROOT).exists()), fallback)
    places = dict.fromkeys((folder, above if folder.is_relative_to(above) else folder))
    found: dict[str, LocalFile] = {}

    def load(name: str) -> str | None:
        if name in elsewhere:
            return elsewhere[name]
        if name.startswith("/"):
            return None
        read = [each for place in places if (each := _read(place, name)) is not None]
        if len({each.text for each in read}) != 1:
            return None
        found[name] = read[0]
        return read[0].text

    try:
        used = _used(text, str(path), given, load)
    except ScriptError:
        return {}
    return {name: each for name, each in found.items() if name in used}


def _used(text: str, path: str, given: Mapping[str, str], load: Loader) -> set[str]:
    """The files that a program reads, however conditions on its environment turn out."""
    used: set[str] = set()
    pending: list[dict[str, bool]] = [{}]
    for _ in range(READINGS_LIMIT):
        if not pending:
            break
        decided = pending.pop()
        script, files = read_program(text, path, given, load, decided)
        used.update(files)
        if script.undecided:
            pending += [{**decided, script.undecided[0]: holds} for holds in (False, True)]
    return used


def local_texts(
    path: str | Path, text: str, given: Mapping[str, str], elsewhere: Mapping[str, str] | None = None
) -> dict[str, str]:
    """As :func:`files_beside`, the texts alone: the ``files`` of a side."""
    found = find_local_files(path, text, given, elsewhere=elsewhere or {})
    return {**{name: each.text for name, each in found.items()}, **(elsewhere or {})}


def _read(place: Path, name: str) -> LocalFile | None:
    try:
        file = (place / name).resolve(strict=True)
        if not file.is_relative_to(place) or not file.is_file() or file.stat().st_size > 4 * FILE_LIMIT:
            return None
        return LocalFile(file, file.read_bytes().decode())
    except (OSError, ValueError):
        return None
