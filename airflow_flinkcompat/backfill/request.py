"""Request of a backfill, as a frozen value that travels as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.model import LATE, NATIVE, FunctionDeclaration, InputError, JobSpec
from airflow_flinkcompat.secrets import mask_secrets, placeholders
from airflow_flinkcompat.secrets.placeholders import AnyPlaceholder, placeholders_in_script

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}
_DURATION = re.compile(r"\s*([0-9]+)\s*(ms|s|min|m|h|d)\s*")
SCHEMA = "flinkcompat-backfill/1"
_WORDS: Mapping[type, str] = {str: "a text", bool: "true or false"}
_GLOB = re.compile(r"[*?\[\]{}]")
T = TypeVar("T", str, bool)
_FIELDS = {
    "schema", "script", "source", "settings", "functions", "catalog", "from", "to", "tables", "sinks", "master",
    "boundary", "allow_incomplete", "allow_empty", "chunk", "journal", "late", "native", "order_by", "language",
    "variables", "files",
}  # fmt: skip


@dataclass(frozen=True)
class BackfillRequest:
    """One backfill of one script.

    ``job`` is the script with everything that it is planned with; its result depends on no engine.

    ``from_`` and ``to`` bound the published windows: exactly those with ``window_start >= from_`` and ``window_end <=
    to``; None leaves that side open. Times without a zone are on the windows' clock; those with one are converted once
    the script is known (:mod:`~airflow_flinkcompat.backfill.planning`). ``tables`` and ``sinks`` map table names to
    places that replace the declared ones. ``order_by`` maps table names to the columns, ``a,b``, of the arrival order;
    "" is all other tables. ``master`` is Spark's master; None is Spark's configuration, or local.

    ``late`` decides about rows that a watermark of the table's declared delay would have found too late for their
    window, if a streaming job had read the files in sequence: ``include`` or ``drop``.

    ``boundary`` is the start of the live job's own windows, and the default of ``to``; ``allow_incomplete`` assumes
    that history has passed it. ``chunk`` is the length of the parts in which a range is computed, ``journal`` the
    folder of finished ones, None for one next to a sink.

    Without ``allow_empty`` a run that reads no row fails, and leaves every sink unchanged.

    ``native``: ``auto`` lets DuckDB aggregate files inside Spark's tasks if that is less work and certainly gives the
    same rows; ``off`` does not.
    """

    job: JobSpec
    from_: datetime | None = None
    to: datetime | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    sinks: Mapping[str, str] = field(default_factory=dict)
    master: str | None = None
    boundary: datetime | None = None
    allow_incomplete: bool = False
    allow_empty: bool = True
    chunk: timedelta | None = None
    journal: str | None = None
    late: str = "include"
    native: str = "auto"
    order_by: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.late not in LATE:
            raise BackfillError(f"late is {self.late!r}; write {' or '.join(LATE)}")
        if self.native not in NATIVE:
            raise BackfillError(f"native is {self.native!r}; write {' or '.join(NATIVE)}")
        if self.boundary is not None:
            if self.to not in (None, self.boundary):
                raise BackfillError("a backfill with a boundary ends there: leave out --to, or leave out --boundary")
            object.__setattr__(self, "to", self.boundary)
        if self.from_ is not None and self.to is not None and _after(self.from_, self.to):
            raise BackfillError(
                f"the range is empty: from {self.from_.isoformat(' ')} is not before to "
                f"{self.to.isoformat(' ')}; swap them or widen the range"
            )

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts that may contain placeholders for secrets."""
        mappings = (self.job.files, self.job.variables, self.tables, self.sinks)
        return (self.job.script, self.job.catalog, *(text for texts in mappings for text in texts.values()))

    @property
    def placeholders(self) -> tuple[AnyPlaceholder, ...]:
        """Placeholders that the driver's environment must supply; comments of a script are ignored."""
        job = self.job
        in_sql = (job.script, job.catalog) if job.language == "sql" else (job.catalog,)
        others = [text for text in self.texts if text not in in_sql]
        found = [placeholders_in_script(text) for text in in_sql] + [placeholders(text) for text in others]
        return tuple(dict.fromkeys(each for some in found for each in some))

    def to_dict(self) -> dict[str, Any]:
        """The request as JSON values; :meth:`from_dict` reads it back.

        Returns:
            One key per field, times in ISO 8601, and the schema.
        """
        job = {name: value for name, value in self.job.to_dict().items() if name not in ("engine", "engine_version")}
        functions = [{name: row[name] for name in ("name", "kind", "language")} for row in job["functions"]]
        return {
            "schema": SCHEMA,
            **job,
            "functions": functions,
            "from": None if self.from_ is None else self.from_.isoformat(),
            "to": None if self.to is None else self.to.isoformat(),
            "tables": dict(self.tables),
            "sinks": dict(self.sinks),
            "master": self.master,
            "boundary": None if self.boundary is None else self.boundary.isoformat(),
            "allow_incomplete": self.allow_incomplete,
            # Only where it is set: the finished chunks of a run are found again by these values.
            **({} if self.allow_empty else {"allow_empty": False}),
            "chunk": None if self.chunk is None else shown_duration(self.chunk),
            "journal": self.journal,
            "late": self.late,
            "native": self.native,
            "order_by": dict(self.order_by),
        }

    @classmethod
    def from_dict(cls, data: object) -> BackfillRequest:
        """Parse the mapping that :meth:`to_dict` wrote.

        Args:
            data: A parsed JSON object; fields that are left out have their default.

        Returns:
            The request.

        Raises:
            BackfillError: It is no object, is of another schema or lacks the script, or a field is unknown or of
                another type.
        """
        if not isinstance(data, dict):
            raise BackfillError("a backfill request is a JSON object")
        if data.get("schema", SCHEMA) != SCHEMA:
            raise BackfillError(
                f"a backfill request has the unknown schema {data['schema']}; this version reads {SCHEMA}"
            )
        unknown = sorted(set(data) - _FIELDS)
        if unknown:
            raise BackfillError(
                f"a backfill request has no field {unknown[0]}; its fields are {', '.join(sorted(_FIELDS))}"
            )
        if not isinstance(data.get("script"), str):
            raise BackfillError("a backfill request needs the field script, the text of the Flink SQL script")
        try:
            job = JobSpec(
                data["script"],
                source=_field(data, "source", str, "<script>"),
                settings=_texts(data, "settings"),
                functions=_functions(data.get("functions")),
                catalog=_field(data, "catalog", str, ""),
                language=_field(data, "language", str, "sql"),
                variables=_texts(data, "variables"),
                files=_texts(data, "files"),
            )
        except InputError as error:
            raise BackfillError(str(error)) from None
        return cls(
            job,
            from_=_time(data, "from"),
            to=_time(data, "to"),
            tables=_texts(data, "tables"),
            sinks=_texts(data, "sinks"),
            master=data.get("master") and _field(data, "master", str, ""),
            boundary=_time(data, "boundary"),
            allow_incomplete=_field(data, "allow_incomplete", bool, False),
            allow_empty=_field(data, "allow_empty", bool, True),
            chunk=parse_duration(_field(data, "chunk", str, "")) if data.get("chunk") is not None else None,
            journal=data.get("journal") and _field(data, "journal", str, ""),
            late=_field(data, "late", str, LATE[0]),
            native=_field(data, "native", str, NATIVE[0]),
            order_by=_texts(data, "order_by"),
        )

    @classmethod
    def from_json(cls, text: str) -> BackfillRequest:
        """Parse a request from a JSON text.

        Args:
            text: The result of :meth:`to_dict`, as JSON.

        Returns:
            The request.

        Raises:
            BackfillError: The text is not JSON, or is no request.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise BackfillError(f"the backfill request is not JSON: {error}") from None
        return cls.from_dict(data)


def _after(first: datetime, second: datetime) -> bool:
    """True if the first is the second or later; False if only one has a zone: the windows' clock decides."""
    return (first.tzinfo is None) == (second.tzinfo is None) and first >= second


def parse_orders(orders: Iterable[str]) -> dict[str, str]:
    """Read the orders of arrival from the command line."""
    found: dict[str, str] = {}
    for text in orders:
        table, separator, columns = text.partition("=")
        table, columns = (table.strip(), columns.strip()) if separator else ("", table.strip())
        if not columns.strip(",") or (separator and not table):
            raise BackfillError(f"--order-by {text!r} names no column; write COLUMN[,COLUMN] or TABLE=COLUMN[,COLUMN]")
        if table in found:
            raise BackfillError(f"--order-by is passed twice for {table or 'all tables'}; write its columns as a,b")
        found[table] = columns
    return found


def parse_time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise BackfillError(
            f"{text!r} is not a time; write it as 2024-01-31, 2024-01-31 10:30:00 or 2024-01-31T10:30:00Z"
        ) from None


def parse_duration(text: str) -> timedelta:
    found = _DURATION.fullmatch(text)
    if found is None or not int(found[1]):
        raise BackfillError(f"{text!r} is not a duration; write it as 1d, 6h, 30min or 90s")
    try:
        return int(found[1]) * _UNITS[found[2]]
    except OverflowError:
        raise BackfillError(f"{text!r} is longer than any history") from None


def shown_duration(length: timedelta) -> str:
    """A duration in the largest unit that divides it, as :func:`parse_duration` reads it."""
    unit = next(unit for unit in ("d", "h", "min", "s", "ms") if not length % _UNITS[unit])
    return f"{length // _UNITS[unit]}{unit}"


def _time(data: Mapping[str, Any], key: str) -> datetime | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BackfillError(f"the field {key} of a backfill request must be a time as text, or null")
    return parse_time(value)


def _field(data: Mapping[str, Any], key: str, kind: type[T], default: T) -> T:
    value = data.get(key, default)
    if not isinstance(value, kind):
        raise BackfillError(f"the field {key} of a backfill request must be {_WORDS[kind]}")
    return value


def _texts(data: Mapping[str, Any], key: str) -> dict[str, str]:
    value = data.get(key) or {}
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise BackfillError(f"the field {key} of a backfill request must be an object of texts")
    return dict(value)


def _functions(value: object) -> tuple[FunctionDeclaration, ...]:
    items = value or []
    if not isinstance(items, list) or not all(isinstance(item, dict) and "name" in item for item in items):
        raise BackfillError(
            "the field functions of a backfill request must be a list of objects with name, kind and language"
        )
    return tuple(
        FunctionDeclaration(str(item["name"]), str(item.get("kind", "")), str(item.get("language", "java")))
        for item in items
    )


def normalised(uri: str, what: str) -> str:
    """A place in Spark's form, absolute with a scheme; raises :class:`BackfillError` for a pattern or ""."""
    if not uri.strip():
        raise BackfillError(f"{what}: the place is empty; write a path or a URI")
    if found := placeholders(uri):
        raise BackfillError(f"{what}: {found[0]} has no value; name the place with --table or --sink NAME=URI")
    if _GLOB.search(uri):
        raise BackfillError(
            f"{what}: {mask_secrets(uri)} contains a character of a pattern (* ? [ ] {{ }}); write one place"
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
