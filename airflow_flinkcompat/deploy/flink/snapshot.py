"""Operators of a savepoint, and those of them that have state, read without Flink."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_flinkcompat.savepoint.store import read_handle, read_metadata


@dataclass(frozen=True)
class StoredOperator:
    """One operator of a savepoint. ``id``: 32 hex digits; ``name`` is empty if the savepoint stores none."""

    id: str
    name: str
    has_state: bool


@dataclass(frozen=True)
class StoredList:
    """A list of operator state: its bytes, and where in them each element begins."""

    name: str
    begins: tuple[int, ...]
    content: bytes


def read_snapshot(path: str) -> tuple[StoredOperator, ...]:
    """The operators of the savepoint at ``path`` (path or URI of its folder). Raises SavepointUnreadable."""
    return tuple(StoredOperator(each.id, each.name, each.has_state) for each in read_metadata(path).operators)


def read_lists(path: str, name: str) -> tuple[StoredList, ...]:
    """The lists of that name in the savepoint at ``path``, of every operator. Raises SavepointUnreadable."""
    return tuple(
        StoredList(name, state.begins, read_handle(lists.handle, path))
        for operator in read_metadata(path).operators
        for lists in operator.lists
        for state in lists.lists
        if state.name == name
    )
