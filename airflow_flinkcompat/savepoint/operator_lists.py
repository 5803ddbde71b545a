"""Operator state lists of a subtask, by their elements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from airflow_flinkcompat.savepoint.metadata import Inline, ListState, OperatorLists

BROADCAST = 2
"""The mode of a list that is the same in each subtask."""


def header_of(lists: OperatorLists, content: bytes) -> bytes:
    """Content before all elements: the names and serializers of a subtask's lists.

    It is the whole content if no list holds anything.
    """
    return content[: min((begin for each in lists.lists for begin in each.begins), default=len(content))]


def elements(lists: OperatorLists, content: bytes) -> Iterator[tuple[ListState, list[bytes]]]:
    """Each list of a subtask with its elements in order."""
    begins = sorted(begin for each in lists.lists for begin in each.begins)
    ends = dict(pairwise([*begins, len(content)]))
    for each in lists.lists:
        yield each, [content[begin : ends[begin]] for begin in each.begins]


def stored_lists(header: bytes, held: Iterable[tuple[ListState, Sequence[bytes]]]) -> tuple[OperatorLists, bytes]:
    """Lists without a handle, and their stored content, from a header and each list's elements."""
    content, lists = bytearray(header), []
    for state, found in held:
        begins = tuple(accumulate(map(len, found), initial=len(content)))[:-1]
        lists.append(replace(state, begins=begins))
        content += b"".join(found)
    return OperatorLists(tuple(lists), None), bytes(content)


def with_elements(lists: OperatorLists, content: bytes, name: str, wanted: Sequence[bytes]) -> OperatorLists:
    """The lists of a subtask with new elements for the list ``name``."""
    held = ((state, wanted if state.name == name else found) for state, found in elements(lists, content))
    made, stored = stored_lists(header_of(lists, content), held)
    return replace(made, handle=Inline(name, stored))
