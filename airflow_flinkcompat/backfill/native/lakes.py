"""The data files of Delta Lake and Iceberg tables, as the version that a run reads names them.

Only where files hold the rows as they are: none deleted since, columns under their own names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.connectors.delta import Delta
from airflow_flinkcompat.backfill.connectors.iceberg import Iceberg
from airflow_flinkcompat.backfill.connectors.lake_tables import delta_version, iceberg_snapshot
from airflow_flinkcompat.backfill.connectors.pins import once
from airflow_flinkcompat.backfill.native.held import NotNative, Parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def data_files(session: SparkSession, source: Delta | Iceberg) -> Parquet:
    """A table's files. Raises :class:`NotNative` where its rows are not theirs."""
    source.frame(session)  # raises the error for a table that does not fit
    place = source.place if isinstance(source, Delta) else source.location
    found = once(session, ("data files", place), lambda: _found(session, source))
    if isinstance(found, str):
        raise NotNative(found)
    return found


def _found(session: SparkSession, source: Delta | Iceberg) -> Parquet | str:
    try:
        return _delta(session, source) if isinstance(source, Delta) else _iceberg(session, source)
    except NotNative as reason:
        return str(reason)


def _delta(session: SparkSession, source: Delta) -> Parquet:
    from pyspark.sql import DataFrame

    jvm: Any = session._jvm
    version, _ = delta_version(session, source.place)
    log: Any = jvm.org.apache.spark.sql.delta.DeltaLog
    snapshot = log.forTableWithSnapshot(session._jsparkSession, source.place)._2()
    if snapshot.version() != version:
        raise NotNative("it was written to after the run began")
    for field in json.loads(snapshot.metadata().schemaString())["fields"]:
        if set(field["metadata"]) - {"comment"}:  # names or numbers of columns, widths of texts, values made by Delta
            raise NotNative(f"Delta keeps column {field['name']} in a way of its own")
    added = DataFrame(snapshot.allFiles().toDF(), session).selectExpr("path", "deletionVector IS NOT NULL").collect()
    if any(row[1] for row in added):
        raise NotNative("rows of its files are deleted")
    return _parquet(path if ":" in path else f"{source.place}/{path}" for path, _ in added)


def _iceberg(session: SparkSession, source: Iceberg) -> Parquet:
    jvm: Any = session._jvm
    name, snapshot = source.location.identifier, iceberg_snapshot(session, source.location)
    if snapshot is None:
        raise NotNative("there are no rows")
    files = session.sql(f"SELECT content, file_format, file_path FROM {name}.files VERSION AS OF {snapshot}").collect()
    if any(row.content != 0 for row in files):
        raise NotNative("rows of its files are deleted")
    if any(row.file_format != "PARQUET" for row in files):
        raise NotNative("its files are not all parquet")
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, name)
    schema = table.schemas().get(table.snapshot(snapshot).schemaId())
    found = {column.name: schema.findField(column.name) for column in source.columns}
    ids = tuple((each, field.fieldId()) for each, field in found.items() if field is not None)
    return _parquet((_uri(row.file_path) for row in files), ids)


def _uri(path: str) -> str:
    """Of what Iceberg keeps as it stands: a path, or one after ``file:``."""
    plain = path.removeprefix("file:")
    if ":" in plain or "%" in plain:
        raise NotNative("its files lie elsewhere, or have names that are written in two ways")
    return Path("/" + plain.lstrip("/")).as_uri()


def _parquet(files: Iterable[str], ids: tuple[tuple[str, int], ...] | None = None) -> Parquet:
    found = tuple(sorted(files))
    if not found:
        raise NotNative("there are no rows")
    return Parquet(found, ids)
