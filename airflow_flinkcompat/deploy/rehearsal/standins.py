"""Stand-ins for the sinks and sources of a job, in its session of the SQL Gateway: names stay, tables change.

Which tables a job reads and writes is what Flink's planner says (EXPLAIN), and what they are what the session says
(SHOW CREATE TABLE), so views, current catalogs and tables of lasting catalogs are Flink's own business. A stand-in is
a temporary table of the same path, which shadows the real one in this session alone; no query is touched.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.gateway import GatewayError, Session
from airflow_flinkcompat.deploy.rehearsal.readers import ADMITTED, refusal
from airflow_flinkcompat.sql import Flink, nodes, parse_statement

_SINK = re.compile(r"^LogicalSink\(table=\[(.*?)\](?:,|\))")
_SCAN = re.compile(r"LogicalTableScan\(table=\[\[(.*?)\]\](?P<rest>.*)$")
_HINT_OPTIONS = re.compile(r"OPTIONS [^{]*\{(?P<options>[^}]*)\}")
_SINK_CONNECTORS_OF_ROWS = frozenset({"print"})
TablePath = tuple[str, str, str]


class CannotRehearse(DeployError):
    """The job cannot be rehearsed without touching what it shares with the live one; says why."""


@dataclass(frozen=True)
class Tables:
    """The tables of one job: paths (catalog, database, name) it writes and reads, options its hints give a source."""

    sinks: tuple[TablePath, ...]
    sources: Mapping[TablePath, frozenset[str]]


def tables_of(explained: str) -> Tables:
    """The tables in the abstract syntax tree of an EXPLAIN. Raises CannotRehearse: it is not understood."""
    tree = explained.partition("== Optimized")[0]
    sinks = [_path(match[1], ".") for line in tree.splitlines() if (match := _SINK.search(line.strip()))]
    sources: dict[TablePath, frozenset[str]] = {}
    for line in tree.splitlines():
        if match := _SCAN.search(line):
            path = _path(match[1], ", ")
            sources[path] = sources.get(path, frozenset()) | _hinted(match["rest"])
    if not sinks:
        raise CannotRehearse("Flink's EXPLAIN names no sink of this job")
    return Tables(tuple(dict.fromkeys(sinks)), sources)


def _path(text: str, separator: str) -> TablePath:
    parts = text.split(separator)
    if len(parts) != 3:
        raise CannotRehearse(f"the table {text!r} in Flink's EXPLAIN is not understood")
    return parts[0], parts[1], parts[2]


def _hinted(text: str) -> frozenset[str]:
    found = (option for match in _HINT_OPTIONS.finditer(text) for option in match["options"].split(", "))
    return frozenset(option.partition("=")[0] for option in found)


class StandIns:
    """Puts stand-ins into one session. ``private`` names what the rehearsal has of its own (a consumer group, say)."""

    def __init__(self, session: Session, private: str) -> None:
        self._session = session
        self._private = private

    def check(self, tables: Tables) -> None:
        """Raises CannotRehearse: a source admits one reader, or a table is both read and written."""
        if both := [path for path in tables.sinks if path in tables.sources]:
            raise CannotRehearse(f"{_shown(both)} is read and written by this job: no stand-in can be both")
        for path, hinted in tables.sources.items():
            options = _options(self._declaration(path))
            connector = options.get("connector", "")
            if why := refusal(connector):
                named = connector or "no connector is named"
                raise CannotRehearse(f"source {path[2]} ({named}) cannot be read beside the live job: {why}")
            reader = ADMITTED[connector]
            if shared := sorted({*reader.forbidden} & {*options, *hinted} | {*reader.options} & hinted):
                raise CannotRehearse(
                    f"source {path[2]} ({connector}) would share {', '.join(shared)} with the live job"
                )

    def put(self, tables: Tables) -> None:
        """Shadow every sink, and every source that needs options of its own. Raises CannotRehearse, GatewayError."""
        for path in tables.sinks:
            declaration = self._declaration(path)
            self._replace(path, declaration, sink_ddl(declaration))
        for path in tables.sources:
            declaration = self._declaration(path)
            if own := ADMITTED[_options(declaration)["connector"]].own_options(self._private):
                # By LIKE, so that the real options stay where they are.
                stage = f"`{path[0]}`.`{path[1]}`.`{self._private} {path[2]}`"
                options = ", ".join(f"'{key}' = '{value}'" for key, value in own.items())
                self._execute(
                    f"CREATE TEMPORARY TABLE {stage} WITH ({options}) LIKE {_quoted(path)} (OVERWRITING OPTIONS)"
                )
                self._replace(path, declaration, f"CREATE TEMPORARY TABLE {_quoted(path)} LIKE {stage}")

    def _replace(self, path: TablePath, declaration: nodes.CreateTable, ddl: str) -> None:
        if declaration.args.get("temporary"):
            self._execute(f"DROP TEMPORARY TABLE {_quoted(path)}")
        self._execute(ddl)

    def _declaration(self, path: TablePath) -> nodes.CreateTable:
        ((text, *_), *_) = self._execute(f"SHOW CREATE TABLE {_quoted(path)}")
        tree = parse_statement(str(text))
        if not isinstance(tree, nodes.CreateTable):
            raise CannotRehearse(f"the declaration of {path[2]} is not understood")
        return tree

    def _execute(self, sql: str) -> tuple[tuple[object, ...], ...]:
        try:
            return self._session.execute(sql).rows
        except GatewayError as error:
            raise CannotRehearse(f"no stand-in could be made: {error}") from None


def sink_ddl(declaration: nodes.CreateTable) -> str:
    """A table of the same path, columns, partitions and primary key that swallows its rows.

    Metadata that is written becomes a plain column. A sink that takes retractions (print) is given no primary key: with
    one, the stand-in would take upserts and the planner put an operator with state in front of it.
    """
    tree = declaration.copy()
    columns = []
    for column in tree.args["columns"]:
        if isinstance(column, nodes.PhysicalColumn):
            columns.append(column)
        elif isinstance(column, nodes.MetadataColumn) and not column.args.get("virtual"):
            columns.append(nodes.PhysicalColumn(this=column.this, kind=column.args["kind"]))
    keys = tree.args.get("constraints")
    if _options(declaration).get("connector") in _SINK_CONNECTORS_OF_ROWS:
        keys = None
    ddl = nodes.CreateTable(
        this=tree.this,
        columns=columns,
        constraints=keys,
        partitioned_by=tree.args.get("partitioned_by"),
        options=[_option("connector", "blackhole")],
        temporary=True,
    )
    return ddl.sql(dialect=Flink)


def _option(key: str, value: str) -> nodes.Option:
    from sqlglot import exp

    return nodes.Option(this=exp.Literal.string(key), expression=exp.Literal.string(value))


def _options(declaration: nodes.CreateTable) -> dict[str, str]:
    return {option.this.name: option.expression.name for option in declaration.args.get("options") or ()}


def _quoted(path: TablePath) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def _shown(paths: Iterable[TablePath]) -> str:
    return ", ".join(path[2] for path in paths)
