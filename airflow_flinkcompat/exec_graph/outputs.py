"""Uses of an operator's columns by downstream operators and sinks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, ExecNode
from airflow_flinkcompat.exec_graph.kinds import ExecKind, Trait
from airflow_flinkcompat.exec_graph.nodes.sink import sink_columns
from airflow_flinkcompat.exec_graph.streams import is_stateless

Columns = frozenset[int]


def column_uses(plan: CompiledPlan, node: ExecNode) -> tuple[frozenset[Columns], Columns]:
    """Columns that downstream operators combine into one value, and columns that they filter or rank by."""
    co_dependent_calls: set[Columns] = set()
    filtering_calls: set[int] = set()
    own = [frozenset({place}) for place in range(len(node.names))]
    reached = [(reader, node.place, own) for reader in plan.readers[node.place]]
    while reached:
        place, read, columns = reached.pop()
        reader = plan.nodes[place]
        if reader.kind in (ExecKind.MATCH, ExecKind.SINK) or Trait.AGGREGATES in reader.kind.traits:
            filtering_calls |= frozenset().union(*_at(reader.config.get("grouping") or (), columns))
            co_dependent_calls |= {
                frozenset().union(*_at(columns_of_call(call), columns)) for call in reader.config.get("aggCalls") or ()
            }
            continue
        if not is_stateless(reader):
            places = [place for place in _ranked_by(reader) if place < len(columns)]
            filtering_calls |= frozenset().union(*(columns[place] for place in places))
            columns = _appended_origins(plan, reader, read, columns)
        elif reader.kind is ExecKind.CALC:
            filtering_calls |= _used(reader.config.get("condition"), columns)
            columns = [_used(rex, columns) for rex in reader.config["projection"]]
            co_dependent_calls |= set(columns)
        elif Trait.PASSES_COLUMNS not in reader.kind.traits:
            # Every column may affect the result of a table function, a lookup or grouping sets.
            filtering_calls |= frozenset().union(*columns)
            continue
        reached += [(above, place, columns) for above in plan.readers[place]]
    return frozenset(co_dependent_calls), frozenset(filtering_calls)


def outputs_of(plan: CompiledPlan, node: ExecNode) -> frozenset[tuple[str, Columns]]:
    """Pairs of a sink column and the operator's columns from which it is computed."""
    found: set[tuple[str, Columns]] = set()
    own = [frozenset({place}) for place in range(len(node.names))]
    reached = [(reader, node.place, own) for reader in plan.readers[node.place]]
    while reached:
        place, read, columns = reached.pop()
        reader = plan.nodes[place]
        if reader.kind is ExecKind.SINK:
            found |= {(name, of) for name, of in zip(sink_columns(reader), columns, strict=False) if of}
            continue
        reached += [(above, place, _column_origins(plan, reader, read, columns)) for above in plan.readers[place]]
    return frozenset(found)


def _column_origins(plan: CompiledPlan, reader: ExecNode, read: int, columns: list[Columns]) -> list[Columns]:
    """For each output column of a reader, the input columns from which it is computed."""
    # A global aggregation refers to the input columns of its local aggregation.
    if reader.kind.traits & (Trait.LOCAL | Trait.PASSES_COLUMNS):
        return columns
    if reader.kind is ExecKind.CALC:
        return [_used(rex, columns) for rex in reader.config["projection"]]
    if Trait.AGGREGATES in reader.kind.traits:
        keys = _at(reader.config.get("grouping") or (), columns)
        calls = [frozenset[int]().union(*_at(columns_of_call(call), columns)) for call in reader.config["aggCalls"]]
        return _filled_up([*keys, *calls], reader, frozenset())
    if reader.kind is ExecKind.OVER_AGGREGATE:
        asked = [call for group in reader.config["overSpec"]["groups"] for call in group["aggCalls"]]
        return [*columns, *(frozenset[int]().union(*_at(columns_of_call(call), columns)) for call in asked)]
    if not is_stateless(reader) and reader.kind is not ExecKind.MATCH:
        return _appended_origins(plan, reader, read, columns)
    if len(reader.names) < len(columns) or reader.kind in (ExecKind.EXPAND, ExecKind.MATCH):
        return [frozenset[int]().union(*columns)] * len(reader.names)
    of_window = reader.kind is ExecKind.WINDOW_TABLE_FUNCTION
    return _filled_up(columns, reader, frozenset() if of_window else frozenset[int]().union(*columns))


def _filled_up(columns: Sequence[Columns], reader: ExecNode, own: Columns) -> list[Columns]:
    """Append the columns that the reader adds."""
    return [*columns, *[own] * (len(reader.names) - len(columns))]


def columns_of_call(call: Mapping[str, Any]) -> list[int]:
    """The columns that a call reads."""
    condition = call.get("filterArg", -1)
    return [*(call.get("argList") or ()), *([condition] if condition >= 0 else [])]


def _at(places: Iterable[int], columns: Sequence[Columns]) -> list[Columns]:
    return [columns[place] for place in places if place < len(columns)]


def _appended_origins(plan: CompiledPlan, reader: ExecNode, read: int, columns: Sequence[Columns]) -> list[Columns]:
    """The origins of the output columns of a ranking, join or OVER, which outputs all input columns.

    Columns that the operator adds have no origin. A lookup join may output only the columns of the left side. If the
    output has fewer columns than the inputs, each output column gets the origins of all input columns.
    """
    sides = [columns if place == read else [frozenset[int]()] * len(plan.nodes[place].names) for place in reader.inputs]
    whole = [column for side in sides for column in side]
    if len(reader.names) >= len(whole):
        return _filled_up(whole, reader, frozenset())
    return [frozenset().union(*whole)] * len(reader.names)


def _ranked_by(reader: ExecNode) -> Iterator[int]:
    """The columns by which a ranking selects rows."""
    for key in ("orderBy", "partition", "partitionSpec", "sortSpec"):
        fields = reader.config.get(key) or ()
        fields = fields.get("fields", ()) if isinstance(fields, Mapping) else fields
        yield from (each["index"] if isinstance(each, Mapping) else each for each in fields)


def _used(rex: Any, columns: Sequence[Columns]) -> Columns:
    places = set(_references(rex))
    return frozenset().union(*(columns[place] for place in places if place < len(columns)))


def _references(rex: Any) -> Iterator[int]:
    if isinstance(rex, Mapping):
        if rex.get("kind") == "INPUT_REF":
            yield rex["inputIndex"]
        for part in rex.values():
            yield from _references(part)
    elif isinstance(rex, list):
        for part in rex:
            yield from _references(part)
