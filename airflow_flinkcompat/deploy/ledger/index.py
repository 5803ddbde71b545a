"""The index over the ledgers of one root: a row for each deployment, so that a list reads few objects.

``<root>/_index/`` (no deployment can have that name) holds two kinds of files:

* ``<deployment>~000007.json``, a *marker*. It is written empty right before entry 7 is created, and receives the row of
  the deployment after that entry once the entry exists. An empty marker means that an entry may exist that no row
  covers, because its writer still writes or died.
* ``snapshots/000003.json``, the rows of all deployments at one time. A writer makes the next one when many markers are
  newer than the last, by a conditional create: the second writer does nothing.

A marker is *covered* by a snapshot whose row of its deployment is of that entry or a later one. A reader lists the
markers, then the snapshots, and takes the latest snapshot and the markers that it does not cover. Of each deployment
the newest marker counts; if it is empty, the ledger itself is read. The index therefore never lacks an entry of the
ledgers. An entry has a marker before it exists. The marker is removed only when a snapshot covers it and the next
snapshot is written. That one snapshot of grace protects readers whose listing took a while.

Only the ledgers are the truth. A fault in the index makes readers slow, and ``flinkcompat ledger index`` repairs it.
Writes to the index never make an entry fail.
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
"""The folder next to those of the deployments; a name that no deployment can have."""
MOST_MARKERS = 64
"""Number of markers newer than the snapshot that triggers the next one; at most twice as many exist."""
_SNAPSHOTS = "snapshots"
_MARKER = re.compile(r"(?P<deployment>[A-Za-z0-9][A-Za-z0-9._-]{0,127})~(?P<number>\d{6,})\.json")
_SNAPSHOT = re.compile(r"(\d{6,})\.json")
# Attempts of a reader whose listed files were deleted meanwhile.
_TRIES = 5
REMEDY = "`flinkcompat ledger index` rebuilds it"


@dataclass(frozen=True, order=True)
class Marker:
    """A marker by its name."""

    deployment: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.deployment}~{self.number:06d}.json"


@dataclass(frozen=True)
class IndexView:
    """Content of the index.

    ``rows`` by deployment; a deployment in ``dirty`` may lack entries in its row, or has none. ``snapshot`` is the
    number of the latest one (0: none) and ``covered_to`` the entry that it covers, by deployment. ``markers`` are all
    that exist.
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
    """The index of the ledgers under a root, a path or URI; ``options`` are passed to its file system."""

    def __init__(self, root: str | os.PathLike[str], **options: Any) -> None:
        self._store = Store(root, FOLDER, **options)
        self.directory = self._store.directory

    # ------------------------------------------------------------------------------------------- beside an entry
    def announce(self, deployment: str, number: int) -> None:
        """Announce a new entry, so that readers look at the ledger itself from now on; never raises."""
        try:
            self._store.put(Marker(deployment, number).name, b"")
        except LedgerError as error:
            _log.warning("Cannot announce entry %d of %s to the index: %s; %s", number, deployment, error, REMEDY)

    def settle(self, row: DeploymentRow) -> None:
        """Write the deployment's row once the entry exists; never raises."""
        try:
            self._store.put(Marker(row.deployment, row.last).name, _encoded(row.to_dict()))
        except LedgerError as error:
            _log.warning("The index lacks the row of entry %d of %s: %s; %s", row.last, row.deployment, error, REMEDY)

    def row_at(self, deployment: str, number: int) -> DeploymentRow | None:
        """The row after exactly this entry; None if the index lacks it. Raises LedgerError."""
        content = self._store.find([Marker(deployment, number).name])[0]
        row = _decoded(content, deployment) if content is not None else None
        if row is None:
            row = self._rows_of(max(self._snapshots(), default=0)).get(deployment)
        return row if row is not None and row.last == number else None

    # -------------------------------------------------------------------------------------------------- reading
    def read(self) -> IndexView:
        """Read the rows, and the deployments whose ledgers must be read. Raises LedgerError."""
        for _ in range(_TRIES):
            if (view := self._read(self._listed())) is not None:
                return view
        raise LedgerError(f"the index {self.directory} changed while it was read: try again")

    def _listed(self) -> IndexView:
        """Names, and the coverage of the latest snapshot: enough to decide about a new one."""
        found = filter(None, map(_MARKER.fullmatch, self._store.names()))
        markers = tuple(sorted(Marker(match["deployment"], int(match["number"])) for match in found))
        snapshot = max(self._snapshots(), default=0)
        rows = self._rows_of(snapshot)
        return IndexView(rows, frozenset(), snapshot, {name: row.last for name, row in rows.items()}, markers)

    def _snapshots(self) -> list[int]:
        found = filter(None, map(_SNAPSHOT.fullmatch, self._store.names(_SNAPSHOTS)))
        return sorted(int(match[1]) for match in found)

    def _rows_of(self, snapshot: int) -> dict[str, DeploymentRow]:
        """The rows of a snapshot; none if it was deleted meanwhile, or cannot be understood."""
        content = self._store.find([_snapshot_name(snapshot)])[0] if snapshot else None
        try:
            rows = json.loads(content)["rows"] if content else []
            return {row["deployment"]: DeploymentRow.from_dict(row) for row in rows}
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("Cannot use snapshot %d of the index %s: %s; %s", snapshot, self.directory, error, REMEDY)
            return {}

    def _read(self, listed: IndexView) -> IndexView | None:
        """The rows of the markers laid over the snapshot's; None if a marker was deleted meanwhile."""
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
        """Make a snapshot if many markers are newer than the last one. Never raises."""
        try:
            if not self._may_be_due():
                return
            listed = self._listed()
            if len(listed.uncovered) <= MOST_MARKERS or (view := self._read(listed)) is None:
                return
            rows = dict(view.rows)
            for name in sorted(view.dirty):
                try:
                    # If the writer is still active, its marker is newer than this row, and stays.
                    rows[name] = read_ledger(name, rows.get(name))
                except LedgerError as error:
                    _log.warning("Cannot index %s, so readers read its ledger: %s", name, error)
            self._write(view, rows)
        except FileExistsError:
            return  # another writer has made it
        except LedgerError as error:
            _log.warning("The index %s was not compacted: %s", self.directory, error)

    def _may_be_due(self) -> bool:
        """True if a snapshot may be due, judged by names alone, since every run asks this at its end."""
        markers = sum(1 for name in self._store.names() if _MARKER.fullmatch(name))
        return markers > MOST_MARKERS and (markers > 2 * MOST_MARKERS or not self._snapshots())

    def rebuild(self, read_ledgers: Callable[[], Mapping[str, DeploymentRow]]) -> None:
        """Make a snapshot of the ledgers, whatever the index contains."""
        for _ in range(_TRIES):
            listed = self._listed()
            rows = dict(read_ledgers())
            ahead = [each for each in listed.markers if each.number > _last(rows, each.deployment)]
            for marker in ahead:  # its entry is lost or about to appear, so readers must read the ledger
                self._store.put(marker.name, b"")
            try:
                return self._write(listed, rows)
            except FileExistsError:
                continue
        raise LedgerError(f"other writers keep changing the index {self.directory}: try again")

    def _write(self, view: IndexView, rows: Mapping[str, DeploymentRow]) -> None:
        """Write the next snapshot, then delete all that the one before covers. Raises FileExistsError."""
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
    """The row of a marker; None if it has none, or one that this release does not understand."""
    try:
        row = DeploymentRow.from_dict(json.loads(content))
    except (ValueError, KeyError, TypeError):
        return None
    return row if row.deployment == deployment else None
