"""Tables that a job reads in its SQL Gateway session: declarations, and other options for one of them.

Flink's planner reports the tables that a job reads (EXPLAIN), and the session reports their declarations (SHOW CREATE
TABLE). Views, current catalogs and permanent catalogs therefore remain Flink's own business. Other options are set by a
temporary table of the same path, which shadows the real one in this session only. Measured on Flink 2.3: ALTER TABLE
refuses temporary tables and would be permanent in a permanent catalog. No query is changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from airflow_flinkcompat.compat.changes.table_use import options_that_count
from airflow_flinkcompat.deploy.errors import DeployError
from airflow_flinkcompat.deploy.flink.gateway import GatewayError, Session
from airflow_flinkcompat.deploy.target import Sources, SourceTable, TablePath
from airflow_flinkcompat.sql import ScriptError, nodes, parse_statement

_SCAN = re.compile(r"LogicalTableScan\(table=\[\[(?P<path>.*?)\]\](?P<rest>.*)$")
_HINT_OPTIONS = re.compile(r"OPTIONS [^{]*\{(?P<options>[^}]*)\}")
# What the planner has pushed into a scan stands behind its path: ``metadata=[timestamp]``.
_PUSHED_DOWN = re.compile(r", \w+=\[.*")


class TableError(DeployError):
    """Flink's description of a table was not understood."""


def scans_of(explained: str) -> dict[TablePath, dict[str, str]]:
    """Paths (catalog, database, name) that an EXPLAIN scans, with options from hints; raises TableError."""
    tree = explained.partition("== Optimized")[0]
    scans: dict[TablePath, dict[str, str]] = {}
    for line in tree.splitlines():
        if match := _SCAN.search(line):
            path = path_of(_PUSHED_DOWN.sub("", match["path"]), ", ")
            scans.setdefault(path, {}).update(_hinted(match["rest"]))
    return scans


def path_of(text: str, separator: str) -> TablePath:
    """A path as EXPLAIN writes it. Raises TableError."""
    parts = text.split(separator)
    if len(parts) != 3:
        raise TableError(f"cannot read the table {text!r} in Flink's EXPLAIN")
    return parts[0], parts[1], parts[2]


def declaration(session: Session, path: TablePath) -> nodes.CreateTable:
    """The declaration of a table in this session. Raises TableError, GatewayError."""
    ((text, *_), *_) = session.execute(f"SHOW CREATE TABLE {quoted(path)}").rows
    tree = parse_statement(str(text))
    if not isinstance(tree, nodes.CreateTable):
        raise TableError(f"cannot read the declaration of {path[2]}")
    return tree


def options_of(declared: nodes.CreateTable) -> dict[str, str]:
    """The options in its WITH."""
    return {option.this.name: option.expression.name for option in declared.args.get("options") or ()}


def overlay(session: Session, path: TablePath, options: Mapping[str, str], private: str) -> None:
    """Set other options for a table in this session; the real table is unchanged.

    ``private`` names the resource that is added. Raises TableError, GatewayError.
    """
    stage = quoted((path[0], path[1], f"{private} {path[2]}"))
    given = ", ".join(f"{_literal(key)} = {_literal(value)}" for key, value in options.items())
    temporary = bool(declaration(session, path).args.get("temporary"))
    session.execute(f"CREATE TEMPORARY TABLE {stage} WITH ({given}) LIKE {quoted(path)} (OVERWRITING OPTIONS)")
    shadow(session, path, f"CREATE TEMPORARY TABLE {quoted(path)} LIKE {stage}", temporary=temporary)


def shadow(session: Session, path: TablePath, ddl: str, *, temporary: bool) -> None:
    """Shadow a table, which may be ``temporary`` itself, with a temporary table; raises GatewayError."""
    if temporary:
        session.execute(f"DROP TEMPORARY TABLE {quoted(path)}")
    session.execute(ddl)


def quoted(path: TablePath) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _hinted(text: str) -> dict[str, str]:
    found = (option for match in _HINT_OPTIONS.finditer(text) for option in match["options"].split(", "))
    return {key: value for key, _, value in (option.partition("=") for option in found)}


# Which topic of which brokers: a place in one is none in another.
_PLACE = ("topic", "topic-pattern", "properties.bootstrap.servers")
_RECORD_TIME = "timestamp"


def sources_of(session: Session, explained: str) -> Sources:
    """The sources of a job that was explained in this session. Raises GatewayError if it does not answer."""
    try:
        return Sources(tuple(_source(session, path, hints) for path, hints in scans_of(explained).items()))
    except (TableError, ScriptError) as error:
        return Sources(unknown=str(error))
    except GatewayError as error:
        if error.unanswered:
            raise
        return Sources(unknown=str(error))


def _source(session: Session, path: TablePath, hints: Mapping[str, str]) -> SourceTable:
    declared = declaration(session, path)
    options = {**options_of(declared), **hints}
    connector = options.get("connector", "")
    kept = {key: options[key] for key in (*options_that_count(connector), *_PLACE) if key in options}
    return SourceTable(path, connector, kept, frozenset(hints), _record_times(declared))


def _record_times(declared: nodes.CreateTable) -> frozenset[str]:
    """Columns that are the time of the record."""
    columns = [column for column in declared.args["columns"] if isinstance(column, nodes.MetadataColumn)]
    keys = {column.this.name: column.args.get("metadata_key") for column in columns}
    return frozenset(name for name, key in keys.items() if (key.name if key else name) == _RECORD_TIME)
