"""Operators of a savepoint, positions of its sources, and operator state, as rows of tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa

from airflow_flinkcompat.exec_graph.from_savepoint import shown_name
from airflow_flinkcompat.savepoint.binary import naming_file, printable
from airflow_flinkcompat.savepoint.operator_parts import UNPUBLISHED
from airflow_flinkcompat.savepoint.source_positions import SPLITS, FileSplit, FilesRead, UnknownForm, positions
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.state.tables import OpenSavepoint

Row = dict[str, Any]
Rows = Callable[[OpenSavepoint], Iterator[Row]]


@dataclass(frozen=True)
class MetadataTable:
    """A table about a savepoint that does not contain its keyed state. It has no secrets.

    Attributes:
        name: Name in SQL.
        schema: Names and types of the columns.
        rows: Function that reads the rows.
    """

    name: str
    schema: pa.Schema
    rows: Rows

    def read(self, savepoint: OpenSavepoint) -> pa.Table:
        """Read all rows.

        Args:
            savepoint: The savepoint.

        Returns:
            The rows.

        Raises:
            SavepointUnreadable: The metadata or operator state is missing or damaged; the message names the savepoint.
        """
        return pa.Table.from_pylist(list(self.rows(savepoint)), self.schema)


def _operators(savepoint: OpenSavepoint) -> Iterator[Row]:
    for each in savepoint.operators:
        subtasks = each.subtasks
        yield {
            "id": each.id,
            "name": mask_secrets(shown_name(each)),
            "uid": mask_secrets(printable(each.uid)) or None,
            "parallelism": each.parallelism,
            "max_parallelism": each.max_parallelism,
            "keyed_bytes": each.keyed_size,
            "operator_state_bytes": each.list_size,
            "coordinator_bytes": each.coordinator_size,
            "finished_subtasks": each.parallelism if subtasks is None else sum(part.index < 0 for part in subtasks),
        }


def _sources(savepoint: OpenSavepoint) -> Iterator[Row]:
    for each in savepoint.operators:
        if each.coordinator is None or not any(state.name == SPLITS for lists in each.lists for state in lists.lists):
            continue
        head = {"operator_id": each.id, "operator": mask_secrets(shown_name(each))}
        unknown = "a connector whose positions cannot be read"
        with naming_file(f"{savepoint.path}: {head['operator']}"):
            try:
                found = positions(each, savepoint.path)
            except UnknownForm as error:
                found, unknown = None, f"cannot be read: {error}"
        if found is None:
            yield {**head, "status": unknown}
        elif isinstance(found, FilesRead):
            yield from ({**head, "connector": "filesystem", **row} for row in _files(found))
        else:
            for part in found:
                place = {"split": printable(part.topic), "partition": part.partition, "position": part.offset}
                yield {**head, "connector": "kafka", **place, "status": "read" if part.offset >= 0 else "not read"}


def _files(found: FilesRead) -> Iterator[Row]:
    """One row for each part of a file that is not read to its end, and for each other file."""
    parts = [("in progress", split) for split in found.in_progress] + [("waiting", split) for split in found.waiting]
    for status, split in parts:
        yield {"split": mask_secrets(split.path), "status": status, **_progress(split)}
    unread = {_without_scheme(split.path) for _, split in parts}
    for path in sorted(found.seen):
        if _without_scheme(path) not in unread:
            yield {"split": mask_secrets(path), "status": "read"}


def _progress(split: FileSplit) -> Row:
    return {"position": split.offset if split.position is None else split.position, "rows_read": split.records_read}


def _without_scheme(path: str) -> str:
    """A path without the scheme of local files, with which only some of Flink's paths begin."""
    return path.removeprefix("file:").lstrip("/")


def operator_state(savepoint: OpenSavepoint) -> Iterator[Row]:
    """Size of each list of operator state, and the number of its elements.

    Args:
        savepoint: The savepoint.

    Yields:
        One row for each list of an operator. ``waits`` describes rows that a sink has not published yet; None for
        other lists.
    """
    for each in savepoint.operators:
        elements: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        for lists in each.lists:
            ends = {**dict(pairwise(sorted(begin for state in lists.lists for begin in state.begins)))}
            size = 0 if lists.handle is None else lists.handle.size
            for state in lists.lists:
                elements[state.name] += len(state.begins)
                sizes[state.name] += sum(ends.get(begin, size) - begin for begin in state.begins)
        for name, count in elements.items():
            if count:
                head = {"operator_id": each.id, "operator": mask_secrets(shown_name(each)), "list": name}
                yield {**head, "elements": count, "bytes": sizes[name], "waits": UNPUBLISHED.get(name)}


def _table(name: str, rows: Rows, columns: Mapping[str, pa.DataType]) -> MetadataTable:
    return MetadataTable(name, pa.schema(list(columns.items())), rows)


_TEXT, _INT, _LONG = pa.string(), pa.int32(), pa.int64()
OPERATORS = _table(
    "_operators",
    _operators,
    {
        "id": _TEXT, "name": _TEXT, "uid": _TEXT, "parallelism": _INT, "max_parallelism": _INT, "keyed_bytes": _LONG,
        "operator_state_bytes": _LONG, "coordinator_bytes": _LONG, "finished_subtasks": _INT,
    },
)  # fmt: skip
SOURCES = _table(
    "_sources",
    _sources,
    {
        "operator_id": _TEXT, "operator": _TEXT, "connector": _TEXT, "split": _TEXT, "partition": _INT,
        "position": _LONG, "rows_read": _LONG, "status": _TEXT,
    },
)  # fmt: skip
