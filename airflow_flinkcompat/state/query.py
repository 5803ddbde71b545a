"""SQL over the tables of a savepoint, by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.state.operators import OPERATORS, SOURCES, MetadataTable
from airflow_flinkcompat.state.output import text_table
from airflow_flinkcompat.state.scan_filter import ScanFilter
from airflow_flinkcompat.state.tables import OpenSavepoint, StateTable

_BATCH = 10_000


class QueryFailed(Exception):
    """A query that DuckDB refuses; the message is DuckDB's."""


@dataclass(frozen=True)
class QueryResult:
    """The rows of a query, which are read as they are consumed."""

    relation: duckdb.DuckDBPyRelation

    def reader(self) -> pa.RecordBatchReader:
        """Read the rows as a stream.

        Returns:
            A reader of Arrow record batches.
        """
        return self.relation.to_arrow_reader(_BATCH)

    def text(self, limit: int) -> tuple[str, bool]:
        """Format the first rows as a text table for a terminal.

        Args:
            limit: Maximum number of rows.

        Returns:
            Lines with columns of equal width, and True if the query has more rows.
        """
        found = self.relation.limit(limit + 1).to_arrow_table()
        return text_table(found.slice(0, limit)), found.num_rows > limit


@contextmanager
def query(savepoint: OpenSavepoint, sql: str) -> Iterator[QueryResult]:
    """Run a query over the tables of a savepoint.

    Args:
        savepoint: The savepoint, whose tables are available as views.
        sql: One statement of DuckDB that returns rows.

    Yields:
        The result.

    Raises:
        QueryFailed: DuckDB refuses the statement.
        SavepointUnreadable: The savepoint is damaged; the message names the file.
    """
    with tables_in_sql({"main": savepoint}) as connection:
        relation = connection.sql(sql) if len(duckdb.extract_statements(sql)) == 1 else None
        if relation is None:
            raise QueryFailed("the query must be one statement that returns rows, such as a SELECT")
        # Project all columns, because DuckDB then numbers columns with equal names.
        yield QueryResult(relation.project("*"))


@contextmanager
def tables_in_sql(savepoints: Mapping[str, OpenSavepoint]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a database with the tables of savepoints as views, and one schema for each savepoint.

    Errors of DuckDB in the block are raised as QueryFailed, or as SavepointUnreadable if a file is damaged.
    """
    read: list[_StoredTable | _MetadataStream] = []
    with (
        TemporaryDirectory(prefix="flinkcompat-state-") as folder,
        duckdb.connect(":memory:", config={"enable_external_access": "false", "temp_directory": folder}) as connection,
    ):
        connection.execute("SET TimeZone = 'UTC'")
        for schema, savepoint in savepoints.items():
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS \"{schema}\"; SET schema = '{schema}'")
            for table in savepoint.tables:
                read.append(_StoredTable(table))
                computed = "".join(f', {expression} AS "{column}"' for column, expression in table.computed.items())
                connection.from_arrow(read[-1]).project(f"*{computed}").create_view(table.name)
            for each in (OPERATORS, SOURCES):
                read.append(_MetadataStream(each, savepoint))
                connection.from_arrow(read[-1]).create_view(each.name)
        try:
            yield connection
        except (duckdb.Error, pa.ArrowException) as error:
            damaged = next((table.error for table in read if table.error is not None), None)
            if damaged is not None:
                raise damaged from None
            raise QueryFailed(str(error)) from None


class _StoredTable(pyarrow.dataset.Dataset):  # type: ignore[misc]
    """A table that DuckDB scans several times, each time with the columns and the filter that it needs.

    DuckDB passes a filter only if Arrow applies it exactly as DuckDB.
    """

    def __init__(self, table: StateTable) -> None:
        self.table = table
        self.error: SavepointUnreadable | None = None

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def scanner(self, columns: list[str] | None = None, filter: pc.Expression | None = None) -> _TableScan:
        return _TableScan(self, columns or self.schema.names, filter)


@dataclass(frozen=True)
class _TableScan:
    """One scan of a table, in the form in which DuckDB reads a dataset."""

    stored: _StoredTable
    columns: list[str]
    filter: pc.Expression | None

    def to_reader(self) -> pa.RecordBatchReader:
        schema = pa.schema([self.stored.schema.field(name) for name in self.columns])
        return pa.RecordBatchReader.from_batches(schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        table, used, groups = self.stored.table, frozenset(self.columns), None
        if self.filter is not None:
            read = ScanFilter.read(self.filter)
            used |= read.columns
            groups = read.key_groups(table.key, table.max_parallelism)
        try:
            for batch in table.batches(used, groups):
                kept = batch if self.filter is None else batch.filter(self.filter)
                yield kept.select(self.columns)
        except SavepointUnreadable as error:
            self.stored.error = error
            raise


@dataclass
class _MetadataStream:
    """A table about a savepoint, which is read if a query uses it."""

    table: MetadataTable
    savepoint: OpenSavepoint
    error: SavepointUnreadable | None = None

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        reader = pa.RecordBatchReader.from_batches(self.table.schema, self._batches())
        return reader.__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.table.read(self.savepoint).to_batches()
        except SavepointUnreadable as error:
            self.error = error
            raise
