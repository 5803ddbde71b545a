"""Numbers of stored state that a change may lose: keys, bytes and the oldest window of each operator."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace

from airflow_flinkcompat.compat.migration_report import MigrationReport
from airflow_flinkcompat.exec_graph.from_savepoint import shown_name
from airflow_flinkcompat.model import install_command
from airflow_flinkcompat.model.text import size_text
from airflow_flinkcompat.savepoint.binary import SavepointMissing, SavepointUnreadable
from airflow_flinkcompat.savepoint.metadata import KeyedForm
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.secrets import mask_secrets

_MOST_BYTES = 4 << 30
_MOST_IN_DOWNTIME = 512 << 20
"""Sizes of state above which keys are not counted: while the job runs, and while it is stopped."""
_SHOWN = 3


@dataclass(frozen=True)
class StoredNumbers:
    """The numbers of one operator's keyed state.

    Attributes:
        name: Name of the operator.
        bytes: Number of bytes.
        keys: Number of keys; None if they were not counted.
        oldest_window: The oldest window, in UTC; "" without windows.
    """

    name: str
    bytes: int
    keys: int | None = None
    oldest_window: str = ""

    def words(self, key: Iterable[str] = ()) -> str:
        """Describe the numbers; ``key`` are the columns of the key."""
        columns = f" ({', '.join(key)})" if key else ""
        keys = "" if self.keys is None else f"{self.keys:,} key{'' if self.keys == 1 else 's'}{columns}, "
        window = f", oldest window {self.oldest_window}" if self.oldest_window else ""
        return f"{keys}{size_text(self.bytes)}{window}"


@dataclass(frozen=True)
class StoredState:
    """The numbers of all keyed state in a savepoint or checkpoint.

    Attributes:
        operators: Numbers by the id of the operator.
        doubt: Sentence about numbers that are missing; "" if all are known.
    """

    operators: Mapping[str, StoredNumbers]
    doubt: str = ""

    def added_to(self, report: MigrationReport) -> MigrationReport:
        """Add the numbers to each operator that loses state."""
        return replace(
            report,
            operators=tuple(
                replace(each, stored=self.operators[each.id].words(each.key))
                if each.loses and each.id in self.operators
                else each
                for each in report.operators
            ),
        )

    def __str__(self) -> str:
        """The numbers of the largest operators, and the doubt."""
        largest = sorted(self.operators.values(), key=lambda each: -each.bytes)
        shown = [f"{each.name}: {each.words()}" for each in largest[:_SHOWN]]
        more = largest[_SHOWN:]
        if more:
            shown.append(f"{len(more)} further operators: {size_text(sum(each.bytes for each in more))}")
        return " ".join(filter(None, (f"{'; '.join(shown)}." if shown else "", self.doubt)))


def with_numbers(report: MigrationReport, savepoint: str) -> MigrationReport:
    """Add the numbers to each operator that loses state, while the job is stopped."""
    lost = frozenset(each.id for each in report.operators if each.loses and each.id)
    return stored_state(savepoint, lost, _MOST_IN_DOWNTIME).added_to(report) if lost else report


def stored_state(
    savepoint: str,
    operators: Container[str] | None = None,
    most_bytes: int = _MOST_BYTES,
    latest: Callable[[], str | None] = lambda: None,
) -> StoredState:
    """Read the numbers of the keyed state in a savepoint or checkpoint.

    Args:
        savepoint: Path or URI. The rows of a canonical savepoint are counted; of other checkpoints, only the metadata
            is read.
        operators: Ids of the operators; None for all operators.
        most_bytes: Size of their state in bytes above which the rows are not read.
        latest: Path or URI of the then latest checkpoint, which is read if Flink has deleted ``savepoint`` meanwhile.

    Returns:
        The numbers, with a doubt if keys could not be counted. This function raises no error.
    """
    try:
        metadata = read_metadata(savepoint, headers=True)
    except SavepointUnreadable as error:
        if isinstance(error, SavepointMissing) and (newer := latest()):
            return stored_state(newer, operators, most_bytes)
        return StoredState({}, mask_secrets(f"The stored state cannot be read: {error}."))
    sizes = {
        each.id: StoredNumbers(mask_secrets(shown_name(each)), each.keyed_size)
        for each in metadata.operators
        if each.keyed_size and (operators is None or each.id in operators)
    }
    parts = [part for each in metadata.operators for subtask in each.subtasks or () for part in subtask.by_key]
    if any(part.form is not KeyedForm.SAVEPOINT_KEY_GROUPS for part in parts):
        return StoredState(sizes, "Keys are not counted, because only a canonical savepoint shows them.")
    if sum(each.bytes for each in sizes.values()) > most_bytes:
        return StoredState(sizes, f"Keys are not counted, because the state has more than {size_text(most_bytes)}.")
    try:
        from airflow_flinkcompat.state import open_savepoint, summarize
    except ImportError:
        return StoredState(sizes, f"Keys are not counted, because an extra is missing: {install_command('state')}.")
    try:
        counted = summarize(open_savepoint(savepoint, metadata=metadata), sizes)
    except SavepointUnreadable as error:
        return StoredState(sizes, mask_secrets(f"Keys are not counted: {error}."))
    except Exception as error:  # missing numbers must stop neither a decision nor a migration
        return StoredState(sizes, f"Keys are not counted ({type(error).__name__}).")
    for id, numbers in sizes.items():
        own = [each for each in counted if each.operator_id == id]
        keys = [each.keys for each in own if each.keys is not None]
        windows = [str(each.to_dict()["first_window"]) for each in own if each.windows]
        size = sum(each.bytes for each in own)
        sizes[id] = StoredNumbers(numbers.name, size, max(keys, default=None), min(windows, default=""))
    return StoredState({id: each for id, each in sizes.items() if each.bytes})
