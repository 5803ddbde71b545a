"""Secrets: detection, placeholders and masking."""

from airflow_flinkcompat.secrets.placeholders import placeholders
from airflow_flinkcompat.secrets.redact import mask_secrets

__all__ = ["mask_secrets", "placeholders"]
