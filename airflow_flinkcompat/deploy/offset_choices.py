"""Starting positions that users can request for sources. DAG parsing requires a quick import."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from airflow_flinkcompat.deploy.errors import DeployRefused

_CHOICES = "as-stored, earliest, latest, script, or a time such as 2026-01-31T00:00:00Z"
_IGNORED = (
    "a start from a savepoint or checkpoint resumes every source from its stored offset, and Flink ignores other "
    "start offsets. Omit the offsets (or choose as-stored), or start stateless"
)


class Offset(StrEnum):
    """``AS_STORED`` means the former job's offsets, ``SCRIPT`` the startup options in the script."""

    AS_STORED = "as-stored"
    SCRIPT = "script"
    EARLIEST = "earliest"
    LATEST = "latest"
    TIMESTAMP = "timestamp"


@dataclass(frozen=True)
class Choice:
    """Starting position of a source; ``at`` is the time for ``TIMESTAMP``, with time zone."""

    kind: Offset
    at: datetime | None = None

    @classmethod
    def of(cls, text: object) -> Choice:
        """Parse a choice. Raises DeployRefused."""
        if isinstance(text, str) and text in set(Offset) - {Offset.TIMESTAMP}:
            return cls(Offset(text))
        try:
            at = datetime.fromisoformat(str(text))
        except ValueError:
            raise DeployRefused(f"source offsets {text!r} are unknown: write {_CHOICES}") from None
        if at.tzinfo is None:
            raise DeployRefused(f"source offsets {text!r} have no time zone: write a time such as 2026-01-31T00:00:00Z")
        return cls(Offset.TIMESTAMP, at)

    def __str__(self) -> str:
        return iso(self.at) if self.at else str(self.kind)


@dataclass(frozen=True)
class SourceOffsets:
    """Requested positions: a default, and positions by table name (``orders``, ``shop.orders``)."""

    every: Choice | None = None
    tables: Mapping[str, Choice] = field(default_factory=dict)

    @classmethod
    def of(cls, argument: SourceOffsets | str | Mapping[str, str] | None) -> SourceOffsets:
        """Parse a choice, a mapping from tables to choices, or JSON of such a mapping. Raises DeployRefused."""
        if isinstance(argument, SourceOffsets):
            return argument
        if argument is None or argument == "":
            return cls()
        if isinstance(argument, str) and argument.lstrip().startswith("{"):
            try:
                argument = json.loads(argument)
            except ValueError as error:
                raise DeployRefused(f"source offsets {argument!r} are not JSON: {error}") from None
        if isinstance(argument, Mapping):
            return cls(tables={str(table): Choice.of(text) for table, text in argument.items()})
        return cls(Choice.of(argument))

    @property
    def choices(self) -> tuple[Choice, ...]:
        return (*([self.every] if self.every else []), *self.tables.values())

    def of_table(self, path: Sequence[str]) -> Choice | None:
        """The requested position of a table, found by its path or by the end of the path."""
        parts = [part for part in path if part]
        names = (".".join(parts[i:]) for i in range(len(parts)))
        return next((self.tables[name] for name in names if name in self.tables), self.every)

    def require_stored(self) -> None:
        """Check that only stored offsets are requested, for a start with state. Raises DeployRefused."""
        if other := [str(choice) for choice in self.choices if choice.kind is not Offset.AS_STORED]:
            raise DeployRefused(f"source offsets {', '.join(other)} cannot apply: {_IGNORED}")


def iso(at: datetime, precision: str = "auto") -> str:
    return at.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")
