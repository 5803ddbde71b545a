"""Aggregations: accumulators by key, and maps and lists in separate states."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, cast

from airflow_flinkcompat.exec_graph.exec_node import ExecNode, call_function
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import (
    CallPart,
    CannotLower,
    NamedState,
    StateField,
    StateLayout,
    StateNamespace,
    Stored,
    Unknown,
    stored_as,
)
from airflow_flinkcompat.exec_graph.lowering import LIVES, Lowered, NodeFamily, of_one_input
from airflow_flinkcompat.exec_graph.model import LAYOUT, MEANING, MERGING_WINDOWS, UNSURE, Facets
from airflow_flinkcompat.exec_graph.nodes.accumulators import (
    accumulated,
    accumulator_facet,
    call_meaning,
    call_over,
    compiled_calls,
    counted,
)
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets
from airflow_flinkcompat.exec_graph.rewriting import (
    StateRewrite,
    as_it_is,
    new_fields,
    reused_fields,
    source_of,
    stored_fields,
    words,
)
from airflow_flinkcompat.exec_graph.streams import facets_aside, output_meanings, own, rows_meaning, types_at
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbol, Symbols, columns, resolved
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, Literal
from airflow_flinkcompat.plan.nodes import WindowKind
from airflow_flinkcompat.plan.operators import AggregateKind, AggregateOperator
from airflow_flinkcompat.plan.origins import describe
from airflow_flinkcompat.plan.types import DataType, TimeAttribute
from airflow_flinkcompat.savepoint.binary import KeyedStateKind


def local_columns(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> ColumnMeanings:
    """Output columns of a local aggregation: its keys, then partial results."""
    facets = aggregation_facets(node, below, symbols)
    keys = [symbols.number(below.at(place)) for place in node.config["grouping"]]
    op = rows_meaning("aggregate", facets, symbols)
    partial = [symbols.of("partial", op, i) for i in range(len(node.names) - len(keys))]
    columns = output_meanings(node, [*keys, *partial], below.rows)
    return replace(columns, before=below, window=facets[MEANING, "window"])


def aggregation_facets(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> Facets:
    """The facets of an aggregation, resolved to the input columns of its local aggregation."""
    read = below.before or below
    calls: list[dict[str, Any]] = node.config["aggCalls"]
    window = resolved(node.config.get("windowing") or node.config.get("window") or {}, read, symbols)
    needs = bool(node.config.get("needRetraction")), *map(bool, node.config.get("aggCallNeedRetractions") or ())
    rest = own(node, "grouping", "aggCalls", "windowing", "window", "needRetraction", "aggCallNeedRetractions")
    return {
        (LAYOUT, "key types"): types_at(below, node.config["grouping"]),
        (LAYOUT, "accumulators"): tuple(accumulator_facet(call, read) for call in calls),
        (LAYOUT, MERGING_WINDOWS): _window_state(node.config),
        (LAYOUT, "retraction"): needs,
        (MEANING, "window"): window if below.window is None else below.window,
        (MEANING, "keys"): tuple(below.at(place) for place in node.config["grouping"]),
        (MEANING, "aggregates"): tuple(call_meaning(call, read, symbols) for call in calls),
        (MEANING, "rows below"): below.rows,
        (UNSURE, "argument types"): tuple(types_at(read, call["argList"]) for call in calls),
        (UNSURE, "configuration beside"): resolved(rest, read, symbols),
        **facets_aside(node),
    }


def _window_state(config: Mapping[str, Any]) -> str:
    """The facet for the form of window state: hopping and session windows have extra states (measured)."""
    kind = config.get("windowing", {}).get("window", {}).get("type") or config.get("window", {}).get("kind")
    own_state = {"HoppingWindow": "hopping", "SessionWindow": "session", "SESSION": "session"}
    return own_state.get(kind, "plain")


_WINDOWS = {
    ExecKind.WINDOW_AGGREGATE: StateNamespace.WINDOW_END,
    ExecKind.GLOBAL_WINDOW_AGGREGATE: StateNamespace.WINDOW_END,
    ExecKind.GROUP_WINDOW_AGGREGATE: StateNamespace.WINDOW,
}
MERGED_SESSIONS = NamedState(
    "session-window-mapping", KeyedStateKind.MAP, Stored("TimeWindow"), Stored("TimeWindow"), StateNamespace.NONE
)


def aggregation_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The layout of an aggregation."""
    read = below.before or below
    calls = _with_row_counter(node)
    rows = accumulated(compiled_calls(calls, _retractions(node, len(calls)), read, symbols))
    if isinstance(rows, Unknown):
        return rows
    fields, beside = rows
    session = _window(node) in ("SessionWindow", "SESSION")
    namespace = StateNamespace.WINDOW if session else _WINDOWS.get(node.kind, StateNamespace.NONE)
    accumulators = NamedState(
        "accState" if namespace is StateNamespace.NONE else "window-aggs",
        KeyedStateKind.VALUE,
        Stored("row", fields),
        namespace=namespace,
    )
    states = tuple(replace(state, namespace=namespace) for state in (accumulators, *beside))
    timers = "user-timers" if namespace is StateNamespace.NONE else "window-timers"
    return StateLayout(
        columns(below, node.config["grouping"]),
        (*states, MERGED_SESSIONS) if session else states,
        # With mini-batches, an aggregation sets no timers.
        ""
        if node.kind is ExecKind.GLOBAL_GROUP_AGGREGATE or (node.kind is ExecKind.GROUP_AGGREGATE and in_batches(node))
        else timers,
        retracting=bool(node.config.get("needRetraction")),
    )


def incremental_layout(node: ExecNode, below: ColumnMeanings, symbols: Symbols) -> StateLayout | Unknown:
    """The layout of an incremental aggregation, which runs between a local and a global aggregation.

    An incremental aggregation stores only distinct values. Accumulators exist only during a mini-batch.
    """
    calls: list[Mapping[str, Any]] = node.config["partialOriginalAggCalls"]
    retracting: list[bool] = node.config["partialAggCallNeedRetractions"]
    made = accumulated(compiled_calls(calls, retracting, below.before or below, symbols))
    if isinstance(made, Unknown):
        return made
    _, beside = made
    if any(not state.name.startswith("distinct") for state in beside):
        return Unknown("the maps and lists of an incremental aggregation were not measured")
    return StateLayout(columns(below, node.config["partialAggGrouping"]), beside, carried_only=True)


def _window(node: ExecNode) -> str:
    """The kind of a node's window, as named by table functions or group windows; "" without a window."""
    function = node.config.get("windowing", {}).get("window", {}).get("type")
    return str(function or node.config.get("window", {}).get("kind") or "")


def in_batches(node: ExecNode) -> bool:
    """True if a node collects rows into mini-batches, which use no timers."""
    return bool(node.config.get("configuration", {}).get("table.exec.mini-batch.enabled") == "true")


def _with_row_counter(node: ExecNode) -> list[Mapping[str, Any]]:
    """The aggregate calls, including the hidden COUNT(*) for retractions and hopping windows."""
    calls: list[Mapping[str, Any]] = list(node.config["aggCalls"])
    if not node.config.get("needRetraction") and _window(node) != "HoppingWindow":
        return calls
    if (
        node.config.get("indexOfCountStar", -1) >= 0
    ):  # after an incremental aggregation, one call already sums its counts
        return calls
    return counted(calls)


def _retractions(node: ExecNode, calls: int) -> Sequence[bool]:
    needed = bool(node.config.get("needRetraction"))
    values: list[bool] = list(node.config.get("aggCallNeedRetractions") or ())
    return [*values, *[needed] * (calls - len(values))]


def accumulator_states(before: StateLayout, after: StateLayout) -> tuple[StateRewrite, ...] | str:
    """Rewrite the states of an aggregation."""
    states = tuple(_state(state, before) for state in after.states)
    return _refused(states, before, after) or states


def merge_refusal(states: Sequence[StateRewrite], before: StateLayout, what: str) -> str:
    """The reason why values of several keys or slices cannot be merged; "" if they can."""
    if any(state.name == MERGED_SESSIONS.name for state in before.states):
        return "sessions of merged keys would have to include ended sessions, which are not stored"
    if any(state.time_to_live for state in before.states):
        return "the state of some merged keys may have expired earlier than the state of their new key"
    fields = (
        field
        for state in states
        for field, place in zip(state.new.value.fields, state.fields, strict=True)
        if place is not None and (field.merges is None or not state.new.framing)
    )
    values = words(fields)
    return f"{values[0]} of several {what}s cannot be derived from the {values[0]} of each" if values else ""


def _state(new: NamedState, before: StateLayout) -> StateRewrite:
    """Rewrite rows field by field, and a map or list as a whole."""
    if new.framing:
        old = next(state for state in before.states if state.framing)
        return StateRewrite(new, old, _places(new.value.fields, old.value.fields))
    if not new.value.fields:  # the windows that sessions merge
        return as_it_is(new, next((state for state in before.states if state.name == new.name), None))
    same = (state for state in before.states if (state.value, state.map_key) == (new.value, new.map_key))
    return as_it_is(new, next((state for state in same if state.kind is new.kind), None))


def _places(new: Sequence[StateField], old: Sequence[StateField]) -> tuple[int | None, ...]:
    """For each field of a new accumulator row, the position of the old field; None if it begins empty.

    A call may reuse parts of other calls: an average reuses a sum and a count. If one part is missing, the whole call
    begins empty.
    """
    places = [source_of(field, old) for field in new]
    missing = (field.meaning for field, place in zip(new, places, strict=True) if place is None)
    begins = {meaning.call for meaning in missing if isinstance(meaning, CallPart)}
    return tuple(
        None if place is not None and _lent(field, old[place], begins) else place
        for field, place in zip(new, places, strict=True)
    )


def _lent(field: StateField, stored: StateField, calls: Set[Hashable]) -> bool:
    """True if one of these calls would reuse a part of a different call."""
    return isinstance(field.meaning, CallPart) and field.meaning.call in calls and field.meaning != stored.meaning


def _refused(states: Sequence[StateRewrite], before: StateLayout, after: StateLayout) -> str:
    """The reason why rewritten state would give wrong results; "" if it would not."""
    metrics = words(new_fields(states))
    if not metrics:
        return ""
    if after.retracting:
        return f"{', '.join(metrics)} would subtract retracted rows that it never added"
    fields = (field for state in states if state.new.framing for field in state.new_fields)
    unmeasured = {words([field])[0].partition("(")[0]: None for field in fields if field.begins is None}
    if unmeasured:
        return f"the initial value of {', '.join(unmeasured)} was not measured"
    # Plans name a computed argument by its position, so the calls that use a view identify the view.
    going_on = {field.meaning.call for field in reused_fields(states) if isinstance(field.meaning, CallPart)}
    shared = (field for field in new_fields(states) if _users(field) & going_on)
    kept = words(stored_fields(before))
    distinct = [*words(shared), *(each for each in metrics if each in kept and each.startswith("distinct values"))]
    return f"other metrics share the {distinct[0]}" if distinct else ""


def _users(field: StateField) -> frozenset[object]:
    """The calls that share the stored values of a DISTINCT; empty for other fields."""
    match field.meaning:
        case (("distinct", tuple() as users), _):
            return frozenset(users)
    return frozenset()


KINDS = {
    AggregateKind.GROUP: ExecKind.GROUP_AGGREGATE,
    AggregateKind.GROUP_WINDOW: ExecKind.GROUP_WINDOW_AGGREGATE,
    AggregateKind.WINDOW: ExecKind.WINDOW_AGGREGATE,
}
"""The one-phase exec node of each aggregation. Its two-phase nodes store the same state."""
_TVF_WINDOWS = {WindowKind.HOP: "HoppingWindow", WindowKind.SESSION: "SessionWindow"}
"""Windows for which an aggregation stores extra state, if a table function assigns them."""
_Column = tuple[Expression, str]


def lower_aggregation(
    operator: AggregateOperator,
    symbols: Symbols,
    time_to_live: bool,
    keys_in_order: bool = False,
    retracting: bool = False,
    unretracted: Collection[int] = (),
) -> Lowered:
    """Lower an aggregation of a script to its exec node.

    ``keys_in_order`` is True if the keys are in their stored order, which a script may not show. ``unretracted``
    contains the positions of MIN and MAX calls that no retraction changes, according to the planner. The expressions
    of the script are the meanings of the columns.
    """
    _require_one_node(operator, keys_in_order)
    columns = _columns_read(operator)
    calls = [_planned(*each, columns) for each in zip(operator.aggregates, operator.argument_types, strict=True)]
    calls = [call for place, call in enumerate(calls) if call not in calls[:place]]
    config: dict[str, Any] = {
        "grouping": [*range(len(operator.keys))],
        "aggCalls": calls,
        "needRetraction": retracting,
        "aggCallNeedRetractions": [retracting and place not in unretracted for place in range(len(calls))],
    }
    if operator.window is None:
        config["state"] = [LIVES[time_to_live]]
    elif operator.kind is AggregateKind.WINDOW:
        config["windowing"] = {"window": {"type": _TVF_WINDOWS.get(operator.window.window.kind)}}
    elif operator.window.window.kind is WindowKind.SESSION:
        config["window"] = {"kind": "SESSION"}
    kind = KINDS[operator.kind]
    return Lowered(ExecNode(0, kind, kind, config, (), (), ()), (_read_meanings(columns, symbols),))


def planned_calls(operator: AggregateOperator, symbols: Symbols) -> Mapping[AggregateCall, Hashable]:
    """Map the aggregate calls of a script to the calls in the meanings of layout fields."""
    columns = _columns_read(operator)
    read = _read_meanings(columns, symbols)
    calls = (_planned(*each, columns) for each in zip(operator.aggregates, operator.argument_types, strict=True))
    meant = ((call_function(call), call_over(call, read, symbols)) for call in calls)
    return dict(zip(operator.aggregates, meant, strict=True))


def _columns_read(operator: AggregateOperator) -> list[_Column]:
    """The columns that an aggregation reads, with their stored types; keys are first."""
    found = [(key, stored_as(type)) for key, type in zip(operator.keys, operator.key_types, strict=True)]
    for call, types in zip(operator.aggregates, operator.argument_types, strict=True):
        if call.language != "builtin" or call.order_by:
            raise CannotLower("the state of a user-defined aggregate function is unknown")
        found += _arguments(call, types)
        found += [(call.filter, "BOOLEAN")] if call.filter is not None else []
    return found


def _arguments(call: AggregateCall, types: Sequence[DataType]) -> list[_Column]:
    """The stored arguments of a call; a COUNT of a constant or of a NOT NULL column has none."""
    typed = [*zip(call.args, types, strict=True)]
    never_null = all(isinstance(each, Literal) or not type.nullable for each, type in typed)
    counts_rows = call.function == "COUNT" and never_null and not call.distinct
    return [] if counts_rows else [(each, stored_as(type)) for each, type in typed]


def _planned(call: AggregateCall, types: tuple[DataType, ...], columns: Sequence[_Column]) -> Mapping[str, Any]:
    """A call in the notation of compiled plans."""
    function = functions.lookup(call.function)
    if function is None:
        raise CannotLower(f"the state of {call.function} is unknown")
    return {
        "internalName": f"${call.function}$1",
        "argList": [columns.index(each) for each in _arguments(call, types)],
        "filterArg": -1 if call.filter is None else columns.index((call.filter, "BOOLEAN")),
        "distinct": call.distinct and call.function not in ("MIN", "MAX"),
        "type": stored_as(function.result_type(types)),
    }


def _read_meanings(columns: Sequence[_Column], symbols: Symbols) -> ColumnMeanings:
    meanings = cast(tuple[Symbol, ...], tuple(each for each, _ in columns))
    names = tuple(describe(each) for each, _ in columns)
    return ColumnMeanings(meanings, names, tuple(type for _, type in columns), symbols.of("rows", 0))


def _require_one_node(operator: AggregateOperator, keys_in_order: bool) -> None:
    """Raise CannotLower if Flink may plan several nodes, or a different order of keys."""
    require_plain_form(operator)
    in_sessions = operator.window is not None and operator.window.window.kind is WindowKind.SESSION
    on_event_time = operator.window is not None and operator.window.time_attribute is TimeAttribute.ROWTIME
    certain = keys_in_order or (operator.kind is AggregateKind.WINDOW and on_event_time)
    if operator.segment.filters and len(operator.keys) > 1 and not certain:
        raise CannotLower("the keys may be in the order of the table's columns or of the output")
    if operator.segment.filters and operator.kind is AggregateKind.WINDOW and in_sessions:
        raise CannotLower("a condition on the keys may move session windows to a separate operator")
    read = {part for call in operator.aggregates if call.function != "COUNT" for part in call.args}
    if read & set(operator.keys):
        raise CannotLower("Flink may remove an aggregate call on a key")
    averaged = any(call.function == "AVG" for call in operator.aggregates)
    if averaged and not operator.keys and any(call.distinct for call in operator.aggregates):
        raise CannotLower("an average with DISTINCT calls and no key may be planned as a sum and a count")
    if operator.kind not in KINDS:
        raise CannotLower(f"the state of a {operator.kind} is unknown")


def require_plain_form(operator: AggregateOperator) -> None:
    """Raise CannotLower if Flink plans additional nodes for an aggregation."""
    odd = operator.grouping_sets is not None or operator.repeated_keys or operator.repeated_calls
    if odd or operator.pruned_inputs or operator.window_computations or operator.window_aggregates:
        raise CannotLower("this form of aggregation requires additional operators")


FAMILIES = (
    NodeFamily(
        (ExecKind.GROUP_AGGREGATE, ExecKind.GLOBAL_GROUP_AGGREGATE),
        of_one_input(aggregation_facets),
        of_one_input(aggregation_layout),
        accumulator_states,
        lower_aggregation,
    ),
    NodeFamily((ExecKind.INCREMENTAL_GROUP_AGGREGATE,), kept_row_facets, of_one_input(incremental_layout)),
)
