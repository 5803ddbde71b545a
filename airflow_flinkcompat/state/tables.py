"""Tables of the keyed state in a canonical savepoint, one for each named state or timer service."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_flinkcompat.exec_graph.exec_node import row_type
from airflow_flinkcompat.exec_graph.from_planner import readable_name
from airflow_flinkcompat.exec_graph.from_savepoint import layout_of
from airflow_flinkcompat.exec_graph.layout import CallPart, NamedState, StateField, StateLayout, StateNamespace
from airflow_flinkcompat.exec_graph.model import StateSpec
from airflow_flinkcompat.savepoint.batches import EntryForm, EntryPart, StoredColumn
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, RowFraming, SavepointUnreadable, naming_file
from airflow_flinkcompat.savepoint.binary_row import split_type
from airflow_flinkcompat.savepoint.keyed_state import KeyedFile, KeyedHeader, KeyedState, open_keyed, prefix_length
from airflow_flinkcompat.savepoint.metadata import KeyGroups, OperatorState
from airflow_flinkcompat.savepoint.runs import Runs
from airflow_flinkcompat.savepoint.store import read_metadata

_MILLIS = "TIMESTAMP(3)"
_WINDOWS: Mapping[StateNamespace, tuple[str, ...]] = {
    StateNamespace.NONE: (),
    StateNamespace.WINDOW_END: ("window_end",),
    StateNamespace.WINDOW: ("window_start", "window_end"),
}
_NAMESPACES = {"Long": StateNamespace.WINDOW_END, "TimeWindow": StateNamespace.WINDOW}
_TIMERS = re.compile("^_timer_state/(event|processing)_")
_VALUES = {"Int": "INT", "Long": "BIGINT", "Boolean": "BOOLEAN"}
_SESSION = "TimeWindow"
"""Serializer of the keys and values in the map from each session to the window that stores its values."""
_ACCUMULATOR = re.compile(r"org\.apache\.flink\.table\.runtime\.functions\.aggregate\.|ROW<`(first|last)Value` ")
"""Types of accumulators that are rows in a field of the stored row."""
_RESULTS = frozenset({"min", "max", "firstValue", "lastValue", "m2"})
"""Fields of these accumulators that contain the value of the call."""
_HIDDEN = "RAW("
_MEASURED = frozenset(
    [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "INTEGER",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DATE",
        "TIME",
        "DECIMAL",
        "CHAR",
        "VARCHAR",
        "STRING",
    ]
)
"""Types whose form outside of a row was measured."""
LAST_ACCESS = "last_access"
"""Column with the time of the last access of a value with a state TTL."""


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
        averages: SQL expressions that compute averages from two stored columns, by name of the average.
        form: Form of the entries.
    """

    name: str
    operator: str
    operator_id: str
    state: str
    kind: str
    time_to_live: bool
    averages: Mapping[str, str]
    form: EntryForm
    path: str
    stored: tuple[KeyGroups, ...] = field(repr=False)
    names: tuple[str, ...] = field(repr=False)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.form.schema

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, computed ones included."""
        return (*self.form.schema.names, *self.averages)

    @property
    def identity(self) -> tuple[str, ...]:
        """Names of the columns that identify a row: key, window, map key, time of a timer, and position."""
        of_value = (EntryPart.STAMP, EntryPart.VALUE, EntryPart.WHOLE)
        return tuple(column.name for column in self.form.columns if column.part not in of_value)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read all rows, a key group at a time.

        Yields:
            Record batches of at most some 65,000 rows, or the rows of one entry.

        Raises:
            SavepointUnreadable: The savepoint is out of reach or damaged; the message names the file.
        """
        for stored in self.stored:
            with open_keyed(stored, self.path) as file:
                self._require_order(file)
                yield from self.form.batches(file)

    def count(self) -> int:
        """Count the stored entries without reading their content.

        Returns:
            Number of entries. An entry of a list is one entry, but several rows.

        Raises:
            SavepointUnreadable: The savepoint is out of reach or damaged; the message names the file.
        """
        total = 0
        for stored in self.stored:
            with open_keyed(stored, self.path) as file:
                self._require_order(file)
                for _, group in file.groups():
                    with naming_file(file.content.name):
                        runs = Runs(group)
                        for state in runs:
                            _, entries = runs.skip()
                            total += entries if state == self.form.number else 0
        return total

    def _require_order(self, file: KeyedFile) -> None:
        if tuple(state.name for state in file.header.states) != self.names:
            raise SavepointUnreadable(
                f"{file.content.name}: its states have another order than those of other subtasks"
            )

    def windows(self) -> tuple[str, str] | None:
        """Read the first and the last stored window.

        Returns:
            The first start, or the first end if no start is stored, and the last end, in UTC; None without windows.

        Raises:
            SavepointUnreadable: The savepoint is out of reach or damaged; the message names the file.
        """
        names = [name for name in ("window_start", "window_end") if name in self.schema.names]
        if not names:
            return None
        columns = tuple(column for column in self.form.columns if column.name in names)
        first, last = None, None
        for batch in replace(self, form=replace(self.form, columns=columns)).batches():
            least, most = pc.min(batch.column(0)).as_py(), pc.max(batch.column(len(names) - 1)).as_py()
            first = least if first is None else min(first, least)
            last = most if last is None else max(last, most)
        return None if first is None else (str(first), str(last))

    def describe(self) -> dict[str, Any]:
        """Describe the table in JSON.

        Returns:
            Its names, kind and columns, with Flink's types; the type of an average is ``computed``.
        """
        columns = {column.name: _shown_type(column.type) for column in self.form.columns}
        return {
            "name": self.name,
            "operator": self.operator,
            "operator_id": self.operator_id,
            "state": self.state,
            "kind": self.kind,
            "time_to_live": self.time_to_live,
            "columns": {**columns, **dict.fromkeys(self.averages, "computed")},
        }

    def reader(self) -> pa.RecordBatchReader:
        """Open a stream of all rows.

        Returns:
            A reader of Arrow record batches. While it is read, it raises the errors of :meth:`batches`.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self.batches())


@dataclass(frozen=True)
class OpenSavepoint:
    """An open savepoint.

    Attributes:
        path: Path or URI.
        operators: Operators in its metadata.
        size: Size of the keyed state in bytes.
        tables: Tables of all keyed state.
        unreadable: Reason why the state of an operator is not a table, by the operator's id.
    """

    path: str
    operators: tuple[OperatorState, ...]
    size: int
    tables: tuple[StateTable, ...]
    unreadable: Mapping[str, str]


def open_savepoint(path: str, specs: Iterable[StateSpec] = ()) -> OpenSavepoint:
    """Open a canonical savepoint, which is only read.

    Args:
        path: Path or URI of its folder, on any store that universal-pathlib supports.
        specs: States that the job's exec graph predicts, which give tables and columns their names in SQL. Without a
            spec, or if the stored layout differs from it, names state the position of a column.

    Returns:
        The savepoint. Only its metadata and the headers of its files are read.

    Raises:
        SavepointUnreadable: The savepoint is out of reach, damaged or of an unknown form.
    """
    metadata = read_metadata(path)
    known = {spec.id: spec for spec in specs}
    tables: list[StateTable] = []
    unreadable: dict[str, str] = {}
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
    return OpenSavepoint(path, metadata.operators, metadata.keyed_size, tuple(_unique(tables)), unreadable)


def _tables(
    operator: OperatorState,
    header: KeyedHeader,
    layout: StateLayout,
    spec: StateSpec | None,
    keyed: tuple[KeyGroups, ...],
    path: str,
) -> Iterator[StateTable]:
    name = readable_name(operator.name) or (spec.name if spec else "") or f"operator {operator.id[:8]}"
    base = _base(spec) or _slug(name)
    prefix = prefix_length(operator.max_parallelism)
    by_name = {state.name: state for state in layout.states}
    names = tuple(state.name for state in header.states)
    with_rows = [state for state in layout.states if state.framing or state.counts_rows]
    for number, stored in enumerate(header.states):
        if stored.kind is KeyedStateKind.TIMERS:
            form = _timers(number, prefix, stored, layout)
            service = _TIMERS.sub("", stored.name)
            suffix = "timers" if stored.name.startswith("_timer_state/event_") else "processing_timers"
            yield StateTable(
                f"{base}__{suffix}", name, operator.id, service, "timers", False, {}, form, path, keyed, names
            )
            continue
        state = by_name[stored.name]
        form, averages = _entries(number, prefix, state, layout)
        alone = len(with_rows) == 1 and state is with_rows[0]
        table = base if alone else f"{base}__{_slug(state.name)}"
        kind = stored.kind.name.lower()
        yield StateTable(
            table, name, operator.id, state.name, kind, state.time_to_live, averages, form, path, keyed, names
        )


def _base(spec: StateSpec | None) -> str:
    """The name of the only sink that an operator reaches."""
    sinks = [] if spec is None else sorted(spec.sinks)
    return _slug(sinks[0].split("`.`")[-1].strip("`")) if len(sinks) == 1 else ""


def _entries(number: int, prefix: int, state: NamedState, layout: StateLayout) -> tuple[EntryForm, dict[str, str]]:
    """The form of a state's entries, and the results that its columns determine."""
    windows = _WINDOWS[state.namespace]
    if any(each.map_key is not None and each.map_key.form == _SESSION for each in layout.states):
        windows = tuple(f"stored_{name}" for name in windows)
    columns = [
        *_keys(layout),
        *(StoredColumn(name, _MILLIS, EntryPart.NAMESPACE, at) for at, name in enumerate(windows)),
    ]
    map_key, value = state.map_key, state.value
    map_arity = len(map_key.fields) if map_key is not None and map_key.form == "row" else 0
    fields = [] if map_key is None else _named(map_key.fields, "map_key")
    part = EntryPart.MAP_KEY if map_arity else EntryPart.MAP_KEY_VALUE
    if map_arity:
        columns += [StoredColumn(name, each.type, part, at) for at, (name, each) in enumerate(fields)]
    elif map_key is not None and map_key.form == _SESSION:
        columns += _window(part, "window")
    elif map_key is not None:
        name, type = (
            (fields[0][0], fields[0][1].type) if len(fields) == 1 else ("map_key", _VALUES.get(map_key.form, ""))
        )
        columns.append(StoredColumn(name, _outside(type), part))
    in_key = {column.name for column in columns}
    if state.time_to_live:
        columns.append(StoredColumn(LAST_ACCESS, _MILLIS, EntryPart.STAMP))
    if state.framing:
        columns += [
            column
            for at, (name, each) in enumerate(_named(value.fields, "field"))
            if not (each.words and name in in_key)
            for column in _stored(name, each.type, at)
        ]
        if state.trailing == 4:
            # A ranking stores the place among rows with equal sort keys.
            own = "matches" if state.name.endswith("-records") else "position"
            columns.append(StoredColumn(own, "INT", EntryPart.WHOLE))
        elif state.trailing:
            columns.append(StoredColumn("flag", "BOOLEAN", EntryPart.WHOLE))
    elif value.form == _SESSION:
        columns += _window(EntryPart.WHOLE, "stored_window")
    else:
        type = _outside(value.fields[0].type if value.form == "value" else _VALUES.get(value.form, ""))
        if state.counts_rows:
            columns.append(StoredColumn("count", "INT", EntryPart.WHOLE))
            columns += [StoredColumn("matches", "INT", EntryPart.WHOLE, 4)] if state.counts_matches else []
        else:
            columns.append(StoredColumn("value", type, EntryPart.WHOLE))
    if state.framing in (RowFraming.COUNTED, RowFraming.SEPARATED):
        columns.append(StoredColumn("position", "BIGINT", EntryPart.POSITION))
    form = EntryForm(
        number, prefix, _distinct(columns), (len(layout.key), map_arity, len(value.fields) if state.framing else 0),
        namespace=state.namespace.size, flag=state.kind is KeyedStateKind.MAP, stamp=state.time_to_live,
        rows=state.framing, trailing=state.trailing,
    )  # fmt: skip
    return form, _averages(
        value.fields, {column.place: column for column in form.columns if column.part is EntryPart.VALUE}
    )


def _stored(name: str, type: str, place: int) -> Iterator[StoredColumn]:
    """The column of a field of a value, or one column for each field of an accumulator that is a row."""
    if not _ACCUMULATOR.match(type):
        yield from () if type.startswith(_HIDDEN) else (StoredColumn(name, type, EntryPart.VALUE, place),)
        return
    inner = list(zip(*row_type(type), strict=True))
    for at, (part, inner_type) in enumerate(inner):
        if not inner_type.startswith(_HIDDEN):
            full = name if part in _RESULTS else f"{name}_{_slug(part)}"
            yield StoredColumn(full, inner_type, EntryPart.VALUE, place, (at, len(inner)))


def _window(part: EntryPart, name: str) -> Iterator[StoredColumn]:
    """The columns of a stored window outside of a row."""
    for place, edge in ((0, "start"), (8, "end")):
        yield StoredColumn(f"{name}_{edge}", _MILLIS, part, place)


def _timers(number: int, prefix: int, stored: KeyedState, layout: StateLayout) -> EntryForm:
    """The form of the entries of a timer service; the value serializer contains the namespace."""
    namespace = _NAMESPACES.get(stored.value.nested[1].name, StateNamespace.NONE)
    columns = [
        *_keys(layout),
        *(StoredColumn(name, _MILLIS, EntryPart.NAMESPACE, at) for at, name in enumerate(_WINDOWS[namespace])),
        StoredColumn("time", _MILLIS, EntryPart.MOMENT),
    ]
    return EntryForm(number, prefix, _distinct(columns), (len(layout.key), 0, 0), timers=True, namespace=namespace.size)


def _keys(layout: StateLayout) -> Iterator[StoredColumn]:
    for place, (name, each) in enumerate(_named(layout.key, "key")):
        yield StoredColumn(name, each.type, EntryPart.KEY, place)


def _named(fields: Iterable[StateField], fallback: str) -> list[tuple[str, StateField]]:
    """Return fields with their SQL names: ``sum_b``, or ``avg_b_sum`` for a part of an aggregate call."""
    found = []
    parts = Counter(each.meaning.call for each in fields if isinstance(each.meaning, CallPart))
    for place, each in enumerate(fields):
        name = _slug(each.words.replace("*", "all")) if each.words else f"{fallback}_{place}"
        if isinstance(each.meaning, CallPart) and parts[each.meaning.call] > 1:
            name += f"_{_slug(each.meaning.part)}"
        found.append((name, each))
    return found


def _averages(fields: Iterable[StateField], columns: Mapping[int, StoredColumn]) -> dict[str, str]:
    """Return SQL expressions of the averages whose sum and count are stored.

    Flink truncates the averages of integers. Averages of decimals are left out: DuckDB rounds them differently.
    """
    of_call: dict[object, dict[str, str]] = {}
    names: dict[object, str] = {}
    for place, each in enumerate(fields):
        if not isinstance(each.meaning, CallPart) or each.meaning.function != "AVG":
            continue
        if place in columns and "DECIMAL" not in each.type:
            of_call.setdefault(each.meaning.call, {})[each.meaning.part] = columns[place].name
            names[each.meaning.call] = _slug(each.words)
    whole = {column.name for column in columns.values() if column.type.startswith("BIGINT")}
    return {
        names[call]: f'"{parts["sum"]}" {"//" if parts["sum"] in whole else "/"} nullif("{parts["count"]}", 0)'
        for call, parts in of_call.items()
        if parts.keys() >= {"sum", "count"}
    }


def _outside(type: str) -> str:
    """The type of a value outside of a row; bytes if its form was not measured."""
    return type if split_type(type)[0] in _MEASURED else "BYTES"


def _shown_type(type: str) -> str:
    return type.removesuffix(" NOT NULL").replace("VARCHAR(2147483647)", "STRING")


def _slug(words: str) -> str:
    return re.sub(r"\W+", "_", words).strip("_").lower()


def _distinct(columns: Iterable[StoredColumn]) -> tuple[StoredColumn, ...]:
    """Columns with distinct names."""
    seen: Counter[str] = Counter()
    found = []
    for column in columns:
        seen[column.name] += 1
        found.append(replace(column, name=f"{column.name}_{seen[column.name]}") if seen[column.name] > 1 else column)
    return tuple(found)


def _unique(tables: Iterable[StateTable]) -> Iterator[StateTable]:
    seen: Counter[str] = Counter()
    for table in tables:
        seen[table.name] += 1
        yield replace(table, name=f"{table.name}_{seen[table.name]}") if seen[table.name] > 1 else table
