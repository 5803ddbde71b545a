"""Options of Flink, its connectors and its formats: their types, and the values that Flink accepts.

Flink's classes declare these options (``python -m dev.measure settings`` reads them). Keys that no class declares are
unknown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any

from airflow_flinkcompat.connectors import option_values
from airflow_flinkcompat.model.engine import line_numbers

DATA = Path(__file__).with_suffix(".json")
"""Options by version of Flink, as written by ``python -m dev.measure settings``."""
_NEWEST = "2.3"
_LIST = "list:"
_FILLED_IN_LATER = re.compile(r"\$\{|\$\(|\{\{|\{%|<%|%\(|\$[A-Za-z_]|@@")
_FORMAT = re.compile(r"(?:key\.|value\.)?format")
_COLUMN = re.compile(r"fields\..*\.(?=[^.]+$)")


@dataclass(frozen=True)
class FlinkOption:
    """An option as declared by one version of Flink.

    Attributes:
        type: The name of the type, or the constants of an enum separated by ``|``; a list type has the prefix
            ``list:``.
        default: Flink's default value; "" if there is none, or if it is not a string.
        least: The smallest number that Flink accepts; for a duration, in milliseconds.
        names: The words that Flink accepts for an option of the type string.
        classes: The keywords that Flink accepts in addition to class names.
        use: ``source`` or ``sink`` if Flink restricts the value only for tables with this use.
        when: The setting under which Flink restricts the value of this option, optionally with the values of that
            setting.
    """

    type: str
    default: str = ""
    least: int | None = None
    names: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    use: str = ""
    when: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """The accepted values, in words for a message."""
        if self.type.startswith(_LIST):
            of = FlinkOption(self.type.removeprefix(_LIST)).expected
            return f"values separated by ;, each {of}"
        if self.names or self.classes or "|" in self.type:
            words = self.names or self.classes or self.type.split("|")
            return f"one of {', '.join(words)}{', or the name of a class' if self.classes else ''}"
        if self.type == "zone":
            return "a time zone such as 'Europe/Berlin' or 'GMT+01:00'"
        found = option_values.PARSERS.get(self.type)
        what = found[1] if found else f"'{self.type}'"
        least = f"{self.least} ms" if self.type == "duration" else self.least
        return what if self.least is None else f"{what}, at least {least}"

    def value(self, text: str, line: str) -> object:
        """Parse a value; all spellings of a value give the same result."""
        if self.type.startswith(_LIST):
            of = FlinkOption(self.type.removeprefix(_LIST))
            return tuple(of.value(part, line) for part in option_values.elements(text))
        if self.type == "zone":
            return option_values.zone(text, _zones())
        if self.type == "duration":
            return option_values.duration(text, _number(line))
        if self.type in option_values.PARSERS:
            return option_values.PARSERS[self.type][0](text)
        if self.type == "string":
            return text
        for constant in self.type.split("|"):
            if constant.upper() == text.upper():
                return constant
        raise ValueError(text)

    def spelled(self, text: str) -> str:
        """The canonical text of a value, the same for all its spellings."""
        try:
            value = self.value(text, _NEWEST)
        except ValueError:
            return text
        if isinstance(value, tuple):
            return ";".join(map(str, value))
        return f"{value.normalize():f}" if isinstance(value, Decimal) else str(value)

    def parses(self, text: str, line: str) -> bool:
        """True if Flink can parse a value."""
        try:
            self.value(text, line)
        except ValueError:
            return False
        return True

    def refuses(self, text: str, line: str, others: Mapping[str, str] | None, use: str = "") -> bool:
        """True if Flink refuses a value of this option."""
        if _FILLED_IN_LATER.search(text):
            return False
        if not self.parses(text, line):
            return True
        if (self.when and others is not None and not self._is_read(others)) or (self.use and self.use != use):
            return False
        if self.names:
            return text.lower() not in map(str.lower, self.names)
        if self.classes:
            return "." not in text and text.lower() not in map(str.lower, self.classes)
        return self.least is not None and self.value(text, line) < self.least  # type: ignore[operator]

    def _is_read(self, others: Mapping[str, str]) -> bool:
        key, *values = self.when
        return key in others and (not values or others[key].lower() in values)


def declared_option(where: tuple[str, ...], key: str, line: str) -> FlinkOption | None:
    """The declaration of an option in a version of Flink."""
    return _of_line(_data()[f"{where[0]}s"].get(where[1], {}).get(key), line) if where else setting(key, line)


@lru_cache
def setting(key: str, line: str = "") -> FlinkOption | None:
    """The declaration of a setting in a version of Flink."""
    known = _data()["settings"]
    return _of_line(known.get(key), line) or _of_line(known.get(current_name(key)), line)


def is_declared(key: str, line: str) -> bool:
    """True if a version of Flink declares a setting under this name."""
    return _of_line(_data()["settings"].get(key), line) is not None


def is_read(key: str, line: str) -> bool:
    """True if a version of Flink reads a setting under this name, be it the current or a former name."""
    return is_declared(key, line) or any(_covers(lines, line) for lines in _data()["renamed"].get(key, ()))


def current_name(key: str) -> str:
    """The current name of a setting in Flink; the key itself if several settings have this former name."""
    names = {name for each in _data()["renamed"].get(key, {}).values() for name in each}
    return names.pop() if len(names) == 1 else key


def setting_fault(key: str, text: str, line: str, others: Mapping[str, str] | None = None, *, own: bool = True) -> str:
    """The reason why Flink refuses a value of a setting; "" if Flink accepts the value."""
    option = setting(key, line)
    if option is None or not option.refuses(text, line, others) or (not own and option.parses(text, line)):
        return ""
    return f"'{key}' must be {option.expected}, not '{text}'"


def table_faults(options: Mapping[str, str], line: str, use: str) -> Iterator[str]:
    """Yield a message for each table option whose value the connector or a format refuses."""
    declared = [("", _data()["tables"].get(options.get("connector", ""), {}))]
    for key, name in options.items():
        if _FORMAT.fullmatch(key):
            declared.append((f"{key.removesuffix('format')}{name}.", _data()["formats"].get(name, {})))
    for key, text in options.items():
        for prefix, known in declared:
            name = _COLUMN.sub("fields.#.", key.removeprefix(prefix))
            option = _of_line(known.get(name), line) if key.startswith(prefix) else None
            if option is not None and option.refuses(text, line, options, use):
                yield f"'{key}' must be {option.expected}, not '{text}'"
                break


def has_metadata(name: str) -> bool:
    """True if the metadata columns of a format are known."""
    return name in _data()["metadata"]["formats"]


def metadata(connector: str, formats: Iterable[str], *, written: bool) -> Mapping[str, str] | None:
    """The metadata columns that a connector reads or writes, including the columns of its formats."""
    by_connector = _data()["metadata"]["write" if written else "read"]
    if connector not in by_connector:
        return None
    more = () if written else (_data()["metadata"]["formats"].get(name, {}) for name in formats)
    return dict(by_connector[connector]) | {f"value.{key}": type for each in more for key, type in each.items()}


@lru_cache
def _data() -> Mapping[str, Any]:
    found: dict[str, Any] = json.loads(DATA.read_text(encoding="utf-8"))
    return found


@lru_cache
def _zones() -> frozenset[str]:
    return frozenset(_data()["zones"])


def _of_line(rows: Mapping[str, Mapping[str, Any]] | None, line: str) -> FlinkOption | None:
    """The entry for a version of Flink; an entry without versions applies to all."""
    for lines, row in sorted((rows or {}).items(), key=lambda each: _number(each[0].rpartition("-")[2]), reverse=True):
        if not lines or not line or _covers(lines, line):
            fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
            return FlinkOption(**fields)
    return None


def _covers(lines: str, line: str) -> bool:
    first, _, last = lines.partition("-")
    return _number(first) <= _number(line) <= _number(last or first)


def _number(line: str) -> tuple[int, ...]:
    return line_numbers(line) if line else ()
