"""The savepoints beside the scripts they are of, taken by ``python -m dev.measure savepoints`` on a real Flink."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from airflow_flinkcompat.savepoint.keyed_state import (
    Entry,
    KeyedHeader,
    KeyedState,
    first_group,
    open_keyed,
    read_entries,
    read_header,
)
from airflow_flinkcompat.savepoint.metadata import Inline, KeyGroups, OperatorState, SubtaskState
from airflow_flinkcompat.savepoint.store import read_handle, read_metadata
from dev.stored_rows import write_entries

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


EntryChange = Callable[[KeyedState, Entry], Entry | None]
"""Function that returns a stored entry with its changes, or None to remove it."""


def edited(source: Path, target: Path, change: EntryChange) -> Path:
    """Write a savepoint with changed entries into a folder."""

    def of_subtask(subtask: SubtaskState) -> SubtaskState:
        if subtask.keyed is None:
            return subtask
        with open_keyed(subtask.keyed, str(source)) as file:
            header = file.header.with_compression(False)
            content, begins = bytearray(header.stored), [0] * len(subtask.keyed.begins)
            for number, group in file.groups():
                found = (change(header.states[entry.state], entry) for entry in read_entries(group))
                if entries := [entry for entry in found if entry is not None]:
                    begins[number - subtask.keyed.first] = len(content)
                    content += write_entries(entries)
        return replace(
            subtask, keyed=replace(subtask.keyed, begins=tuple(begins), handle=Inline("keyed", bytes(content)))
        )

    metadata = read_metadata(str(source))
    operators = tuple(
        replace(operator, subtasks=operator.subtasks and tuple(map(of_subtask, operator.subtasks)))
        for operator in metadata.operators
    )
    (target / "_metadata").write_bytes(replace(metadata, operators=operators).to_bytes())
    return target
