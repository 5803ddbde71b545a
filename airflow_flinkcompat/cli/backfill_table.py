"""Arguments of the backfill task from ``[deployments.NAME.backfill]`` for ``flinkcompat backfill``.

The connection, ``spark``, ``dry_run`` and the file of the hand-over concern Airflow and its cluster, and are left to
the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.project.settings import TEMPLATE

_OPTIONS = {
    "tables": "--table",
    "sinks": "--sink",
    "order_by": "--order-by",
    "from_": "--from",
    "to": "--to",
    "late": "--late",
    "native": "--native",
    "chunk": "--chunk",
    "journal": "--journal",
    "boundary": "--boundary",
    "allow_incomplete": "--allow-incomplete",
}
_TABLES, _SWITCH = ("tables", "sinks", "order_by"), "allow_incomplete"
_INSTEAD = {"to": "boundary", "boundary": "to"}
"""Both say where the backfill ends: an option for the one goes before what the file says of the other."""


def over_backfill_table(given: Mapping[str, Any], table: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Lay the options of the command over the table of the project file.

    Tables are merged by their keys.
    """
    found = dict(given)
    for key in _OPTIONS:
        of_file = table.get(key)
        if of_file is None or given.get(_INSTEAD.get(key, "")):
            continue
        if key in _TABLES:
            if not isinstance(of_file, Mapping):
                raise InputError(f"{place}.{key}: a table is needed")
            told = {**of_file, **(given[key] or {})}
            found[key] = {name: _text(told[name], key, f"{place}.{key}.{name}") for name in told}
        elif not given[key]:
            found[key] = _switch(of_file, f"{place}.{key}") if key == _SWITCH else _text(of_file, key, f"{place}.{key}")
    return found


def taken(given: Mapping[str, Any], table: Mapping[str, Any]) -> Iterator[str]:
    """The arguments that the file decides about, by name: none of a value."""
    for key in _OPTIONS:
        if table.get(key) is not None and (key in _TABLES or not (given[key] or given.get(_INSTEAD.get(key, "")))):
            yield key


def _text(value: Any, key: str, place: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{place}: a text is needed")
    if any(mark in value for mark in TEMPLATE):
        raise InputError(
            f"{place}: is a template that Airflow renders when a task runs, and nothing renders it here: say what it "
            f"comes to with {_OPTIONS[key]}"
        )
    return value


def _switch(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"{place}: true or false is needed")
    return value
