"""Secrets: which values are some, where a script asks for one, and texts that do not show any."""

from airflow_flinkcompat.secrets.detect import Secret, find_secrets
from airflow_flinkcompat.secrets.keys import is_secret_key
from airflow_flinkcompat.secrets.placeholders import PLACEHOLDER, Placeholder, placeholders, resolve_placeholders
from airflow_flinkcompat.secrets.programs import mask_program, program_secrets, secret_texts, secrets_beside
from airflow_flinkcompat.secrets.redact import MASK, mask_option, mask_secrets

__all__ = [
    "MASK",
    "PLACEHOLDER",
    "Placeholder",
    "Secret",
    "find_secrets",
    "is_secret_key",
    "mask_option",
    "mask_program",
    "mask_secrets",
    "placeholders",
    "program_secrets",
    "resolve_placeholders",
    "secret_texts",
    "secrets_beside",
]
