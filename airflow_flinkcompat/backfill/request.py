"""Request of a backfill: a frozen value that can be stored as JSON."""

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
from airflow_flinkcompat.model.durations import parse_duration, shown_duration
from airflow_flinkcompat.secrets import mask_secrets, placeholders
from airflow_flinkcompat.secrets.placeholders import AnyPlaceholder, placeholders_in_script

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
    """A backfill of one script.

    ``job``: The script and everything needed to plan it. The result does not depend on an engine.

    ``from_`` and ``to``: Bounds of the published windows, which must satisfy ``window_start >= from_`` and ``window_end
    <= to``; None if a side is open. Times without a zone are in the local time of the windows. Times with a zone are
    converted after the script is planned (:mod:`~airflow_flinkcompat.backfill.planning`). ``tables`` and ``sinks``:
    Locations that replace the declared ones, by table name. ``order_by``: Columns, ``a,b``, that define the order of
    arrival, by table name; "" for all other tables. ``master``: Spark's master; None to use Spark's configuration, or
    else a local session.

    ``late``: ``include`` or ``drop`` late rows. A row is late if a watermark with the declared delay would have passed
    its window before a streaming job read the row.

    ``boundary``: Start of the live job's own windows, and the default of ``to``. ``allow_incomplete``: Assume that the
    history has passed the boundary. ``chunk``: Length of the chunks in which the range is computed. ``journal``: Folder
    for finished chunks; None for a folder next to a sink.

    ``allow_empty``: If it is False, a run that reads no row fails and changes no sink.

    ``native``: With ``auto``, DuckDB aggregates files inside Spark's tasks if this is faster and gives the same rows
    for certain. With ``off``, DuckDB is not used.
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
            raise BackfillError(f"late is {self.late!r}. Write {' or '.join(LATE)}")
        if self.native not in NATIVE:
            raise BackfillError(f"native is {self.native!r}. Write {' or '.join(NATIVE)}")
        if self.boundary is not None:
            if self.to not in (None, self.boundary):
                raise BackfillError("a backfill with a boundary ends at the boundary: omit --to, or omit --boundary")
            object.__setattr__(self, "to", self.boundary)
        if self.from_ is not None and self.to is not None and _after(self.from_, self.to):
            raise BackfillError(
                f"the range is empty, because from {self.from_.isoformat(' ')} is not before to "
                f"{self.to.isoformat(' ')}. Swap both or widen the range"
            )

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts that may contain placeholders for secrets."""
        mappings = (self.job.files, self.job.variables, self.tables, self.sinks)
        return (self.job.script, self.job.catalog, *(text for texts in mappings for text in texts.values()))

    @property
    def placeholders(self) -> tuple[AnyPlaceholder, ...]:
        """Placeholders whose values the driver's environment must supply, ignoring comments of a script."""
        job = self.job
        in_sql = (job.script, job.catalog) if job.language == "sql" else (job.catalog,)
        others = [text for text in self.texts if text not in in_sql]
        found = [placeholders_in_script(text) for text in in_sql] + [placeholders(text) for text in others]
        return tuple(dict.fromkeys(each for some in found for each in some))

    def to_dict(self) -> dict[str, Any]:
        """Convert the request to JSON values; :meth:`from_dict` reads it back.

        Returns:
            A mapping with the schema and one key per field. Times are in ISO 8601.
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
            # Written only if it is set, because the name of a journal depends on all values of its request.
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
            data: A parsed JSON object. Omitted fields have their default values.

        Returns:
            The request.

        Raises:
            BackfillError: The data is not an object, has a different schema, lacks the script, or contains an unknown
                or invalid field.
        """
        if not isinstance(data, dict):
            raise BackfillError("a backfill request must be a JSON object")
        if data.get("schema", SCHEMA) != SCHEMA:
            raise BackfillError(
                f"the backfill request has the unknown schema {data['schema']}. This version supports {SCHEMA}"
            )
        unknown = sorted(set(data) - _FIELDS)
        if unknown:
            raise BackfillError(
                f"the backfill request has an unknown field {unknown[0]}. Known fields are {', '.join(sorted(_FIELDS))}"
            )
        if not isinstance(data.get("script"), str):
            raise BackfillError(
                "the backfill request lacks the field script, which contains the text of the Flink SQL script"
            )
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
            chunk=_duration(data, "chunk"),
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
            BackfillError: The text is not JSON, or not a backfill request.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise BackfillError(f"the backfill request is not valid JSON: {error}") from None
        return cls.from_dict(data)


def _after(first: datetime, second: datetime) -> bool:
    """True if the first time is not before the second. False if only one of the times has a zone."""
    return (first.tzinfo is None) == (second.tzinfo is None) and first >= second


def parse_orders(orders: Iterable[str]) -> dict[str, str]:
    """Parse the options ``--order-by`` of the command line."""
    found: dict[str, str] = {}
    for text in orders:
        table, separator, columns = text.partition("=")
        table, columns = (table.strip(), columns.strip()) if separator else ("", table.strip())
        if not columns.strip(",") or (separator and not table):
            raise BackfillError(
                f"--order-by {text!r} contains no column. Write COLUMN[,COLUMN] or TABLE=COLUMN[,COLUMN]"
            )
        if table in found:
            raise BackfillError(f"--order-by is passed twice for {table or 'all tables'}. Write its columns as a,b")
        found[table] = columns
    return found


def parse_time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise BackfillError(
            f"{text!r} is not a time. Write a time such as 2024-01-31, 2024-01-31 10:30:00 or 2024-01-31T10:30:00Z"
        ) from None


def _time(data: Mapping[str, Any], key: str) -> datetime | None:
    value = data.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BackfillError(f"the field {key} of a backfill request must be a time as text, or null")
    return parse_time(value)


def _duration(data: Mapping[str, Any], key: str) -> timedelta | None:
    try:
        return None if data.get(key) is None else parse_duration(data[key])
    except InputError as error:
        raise BackfillError(f"the field {key} of a backfill request: {error}") from None


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
    """Absolute URI of a location; raises :class:`BackfillError` for an empty location or a pattern."""
    if not uri.strip():
        raise BackfillError(f"{what}: the location is empty. Write a path or a URI")
    if found := placeholders(uri):
        raise BackfillError(
            f"{what}: {found[0]} has no value. Set the variable, or specify the location with --table or --sink "
            "NAME=URI"
        )
    if _GLOB.search(uri):
        raise BackfillError(
            f"{what}: {mask_secrets(uri)} contains a pattern character (* ? [ ] {{ }}). Write a single location"
        )
    parts = urlsplit(uri)
    if len(parts.scheme) > 1:  # A scheme of one letter is a Windows drive.
        if parts.scheme != "file":
            return uri.rstrip("/")
        return Path(unquote(parts.path)).as_uri()
    return Path(uri).absolute().as_uri()


def nested(first: str, second: str) -> bool:
    """True if two locations are equal, or if one contains the other."""
    a, b = f"{first.rstrip('/')}/", f"{second.rstrip('/')}/"
    return a.startswith(b) or b.startswith(a)
