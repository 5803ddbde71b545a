"""The append-only ledger of deployments and attempts, one numbered JSON file for each entry.

An entry is the file ``<root>/<deployment>/000001.json``, created exclusively and completely. If two writers want the
same number, exactly one succeeds (see module ``store``). ``root`` is a local folder or any address that
universal-pathlib supports. The index of all deployments is in the same root (module ``index``). Scripts are stored
with unresolved placeholders. A deployed version contains no literal secrets. A proposed or rejected version may
contain secrets, so it is stored masked.

Each entry contains its own checksum. A torn entry lacks its end because the writer died. A torn last entry is
ignored, and the next entry lists its number in ``passes_over``. Any other damage is an error. A torn entry that no
later entry lists is also an error, unless the torn entry is the last.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeVar

from airflow_flinkcompat.deploy.errors import redact
from airflow_flinkcompat.deploy.ledger.entries import HeadEntry, LedgerEntry, OtherEntry, RunEntry
from airflow_flinkcompat.deploy.ledger.index import Index
from airflow_flinkcompat.deploy.ledger.status import DeploymentRow
from airflow_flinkcompat.deploy.ledger.store import LedgerError, Store
from airflow_flinkcompat.model import JobSpec

_log = logging.getLogger(__name__)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ENTRY = re.compile(r"(\d{6,})\.json")
_REPORTS = "reports"
_CHECKSUM, _MARK = "checksum", "mark"
# Number of entries that a backward search reads in its first batch. Each further batch is four times as large.
_NEWEST = 4
_ATTEMPTS = 100
E = TypeVar("E", bound=LedgerEntry)


class DeploymentNameError(LedgerError):
    """An invalid deployment name."""


class LedgerConflict(LedgerError):
    """A different run wrote an entry since this run last read the ledger."""


class Ledger:
    """The entries of one deployment.

    Args:
        root: Path or URI of the folder that contains the ledgers of all deployments.
        deployment: The name of the deployment: 1 to 128 letters, digits, ".", "_" or "-", beginning with a letter or
            digit.
        **options: Options of the file system, such as credentials of an object store.

    Raises:
        DeploymentNameError: The deployment cannot have this name.
    """

    def __init__(self, root: str | os.PathLike[str], deployment: str, **options: Any) -> None:
        if not can_name(deployment):
            raise DeploymentNameError(
                f"{deployment!r} is not a valid deployment name. Use 1 to 128 letters, digits, '.', '_' or '-', "
                f"beginning with a letter or digit, but not {_REPORTS!r}"
            )
        self.deployment = deployment
        self._store = Store(root, deployment, **options)
        self.directory = self._store.directory
        self._root, self._options = root, options
        # The index row as of the last entry that this object wrote.
        self._row: DeploymentRow | None = None

    @property
    def id(self) -> str:
        """The id of the ledger root, used in the URLs of ledger pages."""
        return ledger_id(self._root)

    @cached_property
    def _index(self) -> Index:
        return Index(self._root, **self._options)

    def entries(self) -> tuple[LedgerEntry, ...]:
        """All entries of the ledger.

        Returns:
            The entries, oldest first.

        Raises:
            LedgerError: An entry is missing or cannot be read.
        """
        return tuple(reversed(list(self._newest_first(None))))

    def last_number(self) -> int:
        """The number of the last entry, read only from file names. The last entry may be torn.

        Returns:
            The number, or 0 if there is no entry. Entries never change, so entries up to this number can be cached.

        Raises:
            LedgerError: The ledger cannot be listed, or an entry is missing.
        """
        return max(self._numbers(), default=0)

    def head(self) -> HeadEntry | None:
        """The latest entry about the deployed job.

        The ledger is read backwards from the newest entry, so damage in older entries is not noticed.

        Returns:
            The entry, or None before the first deployment.

        Raises:
            LedgerError: A required entry is missing or cannot be read.
        """
        return next((entry for entry in self._newest_first(_NEWEST) if isinstance(entry, HeadEntry)), None)

    def in_force(self) -> tuple[LedgerEntry, ...]:
        """The entry of the deployed job (the head) and the entries of later attempts, oldest first.

        The ledger is read backwards from the newest entry, as in ``head()``.

        Returns:
            The entries, or all entries of the ledger if there is no head.

        Raises:
            LedgerError: An entry is missing or cannot be read.
        """
        found: list[LedgerEntry] = []
        for entry in self._newest_first(_NEWEST):
            found.insert(0, entry)
            if entry.is_head:
                break
        return tuple(found)

    def append(self, entry: E, *, after: int | None = None) -> E:
        """Write an entry under the next number.

        Args:
            entry: The entry. The number of the entry is ignored.
            after: Write only if the last entry still has this number (0: no entry). If None, write the entry in any
                case.

        Returns:
            The stored entry, with number and time, and secrets in its message masked.

        Raises:
            LedgerConflict: A different entry was written first.
            LedgerError: The ledger cannot be written.
        """
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileExistsError):
                with self._store.writing():
                    numbers = self._numbers()
                    torn = self._torn_tail(numbers)
                    last = max((number for number in numbers if number not in torn), default=0)
                    if after is not None and last != after:
                        break
                    number = max(numbers, default=0) + 1
                    stored = replace(
                        entry, number=number, at=entry.at or now, message=redact(entry.message), passes_over=torn
                    )
                    self._index.announce(self.deployment, number)
                    self._store.create(_name(number), _encoded(stored))
                self._keep_row(stored, last)
                return stored
        raise LedgerConflict(
            f"a different run wrote to the ledger of {self.deployment} during this run (entry {after} is no longer "
            f"the last). Check the entries in {self.directory}, then start again"
            if after is not None
            else f"no entry could be written to {self.directory}, because other writers were always first. Try again"
        )

    def _keep_row(self, stored: LedgerEntry, last: int) -> None:
        """Write the deployment's index row after a new entry; ``last`` is the former last entry's number."""
        try:
            former = DeploymentRow(self.deployment) if last == 0 else self._row
            if former is None or former.last != last:
                former = self._index.row_at(self.deployment, last)
            self._row = self.row() if former is None else former.after(stored)
        except LedgerError as error:  # readers read the ledger, because the index marker stays empty
            _log.warning("Cannot write the index row of entry %d of %s: %s", stored.number, self.deployment, error)
            return
        self._index.settle(self._row)
        # Do not compact the index between steps of a redeploy, because the former job may be stopped at that time.
        if not (isinstance(stored, RunEntry) and stored.is_open):
            self._index.compact(lambda name, row: Ledger(self._root, name, **self._options).row(row))

    def row(self, known: DeploymentRow | None = None) -> DeploymentRow:
        """The deployment's row in a list, computed from the ledger itself.

        Args:
            known: The deployment's row as of an earlier entry of this ledger, so that only later entries are read. If
                None, all entries are read.

        Returns:
            The row. If an entry before the head is damaged, only the head and later entries are used.

        Raises:
            LedgerError: A required entry is missing or cannot be read.
        """
        nothing = DeploymentRow(self.deployment)
        numbers = self._numbers()
        if known is not None and known.last in numbers:
            newer = [number for number in numbers if number > known.last]
            return known.after_all(reversed(list(self._newest_first(None, newer))))
        try:
            return nothing.after_all(self.entries())
        except LedgerError:
            return nothing.after_all(self.in_force())

    def store_report(self, report: Mapping[str, Any], markdown: str, proposed: JobSpec | None = None) -> str:
        """Store a report as JSON and Markdown, with its version. Equal reports are stored only once.

        Args:
            report: The report as JSON values.
            markdown: The same report as Markdown.
            proposed: The version that the report describes. Its secrets are masked in the stored file.

        Returns:
            Path or URI of the JSON file.

        Raises:
            LedgerError: The ledger cannot be written.
        """
        content = json.dumps(report, indent=1, ensure_ascii=False, sort_keys=True)
        digest = hashlib.sha256(f"{content}\0{markdown}".encode()).hexdigest()[:32]
        version = [] if proposed is None else [("proposed.json", encode_proposed(proposed))]
        # Write the JSON last, so that readers who find it also find the other files.
        for suffix, text in (*version, ("md", markdown), ("json", content)):
            with contextlib.suppress(FileExistsError):  # the name is the hash of the content
                self._store.create(f"{_REPORTS}/{digest}.{suffix}", text.encode())
        return str(self.directory / _REPORTS / f"{digest}.json")

    def read_report(self, path: str) -> tuple[dict[str, Any], str]:
        """Read a stored report.

        Args:
            path: The result of :meth:`store_report`.

        Returns:
            The report as JSON values, and its Markdown.

        Raises:
            LedgerError: The path is not a report of this deployment, or the report cannot be read.
        """
        name = self._report_name(path)
        content, markdown = self._store.read([f"{_REPORTS}/{name}", f"{_REPORTS}/{name.removesuffix('json')}md"])
        try:
            report: dict[str, Any] = json.loads(content)
            return report, markdown.decode("utf-8")
        except ValueError as error:
            raise LedgerError(f"the report {self.directory / _REPORTS / name} cannot be read: {error}") from error

    def read_proposed(self, path: str) -> JobSpec | None:
        """Read the proposed version of a report, with secrets masked.

        Args:
            path: The result of :meth:`store_report`.

        Returns:
            The version, or None if an earlier release stored the report without its version. If a secret was masked,
            the digest differs from the original version's digest, which the report contains.

        Raises:
            LedgerError: The path is not a report of this deployment, or the version cannot be read.
        """
        name = f"{_REPORTS}/{self._report_name(path).removesuffix('json')}proposed.json"
        content = self._store.find([name])[0]
        try:
            return None if content is None else decode_proposed(content)
        except (ValueError, KeyError, TypeError) as error:
            raise LedgerError(f"the proposed version {self.directory / name} cannot be read: {error}") from error

    def _report_name(self, path: str) -> str:
        """The file name of a report. Raises LedgerError if the path is no report."""
        name = path.replace("\\", "/").rsplit("/", 1)[-1]
        if not re.fullmatch(r"[0-9a-f]{32}\.json", name):
            raise LedgerError(f"{path!r} is not a report of {self.deployment}")
        return name

    def _numbers(self) -> list[int]:
        """The numbers of all entries, lowest first. Raises LedgerError for a gap."""
        found = (_ENTRY.fullmatch(name) for name in self._store.names())
        numbers = sorted(int(match.group(1)) for match in found if match)
        for before, number in pairwise(numbers):
            if number != before + 1:
                raise LedgerError(
                    f"the ledger entry {self.directory / _name(before + 1)} is missing. Entries are never deleted. "
                    "Restore the file from a backup"
                )
        return numbers

    def _newest_first(self, batch: int | None, wanted: list[int] | None = None) -> Iterator[LedgerEntry]:
        """Yield entries, newest first, read in batches that grow from ``batch`` (None: a single batch).

        ``wanted`` limits the entries to these numbers, in ascending order. This release must understand every entry
        from the newest to the head. Older entries do not change the deployed job. If this release does not understand
        an older entry, for example because of its engine version, the entry becomes an ``OtherEntry``.
        """
        numbers = (self._numbers() if wanted is None else wanted)[::-1]
        passed_over: set[int] = set()
        newest, below_head = True, False
        while numbers:
            chunk, numbers = numbers[:batch], numbers[batch:] if batch else []
            batch = batch * 4 if batch else None
            for number, content in zip(chunk, self._store.read([_name(each) for each in chunk]), strict=True):
                if number in passed_over:
                    continue
                if newest and _is_torn(content):
                    _log.warning(
                        "The ledger entry %s is incomplete, because its writer died. The entry is ignored. The next "
                        "run determines the outcome of that step, and writes an entry with the next number",
                        self.directory / _name(number),
                    )
                    continue
                entry = self._decoded(number, content, as_it_is=below_head)
                newest, below_head = False, below_head or entry.is_head
                passed_over.update(entry.passes_over)
                yield entry

    def _torn_tail(self, numbers: list[int]) -> tuple[int, ...]:
        """Numbers of the torn entries after the last complete entry."""
        torn: list[int] = []
        for number in reversed(numbers):
            if not _is_torn(self._store.read([_name(number)])[0]):
                break
            torn.insert(0, number)
        return tuple(torn)

    def _decoded(self, number: int, content: bytes, *, as_it_is: bool) -> LedgerEntry:
        try:
            row = json.loads(content)
            if _CHECKSUM in row and row.pop(_CHECKSUM) != _checksum(row):
                raise ValueError("its checksum does not match its content")
            row = {key: value for key, value in row.items() if key != _MARK}
            try:
                entry = LedgerEntry.from_dict(row)
            except (ValueError, TypeError, KeyError):
                if not as_it_is:
                    raise
                entry = OtherEntry.of(row)
            if entry.number != number:
                raise ValueError(f"its content has the number {entry.number}")
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise LedgerError(
                f"the ledger entry {self.directory / _name(number)} cannot be read: {error}. Entries never change. "
                "Restore the file from a backup (a deletion would hide a deployment)"
            ) from error
        return entry


def ledger_id(root: str | os.PathLike[str]) -> str:
    return hashlib.sha256(os.fspath(root).rstrip("/").encode()).hexdigest()[:12]


def can_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None and text != _REPORTS


def deployments(root: str | os.PathLike[str], **options: Any) -> tuple[str, ...]:
    """Names of all folders under a root that may be ledgers of deployments."""
    return tuple(name for name in Store(root, "", **options).folders() if can_name(name))


def _name(number: int) -> str:
    return f"{number:06d}.json"


def _encoded(entry: LedgerEntry) -> bytes:
    """Content of an entry's file: JSON with a checksum and a unique mark that identifies the writer."""
    row = json.loads(json.dumps({**entry.to_dict(), _MARK: uuid.uuid4().hex}))
    text = json.dumps({**row, _CHECKSUM: _checksum(row)}, indent=1, ensure_ascii=False, sort_keys=True)
    return text.encode("utf-8")


def _checksum(row: Mapping[str, Any]) -> str:
    """Checksum of an entry's JSON values, independent of spacing and order."""
    text = json.dumps(row, sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _is_torn(content: bytes) -> bool:
    """True if the end of an entry's file is missing, so that its last line is not the closing brace."""
    try:
        json.loads(content)
    except ValueError:
        return not content.endswith(b"\n}")
    return False


_SCHEMA = "flinkcompat-proposed/1"


def masked_job(job: JobSpec) -> JobSpec:
    from airflow_flinkcompat.secrets import mask_secrets
    from airflow_flinkcompat.secrets.programs import mask_program
    from airflow_flinkcompat.secrets.redact import mask_option

    def options(content: Mapping[str, str]) -> dict[str, str]:
        return {key: mask_option(key, value) for key, value in content.items()}

    def text(content: str, language: str) -> str:
        return mask_secrets(content) if language == "sql" else mask_program(content, language)

    return replace(
        job,
        script=text(job.script, job.language),
        settings=options(job.settings),
        functions=tuple(replace(each, definition=mask_secrets(str(each.definition))) for each in job.functions),
        catalog=mask_secrets(job.catalog),
        variables=options(job.variables),
        files={name: text(content, "python" if name.endswith(".py") else "sql") for name, content in job.files.items()},
    )


def encode_proposed(job: JobSpec) -> str:
    """A proposed version as JSON, with secrets masked."""
    # Store only the fields of JobSpec, because the proposed side may be a subclass with more fields.
    plain = JobSpec.from_dict(job.to_dict())
    row = {"schema": _SCHEMA, **masked_job(plain).to_dict()}
    return json.dumps(row, indent=1, ensure_ascii=False, sort_keys=True)


def decode_proposed(content: bytes) -> JobSpec:
    """Read a version from its stored JSON form.

    Raises ValueError or KeyError if its schema differs or keys are missing.
    """
    row = json.loads(content)
    if row["schema"] != _SCHEMA:
        raise ValueError(f"its schema is {row['schema']!r}, but this release reads {_SCHEMA!r}")
    return JobSpec.from_dict(row)
