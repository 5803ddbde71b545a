"""Workers for the parts of a migration: this process alone, or several processes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, Protocol, Self, TypeVar

T = TypeVar("T")
R = TypeVar("R")
Scattered = Iterator[tuple[int, bytes]]

_FILES = 128
"""Maximum number of files for spilled entries. Key groups beyond this number share files."""


class Workers(Protocol):
    """Workers that do parts of the migration in any order. All workers have access to the same files."""

    def parts(self, size: int, groups: int) -> int:
        """Number of parts to split work into, at least 1, for a size in bytes and a number of key groups."""

    def each(self, work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
        """Call a function for each part, and return the results in the order of the parts."""

    def regroup(
        self,
        scatter: Callable[[T], Scattered],
        parts: Sequence[T],
        gather: Callable[[range, Iterable[tuple[int, bytes]]], R],
        groups: Sequence[range],
    ) -> list[R]:
        """Scatter content to key groups, and gather the content of each range of key groups.

        ``gather`` receives a range, and the number and content of each non-empty group in that range, in order.
        ``groups``: The ranges in order, which together cover all key groups.
        """


class LocalWorkers:
    """Workers in this process that do one part after another.

    ``folder``: Folder on the disk for scattered content; None for the default folder of temporary files.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def parts(self, size: int, groups: int) -> int:
        return 1

    def each(self, work: Callable[[T], R], parts: Sequence[T]) -> list[R]:
        return [work(part) for part in parts]

    def regroup(
        self,
        scatter: Callable[[T], Scattered],
        parts: Sequence[T],
        gather: Callable[[range, Iterable[tuple[int, bytes]]], R],
        groups: Sequence[range],
    ) -> list[R]:
        """Scatter content to key groups on disk, then gather it range by range."""
        with Spill(range(groups[0].start, groups[-1].stop), self._folder) as spill:
            for part in parts:
                for group, content in scatter(part):
                    spill.add(group, content)
            return [gather(each, spill.groups(each)) for each in groups]


class Spill:
    """Content of key groups in unnamed files on disk, which vanish when the process ends."""

    def __init__(self, groups: range, folder: Path | None = None) -> None:
        self._groups, self._folder = groups, folder
        self._share = -(-len(groups) // _FILES) or 1
        self._files: dict[int, BinaryIO] = {}
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        """Return the spill without opening a file; the first content of a file opens it."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the files, which removes them."""
        self._opened.close()

    def add(self, group: int, content: bytes) -> None:
        place = (group - self._groups.start) // self._share
        if place not in self._files:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 - closed with the others
            self._files[place] = self._opened.enter_context(file)
        self._files[place].write(group.to_bytes(4, "big") + len(content).to_bytes(8, "big") + content)

    def groups(self, within: range) -> Iterator[tuple[int, bytes]]:
        """Yield the spilled content of each key group. Key groups that share a file are read together."""
        for place in sorted(self._files):
            begin = self._groups.start + place * self._share
            if begin < within.stop and within.start < begin + self._share:
                found = _by_group(self._files[place], within)
                for group in sorted(found):
                    yield group, bytes(found.pop(group))


def _by_group(file: BinaryIO, within: range) -> dict[int, bytearray]:
    found: dict[int, bytearray] = {}
    file.seek(0)
    while head := file.read(12):
        group, size = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
        if group in within:
            found.setdefault(group, bytearray()).extend(file.read(size))
        else:
            file.seek(size, 1)
    return found
