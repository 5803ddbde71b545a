"""Strict reader of the waivers file next to a script, and edits that keep the rest of the file.

Waivers are kept outside of the project file, which no command rewrites. Waivers are moved and reviewed with their
script.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from airflow_flinkcompat.model import InputError, Waiver
from airflow_flinkcompat.project.file import content_of, unknown_key
from airflow_flinkcompat.project.positions import TomlPositions

WAIVERS_SUFFIX = ".waivers.toml"
"""Suffix that is added to a script's name for its waivers file."""
_TABLE = "waiver"
_HEADER = re.compile(r"^\[\[\s*waiver\s*\]\].*$", re.MULTILINE)
_FIRST_LINE = "# Findings on {} waived by flinkcompat accept. Each waiver covers one change, until its expiry date.\n"
_KEYS = {each.name: each for each in fields(Waiver)}


def waivers_path(script: Path) -> Path:
    """The path of a script's waivers file."""
    return script.with_name(f"{script.name}{WAIVERS_SUFFIX}")


def read_waivers(text: str, name: str) -> tuple[Waiver, ...]:
    """Parse the text of a waivers file. Raises InputError with all faults."""
    content, place = content_of(text, name), TomlPositions(name, text).place
    problems = [f"{place(key)}: {key}: {unknown_key(key, (_TABLE,))}" for key in content if key != _TABLE]
    tables = content.get(_TABLE, [])
    if not isinstance(tables, list) or not all(isinstance(each, Mapping) for each in tables):
        raise InputError(f"{place(_TABLE)}: {_TABLE}: a list of tables is needed, [[{_TABLE}]] each")
    for number, table in enumerate(tables, start=1):
        problems += [
            f"{place(f'{_TABLE}.{number}.{key}')}: waiver {number}: {key}: {words}" for key, words in _problems(table)
        ]
    if problems:
        raise InputError("\n  ".join(problems))
    return tuple(Waiver(**table) for table in tables)


def _problems(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from ((key, unknown_key(key, tuple(_KEYS))) for key in table if key not in _KEYS)
    for key, field in _KEYS.items():
        if key not in table:
            if field.default is MISSING:
                yield key, "is missing; write it with flinkcompat accept"
            continue
        value = table[key]
        match field.type:
            case "date":
                if not isinstance(value, date) or isinstance(value, datetime):
                    yield key, f"a day is needed, without quotes: {key} = 2026-12-31"
            case "bool":
                if not isinstance(value, bool):
                    yield key, "true or false is needed"
            case _:
                if not isinstance(value, str):
                    yield key, "a text is needed"
                elif not value.strip() and field.default is MISSING:
                    yield key, "is empty"


def with_waiver(text: str, waiver: Waiver, name: str) -> str:
    """Add a waiver to a file's text, and remove older waivers of the same finding on the same change."""
    kept, _ = without_waivers(text, lambda each: _identity(each) == _identity(waiver), name)
    if not kept.strip():
        kept = _FIRST_LINE.format(_commented(Path(name).name.removesuffix(WAIVERS_SUFFIX)))
    written = f"{kept.rstrip()}\n\n{_entry(waiver)}"
    assert read_waivers(written, name)[-1] == waiver
    return written


def without_waivers(text: str, goes: Callable[[Waiver], bool], name: str) -> tuple[str, tuple[Waiver, ...]]:
    """Remove some waivers from a file's text. Returns the new text and the removed waivers."""
    every = read_waivers(text, name)
    gone = tuple(each for each in every if goes(each))
    if not gone:
        return text, ()
    starts = [*(each.start() for each in _HEADER.finditer(text)), len(text)]
    if len(starts) != len(every) + 1:
        raise InputError(f"{name}: does not have the layout of flinkcompat accept: edit it manually")
    blocks = [text[start:end] for start, end in pairwise(starts)]
    left = text[: starts[0]] + "".join(block for block, each in zip(blocks, every, strict=True) if each not in gone)
    if read_waivers(left, name) != tuple(each for each in every if each not in gone):
        raise InputError(f"{name}: does not have the layout of flinkcompat accept: edit it manually")
    return f"{left.rstrip()}\n" if left.strip() else "", gone


def _identity(waiver: Waiver) -> tuple[str, ...]:
    return waiver.deployment, waiver.engine, waiver.deployed_sha256, waiver.finding_sha256


def _entry(waiver: Waiver) -> str:
    lines = [f"[[{_TABLE}]]"]
    for key, field in _KEYS.items():
        value = getattr(waiver, key)
        if value == field.default:
            continue
        match value:
            case bool():
                lines.append(f"{key} = {str(value).lower()}")
            case date():
                lines.append(f"{key} = {value.isoformat()}")
            case _:
                lines.append(f"{key} = {_toml_text(value)}")
    return "\n".join(lines) + "\n"


def _commented(name: str) -> str:
    """Escape a name for a comment on one line."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in name)


def _toml_text(text: str) -> str:
    """Write a text as a TOML basic string on one line; TOML escapes like JSON, and also escapes DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
