"""Reader of Flink's compiled plans, which converts their JSON to exec nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from airflow_flinkcompat.exec_graph.kinds import ExecKind
from airflow_flinkcompat.savepoint.binary_row import named_type, type_arguments

_KIND = re.compile(r"(?:stream|batch)-exec-(?P<kind>.+)_\d+")
_DURATION = re.compile(r"PT(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?\d+(?:\.\d+)?)S)?")
ROWTIME, PROCTIME = "ROWTIME", "PROCTIME"
_TIME_ATTRIBUTE = re.compile(rf'"kind": "({ROWTIME}|{PROCTIME})"')
_WINDOWINGS = frozenset(("windowing", "leftWindowing", "rightWindowing"))


class PlanError(ValueError):
    """Raised if a text is not a valid compiled plan; the message states the fault."""


@dataclass(frozen=True, eq=False)
class ExecNode:
    """An exec node: its kind, its description, and the rest of its JSON in ``config``.

    ``names`` and ``types`` describe the output columns. ``inputs`` are positions in :attr:`CompiledPlan.nodes`.
    """

    place: int
    kind: ExecKind
    description: str
    config: Mapping[str, Any]
    names: tuple[str, ...]
    types: tuple[str, ...]
    inputs: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class CompiledPlan:
    """The compiled plan of one job; ``version`` is the Flink version that compiled it, such as 2.3."""

    version: str
    nodes: tuple[ExecNode, ...]

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the positions of the nodes that read its output."""
        readers: list[list[int]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for place in node.inputs:
                readers[place].append(node.place)
        return tuple(map(tuple, readers))


def call_function(call: Mapping[str, Any]) -> str:
    """The name of the function that a call uses."""
    own = call.get("internalName")
    if own is None:
        named = (call.get(key) for key in ("catalogName", "systemName", "class"))
        return next(filter(None, named), "a function").rpartition(".")[2].strip("`")
    return str(own.removesuffix("$1").strip("$").removesuffix("$1"))


def last_name(identifier: str) -> str:
    """The name of a table, without its catalog and database."""
    return identifier.rpartition(".")[2].strip("`")


def read_plan(text: str) -> CompiledPlan:
    """Read a plan written by ``COMPILE PLAN``."""
    try:
        data = json.loads(text)
        rows = data["nodes"]
        places = {row["id"]: place for place, row in enumerate(rows)}
        inputs: dict[int, list[int]] = {place: [] for place in places.values()}
        for edge in data["edges"]:
            inputs[places[edge["target"]]].append(places[edge["source"]])
        nodes = tuple(_node(place, row, tuple(inputs[place])) for place, row in enumerate(rows))
        version = str(data["flinkVersion"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PlanError(f"this is not a compiled plan of Flink ({type(error).__name__}: {error})") from None
    if not nodes:
        raise PlanError("the compiled plan contains no operators")
    if any(place >= node.place for node in nodes for place in node.inputs):
        raise PlanError("the compiled plan lists an operator before its inputs")
    return CompiledPlan(version, nodes)


_TABLES = frozenset({"dynamicTableSink", "scanTableSource"})


def _node(place: int, row: Mapping[str, Any], inputs: tuple[int, ...]) -> ExecNode:
    match = _KIND.fullmatch(row["type"])
    kind = ExecKind(match["kind"] if match else row["type"])
    names, types = row_type(row["outputType"])
    # All other JSON fields configure the node.
    config = {key: value for key, value in row.items() if key not in ("id", "type", "description", "outputType")}
    for key in _WINDOWINGS & config.keys():
        config[key] = {**config[key], "window": _assigned(config[key]["window"])}
    for key in _TABLES & config.keys():
        config[key] = {**config[key], "table": _without_empty(config[key]["table"])}
    return ExecNode(place, kind, row.get("description", kind), config, names, types, inputs)


def _without_empty(part: Any) -> Any:
    """Remove empty parts of a declared table, which only Flink 2.2 and earlier versions write."""
    if not isinstance(part, Mapping):
        return part
    return {key: _without_empty(each) for key, each in part.items() if key == "options" or each not in ([], {})}


def _assigned(window: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce a window's offset to less than one period, which has the same effect (measured)."""
    period = window.get("slide") or window.get("maxSize") or window.get("size")
    rest = {key: part for key, part in window.items() if key != "offset"}
    if not window.get("offset") or not period:
        return rest
    length = seconds(period)
    offset = (seconds(window["offset"]) % length + length) % length  # not negative
    return {**rest, "offset": str(offset)} if offset else rest


def seconds(duration: str) -> Decimal:
    """The length of a duration in seconds."""
    match = _DURATION.fullmatch(duration)
    if not match:
        raise ValueError(f"{duration!r} is not a duration")
    hours, minutes, seconds = (Decimal(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def row_type(written: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names and types of the fields of a row type, in SQL notation or JSON."""
    if isinstance(written, str):
        fields = [named_type(text) for text in type_arguments(written)]
        return tuple(name for name, _ in fields), tuple(kind for _, kind in fields)
    if written["type"] != "ROW":
        raise ValueError(f"{written['type']} is not a row type")
    return (
        tuple(field["name"] for field in written["fields"]),
        tuple(type_text(field["fieldType"]) for field in written["fields"]),
    )


def type_text(written: Any) -> str:
    """A type as text, including the kind of a time attribute."""
    return written if isinstance(written, str) else json.dumps(written, sort_keys=True)


def time_attribute(type: str) -> str:
    """The kind of a time attribute, ``ROWTIME`` or ``PROCTIME``; "" for other types."""
    found = _TIME_ATTRIBUTE.search(type)
    return found[1] if found else ""
