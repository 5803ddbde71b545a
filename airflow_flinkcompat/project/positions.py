"""Line and column of each key in a TOML file, which Python's TOML parser does not report."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.lazy import cached_property

_BLANK = re.compile(r"(?:\s|#[^\n]*)*")
_KEY = re.compile(r""""(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+""")
_STRING = re.compile(r'''"""(?:[^\\]|\\.)*?""""{0,2}|\'{3}.*?\'{3,5}|"(?:[^"\\]|\\.)*"|'[^']*\'''', re.DOTALL)
_PLAIN = re.compile(r"[^,\]}\n#]+")
"""Pattern of a number, a Boolean or a time."""

Path = tuple[str, ...]


@dataclass(frozen=True)
class TomlPositions:
    """Positions of the keys in a project file.

    Attributes:
        name: The name of the file in messages.
        root: The table that contains the project, such as ``tool.flinkcompat``; "" for the whole file.
    """

    name: str
    text: str
    root: str = ""

    def place(self, key: str, deployment: str | None = None) -> str:
        """File, line and column of a key, as the beginning of a message."""
        at = self.find(key, deployment)
        return self.name if at is None else f"{self.name}:{at[0]}:{at[1]}"

    def find(self, key: str, deployment: str | None = None) -> tuple[int, int] | None:
        """Line and column of a key, or else of its table; None if the file contains neither of them."""
        bare = key.removeprefix("check.")  # engine, engine_version and policy may be outside of the table check
        keys = (key, bare, f"check.{bare}")
        tables = ("defaults.", "") if deployment is None else (f"deployments.{deployment}.", "defaults.", "")
        for table in tables:
            for each in keys:
                if (at := self._by_key.get(self._full(table + each))) is not None:
                    return at
        missing = self._full(key if deployment is None else tables[0] + key)
        while missing:
            missing = missing.rpartition(".")[0]
            if missing in self._by_key:
                return self._by_key[missing]
        return None

    def _full(self, key: str) -> str:
        return f"{self.root}.{key}" if self.root else key

    @cached_property
    def _by_key(self) -> Mapping[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for path, offset in _Scan(self.text).walk():
            before = self.text[:offset]
            found.setdefault(".".join(path), (before.count("\n") + 1, offset - before.rfind("\n")))
        return found


class _Scan:
    """Scanner of valid TOML that yields each key with its offset."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def walk(self) -> Iterator[tuple[Path, int]]:
        table: Path = ()
        lengths: Counter[Path] = Counter()
        self._take(_BLANK)
        while self.at < len(self.text):
            if self.text[self.at] != "[":
                yield from self._pair(table)
            else:
                brackets = 2 if self.text.startswith("[[", self.at) else 1
                self.at += brackets
                table = ()
                for name, offset, is_last in self._dotted():
                    table = (*table, name)
                    yield table, offset
                    if is_last and brackets == 2:
                        lengths[table] += 1
                    if table in lengths:
                        table = (*table, str(lengths[table]))
                        yield table, offset
                self.at += brackets
            self._take(_BLANK)

    def _pair(self, table: Path) -> Iterator[tuple[Path, int]]:
        for name, offset, _ in self._dotted():
            table = (*table, name)
            yield table, offset
        self.at += 1  # the equals sign
        yield from self._value(table)

    def _value(self, path: Path) -> Iterator[tuple[Path, int]]:
        self._take(_BLANK)
        match self.text[self.at]:
            case "[" | "{" as bracket:
                self.at += 1
                number = 0
                while self._next() not in "]}":
                    if bracket == "{":
                        yield from self._pair(path)
                    else:
                        number += 1
                        yield (*path, str(number)), self.at
                        yield from self._value((*path, str(number)))
                    if self._next() == ",":
                        self.at += 1
                self.at += 1
            case quote:
                self._take(_STRING if quote in "\"'" else _PLAIN)

    def _dotted(self) -> Iterator[tuple[str, int, bool]]:
        """Yield each part of a dotted key with its offset, and True for the last part."""
        while True:
            self._take(_BLANK)
            offset, name = self.at, self._take(_KEY)
            is_last = self._next() != "."
            yield (tomllib.loads(f"x = {name}")["x"] if name[0] in "\"'" else name), offset, is_last
            if is_last:
                return
            self.at += 1

    def _next(self) -> str:
        self._take(_BLANK)
        return self.text[self.at]

    def _take(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        assert found is not None, f"valid TOML at offset {self.at}"
        self.at = found.end()
        return found.group()
