"""Polling for a condition with a deadline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_exponential

T = TypeVar("T")


class Overdue(Exception, Generic[T]):
    """The deadline of a wait has passed; ``last`` is the last observed value."""

    def __init__(self, last: T) -> None:
        super().__init__("the deadline passed")
        self.last = last


def poll(look: Callable[[], T], pending: Callable[[T], bool], *, timeout: float, every: float = 0.25) -> T:
    """Call ``look`` until ``pending`` is False for its result. Times are in seconds. Raises Overdue."""
    polling = Retrying(
        retry=retry_if_result(pending),
        stop=stop_after_delay(timeout),
        wait=wait_exponential(multiplier=0.02, max=every),
    )
    try:
        return polling(look)
    except RetryError as error:
        raise Overdue(error.last_attempt.result()) from None
