"""The data files of Delta Lake and Iceberg tables, as the version that a run reads names them.

Only where files hold the rows as they are: none deleted since, columns under their own names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.connectors.delta.read import delta_version
from airflow_flinkcompat.backfill.connectors.delta.spec import DeltaSource
from airflow_flinkcompat.backfill.connectors.iceberg.read import iceberg_snapshot
from airflow_flinkcompat.backfill.connectors.iceberg.spec import IcebergSource
from airflow_flinkcompat.backfill.connectors.registry import reader
from airflow_flinkcompat.backfill.connectors.snapshot_pinning import pin
from airflow_flinkcompat.backfill.duckdb.data_files import NotEligible, ParquetFiles

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def data_files(session: SparkSession, source: DeltaSource | IcebergSource) -> ParquetFiles:
    """A table's files. Raises :class:`NotEligible` if its rows are not theirs."""
    reader(session, source).rows()  # raises the error for a table that does not fit
    place = source.place if isinstance(source, DeltaSource) else source.location
    found = pin(session, ("data files", place), lambda: _found(session, source))
    if isinstance(found, str):
        raise NotEligible(found)
    return found


def _found(session: SparkSession, source: DeltaSource | IcebergSource) -> ParquetFiles | str:
    try:
        return _delta(session, source) if isinstance(source, DeltaSource) else _iceberg(session, source)
    except NotEligible as reason:
        return str(reason)


def _delta(session: SparkSession, source: DeltaSource) -> ParquetFiles:
    from pyspark.sql import DataFrame

    jvm: Any = session._jvm
    version, _ = delta_version(session, source.place)
    log: Any = jvm.org.apache.spark.sql.delta.DeltaLog
    snapshot = log.forTableWithSnapshot(session._jsparkSession, source.place)._2()
    if snapshot.version() != version:
        raise NotEligible("the table was changed after the run began")
    for field in json.loads(snapshot.metadata().schemaString())["fields"]:
        if set(field["metadata"]) - {"comment"}:  # names or numbers of columns, widths of texts, values made by Delta
            raise NotEligible(f"Delta stores column {field['name']} in its own format")
    added = DataFrame(snapshot.allFiles().toDF(), session).selectExpr("path", "deletionVector IS NOT NULL").collect()
    if any(row[1] for row in added):
        raise NotEligible("some rows of its files are deleted")
    return _parquet(path if ":" in path else f"{source.place}/{path}" for path, _ in added)


def _iceberg(session: SparkSession, source: IcebergSource) -> ParquetFiles:
    jvm: Any = session._jvm
    name, snapshot = source.location.identifier, iceberg_snapshot(session, source.location)
    if snapshot is None:
        raise NotEligible("there are no rows")
    files = session.sql(f"SELECT content, file_format, file_path FROM {name}.files VERSION AS OF {snapshot}").collect()
    if any(row.content != 0 for row in files):
        raise NotEligible("some rows of its files are deleted")
    if any(row.file_format != "PARQUET" for row in files):
        raise NotEligible("some of its files are not parquet")
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session._jsparkSession, name)
    schema = table.schemas().get(table.snapshot(snapshot).schemaId())
    found = {column.name: schema.findField(column.name) for column in source.columns}
    ids = tuple((each, field.fieldId()) for each, field in found.items() if field is not None)
    return _parquet((_uri(row.file_path) for row in files), ids)


def _uri(path: str) -> str:
    """A path as Iceberg stores it: plain, or with the prefix ``file:``."""
    plain = path.removeprefix("file:")
    if ":" in plain or "%" in plain:
        raise NotEligible("its files are elsewhere, or their names have two spellings")
    return Path("/" + plain.lstrip("/")).as_uri()


def _parquet(files: Iterable[str], ids: tuple[tuple[str, int], ...] | None = None) -> ParquetFiles:
    found = tuple(sorted(files))
    if not found:
        raise NotEligible("there are no rows")
    return ParquetFiles(found, ids)
