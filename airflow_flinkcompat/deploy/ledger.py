"""The ledger: what is deployed, and all that was tried. Append-only, one numbered JSON file an entry.

``<root>/<deployment>/000001.json`` — an entry is created exclusively and whole: of two writers that want one number
exactly one wins, and no reader ever sees half an entry. ``root`` is a local folder or any address that
universal-pathlib knows (object stores: mode ``xb`` is their conditional put). Scripts are stored with placeholders.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from upath import UPath

from airflow_flinkcompat.deploy.errors import DeployError, redact

SCHEMA = "flinkcompat-ledger/1"
DEPLOYED = "deployed"
HEADS = frozenset({DEPLOYED, "rolled-back", "adopted"})
"""Kinds of entries that say what is in force: a job that runs the entry's script."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ENTRY = re.compile(r"(\d{6,})\.json")
_REPORTS = "reports"
_ATTEMPTS = 100


class LedgerError(DeployError):
    """The ledger cannot be read or written, or a name is not allowed."""


class LedgerConflict(LedgerError):
    """Somebody else wrote an entry in between."""


@dataclass(frozen=True)
class LedgerEntry:
    """One step in the life of a deployment.

    ``kind``: deployed (a job runs and was verified), deploying (a redeploy has begun), stopped (the job was stopped,
    ``savepoint`` holds its state), failed, rejected — others may come. ``job_id`` is the job the entry speaks of.
    ``at`` is ISO 8601 in UTC and set by ``Ledger.append``, as is ``number``. ``functions`` are mappings of the fields
    of a declared function; ``sha256`` is the hash of the side; ``owner`` names the run that wrote it. ``hand_over`` is
    the record of the backfill whose windows end where this job's own begin.
    """

    kind: str
    script: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[Mapping[str, Any], ...] = ()
    catalog: str = ""
    engine: str = ""
    engine_version: str | None = None
    sha256: str = ""
    job_id: str | None = None
    savepoint: str | None = None
    start_mode: str | None = None
    outcome: str | None = None
    report_path: str | None = None
    approved_by: str | None = None
    message: str = ""
    owner: str = ""
    hand_over: Mapping[str, Any] | None = None
    # What a stop is asked for under, so that asking again is the same stop.
    trigger_id: str | None = None
    # The former job's last checkpoint before it was stopped, and what its savepoint holds, by vertex.
    checkpoint: str | None = None
    state: Mapping[str, Any] = field(default_factory=dict)
    # Of a failed start: the entry whose script is started again.
    rolls_back_to: int | None = None
    # What was seen of the new job, a line each, and the options it runs under: of the cluster, session and script.
    evidence: tuple[str, ...] = ()
    effective_settings: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0
    at: str = ""
    schema: str = SCHEMA

    @property
    def is_head(self) -> bool:
        """Whether the entry says what is in force."""
        return self.kind in HEADS

    def to_dict(self) -> dict[str, Any]:
        """As stored: JSON values only."""
        return {**asdict(self), "settings": dict(self.settings), "functions": [dict(row) for row in self.functions]}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> LedgerEntry:
        """Read back; fields of a later version are passed over. Raises ValueError."""
        if row.get("schema") != SCHEMA:
            raise ValueError(f"its schema is {row.get('schema')!r}, this version reads {SCHEMA!r}")
        known = {f.name: row[f.name] for f in fields(cls) if f.name in row}
        if not isinstance(known.get("kind"), str) or not isinstance(known.get("number"), int):
            raise ValueError("kind or number is missing")
        lists = {name: tuple(row.get(name, ())) for name in ("functions", "evidence")}
        return cls(**{**known, **lists})


class Ledger:
    """The entries of one deployment. ``options`` go to the file system (credentials of an object store, say)."""

    def __init__(self, root: str | os.PathLike[str], deployment: str, **options: Any) -> None:
        if not _NAME.fullmatch(deployment) or deployment == _REPORTS:
            raise LedgerError(
                f"{deployment!r} cannot name a deployment: 1 to 128 letters, digits, '.', '_' or '-', "
                f"beginning with a letter or digit, and not {_REPORTS!r}"
            )
        self.deployment = deployment
        try:
            place = os.fspath(root)
            self.directory = UPath(os.path.expanduser(place), **options) / deployment  # noqa: PTH111 — may be a URI
        except (ValueError, ImportError) as error:
            raise LedgerError(f"the ledger's place {str(root)!r} cannot be used: {error}") from error

    def entries(self) -> tuple[LedgerEntry, ...]:
        """Every entry, oldest first. Raises LedgerError: an entry cannot be read (it is never passed over)."""
        return tuple(self._read(number, path) for number, path in self._files())

    def head(self) -> LedgerEntry | None:
        """The latest entry of a kind of ``HEADS``: what runs, as far as the ledger knows. None before the first deployment."""
        return next((entry for entry in reversed(self.entries()) if entry.is_head), None)

    def append(self, entry: LedgerEntry, *, after: int | None = None) -> LedgerEntry:
        """Write the entry under the next number and return it as stored (number, time; message masked).

        With ``after`` it is written only if entry ``after`` (0: none) is still the last one. Raises LedgerConflict when
        it is not, LedgerError when nothing can be written.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        for _ in range(_ATTEMPTS):
            last = max((number for number, _ in self._files()), default=0)
            if after is not None and last != after:
                break
            stored = replace(entry, number=last + 1, at=entry.at or now, message=redact(entry.message))
            content = json.dumps(stored.to_dict(), indent=1, ensure_ascii=False, sort_keys=True)
            try:
                self._create(self.directory / f"{stored.number:06d}.json", content)
            except FileExistsError:
                continue
            return stored
        raise LedgerConflict(
            f"the ledger of {self.deployment} went on while this run was at work "
            f"(entry {after} is no longer the last one): look at {self.directory}, then start again"
            if after is not None
            else f"no entry could be written to {self.directory}: others always came first"
        )

    def store_report(self, report: Mapping[str, Any], markdown: str) -> str:
        """Keep a report, as JSON and Markdown; returns the JSON's path. The same report is kept once."""
        content = json.dumps(report, indent=1, ensure_ascii=False, sort_keys=True)
        digest = hashlib.sha256(f"{content}\0{markdown}".encode()).hexdigest()[:32]
        path = self.directory / _REPORTS / f"{digest}.json"
        # Markdown first: who finds the JSON finds both.
        for target, text in ((path.with_suffix(".md"), markdown), (path, content)):
            with contextlib.suppress(FileExistsError):  # the name is the content's hash
                self._create(target, text)
        return str(path)

    def read_report(self, path: str) -> tuple[dict[str, Any], str]:
        """A kept report and its Markdown, by what ``store_report`` returned. Raises LedgerError."""
        name = path.replace("\\", "/").rsplit("/", 1)[-1]
        found = self.directory / _REPORTS / name
        if not re.fullmatch(r"[0-9a-f]{32}\.json", name):
            raise LedgerError(f"{path!r} is no report of {self.deployment}")
        try:
            report: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
            return report, found.with_suffix(".md").read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            raise LedgerError(f"the report {found} cannot be read: {error}") from error

    def _files(self) -> list[tuple[int, UPath]]:
        try:
            # Other processes write too: a listing remembered by the file system is of no use.
            with contextlib.suppress(AttributeError):
                self.directory.fs.invalidate_cache(self.directory.path)
            found = ((_ENTRY.fullmatch(path.name), path) for path in self.directory.iterdir())
            return sorted(((int(match.group(1)), path) for match, path in found if match), key=lambda pair: pair[0])
        except FileNotFoundError:
            return []
        except OSError as error:
            # What object stores say of a folder without entries.
            if isinstance(error, NotADirectoryError) and not self.directory.is_file():
                return []
            raise LedgerError(f"the ledger {self.directory} cannot be listed: {error}") from error

    def _read(self, number: int, path: UPath) -> LedgerEntry:
        try:
            entry = LedgerEntry.from_dict(json.loads(path.read_text(encoding="utf-8")))
            if entry.number != number:
                raise ValueError(f"it says it is number {entry.number}")
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise LedgerError(
                f"the ledger entry {path} cannot be read: {error}. Entries are never changed: restore it from a "
                "backup (deleting it would hide what was deployed)"
            ) from error
        return entry

    def _create(self, path: UPath, text: str) -> None:
        """Create ``path`` with ``text``, whole or not at all. Raises FileExistsError, LedgerError."""
        content = text.encode("utf-8")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.protocol in ("", "file", "local"):
                _create_local(Path(path.path), content)
            else:
                with path.open("xb") as stream:
                    stream.write(content)
        except FileExistsError:
            raise
        except (OSError, ValueError, NotImplementedError) as error:
            raise LedgerError(f"the ledger cannot write {path}: {error}") from error


def _create_local(path: Path, content: bytes) -> None:
    """Put a complete file in place by a hard link, which fails if there is one. A crash leaves no half of one."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        os.link(temporary, path)
    finally:
        temporary.unlink()
