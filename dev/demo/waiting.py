"""Wait for a condition as long as something moves; and the one error of the demo."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

# How long nothing may move, and how long a single wait may take in all: a busy machine is slow, not wrong.
QUIET_SECONDS = 300.0
LIMIT_SECONDS = 1800.0
# The pause between two looks grows with the wait: looks cost processor time that the work itself needs.
_LEAST_PAUSE, _MOST_PAUSE, _SHARE_OF_WAIT = 0.2, 2.0, 0.05
_LOOK_SECONDS = 5.0  # between two looks at what moves: they cost more than a look at what is waited for
_REMIND_SECONDS = 15.0

T = TypeVar("T")


class DemoError(Exception):
    """A step did not do what it says; one readable message."""


def wait_for(
    what: str,
    look: Callable[[], T | None],
    *,
    moved: Callable[[], object] = lambda: None,
    quiet: float = QUIET_SECONDS,
    limit: float = LIMIT_SECONDS,
    say: Callable[[str], None] = lambda _: None,
    alive: Callable[[], None] = lambda: None,
    seen: Callable[[], str] = lambda: "",
) -> T:
    """Return the first truthy answer of ``look``; raise DemoError when the time is over.

    It ends after ``limit`` seconds, or after ``quiet`` seconds in which ``moved`` has not changed. ``alive`` raises
    when waiting has become useless, and ``seen`` describes the state for the error.
    """
    began = moved_at = looked_at = time.monotonic()
    remind_at, before = began + _REMIND_SECONDS, moved()
    while True:
        alive()
        if answer := look():
            return answer
        now = time.monotonic()
        if now - looked_at >= min(_LOOK_SECONDS, quiet):
            looked_at, state = now, moved()
            if state != before:
                before, moved_at = state, now
        still = now - moved_at > quiet
        if still or now - began > limit:
            why = f"nothing has moved for {quiet:.0f} s" if still else f"the limit is {limit:.0f} s"
            raise DemoError(
                f"timed out after {now - began:.0f} s of waiting for {what}: {why}. This machine may be too slow or "
                f"too busy; no wrong result was seen. {seen()}".strip()
            )
        if now > remind_at:
            remind_at = now + _REMIND_SECONDS
            say(f"still waiting for {what} ({now - began:.0f} s; last movement {now - moved_at:.0f} s ago)")
        time.sleep(min(max(_SHARE_OF_WAIT * (now - began), _LEAST_PAUSE), _MOST_PAUSE))


def require(held: object, message: str) -> None:
    """Raises DemoError with ``message`` unless ``held``."""
    if not held:
        raise DemoError(message)
