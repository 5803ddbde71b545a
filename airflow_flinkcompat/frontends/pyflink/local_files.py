"""The texts that lie beside a program: its own modules and the files it reads, from its folder or its repository."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow_flinkcompat.frontends.pyflink.paths import FILE_LIMIT
from airflow_flinkcompat.frontends.pyflink.reader import read_program
from airflow_flinkcompat.model import language_of
from airflow_flinkcompat.sql import ScriptError

_ROOT = ".git"
"""What lies at the root of a repository."""


@dataclass(frozen=True)
class LocalFile:
    """A text beside a program, and the file it was read from."""

    path: Path
    text: str


def find_local_files(
    path: str | Path, text: str, given: Mapping[str, str], root: Path | None = None
) -> dict[str, LocalFile]:
    """The files that the program at ``path`` imports or reads, by their path from its folder; none for another text.

    ``given`` are its variables. Looked for in the program's folder and at the root of its repository, where there is
    one, else in the folder ``root`` above it; never outside of these, by a link either. A file that lies in both and
    differs is left out, for how the program is started decides. A text that is no Python has none.
    """
    if language_of(path) != "python":
        return {}
    folder = Path(path).resolve().parent
    fallback = folder if root is None else root.resolve()
    above = next((each for each in (folder, *folder.parents) if (each / _ROOT).exists()), fallback)
    places = dict.fromkeys((folder, above if folder.is_relative_to(above) else folder))
    found: dict[str, LocalFile] = {}

    def load(name: str) -> str | None:
        read = [each for place in places if (each := _read(place, name)) is not None]
        if len({each.text for each in read}) != 1:
            return None
        found[name] = read[0]
        return read[0].text

    try:
        used = read_program(text, str(path), given, load)[1]
    except ScriptError:
        return {}
    return {name: found[name] for name in used}


def local_texts(path: str | Path, text: str, given: Mapping[str, str]) -> dict[str, str]:
    """As :func:`files_beside`, the texts alone: the ``files`` of a side."""
    return {name: each.text for name, each in find_local_files(path, text, given).items()}


def _read(place: Path, name: str) -> LocalFile | None:
    try:
        file = (place / name).resolve(strict=True)
        if not file.is_relative_to(place) or not file.is_file() or file.stat().st_size > 4 * FILE_LIMIT:
            return None
        return LocalFile(file, file.read_bytes().decode())
    except (OSError, ValueError):
        return None
