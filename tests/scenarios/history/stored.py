"""What a savepoint holds, however it lies in files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping

from airflow_flinkcompat.savepoint.keyed_state import open_keyed, read_entries
from airflow_flinkcompat.savepoint.store import elements, read_handle, read_metadata

Held = Mapping[tuple[str, str], Counter[Hashable]]


def stored(path: str) -> Held:
    """By operator and state its entries, keys with values, and elements, and of coordinators their bytes, in any order.

    Whether a subtask was the last one of a list that all have, as of watermarks, is left out.
    """
    found: dict[tuple[str, str], Counter[Hashable]] = {}
    for operator in read_metadata(path).operators:
        name = operator.id
        if operator.coordinator is not None:
            content = read_handle(operator.coordinator, path)
            found[name, "coordinator"] = Counter(bytes([each]) for each in content)
        for lists in operator.lists:
            for state, held in elements(lists, read_handle(lists.handle, path)):
                found.setdefault((name, state.name), Counter()).update(held)
        for subtask in operator.subtasks or ():
            if subtask.keyed is None:
                continue
            with open_keyed(subtask.keyed, path) as file:
                names = [state.name for state in file.header.states]
                for _, group in file.groups(range(operator.max_parallelism)):
                    for state, key, value in read_entries(group):
                        found.setdefault((name, names[state]), Counter())[key, value] += 1
    return found
