"""Storage of ledger files. Each file is created once and completely, on local disk and object stores.

* **Local disk**: a complete file gets its name by a hard link, which fails if the name exists.
* **S3 and GCS**: a conditional put creates an object only if it does not exist (``If-None-Match: *``,
  ``ifGenerationMatch=0``). Some S3-compatible stores ignore the condition. Therefore each store is tested once for each
  process: a probe object is created twice, and the second creation must fail.
* **Any other store**: claims keep writers apart. A writer puts a claim under a unique name, lists all claims, and
  writes only if there is no other claim. Every writer puts its claim before it lists. So at least one of two writers
  sees the other writer's claim. The store's listings must show every file that was put earlier. An old claim remains
  valid, because the writer that owns it may only be slow.
"""

from __future__ import annotations

import contextlib
import errno
import getpass
import json
import logging
import os
import re
import socket
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

from upath import UPath

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.model import Extra, install_command

_log = logging.getLogger(__name__)
T = TypeVar("T")
PROBE, WRITERS = "create.probe", "writers"
_READERS = 16
_CONFLICTS = 6
_CLAIM_SECONDS = 10.0
_LONGEST_REASON = 300


class LedgerError(DeployError):
    """A ledger cannot be read or written, or a deployment name is not allowed."""


@dataclass(frozen=True)
class _Client:
    """A client with conditional puts; ``first`` is its first release with reliable conditions."""

    distribution: str
    first: tuple[int, int]
    extra: Extra


_S3, _GCS = _Client("s3fs", (2026, 3), "s3"), _Client("gcsfs", (2026, 3), "gcs")
_CLIENTS = {"s3": _S3, "s3a": _S3, "gs": _GCS, "gcs": _GCS}
_PASSWORD = re.compile(r"[\w+.-]+://[^/@:]*:(?P<password>[^/@]+)@")
# Matches a login in front of the bucket name, but not the name of an access point, which also contains colons.
_LOGIN = re.compile(r"[^/]*@|(?!arn:)[^/]*:")


def _keep_quiet(client: _Client) -> None:
    """Suppress the client's log, because errors contain its text, unless the user has set a log level."""
    logger = logging.getLogger(client.distribution)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)


class Store:
    """A folder of files that never change; ``options`` are passed to the file system."""

    def __init__(self, root: str | os.PathLike[str], folder: str, **options: Any) -> None:
        place = os.fspath(root)
        protocol = place.partition("://")[0] if "://" in place else ""
        client = _CLIENTS.get(protocol)
        if client and _LOGIN.match(place.partition("://")[2]):
            # Do not show the address, because it contains the login. The client would show the login as part of the
            # bucket.
            raise LedgerError(
                f"the ledger address {protocol}://***/… contains a login before the bucket. Write "
                f"{protocol}://BUCKET/FOLDER, and set the credentials in the environment variables of the store's "
                "client"
            )
        self._redacted = _redactor(place)
        if client:
            _keep_quiet(client)
        if client is _S3:
            # With more concurrency, s3fs queries each object's size, to read large objects in parts. Entries are
            # small.
            options = {"max_concurrency": 1, **options}
        try:
            self.directory = UPath(os.path.expanduser(place), **options) / folder  # noqa: PTH111 — may be a URI
            self._local = self.directory.protocol in ("", "file", "local")
            self._fs: Any = None if self._local else self.directory.fs
        except (ValueError, ImportError) as error:
            remedy = f": {install_command(client.extra)}" if client else ""
            raise LedgerError(f"the ledger address {place!r} cannot be used: {error}{remedy}") from error
        self._client = client
        self._claims = threading.local()  # a claim on the ledger belongs to one thread
        if client:
            _require(client)

    def _reason(self, error: BaseException) -> str:
        from airflow_flinkcompat.secrets.redact import shortened

        return shortened(self._redacted(str(error)), _LONGEST_REASON) or type(error).__name__

    # ------------------------------------------------------------------------------------------------- reading
    def names(self, folder: str = "") -> list[str]:
        place = self.directory / folder if folder else self.directory
        try:
            if self._local:
                return [path.name for path in Path(place.path).iterdir()]
            # Other processes also write files, so a cached listing of the folder would be outdated.
            self._fs.invalidate_cache()
            found = self._fs.ls(place.path, detail=False)
            return [str(path).rstrip("/").rpartition("/")[2] for path in found]
        except FileNotFoundError:
            return []
        except Exception as error:  # botocore, aiohttp and google.auth raise their own errors
            raise LedgerError(f"the ledger {place} cannot be listed: {self._reason(error)}") from error

    def folders(self) -> list[str]:
        try:
            if self._local:
                return sorted(path.name for path in Path(self.directory.path).iterdir() if path.is_dir())
            self._fs.invalidate_cache()
            found = self._fs.ls(self.directory.path, detail=True)
            return sorted(
                str(each["name"]).rstrip("/").rpartition("/")[2] for each in found if each["type"] == "directory"
            )
        except FileNotFoundError:
            return []
        except Exception as error:  # as in names()
            raise LedgerError(f"the ledger {self.directory} cannot be listed: {self._reason(error)}") from error

    def read(self, names: Sequence[str]) -> list[bytes]:
        """Contents of the files, in the order of ``names``. Files in an object store are read in parallel."""
        return self.at_once(self._read, names)

    def find(self, names: Sequence[str]) -> list[bytes | None]:
        """Like :meth:`read`, but with None for a missing file. Raises LedgerError."""
        return self.at_once(self._find, names)

    def at_once(self, call: Callable[[str], T], names: Sequence[str]) -> list[T]:
        """Results of ``call`` in the order of ``names``. On an object store, the calls run in parallel."""
        if self._local or len(names) < 2:
            return [call(name) for name in names]
        with ThreadPoolExecutor(min(_READERS, len(names))) as pool:
            return list(pool.map(call, names))

    def _read(self, name: str) -> bytes:
        path = self.directory / name
        try:
            return Path(path.path).read_bytes() if self._local else bytes(self._fs.cat_file(path.path))
        except Exception as error:
            raise LedgerError(f"{path} cannot be read: {self._reason(error)}") from error

    def _find(self, name: str) -> bytes | None:
        try:
            return self._read(name)
        except LedgerError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return None
            raise

    # ------------------------------------------------------------------------------------------------- writing
    def put(self, name: str, content: bytes) -> None:
        """Write a file that may already exist. Raises LedgerError.

        On a local disk, readers see either the complete former content or the complete new content. A file that was
        written with empty content survives a power failure.
        """
        path = self.directory / name
        try:
            if not self._local:
                self._fs.pipe_file(path.path, content)
            elif content:
                _replace_local(Path(path.path), content)
            else:
                _empty_local(Path(path.path))
        except Exception as error:
            raise LedgerError(f"the ledger cannot write {path}: {self._reason(error)}") from error

    def delete(self, names: Sequence[str]) -> None:
        """Delete files. A missing file is no error. Raises LedgerError."""
        self.at_once(self._delete, names)

    def _delete(self, name: str) -> None:
        path = self.directory / name
        try:
            if self._local:
                Path(path.path).unlink(missing_ok=True)
            else:
                self._fs.rm_file(path.path)
        except FileNotFoundError:
            return
        except Exception as error:
            raise LedgerError(f"the ledger cannot delete {path}: {self._reason(error)}") from error

    def create(self, name: str, content: bytes, *, patience: float | None = None) -> None:
        """Create a complete file or none. Raises LedgerError, or FileExistsError if the file exists.

        Each writer's ``content`` must be unique. If the store's response is lost, the content shows which writer
        created the file. ``patience`` is the seconds to wait for other writers on a store without conditional puts.
        None uses the default.
        """
        path = self.directory / name
        try:
            if self._local:
                path.parent.mkdir(parents=True, exist_ok=True)
                _create_local(Path(path.path), content)
            elif self.conditional:
                self._put_if_none(path, content)
            else:
                with self.writing(patience):
                    self._put_checked(path, content)
        except (FileExistsError, LedgerError):
            raise
        except Exception as error:
            raise LedgerError(f"the ledger cannot write {path}: {self._reason(error)}") from error

    @property
    def conditional(self) -> bool:
        """True if this object store supports conditional puts, tested once for each process."""
        return self._client is not None and _honours_condition(self._fs, (self.directory / PROBE).path)

    def _put_if_none(self, path: UPath, content: bytes) -> None:
        try:
            _put(self._fs, path.path, content)
        except Exception:
            # A client repeats an unanswered put. The store then refuses the repetition because of the first put.
            if not self._holds(path, content):
                raise

    def _put_checked(self, path: UPath, content: bytes) -> None:
        if path.name in self.names(path.parent.path.removeprefix(self.directory.path).strip("/")):
            raise FileExistsError(str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fs.pipe_file(path.path, content)
        if not self._holds(path, content):
            raise LedgerError(
                f"{path} does not contain the content that was just written. Make sure that no other program writes "
                "to it"
            )

    def _holds(self, path: UPath, content: bytes) -> bool:
        with contextlib.suppress(Exception):
            self._fs.invalidate_cache()
            return bytes(self._fs.cat_file(path.path)) == content
        return False

    # ------------------------------------------------------------------------------------------------- claims
    @contextlib.contextmanager
    def writing(self, patience: float | None = None) -> Iterator[None]:
        """Block other writers inside the ``with`` block, so that the files read in it stay unchanged.

        Raises LedgerError.
        """
        try:
            free = self._local or getattr(self._claims, "held", False) or self.conditional
        except LedgerError:
            raise
        except Exception as error:
            raise LedgerError(f"the ledger cannot write {self.directory}: {self._reason(error)}") from error
        if free:
            yield
            return
        with self._claimed(patience):
            self._claims.held = True
            try:
                yield
            finally:
                self._claims.held = False

    @contextlib.contextmanager
    def _claimed(self, patience: float | None = None) -> Iterator[None]:
        """Block other writers by a claim. Raises LedgerError if a different writer is active or died."""
        from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

        mine = self.directory / WRITERS / f"{uuid.uuid4().hex}.json"
        repeating = Retrying(
            retry=retry_if_exception_type(_Claimed),
            stop=stop_after_delay(_CLAIM_SECONDS if patience is None else patience),
            wait=wait_random_exponential(multiplier=0.02, max=1.0),
            reraise=True,
        )
        try:
            repeating(self._claim, mine)
        except _Claimed as claimed:
            other = self.directory / WRITERS / claimed.name
            raise LedgerError(
                f"another writer has locked the ledger {self.directory}: {self._who(claimed.name)}. This store has no "
                "conditional create, so only one writer is allowed at a time. Try again when that writer has ended. "
                f"If it died, delete {other}"
            ) from None
        try:
            yield
        finally:
            self._fs.rm_file(mine.path)

    def _claim(self, mine: UPath) -> None:
        mine.parent.mkdir(parents=True, exist_ok=True)
        words = {"who": this_process(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        self._fs.pipe_file(mine.path, json.dumps(words).encode())
        try:
            others = [name for name in self.names(WRITERS) if name != mine.name]
        except BaseException:
            self._fs.rm_file(mine.path)
            raise
        if others:
            self._fs.rm_file(mine.path)
            raise _Claimed(others[0])

    def _who(self, claim: str) -> str:
        with contextlib.suppress(LedgerError, ValueError, KeyError, TypeError):
            words = json.loads(self._read(f"{WRITERS}/{claim}"))
            return f"{words['who']}, since {words['since']}"
        return "an unknown process"


class _Claimed(Exception):
    """A different writer has a claim on the ledger."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def this_process() -> str:
    """The name of this process, ``user@host:pid``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # in a container, the user id may have no user name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}:{os.getpid()}"


def _require(client: _Client) -> None:
    found = metadata.version(client.distribution)
    release = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
    if release < client.first:
        raise LedgerError(
            f"{client.distribution} {found} may not support conditional puts, which keep two writers apart: "
            f"{install_command(client.extra)} (at least {'.'.join(map(str, client.first))})"
        )


@cache
def _honours_condition(fs: Any, path: str) -> bool:
    """True if the store refuses to create an existing object.

    The probe object stays in the store for the test of the next process.
    """
    for _ in range(2):
        try:
            _put(fs, path, b"Written once; shows whether this store refuses to create what is there already.\n")
        except FileExistsError:
            return True
        except Exception as error:
            if _is_unsupported(error):
                break
            raise
    _log.warning(
        "The store of %s ignores the condition of a conditional create. Therefore writers lock the ledger with claim "
        "files, and a writer that finds a different claim is refused",
        path,
    )
    return False


def _put(fs: Any, path: str, content: bytes) -> None:
    """Put an object if it does not exist. Raises FileExistsError, and errors of the client."""
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

    repeating = Retrying(
        retry=retry_if_exception(_is_conflict),
        stop=stop_after_attempt(_CONFLICTS),
        wait=wait_random_exponential(multiplier=0.05, max=1.0),
        reraise=True,
    )
    try:
        repeating(fs.pipe_file, path, content, mode="create")
    except FileExistsError:
        raise
    except Exception as error:
        # s3fs raises FileExistsError only if the answer names the condition, as Amazon's answers do.
        if _code(error) in ("PreconditionFailed", "412"):
            raise FileExistsError(path) from error
        raise


def _code(error: BaseException) -> str:
    """The object store's code of an error, or "" if the client does not show it."""
    for each in (error, error.__cause__):
        response = getattr(each, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
    return ""


def _is_conflict(error: BaseException) -> bool:
    """True if a concurrent write to the same name caused the error, so that S3 requests a retry."""
    return _code(error) in ("ConditionalRequestConflict", "OperationAborted", "409")


def _is_unsupported(error: BaseException) -> bool:
    return isinstance(error, NotImplementedError) or (isinstance(error, OSError) and error.errno == errno.ENOSYS)


def _create_local(path: Path, content: bytes) -> None:
    """Create a complete file by a hard link, or fail if the file exists. A crash leaves no partial file."""
    if path.exists():  # this check only avoids a useless write; the hard link decides
        raise FileExistsError(str(path))
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
        os.link(temporary, path)
    except PermissionError as error:
        raise LedgerError(
            f"{path} cannot be created, because its file system does not support or allow hard links"
        ) from error
    finally:
        temporary.unlink()
    _keep_names(path.parent)


def _keep_names(folder: Path) -> None:
    """Sync a folder, so that its file names survive a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _empty_local(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.open("wb").close()
    _keep_names(path.parent)


def _replace_local(path: Path, content: bytes) -> None:
    """Replace a file with a complete file, which may be empty after a power failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _redactor(place: str) -> Callable[[str], str]:
    """Function that masks the password of an address in a client's messages."""
    password = _PASSWORD.match(place)
    if password is None:
        return str
    # Import late, because this loads the SQL parser and few ledger addresses contain a password.
    from airflow_flinkcompat.secrets.redact import Redactor

    return Redactor.of([("password", unquote(password["password"]))])
