"""Errors of the backfill: each names the fault, the place and the remedy."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_flinkcompat.model import Span

FLINK_BATCH = "compute these rows with Flink in batch mode"
"""Remedy if a backfill has no exact answer."""


class BackfillError(ValueError):
    """A backfill that cannot be done exactly, or failed; the text is meant for the user.

    Attributes:
        message: The fault and its remedy, without the place.
        span: The place in the script; None if the cause is not in the script.
    """

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message if span is None else f"{span}: {message}")
        self.message = message
        self.span = span


class Untranslatable(BackfillError):
    """A construct in the script without an exact translation for the backfill."""


def combined(errors: Sequence[BackfillError]) -> BackfillError:
    """One error from several, one line each, without duplicates, in their order."""
    if len(errors) == 1:
        return errors[0]
    lines = dict.fromkeys(str(error) for error in errors)
    if len(lines) == 1:
        return errors[0]
    kind = Untranslatable if all(isinstance(error, Untranslatable) for error in errors) else BackfillError
    return kind("\n".join(lines))
