"""Operators of a savepoint, and comparison of their state with the state that a plan predicts."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from airflow_flinkcompat.exec_graph.from_planner import PlannedOperator, PlannedScript, SubmittedJob, readable_name
from airflow_flinkcompat.exec_graph.layout import NamedState, StateField, StateLayout, StateNamespace, Stored, Unknown
from airflow_flinkcompat.exec_graph.model import StateKind, StateSpec
from airflow_flinkcompat.savepoint.binary import KeyedStateKind, SavepointUnreadable, naming_file, printable
from airflow_flinkcompat.savepoint.keyed_state import KeyedHeader, KeyedState, first_group, open_keyed, read_header
from airflow_flinkcompat.savepoint.metadata import (
    Handle,
    Inline,
    KeyedForm,
    KeyGroups,
    OperatorLists,
    OperatorState,
    SubtaskState,
    parse_metadata,
)
from airflow_flinkcompat.savepoint.serializers import Serializer, serializer_names
from airflow_flinkcompat.savepoint.store import open_handle, read_metadata

_NAMESPACES = {
    "VoidNamespace": StateNamespace.NONE,
    "Long": StateNamespace.WINDOW_END,
    "TimeWindow": StateNamespace.WINDOW,
}
_ANOTHER = "so the job runs a different script or different settings (--old-set)"
_TIMERS = "_timer_state/"


@dataclass(frozen=True)
class StoredJob:
    """The operators of a job, as described by the headers of a savepoint. No row is read.

    Attributes:
        format: The version of the savepoint's metadata.
        operators: All operators, each with the headers of one subtask.
        stateful: The ids of the operators that keep state.
        path: The path or URI of the savepoint; "" if unknown.
    """

    format: int
    operators: tuple[OperatorState, ...]
    stateful: frozenset[str]
    path: str = ""

    def fits(self, script: PlannedScript) -> bool:
        """True if one job of the script has every stateful operator of the savepoint."""
        return self._place(script) is not None

    def over(self, script: PlannedScript) -> PlannedScript:
        """Return the script with the operators and states of the savepoint in its matching job.

        If no job matches, the operators replace those of the only job. If no job matches and the script has several
        jobs, it is returned unchanged.
        """
        place = self._place(script)
        if place is None and len(script.jobs) != 1:
            return script
        jobs = list(script.jobs)
        jobs[place or 0] = self._job(jobs[place or 0], place is not None)
        return replace(script, jobs=tuple(jobs))

    def contradictions(self, script: PlannedScript) -> tuple[str, ...]:
        """Return one sentence for each difference between the stored and the planned state."""
        place = self._place(script)
        if place is None and (script.stand_ins or not script.jobs):  # a stand-in may have different operators
            return ()
        planned = script.jobs[place or 0]
        wanted = parse_metadata(b64decode(planned.savepoint), headers=True)
        found = []
        if wanted.format != self.format:
            found.append(
                "the savepoint was not written by the version of Flink that plans the deployed "
                f"script ({script.flink}): set the version that wrote it with "
                "--old-engine-version"
            )
        if place is None:
            ids = {each.id for job in script.jobs for each in job.operators}
            strange = [each for each in self.operators if each.id in self.stateful - ids]
            names = ", ".join(f"{_name(each)} ({each.id})" for each in strange)
            fault = (
                f"the savepoint contains state of {names}, which the plan of the deployed script does not contain"
                if names
                else "the savepoint contains one job, but Flink plans the deployed script as several jobs"
            )
            return (*found, f"{fault}, {_ANOTHER}")
        stored = {each.id: each for each in self.operators}
        registered = {each.id: each for each in wanted.operators}
        absent = ", ".join(dict.fromkeys(script.stand_ins.values()))
        jars = f", or the missing jar of {absent} is the reason for the difference (--jar)" if absent else ""
        for each in planned.operators:
            if difference := _difference(each, registered.get(each.id), stored.get(each.id)):
                words = difference.words("the plan of the deployed script", "the savepoint")
                found.append(f"{difference.operator}: {words}, {_ANOTHER}{jars}")
        return tuple(found)

    def _place(self, script: PlannedScript) -> int | None:
        """The position of the first job of the script that has every stateful operator."""
        places = (n for n, job in enumerate(script.jobs) if self.stateful <= {each.id for each in job.operators})
        return next(places, None)

    def _job(self, planned: SubmittedJob, fits: bool) -> SubmittedJob:
        base = parse_metadata(b64decode(planned.savepoint), headers=True)
        registered = {each.id: each for each in base.operators} if fits else {}
        stored = {each.id: each for each in self.operators}
        kept = {id: each for id, each in stored.items() if any(part.has_state for part in each.subtasks or ())}
        savepoint = replace(base, operators=tuple({**registered, **kept}.values())).to_bytes()
        operators = tuple(
            self._operator(each, stored.get(each.id))
            for each in (planned.operators if fits else map(_unplanned, self.operators))
        )
        return replace(planned, operators=operators, savepoint=b64encode(savepoint).decode())

    def _operator(self, planned: PlannedOperator, stored: OperatorState | None) -> PlannedOperator:
        if stored is None:
            return planned
        keeps = "yes" if stored.id in self.stateful else planned.keeps
        states = planned.states
        if states is not None and (options := stored_states(stored)):
            states = {name: found or states.get(name, {}) for name, found in options.items()}
        return replace(planned, keeps=keeps, max_parallelism=stored.max_parallelism, states=states)


def read_job(path: str) -> StoredJob:
    """Read the operators of a savepoint or checkpoint.

    No row is read. All subtasks of an operator register the same state, so the headers of one subtask are enough.
    Raises SavepointUnreadable if the savepoint is unreachable, damaged or of an unknown form.
    """
    metadata = read_metadata(path, headers=True)
    stateful = frozenset(each.id for each in metadata.operators if each.has_state)
    return StoredJob(metadata.format, tuple(_headers_of(each, path) for each in metadata.operators), stateful, path)


def _headers_of(operator: OperatorState, path: str) -> OperatorState:
    subtasks = operator.subtasks or ()
    keyed = next((each.keyed for each in subtasks if each.keyed is not None), None)
    lists = next((each.managed for each in subtasks if each.managed is not None), None)
    if keyed is not None:
        header = _before(keyed.handle, first_group(keyed.begins), path)
        keyed = KeyGroups(KeyedForm.SAVEPOINT_KEY_GROUPS, 0, (), Inline("keyed", header))
    if lists is not None:
        begins = [begin for each in lists.lists for begin in each.begins]
        header = _before(lists.handle, min(begins, default=None), path)
        names = tuple(replace(each, begins=()) for each in lists.lists)
        lists = OperatorLists(names, Inline("lists", header))
    return replace(operator, coordinator=None, subtasks=(SubtaskState(0, lists, None, keyed),))


def _before(handle: Handle | None, end: int | None, path: str) -> bytes:
    """The header of a state: the bytes before the first entry, or all bytes without an entry."""
    with open_handle(handle, path) as content:
        return content.read(0, content.size if end is None else end)


def _unplanned(operator: OperatorState) -> PlannedOperator:
    """An operator that only the savepoint contains."""
    return PlannedOperator(
        operator.id, _name(operator), "", "no", "savepoint", "", operator.max_parallelism, operator.uid, None
    )


def planned_serializers(script: PlannedScript) -> Mapping[str, tuple[str, ...]]:
    """Names of the serializers of keyed state, by OperatorID, from the savepoints of planned jobs."""
    found: dict[str, tuple[str, ...]] = {}
    for job in script.jobs:
        for operator in parse_metadata(b64decode(job.savepoint), headers=True).operators if job.savepoint else ():
            headers = (each.keyed.handle for each in operator.subtasks or () if each.keyed is not None)
            names = [name for each in headers if isinstance(each, Inline) for name in serializer_names(each.content)]
            found[operator.id] = tuple(sorted({*names}))
    return found


def shown_name(operator: OperatorState) -> str:
    """The name of an operator, or the begin of its id if the savepoint stores no operator name."""
    return printable(readable_name(operator.name)) or f"operator {operator.id[:8]}"


def _name(operator: OperatorState) -> str:
    """The name of an operator, or the names of its states if the savepoint stores no operator name."""
    return (
        readable_name(operator.name) or f"an operator that stores {', '.join(stored_states(operator)) or 'something'}"
    )


def stored_states(operator: OperatorState) -> Mapping[str, Mapping[str, str]]:
    """The options of each state of an operator, by name; empty if the form of the state is unknown."""
    found: dict[str, Mapping[str, str]] = {}
    for subtask in operator.subtasks or ():
        if subtask.managed is not None:
            found |= {each.name: {} for each in subtask.managed.lists}
        if subtask.keyed is not None and isinstance(subtask.keyed.handle, Inline):
            try:
                header = read_header(subtask.keyed.handle.content)
            except SavepointUnreadable:
                return {}
            found |= {each.name: each.options for each in header.states}
    return found


def _difference(
    planned: PlannedOperator, registered: OperatorState | None, stored: OperatorState | None
) -> LayoutDifference | None:
    """The difference between the stored and planned state of an operator; None if a form is unknown."""
    if planned.states is None and planned.keeps != "no":
        return None
    try:
        layouts = () if registered is None else tuple(operator_layouts(registered, ""))
        layout = next((each for each in layouts if each is not None), None)
        spec = StateSpec(StateKind.OPERATOR, planned.name, planned.id, layout)
        if stored is None:
            return LayoutDifference(f"{spec.name} {spec.id}", _words(_parts(layout)), _MISSING) if layout else None
        return layout_difference(spec, stored, "") if stored.subtasks else None
    except SavepointUnreadable:
        return None


@dataclass(frozen=True)
class LayoutDifference:
    """An operator whose stored state differs from the prediction.

    Attributes:
        operator: The name and id of the operator.
        predicted: The parts of the state that only the plan contains, in words.
        stored: The parts of the state that only the savepoint contains, in words.
    """

    operator: str
    predicted: str
    stored: str

    @property
    def is_missing(self) -> bool:
        """True if the savepoint does not contain the operator."""
        return self.stored == _MISSING

    def words(self, plan: str, savepoint: str) -> str:
        """Describe the difference in one sentence, in which ``plan`` and ``savepoint`` name the two sides."""
        if self.is_missing:
            kept = "" if self.predicted == _OPERATOR else f", which stores {self.predicted}"
            return f"{plan} has this operator{kept}, but {savepoint} does not"
        if self.predicted == _NOTHING:
            return f"{plan} has no such state, but {savepoint} contains {self.stored}"
        return f"{plan} predicts {self.predicted}, but {savepoint} contains {self.stored}"


def layout_differences(
    specs: Iterable[StateSpec], savepoint: str, *, muted_sinks: bool = False
) -> tuple[LayoutDifference, ...]:
    """Compare the state that a plan predicts with the headers of a savepoint of its job.

    An operator with an unknown layout is not compared.
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
            parts = {part for layout in layouts for part in _parts(layout)} or {"state that is not keyed"}
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


def operator_layouts(operator: OperatorState, path: str) -> Iterator[StateLayout | None]:
    """The layouts of an operator's subtasks, except finished subtasks."""
    for subtask in operator.subtasks or ():
        if subtask.index < 0:
            continue
        if subtask.keyed is None:
            yield None
            continue
        with open_keyed(subtask.keyed, path) as file, naming_file(file.content.name):
            layout = layout_of(file.header)
        yield layout


def _parts(layout: StateLayout | None) -> frozenset[str]:
    """The key, the states and the timers of a layout, each as text."""
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
    """Read the layout from the header of a file of keyed state."""
    if header.key.name != "RowData":
        raise SavepointUnreadable(f"keys are stored as {header.key} instead of rows; this form is unknown")
    states = tuple(_state(state) for state in header.states if state.kind is not KeyedStateKind.TIMERS)
    namespaces = {str(state.namespace) for state in header.states}
    services = {
        _service(state, header.key, namespaces) for state in header.states if state.kind is KeyedStateKind.TIMERS
    }
    return StateLayout(_fields(header.key), states, ", ".join(sorted(services)))


def _service(timers: KeyedState, key: Serializer, namespaces: Container[str]) -> str:
    """The name of a timer service, with its namespace unless a state has the same namespace."""
    of_timers, namespace = _two_parts(timers.name, timers.value)
    if str(of_timers) != str(key):
        raise SavepointUnreadable(f"{timers.name} has keys of {of_timers}, but the operator has keys of {key}")
    _, name = timer_service(timers.name)
    return name if str(namespace) in namespaces else f"{name} by {namespace}"


def timer_service(state: str) -> tuple[str, str]:
    """The clock of a timer service, ``event`` or ``processing``, and its name, from the name of its state."""
    clock, _, name = state.removeprefix(_TIMERS).partition("_")
    return clock, name


def namespace_of(serializer: Serializer | None) -> StateNamespace | None:
    """The namespace that a serializer stores; None if it is unknown."""
    return _NAMESPACES.get(serializer.name if serializer else "")


def _state(state: KeyedState) -> NamedState:
    namespace = namespace_of(state.namespace)
    if namespace is None:
        raise SavepointUnreadable(f"the state {state.name} has the unknown namespace {state.namespace}")
    key, value = _two_parts(state.name, state.value) if state.kind is KeyedStateKind.MAP else (None, state.value)
    time_to_live = value.name == "Ttl"
    if time_to_live:
        _, value = _two_parts(state.name, value)
    map_key = None if key is None else _stored(key)
    return NamedState(state.name, state.kind, _stored(value), map_key, namespace, time_to_live)


def _two_parts(name: str, serializer: Serializer) -> tuple[Serializer, Serializer]:
    if len(serializer.nested) != 2:
        raise SavepointUnreadable(f"the state {name} has the unknown serializer {serializer}")
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
