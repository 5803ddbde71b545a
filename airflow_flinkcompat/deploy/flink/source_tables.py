"""Sources of a job, as its SQL Gateway session reports them: tables, connectors, and startup options."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.compat.changes.table_use import options_that_count
from airflow_flinkcompat.deploy.flink.gateway import GatewayError, Session
from airflow_flinkcompat.deploy.flink.tables import TableError, declaration, options_of, scans_of
from airflow_flinkcompat.deploy.target import Sources, SourceTable, TablePath
from airflow_flinkcompat.sql import ScriptError, nodes

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
