"""Hook of hatchling: the README with absolute links, and the project's addresses.

A package index has only the README, so its links must be absolute. The variable FLINKCOMPAT_REPOSITORY contains the
repository's address; the release workflow sets it. Without it, links are not changed, and no address is listed. A
source distribution contains the result, so building a wheel from it needs no variable.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)(\[(?:[^][]|\[[^]]*\])*\])\((?!#|[a-z]+:)([^)\s]+)\)")


class PackageMetadata(MetadataHookInterface):
    """Provide the metadata ``readme`` and ``urls``."""

    def update(self, metadata: dict[str, Any]) -> None:
        if "readme" in metadata:  # of a source distribution
            return
        repository = os.environ.get("FLINKCOMPAT_REPOSITORY", "").strip().rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        if repository:
            text = with_addresses(text, repository, f"v{metadata['version']}")
            metadata["urls"] = addresses(repository, os.environ.get("FLINKCOMPAT_SITE", "").strip())
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def with_addresses(text: str, repository: str, tag: str) -> str:
    """Markdown in which relative links are absolute addresses of a tag, and pictures are raw files."""
    return _LINK.sub(lambda m: f"{m[1]}{m[2]}({repository}/{'raw' if m[1] else 'blob'}/{tag}/{m[3]})", text)


def addresses(repository: str, site: str) -> dict[str, str]:
    """Addresses of the project for a package index."""
    return {
        "Repository": repository,
        "Documentation": site or f"{repository}/tree/HEAD/docs",
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
