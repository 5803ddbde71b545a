"""The texts that lie beside a program: its own modules and the files it reads. They are handed in, as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from airflow_flinkcompat.frontends.pyflink import paths
from airflow_flinkcompat.frontends.table_api.values import TooMuch

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
        """The text of a file by a path as the program writes it; None outside of the program's folder."""
        inside = paths.inside(path)
        return None if inside is None else self.text(inside)


def loader(files: Mapping[str, str] | Loader | None) -> Loader:
    """Files as they are handed in: as a mapping from path to text, or as what finds them."""
    if files is None:
        return lambda path: None
    return files.get if isinstance(files, Mapping) else files
