"""The lists that a subtask keeps beside its keys, by their elements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from airflow_flinkcompat.savepoint.metadata import ListState, OperatorLists

BROADCAST = 2
"""The mode of a list that is the same in each subtask."""


def header_of(lists: OperatorLists, content: bytes) -> bytes:
    """What stands in front of all elements: the names and serializers of the lists.

    Args:
        lists: Of a subtask.
        content: In which they are stored.

    Returns:
        The bytes, which are all of them where no list holds anything.
    """
    return content[: min((begin for each in lists.lists for begin in each.begins), default=len(content))]


def elements(lists: OperatorLists, content: bytes) -> Iterator[tuple[ListState, list[bytes]]]:
    """What each list of a subtask holds.

    Args:
        lists: Of a subtask.
        content: In which they are stored.

    Yields:
        A list, and its elements in order.
    """
    begins = sorted(begin for each in lists.lists for begin in each.begins)
    ends = dict(pairwise([*begins, len(content)]))
    for each in lists.lists:
        yield each, [content[begin : ends[begin]] for begin in each.begins]
