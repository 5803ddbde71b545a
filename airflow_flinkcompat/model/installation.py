"""The installed package: its origin, the pip command that adds extras, and the cache folder."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal

_DISTRIBUTION = "airflow-flinkcompat"
_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+).*\bextra == [\"'](?P<extra>[^\"']+)")

Extra = Literal["deploy", "gcs", "local-flink", "lsp", "native", "s3", "spark", "state", "vvr"]
"""The extras that messages may name."""


def install_command(*extras: Extra) -> str:
    """The pip command that reinstalls this package from its original source, with extras.

    Args:
        extras: The extras to install.

    Returns:
        A pip command. It names the checkout, wheel or repository that the package was installed from. For a package
        from an index, the command names the package.
    """
    wanted = f"[{','.join(extras)}]" if extras else ""
    try:
        origin = json.loads(metadata.distribution(_DISTRIBUTION).read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        origin = {}
    if (folder := origin.get("url", "")).startswith("file://") and origin.get("dir_info", {}).get("editable"):
        return f"pip install --editable {shlex.quote(folder.removeprefix('file://') + wanted)}"
    return f"pip install {shlex.quote(_DISTRIBUTION + wanted + _source(origin))}"


def missing_packages(*extras: Extra) -> tuple[str, ...]:
    """The packages that extras require but that are not installed.

    Args:
        extras: The extras.

    Returns:
        The names of the packages on an index, in order; empty if the requirements of this package are unknown.
    """
    return tuple(sorted({name for extra in extras for name in _required(extra) if not _installed(name)}))


def _source(origin: dict[str, dict[str, str]]) -> str:
    """The suffix ``@ URL`` of a requirement, from its PEP 610 origin; empty for a package from an index."""
    if not (url := origin.get("url")):
        return ""
    version = origin.get("vcs_info", {})
    return f" @ {version['vcs']}+{url}@{version['commit_id']}" if version else f" @ {url}"


def _required(extra: str) -> Iterator[str]:
    try:
        lines = metadata.requires(_DISTRIBUTION) or ()
    except metadata.PackageNotFoundError:
        return
    for found in filter(None, map(_REQUIREMENT.match, lines)):
        if found["extra"] == extra:
            yield found["name"]


def _installed(name: str) -> bool:
    try:
        return metadata.distribution(name) is not None
    except metadata.PackageNotFoundError:
        return False


CACHE_VARIABLE = "FLINKCOMPAT_CACHE"


def cache_directory() -> Path:
    """``$FLINKCOMPAT_CACHE`` if set, else the platform's cache folder of the user."""
    import platformdirs  # an extra

    override = os.environ.get(CACHE_VARIABLE)
    return Path(override).expanduser() if override else Path(platformdirs.user_cache_dir("flinkcompat"))
