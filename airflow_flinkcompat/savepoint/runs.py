"""The content of a key group as runs of entries, one run for each state."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.compiled import compiled, readable, uint16, uint32
from airflow_flinkcompat.savepoint.keyed_state import END_OF_GROUP, LAST_OF_RUN

CUT_OFF, NO_KEY = -11, -12
RUN_ERRORS = {
    CUT_OFF: "a key group ends before its end marker: the savepoint is damaged",
    NO_KEY: "an entry of a key group has no key: the savepoint is damaged",
}
"""Messages by the code that a loop returns."""


def run_error(code: int) -> SavepointUnreadable:
    """The error of a run that cannot be read."""
    return SavepointUnreadable(RUN_ERRORS[code])


@compiled
def end_of_entry(source: memoryview, at: int) -> tuple[int, int]:
    """End of the key and end of the value of an entry; an error code replaces both."""
    size = len(source)
    if at + 4 > size:
        return CUT_OFF, CUT_OFF
    key = at + 4 + uint32(source, at)
    if key == at + 4:
        return NO_KEY, NO_KEY
    if key + 4 > size:
        return CUT_OFF, CUT_OFF
    end = key + 4 + uint32(source, key)
    if end > size:
        return CUT_OFF, CUT_OFF
    return key, end


@compiled
def value_is_null(source: memoryview, value: int, end: int, flag: int) -> bool:
    """True if the value of a map is NULL: Flink writes a flag, then the serializer's form of NULL."""
    return flag > 0 and value < end and source[value] != 0


@compiled
def end_of_run(source: memoryview, at: int) -> tuple[int, int]:
    """End and number of the entries of a state; the code of an error replaces the end."""
    entries = 0
    while True:
        key, end = end_of_entry(source, at)
        if key < 0:
            return key, 0
        entries += 1
        if source[at + 4] & LAST_OF_RUN:
            return end, entries
        at = end


class Runs:
    """The entries of a key group, one state after the other.

    ``at``: the offset of the next entry; code that reads entries must advance it. ``states``: the number of states in
    the file's header; None if an entry of any state is accepted.
    """

    def __init__(self, group: bytes, states: int | None = None) -> None:
        self.content, self.at, self._states = readable(group), 0, states

    def __iter__(self) -> Iterator[int]:
        """Yield the number of each state that has entries."""
        size = len(self.content)
        while self.at + 2 <= size:
            state = uint16(self.content, self.at)
            self.at += 2
            if state == END_OF_GROUP:
                break
            if self._states is not None and state >= self._states:
                raise SavepointUnreadable(
                    f"an entry belongs to state {state}, which the file's header does not declare: "
                    "the savepoint is damaged"
                )
            yield state
        else:
            raise run_error(CUT_OFF)
        if self.at != size:
            raise SavepointUnreadable("bytes follow the end marker of a key group: the savepoint is damaged")
        if size == 2:  # Flink expects an entry in each key group that has an offset (measured)
            raise SavepointUnreadable("a key group with an offset contains no entry")

    def skip(self) -> tuple[int, int]:
        """Skip the entries of a state; return their begin and their number."""
        begin = self.at
        end, entries = end_of_run(self.content, begin)
        if end < 0:
            raise run_error(end)
        self.at = end
        return begin, entries
