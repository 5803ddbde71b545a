"""State migration: rewrite the savepoint of one job so that another job can resume from it."""

from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.target_folder import FolderTaken
from airflow_flinkcompat.migration.verifying import MigrationVerificationFailed, verify
from airflow_flinkcompat.migration.writing import migrate_savepoint

__all__ = ["FolderTaken", "MigrationVerificationFailed", "NotMigratable", "migrate_savepoint", "verify"]
