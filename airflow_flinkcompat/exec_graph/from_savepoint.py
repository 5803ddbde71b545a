"""The keyed state in a savepoint, and the guard that compares it with the prediction of a plan."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateLayout, StateNamespace, Stored, Unknown
from airflow_flinkcompat.exec_graph.model import StateKind, StateSpec
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.keyed_file import open_keyed
from airflow_flinkcompat.savepoint.keyed_state import KeyedHeader, KeyedState
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind
from airflow_flinkcompat.savepoint.metadata import OperatorState
from airflow_flinkcompat.savepoint.serializers import Serializer
from airflow_flinkcompat.savepoint.store import read_metadata

_NAMESPACES = {
    "VoidNamespace": StateNamespace.NONE,
    "Long": StateNamespace.WINDOW_END,
    "TimeWindow": StateNamespace.WINDOW,
}
_TIMERS = re.compile("^_timer_state/(event|processing)_")


@dataclass(frozen=True)
class LayoutDifference:
    """An operator whose stored state differs from the prediction.

    Attributes:
        operator: Its name and id.
        predicted: The parts of the state that only the plan has, in words.
        stored: The parts of the state that only the savepoint has, in words.
    """

    operator: str
    predicted: str
    stored: str

    def words(self, plan: str, savepoint: str) -> str:
        """Return both sides in a sentence."""
        if self.stored == _MISSING:
            kept = "" if self.predicted == _OPERATOR else f", which stores {self.predicted}"
            return f"{plan} has this operator{kept}; {savepoint} does not"
        if self.predicted == _NOTHING:
            return f"{plan} has no such state, {savepoint} holds {self.stored}"
        return f"{plan} predicts {self.predicted}, {savepoint} holds {self.stored}"


def layout_differences(
    specs: Iterable[StateSpec], savepoint: str, *, muted_sinks: bool = False
) -> tuple[LayoutDifference, ...]:
    """Compare the state that a plan predicts with the headers of a savepoint of its job.

    An operator whose layout is unknown predicts nothing, so that its state is not compared.
    """
    stored = {operator.id: operator for operator in read_metadata(savepoint).operators}
    predicted = {spec.id: spec for spec in specs}
    further = {id for spec in predicted.values() for id in spec.further_ids}
    found: list[LayoutDifference] = []
    for id, spec in predicted.items():
        if id in stored:
            difference = layout_difference(spec, stored[id], savepoint)
            found += [difference] if difference is not None else []
        elif not (muted_sinks and spec.kind is StateKind.SINK):
            parts = _parts(spec.layout) if isinstance(spec.layout, StateLayout) else {_OPERATOR}
            found.append(LayoutDifference(f"{spec.name} {id}", _words(parts), _MISSING))
    for id, operator in stored.items():
        if operator.has_state and id not in predicted.keys() | further:
            layouts = set(operator_layouts(operator, savepoint))
            parts = {part for layout in layouts for part in _parts(layout)} or {"state that is not kept by key"}
            found.append(LayoutDifference(f"{operator.name} {id}".strip(), _NOTHING, _words(parts)))
    return tuple(found)


_NOTHING, _MISSING, _OPERATOR = "nothing", "no such operator", "an operator"


def layout_difference(spec: StateSpec, operator: OperatorState, savepoint: str) -> LayoutDifference | None:
    """Compare the predicted state of one operator with the headers of a savepoint."""
    if isinstance(spec.layout, Unknown):
        return None
    predicted = spec.layout and spec.layout.stored
    for layout in operator_layouts(operator, savepoint):
        if (found := layout and layout.stored) != predicted:
            wanted, held = _parts(predicted), _parts(found)
            return LayoutDifference(f"{spec.name} {spec.id}", _words(wanted - held), _words(held - wanted))
    return None


def stored_layouts(path: str) -> Mapping[str, StateLayout]:
    """The layouts of the operators of a savepoint that keep state by key."""
    found = {each.id: [*operator_layouts(each, path)] for each in read_metadata(path).operators}
    return {id: layout for id, layouts in found.items() for layout in layouts if layout is not None}


def operator_layouts(operator: OperatorState, path: str) -> Iterator[StateLayout | None]:
    """The layouts of the subtasks of an operator that have not finished."""
    for subtask in operator.subtasks or ():
        if subtask.index < 0:
            continue
        if subtask.keyed is None:
            yield None
            continue
        with open_keyed(subtask.keyed, path) as file:
            yield layout_of(file.header)


def _parts(layout: StateLayout | None) -> frozenset[str]:
    """The key, the states and the timers of a layout, each in words."""
    if layout is None:
        return frozenset()
    timers = {f"timers {layout.timers}"} if layout.timers else set()
    return frozenset({f"key {_columns(layout.key)}", *map(_state_words, layout.states), *timers})


def _words(parts: Iterable[str]) -> str:
    return ", ".join(sorted(parts)) or _NOTHING


def _state_words(state: NamedState) -> str:
    key = f"{_stored_words(state.map_key)} to " if state.map_key is not None else ""
    by = "" if state.namespace is StateNamespace.NONE else f" by {state.namespace}"
    lives = " with a time to live" if state.time_to_live else ""
    return f"{state.name} {state.kind} of {key}{_stored_words(state.value)}{by}{lives}"


def _stored_words(stored: Stored) -> str:
    return f"{stored.form} {_columns(stored.fields)}" if stored.fields else stored.form


def _columns(fields: Iterable[StateField]) -> str:
    return f"({', '.join(field.type for field in fields)})"


def layout_of(header: KeyedHeader) -> StateLayout:
    """The layout that a file of keyed state says."""
    if header.key.name != "RowData":
        raise SavepointUnreadable(f"keys are stored as {header.key}, and not as rows, which is not known here")
    states = tuple(_state(state) for state in header.states if state.kind is not KeyedStateKind.TIMERS)
    namespaces = {str(state.namespace) for state in header.states}
    services = {
        _service(state, header.key, namespaces) for state in header.states if state.kind is KeyedStateKind.TIMERS
    }
    return StateLayout(_fields(header.key), states, ", ".join(sorted(services)))


def _service(timers: KeyedState, key: Serializer, namespaces: Container[str]) -> str:
    """The name of a timer service, with its namespace where no state of the operator has that one."""
    of_timers, namespace = _two_parts(timers.name, timers.value)
    if str(of_timers) != str(key):
        raise SavepointUnreadable(f"{timers.name} has keys of {of_timers}, the operator has keys of {key}")
    name = _TIMERS.sub("", timers.name)
    return name if str(namespace) in namespaces else f"{name} by {namespace}"


def _state(state: KeyedState) -> NamedState:
    namespace = _NAMESPACES.get(state.namespace.name if state.namespace else "")
    if namespace is None:
        raise SavepointUnreadable(f"the state {state.name} is told apart by {state.namespace}, which is not known here")
    key, value = _two_parts(state.name, state.value) if state.kind is KeyedStateKind.MAP else (None, state.value)
    time_to_live = value.name == "Ttl"
    if time_to_live:
        _, value = _two_parts(state.name, value)
    map_key = None if key is None else _stored(key)
    return NamedState(state.name, state.kind, _stored(value), map_key, namespace, time_to_live)


def _two_parts(name: str, serializer: Serializer) -> tuple[Serializer, Serializer]:
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
