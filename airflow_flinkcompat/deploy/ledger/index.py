"""The index of all ledgers under a root: a row for each deployment, so that a list reads few files.

The folder ``<root>/_index/`` (no deployment can have this name) contains two kinds of files:

* ``<deployment>~000007.json`` is a *marker*. An empty marker is written directly before entry 7 is created. After the
entry, the deployment's row is written into the marker. So an empty marker means that an entry without a row may exist,
  because its writer is still active or died.
* ``snapshots/000003.json`` is a *snapshot*, which contains the rows of all deployments. A writer creates the next
  snapshot when many markers are newer than the last snapshot. If two writers create the same snapshot, a conditional
  create lets only the first writer succeed.

A snapshot *covers* a marker if the snapshot's row includes the marker's entry. A reader lists the markers, then the
snapshots. The reader uses the latest snapshot and all markers that this snapshot does not cover. Only the newest
marker of each deployment applies. If the newest marker is empty, the reader reads the deployment's ledger.

Therefore the index never lacks an entry of a ledger. Each entry has a marker before the entry exists. A marker is
deleted only if a snapshot covers it and a newer snapshot exists. Markers are deleted one snapshot late, so that slow
readers can still read them.

Only the ledgers are authoritative. A fault in the index only slows down readers, and ``flinkcompat ledger index``
repairs the index. A failed write to the index never makes an entry fail.
"""

from __future__ import annotations

import json
import logging
import os
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_flinkcompat.deploy.ledger.status import SCHEMA, DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import LedgerError, Store

_log = logging.getLogger(__name__)
FOLDER = "_index"
"""The folder of the index, next to the deployments' folders. No deployment can have this name."""
MOST_MARKERS = 64
"""Number of markers not covered by the latest snapshot that triggers the next snapshot.

Up to about twice as many markers may exist, because markers are deleted one snapshot late.
"""
_SNAPSHOTS = "snapshots"
_MARKER = re.compile(r"(?P<deployment>[A-Za-z0-9][A-Za-z0-9._-]{0,127})~(?P<number>\d{6,})\.json")
_SNAPSHOT = re.compile(r"(\d{6,})\.json")
# Maximum attempts of a reader, because listed files may be deleted before it reads them.
_TRIES = 5
REMEDY = "`flinkcompat ledger index` rebuilds the index"


@dataclass(frozen=True, order=True)
class Marker:
    """A marker of the index: the deployment, and the number of an entry."""

    deployment: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.deployment}~{self.number:06d}.json"


@dataclass(frozen=True)
class IndexView:
    """Content of the index, as a reader or writer saw it.

    ``rows`` contains the rows by deployment. Deployments in ``dirty`` have no row, or an outdated row. ``snapshot`` is
    the number of the latest snapshot (0: none). ``covered_to`` is the last entry that the snapshot covers, by
    deployment. ``markers`` contains all existing markers.
    """

    rows: Mapping[str, DeploymentRow] = field(default_factory=dict)
    dirty: frozenset[str] = frozenset()
    snapshot: int = 0
    covered_to: Mapping[str, int] = field(default_factory=dict)
    markers: tuple[Marker, ...] = ()

    @property
    def uncovered(self) -> tuple[Marker, ...]:
        return tuple(each for each in self.markers if each.number > self.covered_to.get(each.deployment, 0))


class Index:
    """The index of the ledgers under a root (path or URI); ``options`` are passed to its file system."""

    def __init__(self, root: str | os.PathLike[str], **options: Any) -> None:
        self._store = Store(root, FOLDER, **options)
        self.directory = self._store.directory

    # -------------------------------------------------------------------------------------- next to a new entry
    def announce(self, deployment: str, number: int) -> None:
        """Write an empty marker before a new entry, so that readers read the ledger itself. Never raises."""
        try:
            self._store.put(Marker(deployment, number).name, b"")
        except LedgerError as error:
            _log.warning("Cannot announce entry %d of %s to the index: %s; %s", number, deployment, error, REMEDY)

    def settle(self, row: DeploymentRow) -> None:
        """Write the deployment's row into the marker after the entry exists. Never raises."""
        try:
            self._store.put(Marker(row.deployment, row.last).name, _encoded(row.to_dict()))
        except LedgerError as error:
            _log.warning("The index lacks the row of entry %d of %s: %s; %s", row.last, row.deployment, error, REMEDY)

    def row_at(self, deployment: str, number: int) -> DeploymentRow | None:
        """The deployment's row as of entry ``number``, or None if the index lacks it. Raises LedgerError."""
        content = self._store.find([Marker(deployment, number).name])[0]
        row = _decoded(content, deployment) if content is not None else None
        if row is None:
            row = self._rows_of(max(self._snapshots(), default=0)).get(deployment)
        return row if row is not None and row.last == number else None

    # -------------------------------------------------------------------------------------------------- reading
    def read(self) -> IndexView:
        """Read the rows, and find the deployments whose ledgers must be read. Raises LedgerError."""
        for _ in range(_TRIES):
            if (view := self._read(self._list_files())) is not None:
                return view
        raise LedgerError(f"the index {self.directory} changed during the read. Try again")

    def _list_files(self) -> IndexView:
        """The existing markers and the latest snapshot, without the content of the markers."""
        found = filter(None, map(_MARKER.fullmatch, self._store.names()))
        markers = tuple(sorted(Marker(match["deployment"], int(match["number"])) for match in found))
        snapshot = max(self._snapshots(), default=0)
        rows = self._rows_of(snapshot)
        return IndexView(rows, frozenset(), snapshot, {name: row.last for name, row in rows.items()}, markers)

    def _snapshots(self) -> list[int]:
        found = filter(None, map(_SNAPSHOT.fullmatch, self._store.names(_SNAPSHOTS)))
        return sorted(int(match[1]) for match in found)

    def _rows_of(self, snapshot: int) -> dict[str, DeploymentRow]:
        """The rows of a snapshot. Empty if the snapshot is deleted or unreadable."""
        content = self._store.find([_snapshot_name(snapshot)])[0] if snapshot else None
        try:
            rows = json.loads(content)["rows"] if content else []
            return {row["deployment"]: DeploymentRow.from_dict(row) for row in rows}
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("Cannot use snapshot %d of the index %s: %s; %s", snapshot, self.directory, error, REMEDY)
            return {}

    def _read(self, listed: IndexView) -> IndexView | None:
        """The snapshot's rows, updated by the markers' rows. None if a listed marker no longer exists."""
        newest = {each.deployment: each for each in listed.uncovered}
        rows, dirty = dict(listed.rows), set()
        contents = self._store.find([each.name for each in newest.values()])
        for marker, content in zip(newest.values(), contents, strict=True):
            if content is None:
                return None
            row = _decoded(content, marker.deployment)
            if row is None or row.last != marker.number:
                dirty.add(marker.deployment)
            else:
                rows[marker.deployment] = row
        return IndexView(rows, frozenset(dirty), listed.snapshot, listed.covered_to, listed.markers)

    # ------------------------------------------------------------------------------------------------ snapshots
    def compact(self, read_ledger: Callable[[str, DeploymentRow | None], DeploymentRow]) -> None:
        """Create a snapshot if the latest one does not cover many of the markers. Never raises."""
        try:
            if not self._may_be_due():
                return
            listed = self._list_files()
            if len(listed.uncovered) <= MOST_MARKERS or (view := self._read(listed)) is None:
                return
            rows = dict(view.rows)
            for name in sorted(view.dirty):
                try:
                    # The marker of a still active writer is newer than this row, so the marker remains.
                    rows[name] = read_ledger(name, rows.get(name))
                except LedgerError as error:
                    _log.warning("Cannot index %s, so readers must read its ledger: %s", name, error)
            self._write(view, rows)
        except FileExistsError:
            return  # a different writer has created the snapshot
        except LedgerError as error:
            _log.warning("The index %s was not compacted: %s", self.directory, error)

    def _may_be_due(self) -> bool:
        """True if a snapshot may be due. Every run calls this method, so the method reads only file names."""
        markers = sum(1 for name in self._store.names() if _MARKER.fullmatch(name))
        return markers > MOST_MARKERS and (markers > 2 * MOST_MARKERS or not self._snapshots())

    def rebuild(self, read_ledgers: Callable[[], Mapping[str, DeploymentRow]]) -> None:
        """Create a snapshot from the ledgers, regardless of the index's content."""
        for _ in range(_TRIES):
            listed = self._list_files()
            rows = dict(read_ledgers())
            ahead = [each for each in listed.markers if each.number > _last(rows, each.deployment)]
            for marker in ahead:  # the marker's entry is lost or about to be written, so readers must read the ledger
                self._store.put(marker.name, b"")
            try:
                return self._write(listed, rows)
            except FileExistsError:
                continue
        raise LedgerError(f"other writers keep changing the index {self.directory}. Try again")

    def _write(self, view: IndexView, rows: Mapping[str, DeploymentRow]) -> None:
        """Write the next snapshot, then delete markers that the last one covers. Raises FileExistsError."""
        stored = [rows[name].to_dict() for name in sorted(rows) if rows[name].last]
        self._store.create(
            _snapshot_name(view.snapshot + 1),
            _encoded({"schema": SCHEMA, "rows": stored, "mark": uuid.uuid4().hex}),
            patience=0,
        )
        old = [_snapshot_name(number) for number in self._snapshots() if number < view.snapshot]
        covered = [each.name for each in view.markers if each.number <= view.covered_to.get(each.deployment, 0)]
        try:
            self._store.delete([*old, *covered])
        except LedgerError as error:
            _log.info("Cannot delete files that the index %s no longer needs: %s", self.directory, error)


def _last(rows: Mapping[str, DeploymentRow], deployment: str) -> int:
    return rows[deployment].last if deployment in rows else 0


def _snapshot_name(number: int) -> str:
    return f"{_SNAPSHOTS}/{number:06d}.json"


def _encoded(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")


def _decoded(content: bytes, deployment: str) -> DeploymentRow | None:
    """The row of a marker, or None if the marker is empty or this release does not understand the row."""
    try:
        row = DeploymentRow.from_dict(json.loads(content))
    except (ValueError, KeyError, TypeError):
        return None
    return row if row.deployment == deployment else None
