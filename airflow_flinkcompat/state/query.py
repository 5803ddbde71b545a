"""SQL over the tables of a savepoint, by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from airflow_flinkcompat.state.tables import Savepoint


class QueryFailed(Exception):
    """A query that DuckDB refuses; the message is DuckDB's."""


@contextmanager
def query(savepoint: Savepoint, sql: str) -> Iterator[duckdb.DuckDBPyRelation]:
    """Run a query over the tables of a savepoint.

    Args:
        savepoint: The savepoint, whose tables are views.
        sql: One statement of DuckDB.

    Yields:
        The result, which is read as it is consumed.

    Raises:
        QueryFailed: DuckDB refuses the statement.
        SavepointUnreadable: The savepoint is damaged.
    """
    with duckdb.connect(":memory:", config={"enable_external_access": "false"}) as connection:
        for table in savepoint.tables:
            connection.register(f"{table.name}__stored", table)
            averages = "".join(f', {expression} AS "{name}"' for name, expression in table.averages.items())
            connection.execute(f'CREATE VIEW "{table.name}" AS SELECT *{averages} FROM "{table.name}__stored"')
        try:
            result = connection.sql(sql)
        except duckdb.Error as error:
            raise QueryFailed(str(error)) from None
        if result is None:
            raise QueryFailed("the statement returns no rows: write a SELECT")
        yield result
