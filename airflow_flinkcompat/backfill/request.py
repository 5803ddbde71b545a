"""What a backfill is asked to do and what it reports, as frozen values that travel as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.plan.program import FunctionDeclaration

SCHEMA = "flinkcompat-backfill/1"
_FIELDS = {"schema", "script", "source", "settings", "functions", "catalog", "from", "to", "tables", "sinks", "master"}


@dataclass(frozen=True)
class BackfillRequest:
    """One backfill of one script.

    ``script_text`` is Flink SQL, ``source`` its name in messages; ``settings`` are in force before the script's own
    SETs; ``functions`` declares functions it only uses; ``catalog`` is DDL of tables the script does not declare.
    ``from_`` and ``to`` bound the published windows: exactly those with ``window_start >= from_`` and
    ``window_end <= to``; None leaves that side open; times with a zone are taken to UTC. ``tables`` and ``sinks`` map
    table names to places that replace where a table is read from or written to. ``master`` is Spark's master, None for
    what Spark is configured with, or local.
    """

    script_text: str
    source: str = "<script>"
    settings: Mapping[str, str] = field(default_factory=dict)
    functions: tuple[FunctionDeclaration, ...] = ()
    catalog: str = ""
    from_: datetime | None = None
    to: datetime | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)
    master: str | None = None

    def __post_init__(self) -> None:
        for name in ("from_", "to"):
            value = getattr(self, name)
            if value is not None and value.tzinfo is not None:
                object.__setattr__(self, name, value.astimezone(UTC).replace(tzinfo=None))
        if self.from_ is not None and self.to is not None and self.from_ >= self.to:
            raise BackfillError(
                f"the range is empty: from {self.from_.isoformat(' ')} is not before to {self.to.isoformat(' ')}; "
                "swap the two or widen the range"
            )

    def to_dict(self) -> dict[str, Any]:
        """The request as plain JSON values; :meth:`from_dict` reads it back."""
        return {
            "schema": SCHEMA,
            "script": self.script_text,
            "source": self.source,
            "settings": dict(self.settings),
            "functions": [{"name": f.name, "kind": f.kind, "language": f.language} for f in self.functions],
            "catalog": self.catalog,
            "from": None if self.from_ is None else self.from_.isoformat(),
            "to": None if self.to is None else self.to.isoformat(),
            "tables": dict(self.tables),
            "sinks": dict(self.sinks),
            "master": self.master,
        }

    @classmethod
    def from_dict(cls, data: object) -> BackfillRequest:
        """The request written by :meth:`to_dict`. Raises :class:`BackfillError` naming the field that is wrong."""
        if not isinstance(data, dict):
            raise BackfillError("a backfill request is a JSON object")
        if data.get("schema", SCHEMA) != SCHEMA:
            raise BackfillError(
                f"a backfill request of schema {data['schema']} is not known; this version reads {SCHEMA}"
            )
        unknown = sorted(set(data) - _FIELDS)
        if unknown:
            raise BackfillError(
                f"a backfill request has no field {unknown[0]}; its fields are {', '.join(sorted(_FIELDS))}"
            )
        if not isinstance(data.get("script"), str):
            raise BackfillError("a backfill request needs the field script, the text of the Flink SQL script")
        return cls(
            script_text=data["script"],
            source=_text(data, "source", "<script>"),
            settings=_texts(data, "settings"),
            functions=_functions(data.get("functions")),
            catalog=_text(data, "catalog", ""),
            from_=_time(data, "from"),
            to=_time(data, "to"),
            tables=_texts(data, "tables"),
            sinks=_texts(data, "sinks"),
            master=data.get("master") and _text(data, "master", ""),
        )

    @classmethod
    def from_json(cls, text: str) -> BackfillRequest:
        """The request in a JSON text. Raises :class:`BackfillError` when it is none."""
        try:
            data = json.loads(text)
        except ValueError as error:
            raise BackfillError(f"the backfill request is not JSON: {error}") from None
        return cls.from_dict(data)


def parse_time(text: str) -> datetime:
    """A bound as users write it: ISO date or timestamp, with blank or T. Raises :class:`BackfillError` otherwise."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise BackfillError(
            f"{text!r} is no time; write it as 2024-01-31, 2024-01-31 10:30:00 or 2024-01-31T10:30:00Z"
        ) from None


def _time(data: Mapping[str, Any], key: str) -> datetime | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BackfillError(f"the field {key} of a backfill request is a time as text, or null")
    return parse_time(value)


def _text(data: Mapping[str, Any], key: str, default: str) -> str:
    value = data.get(key, default)
    if not isinstance(value, str):
        raise BackfillError(f"the field {key} of a backfill request is a text")
    return value


def _texts(data: Mapping[str, Any], key: str) -> dict[str, str]:
    value = data.get(key) or {}
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise BackfillError(f"the field {key} of a backfill request is an object of texts")
    return dict(value)


def _functions(value: object) -> tuple[FunctionDeclaration, ...]:
    items = value or []
    if not isinstance(items, list) or not all(isinstance(item, dict) and "name" in item for item in items):
        raise BackfillError(
            "the field functions of a backfill request is a list of objects with name, kind and language"
        )
    return tuple(
        FunctionDeclaration(str(item["name"]), str(item.get("kind", "")), str(item.get("language", "java")))
        for item in items
    )


@dataclass(frozen=True)
class SourceRows:
    """What was read from one table: its name, place, and all rows of the files."""

    table: str
    place: str
    rows: int


@dataclass(frozen=True)
class SinkRows:
    """What was published into one sink: its name, place, number of rows, and the files by name."""

    table: str
    place: str
    rows: int
    files: tuple[str, ...]


@dataclass(frozen=True)
class BackfillResult:
    """What a backfill did. ``from_`` and ``to`` are the bounds asked for, None where open; ``rows_dropped`` counts rows
    that belong to no window because their event time is NULL (Flink in batch mode drops them as well). ``ties`` counts
    windows of a Top-N in which a tie decided which rows are published: Flink takes them as they arrived, a backfill by
    their other columns."""

    sources: tuple[SourceRows, ...]
    sinks: tuple[SinkRows, ...]
    rows_dropped: int
    from_: datetime | None = None
    to: datetime | None = None
    ties: int = 0

    @property
    def rows_read(self) -> int:
        """Rows in all files read."""
        return sum(source.rows for source in self.sources)

    @property
    def rows_written(self) -> int:
        """Rows published into all sinks."""
        return sum(sink.rows for sink in self.sinks)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        return {
            "schema": SCHEMA,
            "from": None if self.from_ is None else self.from_.isoformat(),
            "to": None if self.to is None else self.to.isoformat(),
            "rows_read": self.rows_read,
            "rows_dropped_null_time": self.rows_dropped,
            "rows_written": self.rows_written,
            "windows_decided_by_ties": self.ties,
            "sources": [asdict(source) for source in self.sources],
            "sinks": [{**asdict(sink), "files": list(sink.files)} for sink in self.sinks],
        }
