"""Data of JSON and TOML as a program's own lists, dictionaries and constants."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from airflow_flinkcompat.frontends.table_api.values import Container, NotRead, UnknownValue, Value, bounded

_READS: Mapping[str, Callable[[str], Any]] = {"json": json.loads, "tomllib": tomllib.loads}


def loaded(kind: str, text: str) -> Value:
    """What ``json.loads`` or ``tomllib.loads`` makes of a text. Raises :class:`NotRead` where it would fail."""
    try:
        return value_of(_READS[kind](text))
    except (ValueError, RecursionError):
        raise NotRead(f"a text that is read as {kind.removesuffix('lib').upper()} is none") from None


def value_of(given: Any) -> Value:
    """A value of such data."""
    match given:
        case dict():
            return Container({key: value_of(value) for key, value in given.items()}, kind="dict")
        case list():
            return Container([value_of(value) for value in given])
        case str() | bool() | int() | float() | None:
            return bounded(given)
    return UnknownValue("a date or time in a file is not read")
