"""State migration: a savepoint of one job rewritten into one that another job reads."""

from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.migration.target_folder import FolderTaken
from airflow_flinkcompat.migration.verifying import MigrationVerificationFailed, verify
from airflow_flinkcompat.migration.writing import (
    WrittenState,
    migrate_savepoint,
    require_predicted_state,
    require_predicted_template,
    require_rewritable,
    write_migrated,
)

__all__ = [
    "FolderTaken",
    "MigrationVerificationFailed",
    "NotMigratable",
    "WrittenState",
    "migrate_savepoint",
    "require_predicted_state",
    "require_predicted_template",
    "require_rewritable",
    "verify",
    "write_migrated",
]
