"""Native partials over Delta Lake and Iceberg: files of the version that is read, where they are its rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_flinkcompat.backfill import BackfillRequest, plan
from airflow_flinkcompat.backfill.connectors.iceberg import IcebergSource
from airflow_flinkcompat.backfill.connectors.iceberg_spark import configure
from airflow_flinkcompat.backfill.duckdb.eligibility import DuckDbAccelerator
from airflow_flinkcompat.backfill.execution.frames import Execution
from airflow_flinkcompat.model import JobSpec
from tests.scenarios.backfill.duckdb.both_ways import BOUNDS, WINDOWS, both_ways, job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


COLUMNS = "ts TIMESTAMP(3), k STRING, i INT, WATERMARK FOR ts AS ts"
QUERY = (
    f"INSERT INTO o SELECT k, window_start, window_end, COUNT(*), SUM(i), MAX(i) FROM {WINDOWS['HOP']} "
    "GROUP BY k, window_start, window_end"
)
RESULTS = "k STRING, ws TIMESTAMP(3), we TIMESTAMP(3), n BIGINT, s INT, m INT"
# Change → why Spark does it then.
CHANGES = {
    "delta": {
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true'); "
        "DELETE FROM {t} WHERE i = 3": "some rows of the files are deleted",
        "ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')": "Delta stores column ts in its",
    },
    "iceberg": {
        "ALTER TABLE {t} RENAME COLUMN i TO j; ALTER TABLE {t} ADD COLUMN i INT; "
        "INSERT INTO {t} VALUES (NULL, 'a', 1, 1)": "column i had another name",
        "ALTER TABLE {t} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read'); "
        "DELETE FROM {t} WHERE j = 3": "some rows of the files are deleted",
    },
}


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANGES)
def test_the_rows_are_those_of_sparks_own_operators(spark: SparkSession, tmp_path: Path, kind: str) -> None:
    """Not those of files that a later version has given up; once rows are deleted or renamed, Spark reads them."""
    options = {
        "delta": f"'connector' = 'delta', 'table-path' = '{tmp_path}/t'",
        "iceberg": f"'connector' = 'iceberg', 'catalog-name' = 'c', 'catalog-type' = 'hadoop', 'warehouse' = "
        f"'{tmp_path}/lake', 'catalog-database' = 'db'",
    }
    text = job(tmp_path, QUERY, RESULTS, f"CREATE TABLE t ({COLUMNS}) WITH ({options[kind]})")
    work = plan(BackfillRequest(JobSpec(text))).work
    (source,), name = work.sources, f"delta.`{tmp_path}/t`"
    if isinstance(source, IcebergSource):
        configure(spark, source.location)
        name = source.location.identifier
    spark.conf.set("spark.databricks.delta.snapshotPartitions", 1)
    rows = "IF(id % 30 = 0, NULL, TIMESTAMP_NTZ '1970-01-01' + make_dt_interval(0, 0, 0, id * 7919 % 3600 - 1800))"
    rows = f"{rows} AS ts, substring('abä', CAST(id % 4 AS INT), 1) AS k, CAST(id % 10 AS INT) AS i FROM range(300)"
    spark.sql(f"CREATE TABLE {name} USING {kind} AS SELECT {rows}")
    spark.sql(f"INSERT OVERWRITE {name} SELECT {rows}")
    (said,) = both_ways(spark, tmp_path, text, BOUNDS[1])
    assert "DuckDB aggregates files" in said
    for statements, reason in CHANGES[kind].items():
        for statement in statements.split("; "):
            spark.sql(statement.format(t=name))
        lines: list[str] = []
        Execution(spark, work, by_slices=False, accelerator=DuckDbAccelerator(lines.append)).rows(work.writes[0])
        assert f"Spark's own operators aggregate all rows, because {reason}" in lines[0]
