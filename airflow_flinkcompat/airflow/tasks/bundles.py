"""Location of a file in a bundle of DAGs, so that another process finds it in its own copy.

A Git bundle has a folder for the commit that it follows, ``<bundle>/tracking_repo``, and one for each commit that a run
is pinned to, ``<bundle>/versions/<commit>``. The path of a DAG file during parsing is in one of them.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

_TRACKING, _VERSIONS = "tracking_repo", "versions"

Place = tuple[str, str]
"""The name of a bundle and a path inside of it; without a bundle ("") an absolute path."""


def place_of(path: str | Path) -> Place:
    """Location of a file or folder."""
    from airflow.dag_processing.bundles.base import get_bundle_storage_root_path

    given, root = Path(path), get_bundle_storage_root_path()
    if not given.is_relative_to(root):
        return "", str(given)
    bundle, *parts = given.relative_to(root).parts or ("",)
    if parts[:1] == [_TRACKING]:
        parts = parts[1:]
    elif parts[:1] == [_VERSIONS]:
        parts = parts[2:]
    return (bundle, str(Path(*parts))) if bundle else ("", str(given))


class Bundles:
    """The bundles as they are now, in this process; each is brought up to date by whoever asks first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Any] = {}
        self._refreshed: dict[str, float] = {}

    def path(self, place: Place) -> Path:
        """A path in the newest version of its bundle, which is refreshed as often as its configuration states.

        Raises the bundle's own errors if it cannot be read, ValueError if there is none of that name.
        """
        name, inside = place
        if not name:
            return Path(inside)
        with self._lock:
            bundle = self._bundle(name)
        return repository_of(bundle) / inside

    def commit(self, place: Place) -> str | None:
        """The version that :meth:`path` gave a path of; None for a bundle without versions."""
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
"""Those of this process: 200 watchers of one repository fetch it once."""


def repository_of(bundle: Any) -> Path:
    """The folder that :func:`place_of` counts from."""
    root = Path(bundle.path)
    name, inside = place_of(root)
    for _ in Path(inside).parts if name else ():
        root = root.parent
    return root
