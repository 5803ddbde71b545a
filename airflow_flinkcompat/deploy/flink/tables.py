"""Tables of a job in its SQL Gateway session: declarations, changed options and stand-ins.

Flink's planner reports the tables that a job reads and writes (EXPLAIN). The session reports the tables' declarations
(SHOW CREATE TABLE). Therefore Flink itself resolves views and catalogs. Changed options and stand-ins are temporary
tables of the same path, which replace the real tables only in this session. ALTER TABLE is unsuitable: it refuses
temporary tables and permanently changes a permanent catalog (measured on Flink 2.3). The script's queries stay
unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from airflow_flinkcompat.compat.rule_builders.table_options import startup_options
from airflow_flinkcompat.deploy.errors import CannotRehearse, DeployError
from airflow_flinkcompat.deploy.flink.gateway import GatewayError, Session
from airflow_flinkcompat.deploy.flink.second_readers import ADMITTED, refusal
from airflow_flinkcompat.deploy.flink.upsert_sinks import UPSERTS
from airflow_flinkcompat.deploy.target import SinkTable, Sources, SourceTable, TablePath
from airflow_flinkcompat.model.text import sql_name, sql_text
from airflow_flinkcompat.sql import ScriptError, nodes
from airflow_flinkcompat.sql.statement_parser import Flink, parse_statement

_SCAN = re.compile(r"LogicalTableScan\(table=\[\[(?P<path>.*?)\]\](?P<rest>.*)$")
_HINT_OPTIONS = re.compile(r"OPTIONS [^{]*\{(?P<options>[^}]*)\}")
# Operations that the planner pushed down follow the table's path, such as ``metadata=[timestamp]``.
_PUSHED_DOWN = re.compile(r", \w+=\[.*")


class TableError(DeployError):
    """Flink's description of a table (EXPLAIN, SHOW CREATE TABLE) cannot be parsed."""


def scans_of(explained: str) -> dict[TablePath, dict[str, str]]:
    """Paths (catalog, database, name) of tables that EXPLAIN scans, with hint options. Raises TableError."""
    tree = explained.partition("== Optimized")[0]
    scans: dict[TablePath, dict[str, str]] = {}
    for line in tree.splitlines():
        if match := _SCAN.search(line):
            path = path_of(_PUSHED_DOWN.sub("", match["path"]), ", ")
            scans.setdefault(path, {}).update(_hint_options(match["rest"]))
    return scans


def path_of(text: str, separator: str) -> TablePath:
    """Parse a table path as EXPLAIN writes it. Raises TableError."""
    parts = text.split(separator)
    if len(parts) != 3:
        raise TableError(f"cannot read the table {text!r} in Flink's EXPLAIN")
    return parts[0], parts[1], parts[2]


class JobTables(Protocol):
    """The tables of a job, and statements that replace them. Methods raise TableError, GatewayError."""

    def declaration(self, path: TablePath) -> nodes.CreateTable:
        """The declaration of a table, without LIKE."""

    def name(self, path: TablePath, prefix: str = "") -> str:
        """The name of a table in a statement, or of an auxiliary table with a prefix."""

    def setting(self, key: str) -> str | None:
        """The value of an option of the session, or None."""

    def execute(self, path: TablePath, statement: str) -> None:
        """Run a statement about a table."""


class SessionTables:
    """The tables in a session of a SQL Gateway."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def declaration(self, path: TablePath) -> nodes.CreateTable:
        ((text, *_), *_) = self._session.execute(f"SHOW CREATE TABLE {self.name(path)}").rows
        tree = parse_statement(str(text))
        if not isinstance(tree, nodes.CreateTable):
            raise TableError(f"cannot read the declaration of {path[2]}")
        return tree

    def name(self, path: TablePath, prefix: str = "") -> str:
        return ".".join(map(sql_name, (*path[:2], prefix + path[2])))

    def setting(self, key: str) -> str | None:
        return {row[0]: row[1] for row in self._session.execute("SET").rows}.get(key)

    def execute(self, path: TablePath, statement: str) -> None:
        self._session.execute(statement)


def options_of(declared: nodes.CreateTable) -> dict[str, str]:
    """The options in the WITH clause of a declaration."""
    return {option.this.name: option.expression.name for option in declared.args.get("options") or ()}


def overlay(
    tables: JobTables, path: TablePath, options: Mapping[str, str], private: str, without: Collection[str] = ()
) -> None:
    """Override options of a table; ``private`` is the name prefix of an auxiliary table.

    ``without``: options to remove.
    """
    name, stage = tables.name(path), tables.name(path, f"{private} ")
    present = tables.declaration(path)
    like = "OVERWRITING OPTIONS"
    if removed := {*without} & {*options_of(present)}:
        options = {key: value for key, value in {**options_of(present), **options}.items() if key not in removed}
        like = "EXCLUDING OPTIONS"
    declared = ", ".join(f"{sql_text(key)} = {sql_text(value)}" for key, value in options.items())
    tables.execute(path, f"CREATE TEMPORARY TABLE {stage} WITH ({declared}) LIKE {name} ({like})")
    replace_table(
        tables, path, f"CREATE TEMPORARY TABLE {name} LIKE {stage}", temporary=bool(present.args.get("temporary"))
    )


def replace_table(tables: JobTables, path: TablePath, ddl: str, *, temporary: bool) -> None:
    """Replace a table, which may be ``temporary`` itself, with a temporary table. Raises GatewayError."""
    if temporary:
        tables.execute(path, f"DROP TEMPORARY TABLE {tables.name(path)}")
    tables.execute(path, ddl)


def _hint_options(text: str) -> dict[str, str]:
    found = (option for match in _HINT_OPTIONS.finditer(text) for option in match["options"].split(", "))
    return {key: value for key, _, value in (option.partition("=") for option in found)}


# Options that identify folder, or topic and brokers. Offsets are valid only for the same topic and brokers.
_PLACE = ("path", "topic", "topic-pattern", "properties.bootstrap.servers")
_RECORD_TIME = "timestamp"


def sources_of(session: Session, explained: str) -> Sources:
    """The sources of a job that EXPLAIN described in this session. Raises GatewayError if unanswered."""
    try:
        tables = SessionTables(session)
        return Sources(tuple(_source(tables, path, hints) for path, hints in scans_of(explained).items()))
    except (TableError, ScriptError) as error:
        return Sources(unknown=str(error))
    except GatewayError as error:
        if error.unanswered:
            raise
        return Sources(unknown=str(error))


def _source(tables: JobTables, path: TablePath, hints: Mapping[str, str]) -> SourceTable:
    declared = tables.declaration(path)
    options = {**options_of(declared), **hints}
    connector = options.get("connector", "")
    kept = {key: options[key] for key in (*startup_options(connector), *_PLACE) if key in options}
    return SourceTable(path, connector, kept, frozenset(hints), _record_times(declared))


def _record_times(declared: nodes.CreateTable) -> frozenset[str]:
    """Metadata columns that contain the record's timestamp."""
    columns = [column for column in declared.args["columns"] if isinstance(column, nodes.MetadataColumn)]
    keys = {column.this.name: column.args.get("metadata_key") for column in columns}
    return frozenset(name for name, key in keys.items() if (key.name if key else name) == _RECORD_TIME)


_SINK = re.compile(r"^LogicalSink\(table=\[(.*?)\](?:,|\))")
_SINK_OF_UPSERTS = re.compile(r"^Sink\(table=\[(.*?)\],.* (?:upsertMaterialize|conflictStrategy)=\[", re.MULTILINE)
_SINK_CONNECTORS_OF_ROWS = frozenset({"print"})
_IDLE, _NO_TIME = "table.exec.source.idle-timeout", re.compile(r"(0\s*[a-z]*)?")


@dataclass(frozen=True)
class Tables:
    """Paths of the tables that a job writes and reads, with the option keys that hints set for sources.

    ``upserts``: sinks whose plan only a sink of upserts has, because of a materializer or ``ON CONFLICT``.
    """

    sinks: tuple[TablePath, ...]
    sources: Mapping[TablePath, frozenset[str]]
    upserts: frozenset[TablePath] = frozenset()


def tables_of(explained: str) -> Tables:
    """Tables in EXPLAIN. Raises CannotRehearse if the form is unknown."""
    tree, _, optimized = explained.partition("== Optimized")
    # If the name of a sink were misread, the rehearsal would write to the real sink.
    roots = [line for line in _without_subqueries(tree) if line and line[0] not in " +:="]
    if strange := [line for line in roots if not _SINK.match(line)]:
        raise CannotRehearse(f"cannot read {strange[0][:60]!r} in Flink's EXPLAIN")
    try:
        sinks = [path_of(match[1], ".") for line in roots if (match := _SINK.match(line))]
        sources = {path: frozenset(hinted) for path, hinted in scans_of(explained).items()}
        upserts = frozenset(path_of(match[1], ".") for match in _SINK_OF_UPSERTS.finditer(optimized))
    except TableError as error:
        raise CannotRehearse(str(error)) from None
    if not sinks:
        raise CannotRehearse("Flink's EXPLAIN names no sink of this job")
    return Tables(tuple(dict.fromkeys(sinks)), sources, upserts)


def _without_subqueries(tree: str) -> Iterator[str]:
    """The lines of a plan tree, without the subqueries (in braces) inside its conditions."""
    depth = 0
    for line in tree.splitlines():
        depth -= line.startswith("})")
        if (depth <= 0 and not line.startswith("})")) or _SINK.match(line):
            yield line
        depth += line.endswith("{")


class Substitutes:
    """Stand-in tables of a job; ``private`` names private resources, such as a consumer group."""

    def __init__(self, tables: JobTables, private: str) -> None:
        self._tables = tables
        self._private = private

    def check(self, tables: Tables, *, stops: bool = False) -> None:
        """Raise CannotRehearse if a source allows only one reader, or a table is both read and written.

        ``stops``: also if a source cannot stop at a position.
        """
        if both := [path for path in tables.sinks if path in tables.sources]:
            raise CannotRehearse(
                f"this job both reads and writes {_names_of(both)}, but a stand-in can only replace a source or a sink"
            )
        for path, hinted in tables.sources.items():
            options = options_of(self._declaration(path))
            connector = options.get("connector", "")
            if why := refusal(connector):
                named = connector or "no connector is named"
                raise CannotRehearse(f"source {path[2]} ({named}) cannot be read next to the live job: {why}")
            reader = ADMITTED[connector]
            if stops and reader.bounded is None:
                raise CannotRehearse(f"source {path[2]} ({connector}) cannot stop at the same row in two runs")
            if stops and (unending := sorted({*reader.unending} & hinted)):
                raise CannotRehearse(f"source {path[2]}: a hint in the script sets {', '.join(unending)}")
            if shared := sorted({*reader.forbidden} & {*options, *hinted} | {*reader.options} & hinted):
                raise CannotRehearse(
                    f"source {path[2]} ({connector}) would share {', '.join(shared)} with the live job"
                )

    def put(
        self,
        tables: Tables,
        *,
        empty: bool = False,
        rows: str | None = None,
        waits: bool = False,
        jar: str | None = None,
    ) -> None:
        """Replace every sink, and sources that need private options; ``empty``: sources skip existing rows.

        If ``rows`` is a folder (URI), the sinks write all changes into it, and the sources end at the positions in the
        job's savepoint. Otherwise the sinks discard their rows. With ``waits``, the sources stop at these positions,
        but do not end. A ``print`` sink without rows stays, because Flink
        plans other operators before its stand-in. ``jar``: URI of the jar for sinks of upserts. Raises CannotRehearse.
        """
        if jar is not None:
            with _as_cannot_rehearse():
                self._tables.execute(tables.sinks[0], f"ADD JAR {sql_text(jar)}")
        for number, path in enumerate(tables.sinks):
            declared = self._declaration(path)
            if empty and options_of(declared).get("connector") in _SINK_CONNECTORS_OF_ROWS:
                continue
            temporary = bool(declared.args.get("temporary"))
            only_upserts = jar is not None and path in tables.upserts
            if rows is None:
                options = {"connector": UPSERTS} if only_upserts else DISCARD
            else:
                options = _changes(f"{rows}/{number}", UPSERTS if only_upserts else "debezium-json")
            with _as_cannot_rehearse():
                ddl = sink_ddl(declared, path in tables.upserts, options)
                replace_table(self._tables, path, ddl, temporary=temporary)
        for path in tables.sources:
            reader = ADMITTED[options_of(self._declaration(path))["connector"]]
            own = reader.own_options(self._private, empty=empty)
            if rows is not None:
                own |= reader.bounded or {}
            elif waits:
                own |= reader.waiting
            without = () if rows is None else reader.unending
            if own or without:
                with _as_cannot_rehearse():
                    overlay(self._tables, path, own, self._private, without)

    def sinks(self, tables: Tables) -> tuple[SinkTable, ...]:
        """Columns and keys of the sinks. Raises CannotRehearse."""
        return tuple(_sink_table(path, self._declaration(path)) for path in tables.sinks)

    def watermarks(self, tables: Tables) -> bool:
        """True if a source has watermarks. Raises CannotRehearse if an idle partition holds no watermark back."""
        found = [path for path in tables.sources if self._has_watermarks(path)]
        if found and not _NO_TIME.fullmatch(idle := self._setting(_IDLE)):
            raise CannotRehearse(
                f"{_IDLE} is {idle}, so the watermarks of {_names_of(found)} depend on the time at which rows are read"
            )
        return bool(found)

    def _has_watermarks(self, path: TablePath) -> bool:
        declared = self._declaration(path)
        options = options_of(declared)
        if not declared.args.get("watermarks"):
            return False
        if idle := options.get("scan.watermark.idle-timeout"):
            raise CannotRehearse(
                f"scan.watermark.idle-timeout of {path[2]} is {idle}, so its watermarks depend on the time at which "
                "rows are read"
            )
        return True

    def _setting(self, key: str) -> str:
        return self._tables.setting(key) or ""

    def _declaration(self, path: TablePath) -> nodes.CreateTable:
        with _as_cannot_rehearse():
            return self._tables.declaration(path)


@contextmanager
def _as_cannot_rehearse() -> Iterator[None]:
    try:
        yield
    except TableError as error:
        raise CannotRehearse(str(error)) from None
    except GatewayError as error:
        raise CannotRehearse(f"no stand-in could be created: {error}") from None


DISCARD = {"connector": "blackhole"}


def _changes(folder: str, form: str) -> dict[str, str]:
    """Options of a table that stores the changes that the format ``form`` accepts."""
    settings = {"map-null-key.mode": "LITERAL", "encode.decimal-as-plain-number": "true"}
    named = {f"{form}.{key}": value for key, value in settings.items()}
    return {"connector": "filesystem", "format": form, **named, "path": folder}


def _sink_table(path: TablePath, declared: nodes.CreateTable) -> SinkTable:
    columns = {column.this.name: column.args["kind"].sql(dialect=Flink) for column in _sink_columns(declared)}
    keys = (names for each in declared.args.get("constraints") or () for names in (each.expressions,))
    partitions = tuple(name.name for name in declared.args.get("partitioned_by") or ())
    return SinkTable(path, columns, tuple(name.name for names in keys for name in names), partitions)


def _sink_columns(declared: nodes.CreateTable) -> Iterator[nodes.PhysicalColumn]:
    """The columns that an INSERT writes. Writable metadata becomes a plain column."""
    for column in declared.args["columns"]:
        if isinstance(column, nodes.PhysicalColumn):
            yield column
        elif isinstance(column, nodes.MetadataColumn) and not column.args.get("virtual"):
            yield nodes.PhysicalColumn(this=column.this, kind=column.args["kind"])


def sink_ddl(
    declared: nodes.CreateTable, upserts: bool = False, options: Mapping[str, str] = MappingProxyType(DISCARD)
) -> str:
    """DDL of a stand-in with the sink's path, columns, partitions and primary key, but ``options``.

    If the real sink accepts retractions (print), its stand-in has no
    primary key. A stand-in sink with a key would accept upserts, and the planner would add a stateful operator
    directly upstream of it. If the planner also adds this operator for the real sink (``upserts``), the stand-in
    sink keeps the key.
    """
    tree = declared.copy()
    keys = tree.args.get("constraints")
    if options_of(declared).get("connector") in _SINK_CONNECTORS_OF_ROWS and not upserts:
        keys = None
    ddl = nodes.CreateTable(
        this=tree.this,
        columns=list(_sink_columns(tree)),
        constraints=keys,
        partitioned_by=tree.args.get("partitioned_by"),
        options=[_option(key, value) for key, value in options.items()],
        temporary=True,
    )
    return ddl.sql(dialect=Flink)


def _option(key: str, value: str) -> nodes.Option:
    from sqlglot import exp

    return nodes.Option(this=exp.Literal.string(key), expression=exp.Literal.string(value))


def _names_of(paths: Iterable[TablePath]) -> str:
    return ", ".join(path[2] for path in paths)
