"""Files of scripts on a worker, with their bundle and commit, and masking of secrets.

A Git bundle has a folder ``<bundle>/tracking_repo`` for the tracked commit, and a folder ``<bundle>/versions/<commit>``
for each commit to which a run is pinned. While Airflow parses a DAG file, the file's path is in one of these bundle
folders. Each process has a separate copy of the bundle.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.common.compat.sdk import AirflowFailException, mask_secret

if TYPE_CHECKING:
    from airflow_flinkcompat.project.origin import GitOrigin

SQL = ".sql"


class FileMissing(AirflowFailException):
    """No script file exists at any of ``places``."""

    def __init__(self, message: str, places: Sequence[Path]) -> None:
        super().__init__(message)
        self.places = tuple(places)


def read_template(path: Path) -> bytes:
    """Read a template; raises FileMissing."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileMissing(f"script file {str(path)!r} cannot be read: {error.strerror}", [path]) from None


def decoded(content: bytes, path: Path) -> str:
    """Decode a file, with a final line break, so that the text is not taken for a path."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise AirflowFailException(f"{path}:{line}: is not UTF-8 text; save the script as UTF-8") from None
    return text if text.endswith("\n") else f"{text}\n"


def find_template(path: str, jinja_env: Any) -> Path:
    """Find a template file. Raises FileMissing with the searched places."""
    places = [] if Path(path).is_absolute() else [Path(root) for root in getattr(jinja_env.loader, "searchpath", ())]
    candidates = [place / path for place in places] or [Path(path)]
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    looked = f"; looked in {', '.join(map(str, places))}" if places else ""
    raise FileMissing(
        f"script file {path!r} does not exist{looked}. Write an absolute path, or one relative to the DAG's "
        "folder or to a folder of template_searchpath",
        candidates,
    )


def masked(value: Any) -> Any:
    """Mask every secret in a value, and also in later logs."""
    from airflow_flinkcompat.secrets import mask_secrets

    if isinstance(value, str):
        for secret in secret_values(value):
            mask_secret(secret)
        return mask_secrets(value)
    if isinstance(value, Mapping):
        return {key: _masked_option(str(key), item) for key, item in value.items()}
    return value


def masked_words(error: Exception) -> str:
    """The masked message of an error, or the name of its class if the message is empty."""
    from airflow_flinkcompat.secrets import mask_secrets

    return mask_secrets(str(error)) or type(error).__name__


def _masked_option(key: str, value: Any) -> Any:
    """Mask the value of an option if the option's name or the value shows a secret."""
    if not isinstance(value, str):
        return masked(value)
    from airflow_flinkcompat.secrets.redact import mask_option

    as_statement = "SET '{}' = '{}';".format(key.replace("'", "''"), value.replace("'", "''"))
    for secret in secret_values(as_statement):
        mask_secret(secret)
    return mask_option(key, value)


def secret_values(text: str) -> list[str]:
    """The literal secrets of a script; empty if the text is not a script."""
    from airflow_flinkcompat.secrets.detect import find_secrets
    from airflow_flinkcompat.sql import ScriptError, parse_script

    try:
        script = parse_script(text)
    except ScriptError:
        return []
    lines = text.split("\n")
    found = (_between(lines, secret.span) for secret in find_secrets(script))
    # Each secret as written, and with doubled quotes unescaped.
    spellings = (text for raw in found for text in (raw.strip("'\"`"), raw.replace("''", "'").strip("'\"`")))
    return [text for text in dict.fromkeys(spellings) if text.strip()]


def _between(lines: list[str], span: Any) -> str:
    """The text of a span; lines and columns are counted from 1, and the end is inclusive."""
    rows = lines[span.line - 1 : span.end_line]
    rows[-1] = rows[-1][: span.end_column]
    rows[0] = rows[0][span.column - 1 :]
    return "\n".join(rows)


_TRACKING, _VERSIONS = "tracking_repo", "versions"

Place = tuple[str, str]
"""Name of a bundle and path inside the bundle, or "" and an absolute path."""


def place_of(path: str | Path) -> Place:
    from airflow.dag_processing.bundles.base import get_bundle_storage_root_path

    file, root = Path(path), get_bundle_storage_root_path()
    if not file.is_relative_to(root):
        return "", str(file)
    bundle, *parts = file.relative_to(root).parts or ("",)
    if parts[:1] == [_TRACKING]:
        parts = parts[1:]
    elif parts[:1] == [_VERSIONS]:
        parts = parts[2:]
    return (bundle, str(Path(*parts))) if bundle else ("", str(file))


class Bundles:
    """DAG bundles of this process, each refreshed at most once per ``refresh_interval``."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Any] = {}
        self._refreshed: dict[str, float] = {}

    def path(self, place: Place) -> Path:
        """A path in the newest version of its bundle. Raises the bundle's errors, or ValueError."""
        name, inside = place
        if not name:
            return Path(inside)
        with self._lock:
            bundle = self._bundle(name)
        return repository_of(bundle) / inside

    def commit(self, place: Place) -> str | None:
        """Commit of a place's bundle after a call of :meth:`path`; None for a bundle without versions."""
        bundle = self._known.get(place[0])
        if bundle is None or not bundle.supports_versioning:
            return None
        found = bundle.get_current_version()
        return getattr(found, "version", found)

    def _bundle(self, name: str) -> Any:
        now = time.monotonic()
        bundle = self._known.get(name)
        if bundle is None:
            from airflow.dag_processing.bundles.manager import DagBundlesManager

            bundle = DagBundlesManager().get_bundle(name)
            bundle.initialize()
            self._known[name], self._refreshed[name] = bundle, now
        elif now - self._refreshed[name] >= bundle.refresh_interval:
            self._refreshed[name] = now
            bundle.refresh()
        return bundle


BUNDLES = Bundles()
"""Shared bundles of this process, so that many watchers of a repository fetch it only once."""


def repository_of(bundle: Any) -> Path:
    """The folder to which paths from :func:`place_of` are relative."""
    root = Path(bundle.path)
    name, inside = place_of(root)
    for _ in Path(inside).parts if name else ():
        root = root.parent
    return root


_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def git_origin(files: Iterable[str], bundle: Any = None) -> GitOrigin:
    """Find the commit of files, from their Git work tree or their bundle."""
    from airflow_flinkcompat.project.origin import GitOrigin, of_work_tree  # imported late: it loads the model of a job

    places = [Path(file).resolve() for file in files]
    found = of_work_tree(places) if places else None
    if found is not None:
        return found
    version = getattr(bundle, "version", None)
    if not isinstance(version, str) or not _COMMIT.fullmatch(version):
        return GitOrigin()
    root = repository_of(bundle).resolve()
    return GitOrigin(version) if all(place.is_relative_to(root) for place in places) else GitOrigin()
