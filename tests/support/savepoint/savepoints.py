"""The savepoints beside the scripts they are of, taken by ``python -m dev.measure savepoints`` on a real Flink."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from airflow_flinkcompat.savepoint.keyed_state import KeyedHeader, first_group, read_header
from airflow_flinkcompat.savepoint.metadata import KeyGroups, OperatorState
from airflow_flinkcompat.savepoint.store import read_handle, read_metadata

FOLDER = Path(__file__).parents[2] / "fixtures" / "savepoints"
TAKEN = sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in FOLDER.glob("*/*/_metadata"))
"""Line of Flink and case, such as ``2.3/tumble``."""


def keyed(name: str) -> Iterator[tuple[OperatorState, KeyGroups, KeyedHeader, bytes]]:
    """Of every subtask with keyed state: operator, key groups, header and content."""
    place = str(FOLDER / name)
    for operator in read_metadata(place).operators:
        for subtask in operator.subtasks or ():
            if subtask.keyed is not None:
                content = read_handle(subtask.keyed.handle, place)
                yield operator, subtask.keyed, read_header(content, first_group(subtask.keyed.begins)), content
