"""Measured restores, as data: the id of each change, and its outcome on each line of Flink.

``python -m dev.measure pairs --evidence`` generates ``restores.json`` from the committed results; do not edit the file
manually. A line is ``major.minor``. A restore from one line to another line has a key such as ``1.20 to 2.3``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from airflow_flinkcompat.model.engine import line_numbers

__all__ = [
    "FILE",
    "RIGHT",
    "Restores",
    "lines_restored_right",
    "measured_lines",
    "restores",
    "unknown_ids",
]

RIGHT = "restored_right"
"""The only outcome that is safe; ``restored_right_on_this_data`` and ``…_upsert_only`` are not."""
FILE = "restores.json"
Restores = Mapping[str, Mapping[str, str]]
"""The outcome of each restore by id, then by line."""


@cache
def restores() -> Restores:
    """The outcome of every measured restore, by id and line of Flink."""
    return dict(json.loads(files(__package__).joinpath(FILE).read_text(encoding="utf-8")))


def measured_lines() -> tuple[str, ...]:
    """The lines of Flink with measured restores, newest first.

    Returns:
        Lines such as ``2.3``, without upgrades between two lines.
    """
    found = {line for outcomes in restores().values() for line in outcomes if " " not in line}
    return tuple(sorted(found, key=line_numbers, reverse=True))


def unknown_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """The ids without a measured restore.

    Args:
        ids: Ids that a verdict names.

    Returns:
        The ids that the table does not contain, in the order of ``ids``.
    """
    return tuple(each for each in ids if each not in restores())


def lines_restored_right(ids: Iterable[str]) -> tuple[str, ...]:
    """The lines of Flink on which all restores with these ids were run and were right.

    Args:
        ids: Ids that a verdict names.

    Returns:
        Lines in the order of the first id's lines; empty if there are no ids, or if an id is unknown.
    """
    tables = [restores().get(each, {}) for each in ids]
    if not tables:
        return ()
    right = [{line for line, outcome in outcomes.items() if outcome == RIGHT} for outcomes in tables]
    return tuple(filter(set.intersection(*right).__contains__, tables[0]))
