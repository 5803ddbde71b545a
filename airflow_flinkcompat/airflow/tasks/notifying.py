"""Airflow's notifiers, for events without a callback of Airflow's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Context

Notify = Callable[["Context"], Any]
FACTS = "flinkcompat"
"""The key of the context under which a notifier, or its template, finds its facts."""


def each(name: str, given: Notify | Sequence[Notify] | None) -> tuple[Notify, ...]:
    """The notifiers or functions of argument ``name``: one, several or none. Raises ValueError for others."""
    found = () if given is None else tuple(given) if isinstance(given, list | tuple) else (given,)
    if wrong := [one for one in found if not callable(one)]:
        raise ValueError(f"{name}: {wrong[0]!r} is neither a notifier nor a function that takes a context")
    return found


def tell(task: Any, context: Context, notifiers: Sequence[Notify], facts: Mapping[str, Any]) -> None:
    """Call notifiers with their facts in the context. A failing one is a warning, and undoes nothing."""
    from airflow_flinkcompat.secrets import mask_secrets

    for notifier in notifiers:
        context[FACTS] = dict(facts)  # type: ignore[literal-required]
        try:
            notifier(context)
        except Exception as error:  # another's server, which is away
            said = mask_secrets(str(error)) or type(error).__name__
            task.log.warning("The notifier %s failed at %r: %s", type(notifier).__name__, facts["event"], said)
