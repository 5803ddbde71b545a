"""What a user may choose, each closed list once.

Where code branches on a choice it is an enum; beside it stands the literal type of its values, by which a type checker
names a misspelt argument of an operator. Both are compared by a test.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, get_args


class StartMode(StrEnum):
    """From which state a job starts. ``AUTO_FIRST``: empty where nothing is deployed yet, else from a savepoint.

    ``CHECKPOINT``: from the former job's latest retained checkpoint; the rows it wrote after that are written again.
    """

    AUTO_FIRST = "auto-first"
    SAVEPOINT = "savepoint"
    CHECKPOINT = "checkpoint"
    STATELESS = "stateless"


StartModeName = Literal["auto-first", "savepoint", "checkpoint", "stateless"]


class RehearsalFinding(StrEnum):
    """What became of a new script that was started from a live job's state."""

    REFUSED = "refused"
    RESTORED = "restored"
    INCONCLUSIVE = "could not tell"


RehearsalFindingName = Literal["refused", "restored", "could not tell"]

Late = Literal["include", "drop"]
"""What a backfill does with rows that a live job's watermark would have found too late for their window."""
LATE: tuple[Late, ...] = get_args(Late)

Native = Literal["auto", "off"]
"""Whether DuckDB may aggregate files inside the tasks of Spark: where the rows are the same for certain, or never."""
NATIVE: tuple[Native, ...] = get_args(Native)
