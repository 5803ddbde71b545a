"""Time of a backfill next to Spark, Flink and DuckDB on the same files."""
