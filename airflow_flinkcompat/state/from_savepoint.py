"""What the operators of a savepoint store, told from its files."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.keyed_file import open_keyed
from airflow_flinkcompat.savepoint.keyed_state import KeyedHeader, KeyedState
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind
from airflow_flinkcompat.savepoint.serializers import Serializer
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.state.layout import NamedState, StateField, StateLayout, StateNamespace, Stored

_NAMESPACES = {
    "VoidNamespace": StateNamespace.NONE,
    "Long": StateNamespace.WINDOW_END,
    "TimeWindow": StateNamespace.WINDOW,
}
_TIMERS = "_timer_state/event_"


def stored_layouts(path: str) -> Mapping[str, StateLayout]:
    """The layouts of the operators of a savepoint that keep state by key.

    Args:
        path: Path or URI of the savepoint's folder.

    Returns:
        Layouts by the operators' ids, without meanings.

    Raises:
        SavepointUnreadable: It cannot be had from here, is damaged, or is of a form that is not known.
    """
    layouts: dict[str, StateLayout] = {}
    for operator in read_metadata(path).operators:
        for subtask in operator.subtasks or ():
            if subtask.keyed is not None:
                with open_keyed(subtask.keyed, path) as file:
                    layouts[operator.id] = layout_of(file.header)
    return layouts


def layout_of(header: KeyedHeader) -> StateLayout:
    """The layout that a file of keyed state says.

    Args:
        header: Of the file.

    Returns:
        The layout, without meanings.

    Raises:
        SavepointUnreadable: A state is told apart by something that is not known here.
    """
    timers = {state.name for state in header.states if state.kind is KeyedStateKind.TIMERS}
    services = {name.removeprefix(_TIMERS) for name in timers if name.startswith(_TIMERS)}
    states = tuple(_state(state) for state in header.states if state.kind is not KeyedStateKind.TIMERS)
    return StateLayout(_fields(header.key), states, ", ".join(sorted(services)))


def _state(state: KeyedState) -> NamedState:
    namespace = _NAMESPACES.get(state.namespace.name if state.namespace else "")
    if namespace is None:
        raise SavepointUnreadable(f"the state {state.name} is told apart by {state.namespace}, which is not known here")
    key, value = _parts(state.name, state.value) if state.kind is KeyedStateKind.MAP else (None, state.value)
    time_to_live = value.name == "Ttl"
    if time_to_live:
        _, value = _parts(state.name, value)
    map_key = None if key is None else _stored(key)
    return NamedState(state.name, state.kind, _stored(value), map_key, namespace, time_to_live)


def _parts(name: str, serializer: Serializer) -> tuple[Serializer, Serializer]:
    if len(serializer.nested) != 2:
        raise SavepointUnreadable(f"the state {name} is stored as {serializer}, which is not known here")
    return serializer.nested[0], serializer.nested[1]


def _stored(serializer: Serializer) -> Stored:
    return Stored(_form(serializer), _fields(serializer))


def _form(serializer: Serializer) -> str:
    match serializer.name:
        case "RowData":
            return "row"
        case "External":
            return "value"
    parts = ", ".join(map(_form, serializer.nested))
    return f"{serializer.name}<{parts}>" if parts else serializer.name


def _fields(serializer: Serializer) -> tuple[StateField, ...]:
    if serializer.name in ("RowData", "External"):
        return tuple(map(StateField, serializer.types))
    return tuple(each for nested in serializer.nested for each in _fields(nested))
