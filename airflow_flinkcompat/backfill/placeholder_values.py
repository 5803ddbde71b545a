"""Values of a backfill's placeholders: filled in where Spark's driver runs, and nowhere before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.secrets import (
    AnyPlaceholder,
    PlaceholderError,
    Redactor,
    environment_lookup,
    redactor_of,
    resolve_value,
)


def fill_in(value: str, environment: Mapping[str, str]) -> str:
    """An option's value with its placeholders filled in."""
    try:
        return resolve_value(value, environment_lookup(environment)).text
    except (PlaceholderError, LookupError) as error:
        raise BackfillError(str(error.args[0])) from None


def driver_redactor(asked: Iterable[AnyPlaceholder], environment: Mapping[str, str]) -> Redactor:
    """Redactor of the secret values of a run's placeholders."""
    return redactor_of(asked, environment_lookup(environment))
