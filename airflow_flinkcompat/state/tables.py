"""Tables of the keyed state in a canonical savepoint, one for each named state or timer service."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from airflow_flinkcompat.exec_graph.from_savepoint import layout_of, shown_name, timer_service
from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.model import StateSpec
from airflow_flinkcompat.savepoint.batches import EntryForm, EntryPart, StoredColumn
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, SavepointUnreadable
from airflow_flinkcompat.savepoint.keyed_state import KeyedFile, KeyedHeader, open_keyed, prefix_length
from airflow_flinkcompat.savepoint.metadata import KeyGroups, OperatorState, SavepointMetadata
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.state.columns import distinct, entry_form, shown_type, slug, timer_form, window_begin


@dataclass(frozen=True)
class StateTable:
    """One named state, or one timer service, of an operator as a table.

    Attributes:
        name: Name of the table in SQL.
        operator: Name of the operator, as Flink shows it.
        operator_id: Id under which Flink stores the operator.
        state: Name under which the operator registered the state.
        kind: ``value``, ``map``, ``list`` or ``timers``.
        time_to_live: True if values store their last access time.
        computed: SQL expressions of averages and of the begins of windows, by name of the column.
        form: Form of the entries.
        max_parallelism: Number of key groups of the operator.
        within: The only key groups to read; None for all.
    """

    name: str
    operator: str
    operator_id: str
    state: str
    kind: str
    time_to_live: bool
    computed: Mapping[str, str]
    form: EntryForm
    max_parallelism: int
    path: str
    stored: tuple[KeyGroups, ...] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    within: range | None = field(default=None, repr=False)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.form.schema

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, computed ones included."""
        return (*self.form.schema.names, *self.computed)

    @property
    def key(self) -> tuple[StoredColumn, ...]:
        """Columns of the key, in the order of the fields of the stored key."""
        return tuple(column for column in self.form.columns if column.part is EntryPart.KEY)

    @property
    def identity(self) -> tuple[str, ...]:
        """Names of the columns that identify a row: key, window, map key, time of a timer, and position."""
        of_value = (EntryPart.STAMP, EntryPart.VALUE, EntryPart.ELEMENT, EntryPart.WHOLE)
        return tuple(column.name for column in self.form.columns if column.part not in of_value)

    def batches(
        self, columns: Collection[str] | None = None, groups: Collection[int] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Read rows, a key group at a time.

        Args:
            columns: Names of the columns to read, in any order; None for all.
            groups: Numbers of the key groups to read; None for all. Files without these key groups are not opened.

        Yields:
            Record batches of at most some 65,000 rows, or the rows of one entry.

        Raises:
            SavepointUnreadable: The savepoint is out of reach or damaged; the message names the file.
        """
        form = self.form if columns is None else self.form.only(columns)
        for stored in self.stored:
            wanted = {
                group
                for group in stored.filled
                if (groups is None or group in groups) and (self.within is None or group in self.within)
            }
            if not wanted:
                continue
            with open_keyed(stored, self.path) as file:
                require_order(file, self.names)
                yield from form.batches(file, wanted)

    def describe(self) -> dict[str, Any]:
        """Describe the table in JSON.

        Returns:
            Its names, kind and columns, with Flink's types; the type of other columns is ``computed``.
        """
        columns = {column.name: shown_type(column.type) for column in self.form.columns}
        return {
            "name": self.name,
            "operator": self.operator,
            "operator_id": self.operator_id,
            "state": self.state,
            "kind": self.kind,
            "time_to_live": self.time_to_live,
            "columns": {**columns, **dict.fromkeys(self.computed, "computed")},
        }

    def reader(self) -> pa.RecordBatchReader:
        """Open a stream of all rows.

        Returns:
            A reader of Arrow record batches. While it is read, it raises the errors of :meth:`batches`.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())


def require_order(file: KeyedFile, names: tuple[str, ...]) -> None:
    """Raise SavepointUnreadable if a file declares other states, or the same states in another order."""
    if tuple(state.name for state in file.header.states) != names:
        raise SavepointUnreadable(f"{file.content.name}: its states have another order than those of other subtasks")


@dataclass(frozen=True)
class OpenSavepoint:
    """An open savepoint.

    Attributes:
        path: Path or URI.
        operators: Operators in its metadata.
        size: Size of the keyed state in bytes.
        tables: Tables of all keyed state.
        unreadable: Reason why the state of an operator is not a table, by the operator's id.
        unnamed: Names of the operators whose stored layout differs from the predicted one.
    """

    path: str
    operators: tuple[OperatorState, ...]
    size: int
    tables: tuple[StateTable, ...]
    unreadable: Mapping[str, str]
    unnamed: tuple[str, ...] = ()


def open_savepoint(
    path: str, specs: Iterable[StateSpec] = (), metadata: SavepointMetadata | None = None
) -> OpenSavepoint:
    """Open a canonical savepoint, which is only read.

    Args:
        path: Path or URI of its folder, on any store that universal-pathlib supports.
        specs: States that the job's exec graph predicts, which give tables and columns their names in SQL. Without a
            spec, or if the stored layout differs from it, names state the position of a column.
        metadata: The metadata of the savepoint, if it was already read.

    Returns:
        The savepoint. Only its metadata and the headers of its files are read.

    Raises:
        SavepointUnreadable: The savepoint is out of reach, damaged or of an unknown form.
    """
    metadata = metadata or read_metadata(path)
    known = {spec.id: spec for spec in specs}
    tables: list[StateTable] = []
    unreadable: dict[str, str] = {}
    unnamed: list[str] = []
    for operator in metadata.operators:
        keyed = tuple(each.keyed for each in operator.subtasks or () if each.keyed is not None)
        if not keyed:
            continue
        with open_keyed(keyed[0], path) as file:
            header = file.header
        try:
            layout = layout_of(header)
        except SavepointUnreadable as error:
            unreadable[operator.id] = str(error)
            continue
        spec = known.get(operator.id)
        if spec is not None and isinstance(spec.layout, StateLayout) and spec.layout.stored == layout.stored:
            tables += _tables(operator, header, spec.layout, spec, keyed, path)
        else:
            tables += _tables(operator, header, layout, None, keyed, path)
            unnamed += [shown_name(operator)] if known else []
    return OpenSavepoint(path, metadata.operators, metadata.keyed_size, _unique(tables), unreadable, tuple(unnamed))


def _tables(
    operator: OperatorState,
    header: KeyedHeader,
    layout: StateLayout,
    spec: StateSpec | None,
    keyed: tuple[KeyGroups, ...],
    path: str,
) -> Iterator[StateTable]:
    name = spec.name if spec and not operator.name else shown_name(operator)
    base = _base(spec) or slug(name)
    windows = spec.windows if spec is not None else None
    prefix = prefix_length(operator.max_parallelism)
    by_name = {state.name: state for state in layout.states}
    names = tuple(state.name for state in header.states)
    with_rows = [state for state in layout.states if state.framing or state.counts_rows]
    for number, stored in enumerate(header.states):
        if stored.kind is KeyedStateKind.TIMERS:
            form = timer_form(number, prefix, stored, layout)
            clock, service = timer_service(stored.name)
            suffix = "timers" if clock == "event" else "processing_timers"
            yield StateTable(
                f"{base}__{suffix}", name, operator.id, service, "timers", False, window_begin(form, windows), form,
                operator.max_parallelism, path, keyed, names,
            )  # fmt: skip
            continue
        state = by_name[stored.name]
        form, computed = entry_form(number, prefix, state, layout)
        computed |= window_begin(form, windows)
        alone = len(with_rows) == 1 and state is with_rows[0]
        table = base if alone else f"{base}__{slug(state.name)}"
        kind = stored.kind.name.lower()
        yield StateTable(
            table, name, operator.id, state.name, kind, state.time_to_live, computed, form,
            operator.max_parallelism, path, keyed, names,
        )  # fmt: skip


def _base(spec: StateSpec | None) -> str:
    """The name of the only sink that an operator reaches."""
    sinks = [] if spec is None else sorted(spec.sinks)
    return slug(sinks[0].split("`.`")[-1].strip("`")) if len(sinks) == 1 else ""


def _unique(tables: list[StateTable]) -> tuple[StateTable, ...]:
    names = distinct([table.name for table in tables])
    return tuple(replace(table, name=name) for table, name in zip(tables, names, strict=True))
