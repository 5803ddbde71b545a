"""Publication of files. Files are staged next to the target, and moved there after all are written.

The staging folder is also a claim on the target. The folder's name contains its owner, and the owner keeps writing to
the folder. Each run creates its folder before it looks for folders of other runs. If two runs would change the same
files, at least one run therefore sees the folder of the other run. A run is considered killed if its process has ended
or, on a different machine, if it has stopped writing. The folder of a killed run is removed.
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
from datetime import datetime
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from airflow_flinkcompat.backfill.connectors.files import FileSink
from airflow_flinkcompat.backfill.formats.columnar import ColumnarFormat
from airflow_flinkcompat.backfill.formats.text import encode_line
from airflow_flinkcompat.backfill.protocols import PublishedRows, Range
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark import FileSystem, configured

_BEAT_SECONDS = 5.0
_PATIENCE_SECONDS = 30.0
_LIVE: set[str] = set()


class Claim:
    """Staging folder of one run, which claims a range or all of a location; created by :meth:`take`."""

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
        """Create the folder, and remove the folders of killed runs."""
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
            if gone or (token not in _LIVE and self._is_abandoned(other)):
                self._files.delete(other)
                continue
            raise BackfillError(
                f"sink {sink}: another backfill (process {pid} on {machine.partition('.')[0]}) is writing to "
                f"{self._place}. Run this backfill after process {pid} has ended"
            )

    def check(self, sink: str) -> None:
        """Raise :class:`BackfillError` if a different run considered this run killed."""
        if not self._files.exists(f"{self.folder}/rows"):
            raise BackfillError(
                f"sink {sink}: the staged rows next to {self._place} were removed during the run, either manually "
                "or by another run that considered this run killed. Nothing was published. Run the backfill again"
            )

    def release(self) -> None:
        """Remove the folder and its content."""
        if self._token in _LIVE:
            _LIVE.remove(self._token)
            self._ended.set()
            if self._keeper.is_alive():
                self._keeper.join(_BEAT_SECONDS)
            self._files.delete(self.folder)

    def _keep(self) -> None:
        # A failed heartbeat is harmless, because other runs wait for several missing heartbeats.
        while not self._ended.wait(_BEAT_SECONDS):
            with suppress(Exception):
                self._files.touch(f"{self.folder}/alive")

    def _is_abandoned(self, other: str) -> bool:
        """True if the owner of a folder has stopped writing to it. Clocks of machines are not compared."""
        seen, until = self._files.changed(f"{other}/alive"), time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            time.sleep(_BEAT_SECONDS / 5)
            now = self._files.changed(f"{other}/alive")
            if now != seen:
                return now is None and not self._files.exists(other)
        return True


def _machine() -> str:
    """Name of the host and the container in which a process number is valid."""
    space = ""
    with suppress(OSError):
        space = f".{Path('/proc/self/ns/pid').stat().st_ino}"
    return re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()) + space


def _has_ended(pid: int, token: str) -> bool:
    """True if a run on this machine has certainly ended.

    The process number of an ended run may be in use again.
    """
    if pid == os.getpid():
        return token not in _LIVE
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


_LINE = "flinkcompat_line"
# Spark writes a TIMESTAMP_LTZ to Parquet as INT96, using only the Gregorian calendar.
_TIMES = {
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
}
_ALL = "all"
_OPEN = ("begin", "end")
_PENDING = re.compile(r"^\.backfill-(?P<label>[0-9T]+-[0-9T]+|begin-[0-9T]+|[0-9T]+-end|begin-end)\.(?P<files>[0-9]+)$")
_NAME = re.compile(r"^backfill-(?P<first>[0-9T]+|begin)-(?P<last>[0-9T]+|end)-[0-9]{5}\.")


def range_name(from_: datetime | None, to: datetime | None) -> str:
    """The range as a part of file names.

    Names sort in order of time; ``begin`` and ``end`` mark open ranges.
    """
    return "-".join(
        text if moment is None else moment.strftime("%Y%m%dT%H%M%S%f")
        for moment, text in zip((from_, to), _OPEN, strict=True)
    )


def overlaps(name: str, other: str) -> bool:
    """True if two ranges in the notation of :func:`range_name` overlap."""

    def bounds(text: str) -> tuple[str, str]:
        first, _, last = text.partition("-")
        return ("" if first == "begin" else first, "~" if last == "end" else last)

    (a, b), (c, d) = bounds(name), bounds(other)
    return a < d and c < b


class FilePublication:
    """Publication of one sink's rows in a folder; see :class:`Publication`.

    If the folder is ``exclusive``, the folder contains only these rows after publication. Otherwise, the new files
    replace files of an earlier run with the same range, and other files remain. File names contain the range. If the
    sink has partitions, file names begin with the partition folders.
    """

    def __init__(self, session: SparkSession, target: FileSink, rows: PublishedRows, bounds: Range) -> None:
        self.target = target
        self.rows = rows
        self.label = range_name(bounds.from_, bounds.to)
        self.session = session
        self.files = FileSystem(session, target.place)
        self._folders = target.partitioning.names
        folder, _, name = target.place.rpartition("/")
        self._previous = f"{folder}/.{name}.previous"
        self._claim = Claim(self.files, target.place, _ALL if target.exclusive else self.label)
        self._staged = self._claim.folder

    def check(self) -> None:
        place, files = self.target.place, self.files
        self._claim.take(self._conflicts, self.rows.name)
        if self.target.exclusive and not files.exists(place) and files.exists(self._previous):
            files.move(self._previous, place)  # An earlier run was killed between its two moves.
        if files.is_file(place):
            raise BackfillError(
                f"sink {self.rows.name}: {place} is a file, but a backfill writes a folder of files. Pass a folder"
            )
        if not files.exists(place):
            return
        for name, folder, _ in files.entries(place):
            stray = folder and not name.startswith((".", "_", *(f"{column}=" for column in self._folders[:1])))
            if self.target.exclusive and stray:
                raise BackfillError(
                    f"sink {self.rows.name}: {place} contains a folder {name}, which this run would replace with "
                    "its own rows. Empty the location, or write to a different location"
                )
        if self.target.exclusive:
            return
        self._finish_interrupted_moves()
        for name, _ in files.files(place, len(self._folders)):
            other = _NAME.match(_base(name))
            known = f"{other['first']}-{other['last']}" if other else self.label
            if known != self.label and overlaps(known, self.label):
                raise BackfillError(
                    f"sink {self.rows.name}: {place}/{name} was published by a backfill of an overlapping range. "
                    f"Delete backfill-{known}-*, or write to a different location with --sink {self.rows.name}=URI"
                )

    def _conflicts(self, label: str) -> bool:
        return self.target.exclusive or label == _ALL or overlaps(label, self.label)

    def stage(self, rows: DataFrame) -> None:
        partitioning, format = self.target.partitioning, self.target.format
        values = {column.name: f"c{i}" for i, column in enumerate(self.rows.columns)}
        stored = tuple(column for column in self.rows.columns if column not in partitioning.columns)
        folders = {column.name: partitioning.folder(column, values[column.name]) for column in partitioning.columns}
        if isinstance(format, ColumnarFormat):
            fields = {column.name: format.write(column, values[column.name]) for column in stored}
        else:
            fields = {_LINE: encode_line(format, stored, tuple(values[column.name] for column in stored))}
        chosen = rows.select(*(F.expr(sql).alias(name) for name, sql in {**fields, **folders}.items()))
        writer = chosen.write.partitionBy(*folders) if folders else chosen.write
        if isinstance(format, ColumnarFormat):
            with configured(self.session, _TIMES):
                writer.options(**format.layout).format(format.name).save(f"{self._staged}/rows")
        else:
            writer.text(f"{self._staged}/rows")

    def publish(self) -> tuple[str, ...]:
        self._claim.check(self.rows.name)
        ending, depth = self.target.format.name, len(self._folders)
        stem = "part" if self.target.exclusive else f"backfill-{self.label}"
        written = self.files.files(f"{self._staged}/rows", depth)
        staged = [name for name, size in written if _base(name).startswith("part-") and size]
        names = tuple(f"{_folder(old)}{stem}-{number:05d}.{ending}" for number, old in enumerate(staged))
        ready = f"{self._staged}/ready"
        self.files.make_folder(ready)
        folders = sorted({_folder(name) for name in names})
        for folder in filter(None, folders):
            self.files.make_folder(f"{ready}/{folder}")
        for old, new in zip(staged, names, strict=True):
            self.files.move(f"{self._staged}/rows/{old}", f"{ready}/{new}")
        success = self.target.partitioning.success_file
        if success and self.target.exclusive:
            self._mark(ready, folders, success)
        if self.target.exclusive:
            self._swap(ready)
        else:
            self._add(ready, names)
        return names

    def _mark(self, place: str, folders: list[str], success: str) -> None:
        """Mark complete partitions, as Flink's commit policy success-file does."""
        for folder in folders:
            self.files.write(f"{place}/{folder}{success}")

    def _swap(self, ready: str) -> None:
        place, files = self.target.place, self.files
        files.delete(self._previous)
        held = files.exists(place)
        if held:
            files.move(place, self._previous)
        try:
            files.move(ready, place)
        except Exception:
            if held:
                files.move(self._previous, place)
            raise
        with suppress(Py4JError):  # The rows are published. The next run removes remaining files.
            files.delete(self._previous)

    def _add(self, ready: str, names: tuple[str, ...]) -> None:
        """Move files to the target with hidden names. Then write a mark, with which the next run can finish."""
        place, files = self.target.place, self.files
        files.make_folder(place)
        for folder in sorted({_folder(name) for name in names} - {""}):
            files.make_folder(f"{place}/{folder}")
        for name in self._files_of_range(self.label, "."):
            files.delete(f"{place}/{name}")
        mark = f"{place}/.backfill-{self.label}.{len(names)}"
        try:
            for name in names:
                files.move(f"{ready}/{name}", f"{place}/{_hidden(name)}")
            files.write(mark)
            self._put(self.label, len(names))
        except Exception:
            # If this fails too, the next run finishes the move.
            with suppress(Py4JError, BackfillError):
                if files.exists(mark):
                    self._unpublish(self.label, len(names))
                    files.delete(mark)
                for name in self._files_of_range(self.label, "."):
                    files.delete(f"{place}/{name}")
            raise
        with suppress(Py4JError):  # The rows are already published, so this error is harmless.
            self._delete_old_files(self.label, mark)

    def _finish_interrupted_moves(self) -> None:
        """Finish interrupted moves of earlier runs whose range is equal or overlaps."""
        for name, folder, _ in self.files.entries(self.target.place):
            pending = None if folder else _PENDING.match(name)
            if pending and overlaps(pending["label"], self.label):
                self._put(pending["label"], int(pending["files"]))
                self._delete_old_files(pending["label"], f"{self.target.place}/{name}")

    def _files_of_range(self, label: str, before: str = "") -> list[str]:
        """Files of a range: published, or with the given prefix: ``.`` for hidden, ``.old-`` for set aside."""
        found = self.files.files(self.target.place, len(self._folders))
        return [name for name, _ in found if _base(name).startswith(f"{before}backfill-{label}-")]

    def _put(self, label: str, count: int) -> None:
        """Set old files aside and publish the ``count`` new files.

        An interrupted attempt can be resumed at any point.

        Old files are visible only while all new files are hidden.
        """
        place, files, hidden = self.target.place, self.files, self._files_of_range(label, ".")
        if len(hidden) == count:
            for name in self._files_of_range(label):
                files.move(f"{place}/{name}", f"{place}/{_folder(name)}.old-{_base(name)}")
        for name in hidden:
            files.move(f"{place}/{name}", f"{place}/{_visible_name(name, '.')}")
        if success := self.target.partitioning.success_file:
            self._mark(place, sorted({_folder(name) for name in self._files_of_range(label)}), success)

    def _unpublish(self, label: str, count: int) -> None:
        """Undo :meth:`_put`, even if interrupted. :meth:`_put` may run again, even after a partial undo."""
        place, files = self.target.place, self.files
        if len(self._files_of_range(label, ".")) < count:
            for name in self._files_of_range(label):
                files.move(f"{place}/{name}", f"{place}/{_hidden(name)}")
        for name in self._files_of_range(label, ".old-"):
            files.move(f"{place}/{name}", f"{place}/{_visible_name(name, '.old-')}")

    def _delete_old_files(self, label: str, mark: str) -> None:
        for name in self._files_of_range(label, ".old-"):
            self.files.delete(f"{self.target.place}/{name}")
        self.files.delete(mark)

    def discard(self) -> None:
        self._claim.release()


def _folder(name: str) -> str:
    """``dt=1/part-0`` → ``dt=1/``."""
    return name[: name.rfind("/") + 1]


def _base(name: str) -> str:
    return name[name.rfind("/") + 1 :]


def _hidden(name: str) -> str:
    return f"{_folder(name)}.{_base(name)}"


def _visible_name(name: str, before: str) -> str:
    """Remove a prefix from a file name: ``dt=1/.part-0`` → ``dt=1/part-0``."""
    return f"{_folder(name)}{_base(name).removeprefix(before)}"
