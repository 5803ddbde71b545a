"""Secrets: their recognition, their placeholders, and texts without them."""

from airflow_flinkcompat.secrets.detect import Secret, are_of_namespace, find_secrets, variables_alone
from airflow_flinkcompat.secrets.placeholders import (
    AnyPlaceholder,
    EnvPlaceholder,
    Lookup,
    Placeholder,
    PlaceholderError,
    Resolved,
    env_in_deployment,
    environment_lookup,
    placeholder_faults,
    placeholders,
    placeholders_in_script,
    redactor_of,
    resolve_placeholders,
    resolve_value,
)
from airflow_flinkcompat.secrets.programs import mask_program, program_secrets, secret_texts, secrets_beside
from airflow_flinkcompat.secrets.redact import (
    MASK,
    SHORTEST,
    Redactor,
    disguise_option,
    disguise_secrets,
    mask_option,
    mask_secrets,
)
from airflow_flinkcompat.secrets.spellings import PLACEHOLDER, is_secret_key, variants

__all__ = [
    "MASK", "PLACEHOLDER", "AnyPlaceholder", "EnvPlaceholder", "Lookup", "Placeholder", "PlaceholderError",
    "Redactor", "Resolved", "SHORTEST", "Secret", "are_of_namespace", "disguise_option", "disguise_secrets",
    "env_in_deployment", "environment_lookup", "find_secrets", "is_secret_key", "mask_option", "mask_program",
    "mask_secrets", "placeholder_faults", "placeholders", "placeholders_in_script", "program_secrets", "redactor_of",
    "resolve_placeholders", "resolve_value", "secret_texts", "secrets_beside", "variables_alone", "variants",
]  # fmt: skip
