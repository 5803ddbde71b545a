"""The texts that lie beside a program: its own modules and the files it reads, from its folder or its repository."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from airflow_flinkcompat.program import read_program
from airflow_flinkcompat.program.python.files import FILE_LIMIT

_ROOT = ".git"
"""What lies at the root of a repository."""


def texts_beside(path: str, text: str, given: Mapping[str, str]) -> dict[str, str]:
    """The texts that the program at ``path`` imports or reads, by their path from its folder.

    Looked for in the program's folder and at the root of its repository, where there is one, and never outside of
    these, by a link either. One that lies in both and differs is left out, for how the program is started decides.
    """
    folder = Path(path).resolve().parent
    above = next((each for each in (folder, *folder.parents) if (each / _ROOT).exists()), folder)
    roots = dict.fromkeys((folder, above))

    def load(name: str) -> str | None:
        found = {text for root in roots if (text := _text(root, name)) is not None}
        return found.pop() if len(found) == 1 else None

    return dict(read_program(text, path, given, load)[1])


def _text(root: Path, name: str) -> str | None:
    try:
        file = (root / name).resolve(strict=True)
        if not file.is_relative_to(root) or not file.is_file() or file.stat().st_size > 4 * FILE_LIMIT:
            return None
        return file.read_bytes().decode()
    except (OSError, ValueError):
        return None
