"""Tables of stored state in Spark. Each task reads one range of key groups."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.keyed_state import group_parts
from airflow_flinkcompat.state import OPERATORS, SOURCES, OpenSavepoint, QueryFailed, StateTable, query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PART = 32 << 20
"""Approximate number of bytes that a task reads."""
_SPARK_TYPES = {"timestamp[ms]": "TIMESTAMP", "time32[ms]": "VARCHAR"}
"""Types in DuckDB for Arrow types that Spark does not read. A nested value with such a type is text."""
_UNREADABLE = re.compile(r"SavepointUnreadable: (.*)")


def read_table(spark: SparkSession, savepoint: OpenSavepoint, name: str) -> DataFrame:
    """Read a table of a savepoint in Spark.

    Args:
        spark: Session whose executors have this package and access to the savepoint.
        savepoint: The savepoint.
        name: Name of the table in SQL.

    Returns:
        A DataFrame with the columns of ``state sql``, computed ones included. The rows are read when it is used.

    Raises:
        QueryFailed: The savepoint has no table of this name.
    """
    table = next((table for table in savepoint.tables if table.name == name), None)
    if table is None:
        raise QueryFailed(f"{savepoint.path} has no table {name}: state show lists the tables")
    parts = [
        replace(table, stored=(stored,), within=groups)
        for stored, groups in group_parts(table.stored, lambda size, groups: min(-(-size // _PART), groups) or 1)
    ]
    with _rows(replace(table, stored=())) as rows:
        schema = spark.createDataFrame(rows.schema.empty_table()).schema
    return spark.range(0, len(parts), 1, len(parts)).mapInArrow(partial(_read, parts), schema)


def _read(parts: list[StateTable], numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            with _rows(parts[number]) as rows:
                yield from rows


@contextmanager
def _rows(table: StateTable) -> Iterator[pa.RecordBatchReader]:
    """The rows of one table, in the types of Spark."""
    types = {
        field.name: _SPARK_TYPES.get(str(field.type), "VARCHAR")
        for field in table.schema
        if any(each in str(field.type) for each in _SPARK_TYPES)
    }
    casts = ", ".join(f'CAST("{name}" AS {type}) AS "{name}"' for name, type in types.items())
    replaced = f" REPLACE ({casts})" if casts else ""
    with query(OpenSavepoint(table.path, (), 0, (table,), {}), f'SELECT *{replaced} FROM "{table.name}"') as result:
        yield result.reader()


@contextmanager
def query_on_spark(
    savepoint: OpenSavepoint, sql: str, master: str | None, say: Callable[[str], None]
) -> Iterator[DataFrame]:
    """Run a query of Spark SQL over the tables of a savepoint, and yield its rows.

    Raises QueryFailed if Spark refuses the query, and SavepointUnreadable if a task cannot read the savepoint.
    """
    from airflow_flinkcompat.backfill.result import BackfillError
    from airflow_flinkcompat.backfill.spark import is_local, spark_session

    try:
        with spark_session(master, say=say) as session, _spark_errors():
            if is_local(session.sparkContext.master or ""):
                session.sparkContext.pythonExec = sys.executable
            # A view costs time even if the query does not use it.
            named = sql.lower()
            for table in (each for each in savepoint.tables if each.name in named):
                read_table(session, savepoint, table.name).createOrReplaceTempView(f"`{table.name}`")
            for each in (OPERATORS, SOURCES):
                if each.name in named:
                    session.createDataFrame(each.read(savepoint)).createOrReplaceTempView(each.name)
            yield session.sql(sql)
    except BackfillError as error:
        raise InputError(str(error)) from None


@contextmanager
def _spark_errors() -> Iterator[None]:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        damaged = _UNREADABLE.search(str(error))
        if damaged is not None:
            raise SavepointUnreadable(damaged[1]) from None
        message, _, _ = str(error).partition("\n\nJVM stacktrace")
        raise QueryFailed(message.partition(";\n")[0].strip()) from None  # without Spark's plan
