"""Claims on a folder by a staging folder next to it, which its owner names and keeps writing to.

Of two runs that would change the same files at least one sees the other's staging folder, since each makes its own
before it looks. A killed run is recognised by its process, which is gone, or, from another machine, by its silence. Its
folder is removed.
"""

from __future__ import annotations

import os
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.errors import BackfillError

if TYPE_CHECKING:
    from airflow_flinkcompat.backfill.spark.filesystem import FileSystem

_BEAT_SECONDS = 5.0
_PATIENCE_SECONDS = 30.0
_LIVE: set[str] = set()


class Claim:
    """The staging folder of one run over one ``label`` (a range, or all) of a place; made by :meth:`take`."""

    def __init__(self, files: FileSystem, place: str, label: str) -> None:
        self._files = files
        self._parent, _, name = place.rpartition("/")
        self._place, self._prefix = place, f".{name}.staged-"
        self._token = uuid.uuid4().hex[:12]
        self._name = f"{self._prefix}{label}@{_machine()}@{os.getpid()}@{self._token}"
        self._ended = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self.folder = f"{self._parent}/{self._name}"

    def take(self, conflicts: Callable[[str], bool], sink: str) -> None:
        """Make the folder and remove those of dead runs.

        Raises :class:`BackfillError` if a run over a label that ``conflicts`` is alive.
        """
        _LIVE.add(self._token)
        self._files.make_folder(self.folder)
        self._files.touch(f"{self.folder}/alive")
        self._keeper.start()
        for name, _, _ in self._files.entries(f"{self._parent}/"):
            owner = re.fullmatch(r"(.*)@([^@]*)@([0-9]+)@([0-9a-f]+)", name.removeprefix(self._prefix))
            if not name.startswith(self._prefix) or owner is None or name == self._name:
                continue
            label, machine, pid, token = owner.groups()
            other = f"{self._parent}/{name}"
            gone = machine == _machine() and _has_ended(int(pid), token)
            if not gone and not conflicts(label):
                continue
            if gone or (token not in _LIVE and self._silent(other)):
                self._files.delete(other)
                continue
            raise BackfillError(
                f"sink {sink}: another backfill (process {pid} on {machine.partition('.')[0]}) is "
                f"writing to {self._place}; run this one after it has ended"
            )

    def check(self, sink: str) -> None:
        """Raise :class:`BackfillError` if another run considered this one dead."""
        if not self._files.exists(f"{self.folder}/rows"):
            raise BackfillError(
                f"sink {sink}: the staged rows next to {self._place} were removed during the run, by "
                "hand or by another run that considered this one dead; nothing was published, run it "
                "again"
            )

    def give_up(self) -> None:
        """Remove the folder with its content."""
        if self._token in _LIVE:
            _LIVE.remove(self._token)
            self._ended.set()
            if self._keeper.is_alive():
                self._keeper.join(_BEAT_SECONDS)
            self._files.delete(self.folder)

    def _keep(self) -> None:
        # A beat that fails is as good as none: whoever looks waits for several.
        while not self._ended.wait(_BEAT_SECONDS):
            with suppress(Exception):
                self._files.touch(f"{self.folder}/alive")

    def _silent(self, other: str) -> bool:
        """True if the owner of a folder has not written to it for a while; clocks are not compared."""
        seen, until = self._files.changed(f"{other}/alive"), time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            time.sleep(_BEAT_SECONDS / 5)
            now = self._files.changed(f"{other}/alive")
            if now != seen:
                return now is None and not self._files.exists(other)
        return True


def _machine() -> str:
    """Scope of a process number: the host, and the container on it."""
    space = ""
    with suppress(OSError):
        space = f".{Path('/proc/self/ns/pid').stat().st_ino}"
    return re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()) + space


def _has_ended(pid: int, token: str) -> bool:
    """True if a run of this machine has certainly ended; its number may belong to another process by now."""
    if pid == os.getpid():
        return token not in _LIVE
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
