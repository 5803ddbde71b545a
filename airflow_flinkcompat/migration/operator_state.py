"""Operator state of more subtasks than the new operator may have: lists of several as those of one."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_flinkcompat.migration.fields import NotMigratable
from airflow_flinkcompat.savepoint.metadata import ListState, OperatorLists
from airflow_flinkcompat.savepoint.operator_lists import BROADCAST, elements, header_of, stored_lists


def merge_operator_state(stored: Sequence[tuple[OperatorLists, bytes]]) -> tuple[OperatorLists, bytes]:
    """The lists of several subtasks as those of one."""
    header = header_of(*stored[0])
    lists, held = dict[str, ListState](), dict[str, list[bytes]]()
    for each, own in stored:
        if header_of(each, own) != header:
            raise NotMigratable(
                "its subtasks store their lists in different formats, which cannot be merged into fewer subtasks"
            )
        for state, found in elements(each, own):
            former = held.setdefault(state.name, [])
            if lists.setdefault(state.name, state).mode != BROADCAST or not former:
                former += found
    return stored_lists(header, ((lists[name], found) for name, found in held.items()))
