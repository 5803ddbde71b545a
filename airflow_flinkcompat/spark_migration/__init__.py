"""State migrations on Spark's workers, which read and write the savepoints' folders themselves."""

from airflow_flinkcompat.spark_migration.workers import SPARK_FROM, SparkWorkers, migration_workers

__all__ = ["SPARK_FROM", "SparkWorkers", "migration_workers"]
