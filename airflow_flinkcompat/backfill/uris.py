"""Places as Spark takes them: absolute URIs."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.secrets import mask_secrets, placeholders

_GLOB = re.compile(r"[*?\[\]{}]")


def normalised(uri: str, what: str) -> str:
    """A place in Spark's form, absolute with a scheme; raises :class:`BackfillError` for a pattern or ""."""
    if not uri.strip():
        raise BackfillError(f"{what}: the place is empty; write a path or a URI")
    if found := placeholders(uri):
        raise BackfillError(f"{what}: nobody filled in {found[0]}; give the place with --table or --sink NAME=URI")
    if _GLOB.search(uri):
        raise BackfillError(
            f"{what}: {mask_secrets(uri)} holds a character of a pattern (* ? [ ] {{ }}); write one place"
        )
    parts = urlsplit(uri)
    if len(parts.scheme) > 1:  # one letter is a drive
        if parts.scheme != "file":
            return uri.rstrip("/")
        return Path(unquote(parts.path)).as_uri()
    return Path(uri).absolute().as_uri()


def nested(first: str, second: str) -> bool:
    """True if one place is the other or inside it."""
    a, b = f"{first.rstrip('/')}/", f"{second.rstrip('/')}/"
    return a.startswith(b) or b.startswith(a)
