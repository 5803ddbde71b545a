"""Operator state of more subtasks than the new operator may have: lists of several as those of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from airflow_flinkcompat.migration.fields import NotMigratable
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


def merge_operator_state(stored: Sequence[tuple[OperatorLists, bytes]]) -> tuple[tuple[ListState, ...], bytes]:
    """The lists of several subtasks as those of one.

    Args:
        stored: The lists of each subtask, and the content in which they are stored.

    Returns:
        The lists, and the content in which they are stored: one header with all elements behind it.

    Raises:
        NotMigratable: They do not have one header.
    """
    header = header_of(*stored[0])
    modes, held = dict[str, int](), dict[str, list[bytes]]()
    for each, own in stored:
        if header_of(each, own) != header:
            raise NotMigratable("its subtasks store their lists in several forms, and it has to have fewer of them now")
        for state, found in elements(each, own):
            former = held.setdefault(state.name, [])
            if modes.setdefault(state.name, state.mode) != BROADCAST or not former:
                former += found
    content, lists = bytearray(header), []
    for name, found in held.items():
        begins = tuple(accumulate(map(len, found), initial=len(content)))[:-1]
        lists.append(ListState(name, modes[name], begins))
        content += b"".join(found)
    return tuple(lists), bytes(content)
