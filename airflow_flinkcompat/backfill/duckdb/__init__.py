"""Native partials: DuckDB inside Spark's tasks aggregates files into slices; Spark combines and publishes.

Each task is given whole files and returns what Spark's own first aggregation would have (:mod:`slices`), a fraction of
the rows, at a fraction of the work. Only what gives the same values for certain is computed so: plain columns of types
both hold alike, sums of whole numbers with Flink's wrap-around, of decimals that cannot overflow, counts, minima and
maxima. Anything else is left to Spark's operators, with the reason; so is what DuckDB fails at, whatever the cause.
"""

from airflow_flinkcompat.backfill.duckdb.eligibility import DuckDbAccelerator

__all__ = ["DuckDbAccelerator"]
