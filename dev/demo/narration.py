"""Output of the demo, its waits for a condition, and its one error."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any, TextIO, TypeVar

# Seconds without a change, and for a whole wait, before a timeout. They are long because a busy machine is slow.
QUIET_SECONDS = 300.0
LIMIT_SECONDS = 1800.0
# The pause between two checks grows with the wait, because checks cost processor time that the work needs.
_LEAST_PAUSE, _MOST_PAUSE, _SHARE_OF_WAIT = 0.2, 2.0, 0.05
_LOOK_SECONDS = 5.0  # between two looks at what moves: they cost more than a look at what is waited for
_REMIND_SECONDS = 15.0

T = TypeVar("T")


class DemoError(Exception):
    """A step did not have the expected result; one readable message."""


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
            say(f"still waiting for {what} ({now - began:.0f} s; last change {now - moved_at:.0f} s ago)")
        time.sleep(min(max(_SHARE_OF_WAIT * (now - began), _LEAST_PAUSE), _MOST_PAUSE))


def require(held: object, message: str) -> None:
    """Raise DemoError with ``message`` unless ``held``."""
    if not held:
        raise DemoError(message)


class Narrator:
    """Print with the seconds since the start as prefix; every line is flushed immediately."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._began

    def title(self, text: str) -> None:
        self._print(f"\n── {text} {'─' * max(3, 96 - len(text))}")

    def say(self, text: str) -> None:
        """Print a line; further lines of the text are indented."""
        first, *rest = text.splitlines() or [""]
        self._print(f"{self.seconds:6.1f} s  {first}")
        for line in rest:
            self._print(f"{'':10}  {line}")

    def proved(self, text: str) -> None:
        self.say(f"✓ {text}")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]], widest: int = 58) -> None:
        """Print a table; long cells are wrapped."""
        cells = [[wrap(cell, widest) or [""] for cell in row] for row in (header, *rows)]
        widths = [max(len(line) for row in cells for line in row[i]) for i in range(len(header))]
        rule = "├─" + "─┼─".join("─" * width for width in widths) + "─┤"
        for number, row in enumerate(cells):
            if number:
                self._print(rule)
            for at in range(max(map(len, row))):
                parts = [cell[at] if at < len(cell) else "" for cell in row]
                line = " │ ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True))
                self._print(f"│ {line} │")

    def plain(self, text: str = "") -> None:
        self._print(text)

    def _print(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


@dataclass(frozen=True)
class Step:
    """The result of one version. ``facts`` are the measured values that the ``proofs`` rest on."""

    version: str
    change: str
    verdict: str
    branch: str
    proofs: tuple[str, ...]
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict)


def excerpt(body: str, lines: int = 12) -> str:
    """First nonempty lines of a Markdown text, without folded parts."""
    unfolded = re.sub(r"<details>.*?</details>", "", body, flags=re.DOTALL).replace("\\.", ".")
    shown = [line for line in unfolded.splitlines() if line.strip()]
    return "\n".join([*shown[:lines], *(["…"] if len(shown) > lines else [])])
