"""Output folder of a migration.

The savepoint in the folder becomes complete in a single step, or never.
"""

from __future__ import annotations

import os
from collections.abc import Set
from contextlib import suppress
from pathlib import Path
from typing import Self
from uuid import UUID, uuid4

from upath import UPath

from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.verifying import MigrationVerificationFailed
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.metadata import SavepointMetadata, StateFile
from airflow_flinkcompat.savepoint.store import METADATA, StoredContent, read_metadata

_UNFINISHED = "_unfinished-migration"
"""Name of the file that marks a folder as the output of a running migration and contains its id."""
_BLOCK = 8 << 20


class FolderTaken(NotMigratable):
    """The output folder has content, or another run is writing to it."""


class TargetFolder:
    """Output folder of a migrated savepoint.

    If a run is killed, the folder is in one of these states:

    * It is missing or empty, as before the run or after a failed run.
    * It contains the mark and files with UUIDs as names. The savepoint is unfinished, and the next run removes the
      files.
    * It contains the mark and ``_metadata``: the run was killed after it published ``_metadata``. If all files that the
      metadata names exist, the savepoint is complete. The next run reports the complete savepoint and changes nothing.
      If files are missing, another run also wrote to the folder, and Flink cannot restore the savepoint.
    * It contains ``_metadata`` and no mark: the savepoint is complete.

    If two runs write to one folder, at most one of them succeeds. A run sets its mark before it lists the folder, and
    checks its mark again after it has written ``_metadata``. A run only removes files that it listed before it last
    found its own mark. Files of later runs are therefore never removed. Only the run that wrote ``_metadata`` removes
    ``_metadata``. On object stores, which overwrite an existing file, one conflict is still possible. A run may pause
    after its last check of the mark and before it writes ``_metadata``, while another run finishes. When the paused run
    resumes, it overwrites the ``_metadata`` of the other run.
    """

    def __init__(self, folder: UPath) -> None:
        self._folder = folder
        self._mark, self._metadata = folder / _UNFINISHED, folder / METADATA
        self._run = str(uuid4())

    def __enter__(self) -> Self:
        """Return the folder without writing anything; :meth:`begin` makes the first change."""
        return self

    def __exit__(self, *error: object) -> None:
        """Remove the output of a failed run, and its mark last, so that a later run can clear leftovers."""
        if error[0] is not None:
            with suppress(Exception):  # The caller gets the first error, not an error of the cleanup.
                self._clear()
                self._mark.unlink()

    @property
    def path(self) -> str:
        return str(self._folder)

    @property
    def disk(self) -> Path | None:
        return Path(self.path) if self._local else None

    @property
    def _local(self) -> bool:
        return self._folder.protocol in ("", "file")

    def begin(self) -> None:
        """Check that the folder is free, and remove the files of a killed run."""
        held = self._names() if self._folder.exists() else set()
        if METADATA in held and _UNFINISHED in held and self._is_whole(held):
            raise FolderTaken(
                f"{self._folder} already contains a complete savepoint of another run, which was still marked as "
                "unfinished: start from that savepoint, or pass a folder that does not exist"
            )
        if held and (METADATA in held or _UNFINISHED not in held or not all(map(_of_a_run, held - {_UNFINISHED}))):
            raise self._not_empty()
        self._folder.mkdir(parents=True, exist_ok=True)
        if not self._local:
            self._mark.write_text(self._run)
        elif _UNFINISHED in held:  # Replace a killed run's mark in a single step, so that its files stay marked.
            self._part(self._run.encode()).rename(self._mark)
        else:
            try:
                with self._mark.open("x") as file:
                    file.write(self._run)
            except FileExistsError:
                raise self._in_use() from None
        self._clear()

    def copy(self, content: StoredContent) -> StateFile:
        name = str(uuid4())
        with (self._folder / name).open("wb") as file:
            for begin in range(0, content.size, _BLOCK):
                file.write(content.read(begin, min(begin + _BLOCK, content.size)))
        return StateFile(name, content.size, relative=True)

    def publish(self, metadata: SavepointMetadata) -> None:
        """Write ``_metadata``, which completes the savepoint. Object stores never show a half-written object."""
        named = {each.path for each in metadata.handles() if isinstance(each, StateFile)}
        self._clear(named)
        self._publish_metadata(metadata.to_bytes())
        if not (named <= self._names() and self._is_ours()):
            self._metadata.unlink()
            raise self._in_use()
        self._mark.unlink()

    def _publish_metadata(self, metadata: bytes) -> None:
        """Write ``_metadata``; on a local disk, raise FolderTaken if another run has already written it."""
        if not self._local:
            self._metadata.write_bytes(metadata)
            self._read_back(self._metadata, metadata)
            return
        part = self._part(metadata)
        self._read_back(part, metadata)
        try:
            os.link(str(part), str(self._metadata))
        except (FileExistsError, FileNotFoundError):
            # A different run has published its savepoint, or has removed the files of this run.
            raise self._in_use() from None
        except OSError:  # The disk does not support hard links.
            part.rename(self._metadata)
        else:
            part.unlink()

    def _read_back(self, written: UPath, content: bytes) -> None:
        """Check that the written content can be read back; if it differs, remove it and raise an error."""
        if written.read_bytes() != content:
            written.unlink()
            raise MigrationVerificationFailed(
                f"{self._metadata} does not contain what was written to it: check the storage, and run the "
                "migration again"
            )

    def _part(self, content: bytes) -> UPath:
        part = self._folder / str(uuid4())
        part.write_bytes(content)
        return part

    def _names(self) -> set[str]:
        return {each.name for each in self._folder.iterdir()}

    def _is_whole(self, held: Set[str]) -> bool:
        try:
            handles = read_metadata(self.path).handles()
        except SavepointUnreadable:
            return False
        return all(each.path in held for each in handles if isinstance(each, StateFile))

    def _is_ours(self) -> bool:
        try:
            return bool(self._mark.read_text() == self._run)
        except FileNotFoundError:
            return False

    def _clear(self, but: Set[str] = frozenset()) -> None:
        """Remove files of unfinished runs. Leave a complete savepoint and its files unchanged."""
        found = self._names()
        if not self._is_ours():
            raise self._in_use()
        if METADATA in found:
            raise self._not_empty()
        for name in filter(_of_a_run, found - but):
            (self._folder / name).unlink(missing_ok=True)

    def _in_use(self) -> FolderTaken:
        return FolderTaken(
            f"{self._folder} is being written by another run: wait for that run, or pass a different folder"
        )

    def _not_empty(self) -> FolderTaken:
        return FolderTaken(f"{self._folder} is not empty: pass a folder that does not exist")


def _of_a_run(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False
