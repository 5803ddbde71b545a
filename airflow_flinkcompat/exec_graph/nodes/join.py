"""Lowering and layouts of regular, window, multi-way, interval and temporal joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.exec_graph.exec_node import ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.exec_graph.layout import (
    LONG,
    MAP,
    VALUE,
    CannotLower,
    NamedState,
    StateField,
    StateLayout,
    StateNamespace,
    Stored,
    Unknown,
    nullable,
)
from airflow_flinkcompat.exec_graph.lowering import LIVES, Lowered, NodeFamily, require_certain_columns, stored_columns
from airflow_flinkcompat.exec_graph.model import Facets
from airflow_flinkcompat.exec_graph.nodes.kept_rows import kept_row_facets, row_states
from airflow_flinkcompat.exec_graph.symbols import ColumnMeanings, Symbols, columns, row
from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.operators import JoinForm, JoinOperator
from airflow_flinkcompat.plan.origins import OperatorColumn
from airflow_flinkcompat.plan.types import TimeAttribute
from airflow_flinkcompat.savepoint.binary import KeyedStateKind

JOINS = {
    JoinForm.REGULAR: ExecKind.JOIN,
    JoinForm.INTERVAL: ExecKind.INTERVAL_JOIN,
    JoinForm.WINDOW: ExecKind.WINDOW_JOIN,
}
"""Kinds of exec nodes for joins that store rows."""


def lower_join(operator: JoinOperator, symbols: Symbols, time_to_live: bool) -> Lowered:
    """Lower a join of two append-only tables to its exec node."""
    require_certain_columns(operator.segments)
    by_time = operator.clock is TimeAttribute.ROWTIME
    if operator.form is JoinForm.INTERVAL and not by_time:
        raise CannotLower("the state of an interval join by processing time is known only from compiled plans")
    times = {(time.operator, time.output) for time in operator.times if by_time and isinstance(time, OperatorColumn)}
    left, right = (
        stored_columns(
            row, types, symbols, {each: TimeAttribute.ROWTIME for input, each in times if input == side}, side
        )
        for side, (row, types) in enumerate(zip(operator.rows, operator.row_types, strict=True))
    )
    keys = [tuple(map(_place, operator.rows, pair)) for pair in operator.keys]
    if not keys:
        raise CannotLower("a join without a key may require additional operators")
    if any(nullable(left.types[one]) != nullable(right.types[other]) for one, other in keys):
        raise CannotLower("keys of different types are converted by a computed column")
    spec = {"joinType": operator.join, "leftKeys": [one for one, _ in keys], "rightKeys": [other for _, other in keys]}
    match operator.form:
        case JoinForm.REGULAR:
            kind, config = ExecKind.JOIN, {"joinSpec": spec, "state": [LIVES[time_to_live]] * 2}
        case JoinForm.INTERVAL:
            lower, upper = operator.bounds or (0, 0)
            bounds = {"isEventTime": by_time, "leftLowerBound": lower, "leftUpperBound": upper}
            kind, config = ExecKind.INTERVAL_JOIN, {"intervalJoinSpec": {"joinSpec": spec, "windowBounds": bounds}}
        case JoinForm.WINDOW:
            kind, config = ExecKind.WINDOW_JOIN, {"joinSpec": spec}
        case _:
            raise CannotLower(f"the state of a {operator.form} is known only from compiled plans")
    return Lowered(ExecNode(0, kind, kind, config, (), (), ()), (left, right))


def _place(row: Sequence[Expression], key: Expression) -> int:
    """The position of a join key in the row of its input; raise CannotLower for a computed key."""
    if not isinstance(key, OperatorColumn) or key.output not in row:
        raise CannotLower("the position of a computed join key in the stored rows is unknown")
    return row.index(key.output)


_COUNTS_LEFT = ("LEFT", "FULL", "SEMI", "ANTI")
_COUNTS_RIGHT = ("RIGHT", "FULL")


def join_layout(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | Unknown:
    """The layout of a regular join: rows of each side by unique key, or a counter for each row.

    If a join also emits the unmatched rows of a side, the state stores a number of matches with each row of that
    side.
    """
    spec = node.config["joinSpec"]
    left, right = inputs
    sides = (
        _records(
            "left-records", left, spec["leftKeys"], node.config.get("leftUpsertKeys"), spec["joinType"] in _COUNTS_LEFT
        ),
        _records(
            "right-records",
            right,
            spec["rightKeys"],
            node.config.get("rightUpsertKeys"),
            spec["joinType"] in _COUNTS_RIGHT,
        ),
    )
    return StateLayout(columns(left, spec["leftKeys"]), sides)


def _records(
    name: str, side: ColumnMeanings, keys: Sequence[int], unique: Sequence[Sequence[int]] | None, counts: bool
) -> NamedState:
    stored = side_rows(side, name)
    if not unique:
        counted = Stored("Tuple<Int, Int>" if counts else "Int")
        return NamedState(name, MAP, counted, stored, retracting=not side.appends)
    value = replace(stored, form="Tuple<row, Int>" if counts else "row")
    if any(set(each) <= set(keys) for each in unique):
        return NamedState(name, VALUE, value, retracting=not side.appends)
    _, smallest = min((len(each), each) for each in unique)
    return NamedState(name, MAP, value, Stored("row", columns(side, smallest)), retracting=not side.appends)


def side_rows(read: ColumnMeanings, name: str, form: str = "row") -> Stored:
    """The stored rows of one side; the text of each field starts with the name of the side."""
    rows, side = row(read, form), name.partition("-")[0].lower()
    return replace(rows, fields=tuple(replace(field, words=f"{side}.{field.words}") for field in rows.fields))


def multi_join_layout(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | Unknown:
    """The layout of a multi-way join: rows of each input by unique key, or a counter for each row.

    The map keys of every input except the first contain the columns that join this input.
    """
    conditions = {int(place): pairs for place, pairs in node.config["joinAttributeMap"].items()}
    key, unique_keys = _common_key(conditions), node.config.get("inputUniqueKeys")  # Flink 2.1 plans no unique keys
    if key is None or unique_keys is None:
        return Unknown("the key columns of this multi-way join are unknown")
    states = []
    for number, (side, unique) in enumerate(zip(inputs, unique_keys, strict=True)):
        joined = sorted({pair["rightFieldIndex"] for pair in conditions.get(number, ()) if number})
        record, by = row(side), columns(side, joined)
        if not unique:
            value, found_by, names = Stored("Int"), record.fields, list(side.names)
        else:
            _, smallest = min((len(each), each) for each in unique)
            value, found_by = record, columns(side, smallest)
            names = [f"f{place}" for place in range(len(smallest))]
        if joined and any(set(each) <= set(joined) for each in unique):
            stored_by: tuple[StateField, ...] = by
        elif joined:
            stored_by = _nested([f"{side.names[place]}_key" for place in joined], by), _nested(names, found_by)
        else:
            stored_by = found_by
        states.append(NamedState(f"multi-join-input-{number}", MAP, value, Stored("row", stored_by)))
    return StateLayout(columns(inputs[0], key), tuple(states), carried_only=True)


def _nested(names: Sequence[str], fields: Sequence[StateField]) -> StateField:
    parts = ", ".join(f"`{name}` {field.type}" for name, field in zip(names, fields, strict=True))
    return StateField(f"ROW<{parts}>", tuple(field.meaning for field in fields), ", ".join(f.words for f in fields))


def _common_key(conditions: Mapping[int, Sequence[Mapping[str, int]]]) -> list[int] | None:
    """The columns of the first input that join every other input; None if they are ambiguous."""
    equal: list[set[tuple[int, int]]] = []
    steps = []
    for pairs in conditions.values():
        step = [{(pair[f"{side}InputId"], pair[f"{side}FieldIndex"]) for side in ("left", "right")} for pair in pairs]
        steps.append(set().union(*step))
        for pair in step:
            alike = [each for each in equal if each & pair]
            equal = [each for each in equal if not each & pair] + [pair.union(*alike)]
    common = [each for each in equal if all(each & step for step in steps)]
    of_first = [[place for number, place in each if number == 0] for each in common]
    if not of_first or any(len(places) != 1 for places in of_first):
        return None
    return sorted(place for places in of_first for place in places)


def window_join_layout(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout:
    """The layout of a window join: the rows of both sides by window."""
    states = tuple(
        NamedState(name, KeyedStateKind.LIST, side_rows(side, name, "List<row>"), namespace=StateNamespace.WINDOW_END)
        for name, side in zip(("left-records", "right-records"), inputs, strict=True)
    )
    return StateLayout(columns(inputs[0], node.config["joinSpec"]["leftKeys"]), states, "window-timers")


def interval_join_layout(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | None:
    """The layout of an interval join: rows of both sides by time, each with a flag for a match.

    Flink keeps no state if the end of the interval is before its start.
    """
    spec = node.config["intervalJoinSpec"]
    bounds = spec["windowBounds"]
    if bounds.get("leftUpperBound", 0) < bounds.get("leftLowerBound", 0):
        return None
    states = tuple(
        state
        for name, side in zip(("Left", "Right"), inputs, strict=True)
        for state in (
            NamedState(f"IntervalJoin{name}Cache", MAP, side_rows(side, name, "List<Tuple<row, Boolean>>"), LONG),
            NamedState(f"IntervalJoin{name}TimerState", VALUE, LONG),
        )
    )
    key = columns(inputs[0], spec["joinSpec"]["leftKeys"])
    return StateLayout(key, states, "user-timers", carried_only=not bounds.get("isEventTime"))


def temporal_join_facets(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> Facets:
    """The facets of a temporal join, which stores the latest change at each time, normalized or not."""
    left, *right = inputs
    versions = (replace(each, rows=symbols.before_normalization(each.rows)) for each in right)
    return kept_row_facets(node, (left, *versions), symbols)


def temporal_join_layout(node: ExecNode, inputs: Sequence[ColumnMeanings], symbols: Symbols) -> StateLayout | Unknown:
    """The layout of an event-time temporal join: rows that wait for a watermark, and versions."""
    left, right = inputs
    if node.config.get("leftTimeAttributeIndex", -1) < 0 or node.config.get("rightTimeAttributeIndex", -1) < 0:
        return Unknown("the state of a temporal join by processing time was not measured")
    expires = bool(node.config.get("state"))
    states = (
        NamedState("left", MAP, side_rows(left, "left"), LONG, retracting=not left.appends),
        # A version replaces an older version by its time. Versions are never compared.
        NamedState("right", MAP, side_rows(right, "right"), LONG),
        NamedState("next-index", VALUE, LONG),
        NamedState("timer", VALUE, LONG),
        *([NamedState("cleanup-timestamp", VALUE, LONG)] if expires else []),
    )
    return StateLayout(columns(left, node.config["joinSpec"]["leftKeys"]), states, "timers", carried_only=expires)


FAMILIES = (
    NodeFamily((ExecKind.JOIN,), kept_row_facets, join_layout, row_states, lower_join),
    NodeFamily((ExecKind.WINDOW_JOIN,), kept_row_facets, window_join_layout, row_states, lower_join),
    NodeFamily((ExecKind.MULTI_JOIN,), kept_row_facets, multi_join_layout),
    NodeFamily((ExecKind.INTERVAL_JOIN,), kept_row_facets, interval_join_layout, row_states, lower_join),
    NodeFamily((ExecKind.TEMPORAL_JOIN,), temporal_join_facets, temporal_join_layout, row_states),
)
