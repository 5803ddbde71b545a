"""Cache folder of the package."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

CACHE_VARIABLE = "FLINKCOMPAT_CACHE"


def cache_directory() -> Path:
    """``$FLINKCOMPAT_CACHE`` where set, else the user's cache folder of this platform."""
    override = os.environ.get(CACHE_VARIABLE)
    return Path(override).expanduser() if override else Path(platformdirs.user_cache_dir("flinkcompat"))
