"""What the demo prints: lines as things happen, and a table at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import TextIO


class Narrator:
    """Prints with the seconds since the start in front; every line is flushed, so it shows as it happens."""

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
        """A line; what spans several lines is set in below the first."""
        first, *rest = text.splitlines() or [""]
        self._print(f"{self.seconds:6.1f} s  {first}")
        for line in rest:
            self._print(f"{'':10}  {line}")

    def proved(self, text: str) -> None:
        self.say(f"✓ {text}")

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]], widest: int = 58) -> None:
        """A table; long cells go over several lines."""
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
