"""What the placeholders of a backfill stand for: filled in where Spark's driver runs, and nowhere before."""

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
    """An option's value with its placeholders filled in.

    Args:
        value: The value, as the script has it between the quotes.
        environment: That of Spark's driver.

    Returns:
        The value for the client; what hides it is the run's redactor (:func:`driver_redactor`).

    Raises:
        BackfillError: A malformed placeholder, or a variable that is not set. It never holds a value.
    """
    try:
        return resolve_value(value, environment_lookup(environment)).text
    except (PlaceholderError, LookupError) as error:
        raise BackfillError(str(error.args[0])) from None


def driver_redactor(asked: Iterable[AnyPlaceholder], environment: Mapping[str, str]) -> Redactor:
    """What hides the secret values that a run's placeholders stand for."""
    return redactor_of(asked, environment_lookup(environment))
