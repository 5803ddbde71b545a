"""The folder of a savepoint that is being written: it becomes one at once, or stays none."""

from __future__ import annotations

from pathlib import Path
from typing import Self
from uuid import UUID, uuid4

from upath import UPath

from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.savepoint.metadata import SavepointMetadata, StateFile
from airflow_flinkcompat.savepoint.store import METADATA, StoredContent

_UNFINISHED = "_unfinished-migration"
"""Stands there while a run writes, with the run's own number: what else is there is of that run."""
_BLOCK = 8 << 20


class TargetFolder:
    """Where a savepoint is written.

    Args:
        folder: Its place.
    """

    def __init__(self, folder: UPath) -> None:
        self._folder = folder
        self._run = str(uuid4())

    def __enter__(self) -> Self:
        """Nothing is there before :meth:`begin`."""
        return self

    def __exit__(self, *error: object) -> None:
        """What a run that failed has written is removed."""
        if error[0] is not None and self._is_ours():
            self._clear()

    @property
    def path(self) -> str:
        """Path or URI."""
        return str(self._folder)

    @property
    def disk(self) -> Path | None:
        """The folder where it is one of this machine."""
        return Path(self.path) if self._local else None

    @property
    def _local(self) -> bool:
        return self._folder.protocol in ("", "file")

    def begin(self) -> None:
        """See that nothing is in the way. What a killed run left is removed.

        Raises:
            NotMigratable: The folder holds something else.
        """
        held = list(self._folder.iterdir()) if self._folder.exists() else []
        names = {each.name for each in held}
        if held and (METADATA in names or _UNFINISHED not in names or not all(map(_of_a_run, names - {_UNFINISHED}))):
            raise NotMigratable(f"{self._folder} holds something: name a folder that does not exist")
        self._folder.mkdir(parents=True, exist_ok=True)
        self._clear()
        (self._folder / _UNFINISHED).write_text(self._run)

    def copy(self, content: StoredContent) -> StateFile:
        """A file with the same content.

        Args:
            content: What to copy.

        Returns:
            The file.

        Raises:
            SavepointUnreadable: It ends early.
        """
        name = str(uuid4())
        with (self._folder / name).open("wb") as file:
            for begin in range(0, content.size, _BLOCK):
                file.write(content.read(begin, min(begin + _BLOCK, content.size)))
        return StateFile(name, content.size, relative=True)

    def publish(self, metadata: SavepointMetadata) -> None:
        """The file that makes it a savepoint, whole at once: an object store shows no half-written object.

        Args:
            metadata: Its content; files that it does not name, of tasks that were tried again, are removed.

        Raises:
            NotMigratable: Another run writes there meanwhile.
        """
        if not self._is_ours():
            raise NotMigratable(f"{self._folder} is being written by another run")
        named = {each.path for each in metadata.handles() if isinstance(each, StateFile)}
        for file in list(self._folder.iterdir()):
            if file.name not in named and file.name != _UNFINISHED:
                file.unlink()
        if self._local:
            part = self._folder / str(uuid4())
            part.write_bytes(metadata.to_bytes())
            part.rename(self._folder / METADATA)
        else:
            (self._folder / METADATA).write_bytes(metadata.to_bytes())
        (self._folder / _UNFINISHED).unlink()

    def _is_ours(self) -> bool:
        mark = self._folder / _UNFINISHED
        return bool(mark.exists() and mark.read_text() == self._run)

    def _clear(self) -> None:
        """The mark goes last, so that whoever is killed here leaves what can be cleared again."""
        for each in sorted(self._folder.iterdir(), key=lambda each: each.name == _UNFINISHED):
            each.unlink()


def _of_a_run(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
