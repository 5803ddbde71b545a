"""Names and places of the columns of a named state or of a timer service."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.exec_graph.exec_node import row_type
from airflow_flinkcompat.exec_graph.from_savepoint import namespace_of
from airflow_flinkcompat.exec_graph.layout import CallPart, NamedState, StateField, StateLayout, StateNamespace, Stored
from airflow_flinkcompat.exec_graph.windows import SlicedWindow
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.savepoint.batches import EntryForm, EntryPart, StoredColumn
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, RowFraming
from airflow_flinkcompat.savepoint.binary_row import split_type
from airflow_flinkcompat.savepoint.keyed_state import KeyedState

_MILLIS = "TIMESTAMP(3)"
_WINDOWS: Mapping[StateNamespace, tuple[str, ...]] = {
    StateNamespace.NONE: (),
    StateNamespace.WINDOW_END: ("window_end",),
    StateNamespace.WINDOW: ("window_start", "window_end"),
}
_VALUES = {"Int": "INT", "Long": "BIGINT", "Boolean": "BOOLEAN"}
_TIMES = re.compile(
    r"inputState|dataState|right|timer|eventQueuesStateName|sharedBuffer-events-count|IntervalJoin.+|cleanup-timestamp|"
    r"lastTriggeringTsState|smallestTSState|cleanupTsState|.+OverCleanupTime"
)
"""Names of states whose number outside of a row is a time in milliseconds."""
_SESSION = "TimeWindow"
"""Serializer of the keys and values in the map from each session to the window that stores its values."""
_REPRESENTATIVE = "stored_"
"""Begin of the names of the columns of the window that stores a session's values."""
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
_TEXTS = frozenset({"CHAR", "VARCHAR", "STRING"})
_DIGITS, _LEAST_SCALE = 38, 6
_LARGEST = 10**_DIGITS
"""Precision and least scale of an average of decimals in Flink."""
LAST_ACCESS = "last_access"
"""Column with the time of the last access of a value with a state TTL."""


def entry_form(number: int, prefix: int, state: NamedState, layout: StateLayout) -> tuple[EntryForm, dict[str, str]]:
    """The form of a state's entries, and the results that its columns determine."""
    windows = _WINDOWS[state.namespace]
    if any(each.map_key is not None and each.map_key.form == _SESSION for each in layout.states):
        windows = tuple(f"{_REPRESENTATIVE}{name}" for name in windows)
    columns = [*_keys(layout), *_of_namespace(windows)]
    map_key, value = state.map_key, state.value
    map_arity = len(map_key.fields) if map_key is not None and map_key.form == "row" else 0
    fields = [] if map_key is None else _named(map_key.fields, "map_key")
    part = EntryPart.MAP_KEY if map_arity else EntryPart.MAP_KEY_VALUE
    if map_arity:
        columns += [StoredColumn(name, each.type, part, at) for at, (name, each) in enumerate(fields)]
    elif map_key is not None and map_key.form == _SESSION:
        columns += _window(part, "window")
    elif map_key is not None:
        name = fields[0][0] if len(fields) == 1 else "map_key"
        columns.append(StoredColumn(name, _outside(map_key, state), part))
    in_key = {column.name for column in columns}
    if state.time_to_live:
        columns.append(StoredColumn(LAST_ACCESS, _MILLIS, EntryPart.STAMP))
    rows = RowFraming.SEPARATED if _lists_texts(state) else state.framing
    columns += _of_value(state, in_key)
    if rows in (RowFraming.COUNTED, RowFraming.SEPARATED):
        columns.append(StoredColumn("position", "BIGINT", EntryPart.POSITION))
    form = EntryForm(
        number, prefix, _distinct(columns), (len(layout.key), map_arity, len(value.fields) if state.framing else 0),
        namespace=state.namespace.size, flag=state.kind is KeyedStateKind.MAP, stamp=state.time_to_live,
        rows=rows, trailing=state.trailing,
    )  # fmt: skip
    averages = _averages(
        value.fields, {column.place: column for column in form.columns if column.part is EntryPart.VALUE}
    )
    names = distinct([*form.schema.names, *averages])[len(form.columns) :]
    return form, dict(zip(names, averages.values(), strict=True))


def _lists_texts(state: NamedState) -> bool:
    """True for a list of texts, whose elements are framed like rows."""
    of_list = state.kind is KeyedStateKind.LIST and state.value.form == "List<value>"
    return of_list and split_type(state.value.fields[0].type)[0] in _TEXTS


def _of_value(state: NamedState, in_key: Container[str]) -> Iterator[StoredColumn]:
    """The columns of a value, without the columns that are in the key."""
    value = state.value
    if state.framing:
        for at, (name, each) in enumerate(_named(value.fields, "field")):
            if not (each.words and name in in_key):
                yield from _stored(name, each.type, at)
        if state.trailing == 4:
            # A ranking stores the place among rows with equal sort keys.
            own = "matches" if state.name.endswith("-records") else "position"
            yield StoredColumn(own, "INT", EntryPart.WHOLE)
        elif state.trailing:
            yield StoredColumn("flag", "BOOLEAN", EntryPart.WHOLE)
    elif value.form == _SESSION:
        yield from _window(EntryPart.WHOLE, "stored_window")
    elif _lists_texts(state):
        yield StoredColumn("value", value.fields[0].type, EntryPart.ELEMENT)
    elif state.counts_rows:
        yield StoredColumn("count", "INT", EntryPart.WHOLE)
        if state.counts_matches:
            yield StoredColumn("matches", "INT", EntryPart.WHOLE, 4)
    else:
        yield StoredColumn("value", _outside(value, state), EntryPart.WHOLE)


def _stored(name: str, type: str, place: int) -> Iterator[StoredColumn]:
    """The column of a field of a value, or one column for each field of an accumulator that is a row."""
    if not _ACCUMULATOR.match(type):
        yield from () if type.startswith(_HIDDEN) else (StoredColumn(name, type, EntryPart.VALUE, place),)
        return
    inner = list(zip(*row_type(type), strict=True))
    for at, (part, inner_type) in enumerate(inner):
        if not inner_type.startswith(_HIDDEN):
            full = name if part in _RESULTS else f"{name}_{slug(part)}"
            yield StoredColumn(full, inner_type, EntryPart.VALUE, place, (at, len(inner)))


def _window(part: EntryPart, name: str) -> Iterator[StoredColumn]:
    """The columns of a stored window outside of a row."""
    for place, edge in ((0, "start"), (8, "end")):
        yield StoredColumn(f"{name}_{edge}", _MILLIS, part, place)


def window_columns(form: EntryForm) -> list[StoredColumn]:
    """The columns of the current window: only the end, or the start and the end."""
    return [
        each
        for each in form.columns
        if (each.part is EntryPart.NAMESPACE and not each.name.startswith(_REPRESENTATIVE))
        or (each.part is EntryPart.MAP_KEY_VALUE and each.name.startswith("window_"))
    ]


def window_begin(form: EntryForm, windows: SlicedWindow | None) -> dict[str, str]:
    """The begin of the window or slice whose end alone is stored, in SQL."""
    if windows is None or [column.name for column in window_columns(form)] != ["window_end"]:
        return {}
    length, size = str(windows.step), windows.size
    if windows.kind is WindowKind.CUMULATE:
        length = f"((epoch_ms(window_end) - {windows.offset + 1}) % {size} + {size}) % {size} + 1"
    return {"window_start": f"window_end - to_milliseconds({length})"}


def timer_form(number: int, prefix: int, stored: KeyedState, layout: StateLayout) -> EntryForm:
    """The form of the entries of a timer service; the value serializer contains the namespace."""
    namespace = namespace_of(stored.value.nested[1]) or StateNamespace.NONE
    columns = [*_keys(layout), *_of_namespace(_WINDOWS[namespace]), StoredColumn("time", _MILLIS, EntryPart.MOMENT)]
    return EntryForm(number, prefix, _distinct(columns), (len(layout.key), 0, 0), timers=True, namespace=namespace.size)


def _keys(layout: StateLayout) -> Iterator[StoredColumn]:
    for place, (name, each) in enumerate(_named(layout.key, "key")):
        yield StoredColumn(name, each.type, EntryPart.KEY, place)


def _of_namespace(names: Iterable[str]) -> Iterator[StoredColumn]:
    for place, name in enumerate(names):
        yield StoredColumn(name, _MILLIS, EntryPart.NAMESPACE, place)


def _named(fields: Iterable[StateField], fallback: str) -> list[tuple[str, StateField]]:
    """Return fields with their SQL names: ``sum_b``, or ``avg_b_sum`` for a part of an aggregate call."""
    found = []
    parts = Counter(each.meaning.call for each in fields if isinstance(each.meaning, CallPart))
    for place, each in enumerate(fields):
        name = slug(each.words.replace("*", "all"))
        if not name or name.isdigit():  # The planner names a computed column ``$3``.
            name = f"{fallback}_{place}"
        if isinstance(each.meaning, CallPart) and parts[each.meaning.call] > 1:
            name += f"_{slug(each.meaning.part)}"
        found.append((name, each))
    return found


def _averages(fields: Iterable[StateField], columns: Mapping[int, StoredColumn]) -> dict[str, str]:
    """Return SQL expressions of the averages whose sum and count are stored."""
    of_call: dict[object, dict[str, StoredColumn]] = {}
    names: dict[object, str] = {}
    for place, each in enumerate(fields):
        if isinstance(each.meaning, CallPart) and each.meaning.function == "AVG" and place in columns:
            of_call.setdefault(each.meaning.call, {})[each.meaning.part] = columns[place]
            names[each.meaning.call] = slug(each.words)
    return {
        names[call]: average(parts["sum"], f'"{parts["count"].name}"')
        for call, parts in of_call.items()
        if parts.keys() >= {"sum", "count"}
    }


def average(total: StoredColumn, count: str) -> str:
    """An average in SQL. Flink truncates averages of integers, and rounds averages of decimals half up."""
    root, _, scale = split_type(total.type)
    name = f'"{total.name}"'
    if root != "DECIMAL":
        return f"{name} {'//' if root == 'BIGINT' else '/'} nullif({count}, 0)"
    more, digits = 10 ** max(_LEAST_SCALE - scale, 0), max(_LEAST_SCALE, scale)
    unscaled = f"CAST(replace(CAST(abs({name}) AS VARCHAR), '.', '') AS HUGEINT)"
    whole, rest = f"({unscaled} // {count})", f"({unscaled} % {count})"
    average = f"({whole} * {more} + (2 * {rest} * {more} + {count}) // (2 * {count}))"
    sign, after = f"CASE WHEN {name} < 0 THEN '-' ELSE '' END", f"CAST({average} % {10**digits} AS VARCHAR)"
    text = f"{sign} || {average} // {10**digits} || '.' || lpad({after}, {digits}, '0')"
    known = f"{count} > 0 AND {whole} < {_LARGEST // more}"
    return f"CASE WHEN {known} THEN CAST({text} AS DECIMAL({_DIGITS}, {digits})) END"


def _outside(stored: Stored, state: NamedState) -> str:
    """The type of a value outside of a row; bytes if its form was not measured."""
    if stored.form == "Long" and _TIMES.fullmatch(state.name):
        return _MILLIS
    of_column = stored.form == "value" or (stored is state.map_key and len(stored.fields) == 1)
    type = stored.fields[0].type if of_column else _VALUES.get(stored.form, "")
    return type if split_type(type)[0] in _MEASURED else "BYTES"


def shown_type(type: str) -> str:
    return type.removesuffix(" NOT NULL").replace("VARCHAR(2147483647)", "STRING")


def slug(words: str) -> str:
    """Words as a name in SQL."""
    return re.sub(r"\W+", "_", words).strip("_").lower()


def _distinct(columns: Sequence[StoredColumn]) -> tuple[StoredColumn, ...]:
    names = distinct([column.name for column in columns])
    return tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))


def distinct(names: Sequence[str]) -> list[str]:
    """Names with a number after each repeated name, so that all names differ."""
    found: dict[str, None] = {}
    for name in names:
        made, number = name, 1
        while made in found or (number > 1 and made in names):
            number += 1
            made = f"{name}_{number}"
        found[made] = None
    return list(found)
