"""Waiting for a condition with a deadline, saying so now and then; and the one error of the demo."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

_POLL_SECONDS = 0.4
_REMIND_SECONDS = 15.0

T = TypeVar("T")


class DemoError(Exception):
    """A step did not do what it says; one readable message."""


def ignore(_message: str) -> None:
    """Says nothing."""


def wait_for(
    what: str,
    look: Callable[[], T | None],
    *,
    timeout: float,
    say: Callable[[str], None] = ignore,
    alive: Callable[[], None] = lambda: None,
    seen: Callable[[], str] = lambda: "",
) -> T:
    """The first truthy answer of ``look``, at most ``timeout`` seconds from now.

    ``alive`` raises when there is no more use in waiting; ``seen`` tells what there was instead. Raises DemoError.
    """
    began = time.monotonic()
    remind_at = began + _REMIND_SECONDS
    while True:
        alive()
        if answer := look():
            return answer
        now = time.monotonic()
        if now - began > timeout:
            raise DemoError(f"waited {timeout:.0f} s for {what}. {seen()}".strip())
        if now > remind_at:
            remind_at = now + _REMIND_SECONDS
            say(f"still waiting for {what} ({now - began:.0f} s, at most {timeout:.0f} s)")
        time.sleep(_POLL_SECONDS)


def require(held: object, message: str) -> None:
    """Raises DemoError with ``message`` unless ``held``."""
    if not held:
        raise DemoError(message)
