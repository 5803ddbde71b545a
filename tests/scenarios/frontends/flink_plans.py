"""What a compiled plan of Flink and a plan of ours say of the same operators, in the same few words.

Both sides are told apart from each other: of Flink's plan only its JSON is read, of ours only the operators' view.
Columns are the names of the tables' columns; a computed value is told by what it is computed from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, Literal
from airflow_flinkcompat.plan.nodes import Frame, Measure
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    AssignedWindow,
    JoinOperator,
    Operator,
    Output,
    OverOperator,
    operators,
)
from airflow_flinkcompat.plan.origins import (
    ColumnOutput,
    KeyOutput,
    OperatorColumn,
    PassedOutput,
    SourceColumn,
    WindowColumn,
)

_KINDS = {
    "group-aggregate": "group aggregation",
    "group-window-aggregate": "group window aggregation",
    "window-aggregate": "window aggregation",
    "over-aggregate": "OVER aggregation",
    "join": "regular join",
    "union": "UNION ALL",
}
_PASSED_ON = frozenset(("exchange", "watermark-assigner", "sink", "drop-update-before", "mini-batch-assigner"))
_WINDOW_KINDS = {"TUMBLING": "TUMBLE", "SLIDING": "HOP", "SESSION": "SESSION", "TumblingWindow": "TUMBLE"}
_FIELDS = {"WindowStart": "window_start", "WindowEnd": "window_end", "Rowtime": "window_time", "Proctime": "proctime"}
_TRANSPARENT = ("$AS$1", "$CAST$1", "$REINTERPRET$1")
_NOW = "$PROCTIME$1"
_DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?")


@dataclass(frozen=True)
class Told:
    """One operator: kind, keys, window or frame, and calls in order.

    Keys are sorted: the Table API groups by columns in the order of the rows, whatever ``group_by`` says, and our plan
    keeps the order that was written, as SQL does.
    """

    kind: str
    keys: tuple[str, ...]
    window: tuple[Any, ...]
    calls: tuple[str, ...]


def call(function: str, distinct: bool, arguments: Iterable[str]) -> str:
    return f"{function}({'DISTINCT ' if distinct else ''}{', '.join(arguments)})"


def computed(parts: Iterable[str]) -> str:
    return f"of {', '.join(sorted(set(parts)))}"


# -- Flink's


def of_each_sink(plan: Mapping[str, Any]) -> dict[str, tuple[Told, ...]]:
    """By the name of the table that is written."""
    nodes = {node["id"]: node for node in plan["nodes"]}
    inputs: dict[int, list[int]] = {key: [] for key in nodes}
    for edge in plan["edges"]:
        inputs[edge["target"]].append(edge["source"])
    reader = _FlinkPlan(nodes, inputs)
    sinks = [node for node in plan["nodes"] if node["type"].startswith("stream-exec-sink_")]
    named = {sink["dynamicTableSink"]["table"]["identifier"].rpartition(".")[2].strip("`"): sink for sink in sinks}
    return {name: reader.below(sink["id"]) for name, sink in named.items()}


class _FlinkPlan:
    def __init__(self, nodes: Mapping[int, Any], inputs: Mapping[int, list[int]]) -> None:
        self._nodes = nodes
        self._inputs = inputs
        self._columns: dict[int, tuple[str, ...]] = {}

    def below(self, key: int) -> tuple[Told, ...]:
        told = self._told(key)
        rest = (each for source in self._inputs[key] for each in self.below(source))
        return (*([told] if told else []), *rest)

    def _kind(self, key: int) -> str:
        match = re.fullmatch(r"stream-exec-(.+)_\d+", self._nodes[key]["type"])
        assert match, self._nodes[key]["type"]
        return match[1]

    def columns(self, key: int) -> tuple[str, ...]:
        if key not in self._columns:
            self._columns[key] = self._made(key)
        return self._columns[key]

    def _read(self, key: int) -> tuple[str, ...]:
        return tuple(column for source in self._inputs[key] for column in self.columns(source))

    def _made(self, key: int) -> tuple[str, ...]:
        node, read = self._nodes[key], self._read(key)
        match self._kind(key):
            case "table-source-scan":
                return tuple(self._names(node))
            case "calc":
                named = zip(self._names(node), node["projection"], strict=True)
                return tuple(name if rex.get("internalName") == _NOW else _rex(rex, read) for name, rex in named)
            case kind if kind in _PASSED_ON:
                return read
            case "group-aggregate":
                return (*self._keys(key), *self._told_of(key).calls)
            case "group-window-aggregate" | "window-aggregate" | "global-window-aggregate":
                properties = [f"window.{_FIELDS[each['property']['kind']]}" for each in node["namedWindowProperties"]]
                return (*self._keys(key), *self._told_of(key).calls, *properties)
            case "local-window-aggregate":
                return (*(read[place] for place in node["grouping"]), *read)
            case "over-aggregate":
                return (*read, *self._told_of(key).calls)
            case "join":
                return read
            case "union":
                return tuple(f"union {place}" for place in range(len(self._names(node))))
        raise AssertionError(f"{self._nodes[key]['type']} is not read here")

    def _keys(self, key: int) -> tuple[str, ...]:
        read = self._read(key)
        return tuple(read[place] for place in self._nodes[key]["grouping"])

    @staticmethod
    def _names(node: Mapping[str, Any]) -> list[str]:
        written = node["outputType"]
        if isinstance(written, str):
            return re.findall(r"`([^`]+)` ", written)
        return [field["name"] for field in written["fields"]]

    def _told_of(self, key: int) -> Told:
        told = self._told(key)
        assert told is not None
        return told

    def _told(self, key: int) -> Told | None:
        node, kind = self._nodes[key], self._kind(key)
        if kind in _PASSED_ON or kind in ("calc", "table-source-scan", "local-window-aggregate"):
            return None
        read = self._read(key)
        match kind:
            case "over-aggregate":
                spec = node["overSpec"]
                (group,) = spec["groups"]
                keys = tuple(read[place] for place in spec["partition"]["fields"])
                (order,) = group["orderBy"]["fields"]
                constants = [literal["value"] for literal in spec["constants"]]
                frame = (
                    "ROWS" if group["isRows"] else "RANGE",
                    _bound(group["lowerBound"], len(read), constants),
                    _bound(group["upperBound"], len(read), constants),
                    read[order["index"]],
                )
                return Told(_KINDS[kind], keys, frame, _flink_calls(group["aggCalls"], read))
            case "join":
                spec = node["joinSpec"]
                left = self.columns(self._inputs[key][0])
                right = self.columns(self._inputs[key][1])
                pairs = zip(spec["leftKeys"], spec["rightKeys"], strict=True)
                keys = tuple(sorted(f"{left[one]} = {right[other]}" for one, other in pairs))
                return Told(_KINDS[kind], keys, (spec["joinType"],), ())
            case "union":
                return Told(_KINDS[kind], (), (), ())
            case "global-window-aggregate":
                # What it aggregates is what the local one read.
                (local,) = [each for each in self._under(key) if self._kind(each) == "local-window-aggregate"]
                node, read, kind = self._nodes[local], self._read(local), "window-aggregate"
        keys = tuple(sorted(read[place] for place in node["grouping"]))
        window = _flink_window(node, read) if "window" in kind else ()
        return Told(_KINDS[kind], keys, window, _flink_calls(node["aggCalls"], read))

    def _under(self, key: int) -> Iterable[int]:
        for source in self._inputs[key]:
            yield source
            yield from self._under(source)


def _rex(rex: Mapping[str, Any], read: Sequence[str]) -> str:
    """A column as it is, through casts and other names too; of anything else what it is computed from."""
    if rex["kind"] == "INPUT_REF":
        return read[rex["inputIndex"]]
    if rex.get("internalName") in _TRANSPARENT:
        return _rex(rex["operands"][0], read)
    return computed(_rex_leaves(rex, read))


def _rex_leaves(rex: Any, read: Sequence[str]) -> list[str]:
    if isinstance(rex, Mapping):
        if rex.get("kind") == "INPUT_REF":
            return [read[rex["inputIndex"]]]
        return [leaf for part in rex.values() for leaf in _rex_leaves(part, read)]
    return [leaf for part in rex for leaf in _rex_leaves(part, read)] if isinstance(rex, list) else []


def _flink_calls(calls: Sequence[Mapping[str, Any]], read: Sequence[str]) -> tuple[str, ...]:
    def name(one: Mapping[str, Any]) -> str:
        return str(one["internalName"].removesuffix("$1").strip("$"))

    return tuple(call(name(each), each["distinct"], (read[place] for place in each["argList"])) for each in calls)


def _bound(bound: Mapping[str, Any], width: int, constants: Sequence[Any]) -> Any:
    if bound["kind"] == "BOUNDED_WINDOW":
        return int(constants[bound["offset"]["inputIndex"] - width])
    return {"UNBOUNDED_PRECEDING": None, "CURRENT_ROW": 0}[bound["kind"]]


def _flink_window(node: Mapping[str, Any], read: Sequence[str]) -> tuple[Any, ...]:
    if "windowing" in node:
        window, time = node["windowing"]["window"], node["windowing"]["timeAttributeIndex"]
        return (_WINDOW_KINDS[window["type"]], "TIME", _length(window["size"]), None, None, read[time])
    window = node["window"]
    rows = window["kind"] != "SESSION" and not window["isTimeWindow"]
    lengths = (_length(window.get(name)) for name in ("size", "slide", "gap"))
    time = read[window["timeField"]["fieldIndex"]]
    return (_WINDOW_KINDS[window["kind"]], "ROWS" if rows else "TIME", *lengths, time)


def _length(written: Any) -> int | None:
    """Rows, or milliseconds."""
    if written is None or isinstance(written, int):
        return written
    match = _DURATION.fullmatch(written)
    assert match, written
    hours, minutes, seconds = (Decimal(part or 0) for part in match.groups())
    return int((hours * 3600 + minutes * 60 + seconds) * 1000)


# -- ours


def of_ours(output: Output, written_in_sql: bool) -> tuple[Told, ...]:
    """The operators below a sink, nearest the sink first."""
    return tuple(_our(operator, written_in_sql) for operator in operators(output))


def _our(operator: Operator, written_in_sql: bool) -> Told:
    match operator:
        case AggregateOperator():
            keys = tuple(sorted(map(_value, operator.keys)))
            window = _our_window(operator.window) if operator.window and operator.windowed else ()
            return Told(operator.kind, keys, window, tuple(map(_our_call, operator.aggregates)))
        case OverOperator():
            calls = operator.aggregates
            # SQL's planner takes sums and averages apart (measured); the Table API's leaves them.
            parts = [_taken_apart(each) for each in calls] if written_in_sql else [(_our_call(each),) for each in calls]
            flat = tuple(dict.fromkeys(each for part in parts for each in part))
            keys = tuple(map(_value, operator.partition_by))
            return Told(operator.kind, keys, _our_frame(operator.frame, operator.order[0][0]), flat)
        case JoinOperator():
            keys = tuple(sorted(f"{_value(one)} = {_value(other)}" for one, other in operator.keys))
            return Told(operator.kind, keys, (operator.join,), ())
    return Told(operator.kind, (), (), ())


def _taken_apart(one: AggregateCall) -> tuple[str, ...]:
    if one.function not in ("SUM", "AVG"):
        return (_our_call(one),)
    arguments = tuple(map(_value, one.args))
    return call("COUNT", one.distinct, arguments), call("SUM0", one.distinct, arguments)


def _our_call(one: AggregateCall) -> str:
    counts_rows = one.function == "COUNT" and all(isinstance(arg, Literal) for arg in one.args)
    return call(one.function, one.distinct, () if counts_rows else map(_value, one.args))


def _our_window(windowing: AssignedWindow) -> tuple[Any, ...]:
    window = windowing.window
    measure = "ROWS" if window.measure is Measure.ROWS else "TIME"
    return (window.kind.value, measure, window.size, window.slide, window.gap, _value(windowing.time))


def _our_frame(frame: Frame, time: Expression) -> tuple[Any, ...]:
    assert (frame.other, frame.window) == ("", None)
    return (frame.unit, frame.preceding, frame.following, _value(time))


def _value(value: Expression) -> str:
    match value:
        case SourceColumn(column=name):
            return name
        case OperatorColumn(output=output):
            return _output(output)
        case FunctionCall(function="CAST", args=(inner, *_)):
            return _value(inner)
        case FunctionCall():
            return computed(_leaves(value))
        case Literal():
            return computed(())
    raise AssertionError(f"{value} is not read here")


def _leaves(value: Expression) -> list[str]:
    if isinstance(value, FunctionCall):
        return [leaf for arg in value.args for leaf in _leaves(arg)]
    return [] if isinstance(value, Literal) else [_value(value)]


def _output(output: Any) -> str:
    match output:
        case KeyOutput(key=inner) | PassedOutput(column=inner):
            return _value(inner)
        case AggregateCall():
            return _our_call(output)
        case WindowColumn(field=field):
            return f"window.{field.value}"
        case ColumnOutput(index=place):
            return f"union {place}"
    return _value(output)
