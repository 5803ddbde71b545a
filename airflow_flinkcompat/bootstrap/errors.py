"""What computing state from history may end with."""

from __future__ import annotations


class NotComputable(Exception):
    """A state cannot be computed from history; says why, as the end of a sentence."""
