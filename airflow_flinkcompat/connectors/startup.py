"""Starting position of a source without state, by its own options or by others that choose it.

A source with restored state ignores such options (measured on Flink 2.3 with Kafka's connector 5.0): they apply to
starts without state only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

EARLIEST, LATEST, TIMESTAMP = "earliest", "latest", "timestamp"
MILLIS, ISO = "{millis}", "{iso}"
"""Placeholders in an option for a time: milliseconds since 1970, or ISO 8601 in UTC with milliseconds."""


@dataclass(frozen=True)
class Startup:
    """Startup options of one connector.

    Attributes:
        choices: The options for each choice that can be made, none where it begins so anyhow.
        option: Its own option that says where it begins.
        default: The value of that where a table does not set it.
        more: Options that belong to it.
        itself: How it begins where no option decides.
        positions: Whether where a job stood can be read from its savepoint and given to another job.
    """

    choices: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    option: str = ""
    default: str = ""
    more: tuple[str, ...] = ()
    itself: str = ""
    positions: bool = False


BY_OFFSET: Mapping[str, Mapping[str, str]] = {
    EARLIEST: {"scan.startup.mode": "earliest-offset"},
    LATEST: {"scan.startup.mode": "latest-offset"},
    TIMESTAMP: {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": MILLIS},
}
"""The choices of Kafka's sources, which those of Flink CDC name alike."""
