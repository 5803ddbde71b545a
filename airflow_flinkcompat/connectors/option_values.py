"""Parsers for option values, which follow Flink's parsers for each type."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal

_NANOSECONDS: Mapping[str, int] = {
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 1),
    **dict.fromkeys(("µs", "micro", "micros", "microsecond", "microseconds"), 1_000),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1_000_000),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000_000_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000_000_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000_000_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000_000),
}
_BYTES: Mapping[str, int] = {
    **dict.fromkeys(("", "b", "bytes"), 1),
    **dict.fromkeys(("k", "kb", "kibibytes"), 1 << 10),
    **dict.fromkeys(("m", "mb", "mebibytes"), 1 << 20),
    **dict.fromkeys(("g", "gb", "gibibytes"), 1 << 30),
    **dict.fromkeys(("t", "tb", "tebibytes"), 1 << 40),
}
_LONG = 1 << 63
_QUANTITY = re.compile(r"([0-9]+)(.*)", re.DOTALL)
_ISO_8601 = re.compile(r"P(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d{0,9})?)S)?)?", re.IGNORECASE)
_ISO_SECONDS = (86_400, 3_600, 60, 1)
_HEXADECIMAL = r"0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?\d+"
_FLOATING = re.compile(rf"[+-]?(NaN|Infinity|((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|{_HEXADECIMAL})[fFdD]?)")
_OFFSET = re.compile(r"GMT[+-](\d|\d\d|(\d\d):?([0-5]\d))")
_FURTHEST_HOUR = 18
_SESSION_ZONE = "default"
"""Flink's value for the time zone of the machine."""
_ESCAPE = re.compile(r"\\(?:u+[0-9a-fA-F]{4}|[0-7]{1,3}|.)", re.DOTALL)
_BLANKS = "".join(map(chr, range(33)))
"""Characters that Java's ``trim`` removes."""
_QUOTES = "'\""
_QUOTED = re.compile(r"^(['\"])(.*)\1$", re.DOTALL)


def character(text: str) -> str:
    """Accept a single character, or the escape sequence of a single character."""
    if len(_ESCAPE.sub("x", text)) != 1:
        raise ValueError(text)
    return text


def boolean(text: str) -> str:
    """Accept true or false, and return the word in lower case."""
    return _among(text.lower(), ("true", "false"))


def _among(text: str, values: Collection[str]) -> str:
    if text not in values:
        raise ValueError(text)
    return text


def _whole(text: str, largest: int) -> int:
    if not re.fullmatch(r"[+-]?\d+", text) or not -largest <= int(text) < largest:
        raise ValueError(text)
    return int(text)


def integer(text: str) -> int:
    """Parse a 32-bit integer."""
    return _whole(text, 1 << 31)


def long(text: str) -> int:
    """Parse a 64-bit integer."""
    return _whole(text, _LONG)


def floating(text: str) -> float:
    """Parse a floating-point number in Java's notation."""
    text = text.strip(_BLANKS)
    if not _FLOATING.fullmatch(text):
        raise ValueError(text)
    return float.fromhex(text.rstrip("fFdD")) if "x" in text.lower() else float(text.rstrip("fFdD"))


def _quantity(text: str, units: Mapping[str, int]) -> tuple[int, int]:
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise ValueError(text)
    unit = _among(found[2].strip(_BLANKS).lower(), units)
    return int(found[1]), units[unit]


def duration(text: str, line: tuple[int, ...] = (2, 3)) -> Decimal:
    """Parse a duration into milliseconds. Flink 2.1 and later also accept ISO 8601."""
    text = text.strip(_BLANKS)
    iso = _ISO_8601.fullmatch(text) if line >= (2, 1) else None
    if iso and any(iso.groups()):
        parts = (Decimal((part or "0").replace(",", ".")) for part in iso.groups())
        return sum((part * size for part, size in zip(parts, _ISO_SECONDS, strict=True)), Decimal()) * 1000
    number, unit = _quantity(text, _NANOSECONDS)
    nanoseconds = number * unit
    if nanoseconds >= _LONG * 10**9 or (line < (2, 0) and number >= _LONG):
        raise ValueError(text)
    return Decimal(nanoseconds) / 10**6


def memory(text: str) -> int:
    """Parse a memory size into bytes."""
    number, unit = _quantity(text.strip(_BLANKS), _BYTES)
    if number >= _LONG or number * unit >= _LONG:
        raise ValueError(text)
    return number * unit


def elements(text: str, separator: str = ";") -> list[str]:
    """The parts of a list; quoted parts may contain the separator."""
    if text.startswith("["):  # Flink parses the list as YAML; if that fails, the whole text is one part
        return [_QUOTED.sub(r"\2", part.strip()) for part in text.strip("[]").split(",") if part.strip()]
    parts, rest = [], text
    while rest:
        if rest[0] in _QUOTES:
            closed = re.match(rf"{rest[0]}((?:[^{rest[0]}]|{rest[0]}{rest[0]})*){rest[0]}\s*(?:{separator}|$)", rest)
            if closed is None:
                raise ValueError(text)
            part, rest = closed[1], rest[closed.end() :]
        else:
            part, _, rest = rest.partition(separator)
        parts.append(part.strip(_BLANKS))
    return [part for part in parts if part]


def mapping(text: str) -> str:
    """Accept key-value pairs in Flink's notation or in YAML, and return the text unchanged."""
    if not re.fullmatch(r"\{.*\}", text.strip(), re.DOTALL):
        for pair in elements(text, ","):
            if len(elements(pair, ":")) != 2:
                raise ValueError(text)
    return text


def zone(text: str, regions: Collection[str]) -> str:
    """Accept a time zone, either a region or an offset from GMT."""
    offset = _OFFSET.fullmatch(text)
    if offset is None:
        return text if text == _SESSION_ZONE else _among(text, regions)
    hours, minutes = int(offset[2] or offset[1]), int(offset[3] or 0)
    if hours * 60 + minutes > _FURTHEST_HOUR * 60:
        raise ValueError(text)
    return text


PARSERS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "bool": (boolean, "true or false"),
    "char": (character, "a single character"),
    "int": (integer, "a whole number"),
    "long": (long, "a whole number"),
    "float": (floating, "a number"),
    "duration": (duration, "a duration such as '10 s'"),
    "memory": (memory, "a memory size such as '64 mb'"),
    "map": (mapping, "pairs such as 'key1:value1,key2:value2'"),
}
"""A parser and a description for messages, by name of the type."""
