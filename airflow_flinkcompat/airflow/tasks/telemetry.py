"""Notifications, Airflow metrics, and OpenTelemetry child spans of the tasks' spans.

The deployment is a tag of each metric. For StatsD without tags, a value with a fixed set of choices, such as the
outcome, is a suffix of the metric's name. Nothing is sent if Airflow's metrics or traces are disabled. No error in this
module fails a task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_flinkcompat.deploy import LedgerEntry

_PREFIX = "flinkcompat"


def count(name: str, deployment: str) -> None:
    from airflow.providers.common.compat.sdk import Stats

    Stats.incr(f"{_PREFIX}.{name}", tags={"deployment": deployment})


def duration(name: str, took: timedelta, deployment: str) -> None:
    from airflow.providers.common.compat.sdk import Stats

    Stats.timing(f"{_PREFIX}.{name}", took, tags={"deployment": deployment})


def level(name: str, value: float, deployment: str) -> None:
    from airflow.providers.common.compat.sdk import Stats

    Stats.gauge(f"{_PREFIX}.{name}", value, tags={"deployment": deployment})


@contextmanager
def span(
    name: str, attributes: Mapping[str, Any], waits: tuple[type[BaseException], ...] = ()
) -> Iterator[Callable[..., None]]:
    """Open a span ``flinkcompat.<name>``, which records the type of an error but not its text."""
    try:
        from opentelemetry import trace
    except ImportError:  # an Airflow without traces
        yield lambda **_: None
        return

    def named(values: Mapping[str, Any]) -> dict[str, Any]:
        return {f"{_PREFIX}.{key}": value for key, value in values.items() if value is not None}

    tracer = trace.get_tracer("airflow_flinkcompat")
    with tracer.start_as_current_span(
        f"{_PREFIX}.{name}", attributes=named(attributes), record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield lambda **more: span.set_attributes(named(more))
        except waits:
            span.set_attributes(named({"waits": True}))
            raise
        except Exception as error:
            span.set_status(trace.Status(trace.StatusCode.ERROR, type(error).__name__))
            raise


def downtime(entries: Sequence[LedgerEntry]) -> tuple[timedelta | None, timedelta | None]:
    """Times from the last stop to the accepted start and to the verified start; None for an unknown time."""
    from airflow_flinkcompat.deploy.ledger.entries import DeployedEntry, StartedEntry, StoppedEntry

    places = [place for place, entry in enumerate(entries) if entry.is_head]
    if not places or not isinstance(entries[places[-1]], DeployedEntry):
        return None, None
    begin = places[-2] + 1 if len(places) > 1 else 0
    own = entries[begin : places[-1] + 1]
    stopped = next((entry for entry in reversed(own) if isinstance(entry, StoppedEntry)), None)
    if stopped is None:
        return None, None
    started = next((entry for entry in reversed(own) if isinstance(entry, StartedEntry)), None)
    accepted = None if started is None else started.written - stopped.written
    return accepted, own[-1].written - stopped.written


Notify = Callable[["Context"], Any]
FACTS = "flinkcompat"
"""Key of the context that contains the facts for a notifier or its template."""


def each(name: str, notifiers: Notify | Sequence[Notify] | None) -> tuple[Notify, ...]:
    """Turn one, several or no notifiers into a tuple. Raises ValueError for any other value."""
    found = () if notifiers is None else tuple(notifiers) if isinstance(notifiers, list | tuple) else (notifiers,)
    if wrong := [one for one in found if not callable(one)]:
        raise ValueError(f"{name}: {wrong[0]!r} is neither a notifier nor a function that takes a context")
    return found


def notify(task: Any, context: Context, notifiers: Sequence[Notify], facts: Mapping[str, Any]) -> None:
    """Call notifiers with facts in the context. If a notifier fails, only a warning is logged."""
    from airflow_flinkcompat.secrets import mask_secrets

    for notifier in notifiers:
        context[FACTS] = dict(facts)  # type: ignore[literal-required]
        try:
            notifier(context)
        except Exception as error:  # for example, the server of a chat is down
            message = mask_secrets(str(error)) or type(error).__name__
            task.log.warning("The notifier %s failed at %r: %s", type(notifier).__name__, facts["event"], message)
