"""Compiler of SESSION windows, which applies filters where Flink's planner applies them.

The rules were measured with a streaming job of Flink 2.3; batch mode refuses sessions. An aggregation over
TABLE(SESSION(…)) cuts sessions itself. It uses only rows that pass all filters between the function and the
aggregation. If such a filter uses a window field, sessions are cut from all rows. Queries without an aggregation, and a
Top-N, always see the sessions of all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

from airflow_flinkcompat.backfill.compile import lateness
from airflow_flinkcompat.backfill.compile.context import CompileContext
from airflow_flinkcompat.backfill.compile.sink_columns import window_fields
from airflow_flinkcompat.backfill.result import FLINK_BATCH, Untranslatable
from airflow_flinkcompat.backfill.spark_sql.expressions import grouped, references
from airflow_flinkcompat.backfill.steps import AssignSessions
from airflow_flinkcompat.plan.expressions import (
    Expression,
    FunctionCall,
    InputRef,
    Literal,
    conjuncts,
    through,
    transform,
)
from airflow_flinkcompat.plan.nodes import (
    Filter,
    GroupWindowAggregate,
    Node,
    Over,
    Project,
    Sink,
    WindowAggregate,
    WindowAssign,
    WindowKind,
    walk_nodes,
)

_NULLNESS = ("IS NULL", "IS NOT NULL")
_CONSTANT = ("=", "IS NOT DISTINCT FROM", "IN")


def session_rows(
    context: CompileContext,
    node: WindowAssign | GroupWindowAggregate,
    time: InputRef,
    zone: str,
    needed: frozenset[int],
) -> AssignSessions:
    below, gap = node.input, node.window.gap
    if not gap or gap < 0:
        raise Untranslatable("SESSION needs a gap greater than zero", node.span)
    keys = node.partition_by if isinstance(node, WindowAssign) else node.keys
    width = len(below.schema)
    wanted = frozenset(i for i in needed if i < width) | {time.index} | references(keys)
    # Rows near the requested windows affect where the windows begin and end.
    drops = lateness.session_drops(context, node)
    body = context.under({}).following_arrival(drops).compile(below, wanted)
    partition = tuple(grouped(key) for key in keys)
    counted, asked = context.own if drops else None, context.requested_windows(node)
    windows = asked.within(context.own)
    return AssignSessions(body, time.index, width, gap * 1000, partition, windows, zone, counted, asked)


# --- aggregations that cut sessions themselves ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Chain:
    """Nodes between an aggregation and its sessions. Conditions and keys use columns of the session node."""

    assign: WindowAssign
    conditions: tuple[Expression, ...]
    keys: tuple[Expression, ...]

    @classmethod
    def of(cls, node: WindowAggregate) -> _Chain | None:
        below: Node = node.input
        conditions: tuple[Expression, ...] = ()
        keys: tuple[Expression, ...] = node.keys
        while isinstance(below, Project | Filter):
            if isinstance(below, Filter):
                conditions += conjuncts(below.condition)
            else:
                leaf = through(below.expressions)
                conditions, keys = (tuple(transform(part, leaf) for part in parts) for parts in (conditions, keys))
            below = below.input
        if not isinstance(below, WindowAssign):
            return None
        return cls(below, tuple(part for each in conditions for part in conjuncts(each)), keys)

    @property
    def on_windows(self) -> tuple[Expression, ...]:
        """Conditions that use a field of the window."""
        width = len(self.assign.input.schema)
        return tuple(part for part in self.conditions if any(i >= width for i in references([part])))


def _is_session(node: Node) -> bool:
    return isinstance(node, WindowAggregate) and node.window.kind is WindowKind.SESSION


def place_session_filters(sink: Sink, done: dict[int, Node]) -> Sink:
    """Move filters to the place where they take effect: the input of a SESSION that an aggregation cuts."""
    for node in walk_nodes(sink):
        if isinstance(node, WindowAggregate) and _is_session(node):
            _check(node, sink)
        if isinstance(node, Over):
            _check_ranked(node)
    found = _settled(sink, done)
    assert isinstance(found, Sink)
    return found


def _settled(node: Node, done: dict[int, Node]) -> Node:
    known = done.get(id(node))
    if known is not None:
        return known
    found = _with_inputs(node, tuple(_settled(below, done) for below in node.inputs))
    if isinstance(found, WindowAggregate) and _is_session(found):
        chain = _Chain.of(found)
        if chain is not None and chain.conditions and not chain.on_windows:
            found = replace(found, input=_filtered(found.input, chain))
    done[id(node)] = found
    return found


def _with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    if all(new is old for new, old in zip(inputs, node.inputs, strict=True)):
        return node
    replaced = iter(inputs)
    changed: dict[str, object] = {}
    for field in fields(node):
        value = getattr(node, field.name)
        if value is not None and any(value is below for below in node.inputs):
            changed[field.name] = next(replaced)
        elif isinstance(value, tuple) and value and all(any(each is below for below in node.inputs) for each in value):
            changed[field.name] = tuple(next(replaced) for _ in value)
    return replace(node, **changed)  # type: ignore[arg-type]


def _filtered(node: Node, chain: _Chain) -> Node:
    """Copy the chain, but apply its conditions to the input rows of the SESSION window."""
    if isinstance(node, Project | Filter):
        return replace(node, input=_filtered(node.input, chain))
    assert isinstance(node, WindowAssign)
    below: Node = node.input
    for condition in chain.conditions:
        below = Filter(below, condition, span=condition.span or node.span)
    return replace(node, input=below)


def _check(node: WindowAggregate, sink: Sink) -> None:
    """Raise :class:`Untranslatable` unless Flink certainly plans a windowed aggregation."""
    chain = _Chain.of(node)
    if chain is None:
        raise Untranslatable(
            (
                "a backfill recomputes an aggregation over a SESSION only if it reads the session's rows "
                f"directly; {FLINK_BATCH}"
            ),
            node.span,
        )
    width = len(chain.assign.input.schema)
    keys = {key for key in chain.keys if not (isinstance(key, InputRef) and key.index >= width)}
    partition = set(chain.assign.partition_by)
    fixed = {key for part in chain.conditions for key in _fixed(part)}
    if {key for key in keys if not isinstance(key, Literal)} != partition or fixed & partition:
        raise Untranslatable(
            "Flink plans a windowed aggregation of a SESSION only if its keys are exactly window_start, "
            "window_end and the keys of its PARTITION BY, and no condition fixes a key to a value",
            node.span,
        )
    if not chain.conditions:
        return
    unclear = [part for part in chain.on_windows if isinstance(part, FunctionCall) and part.function in _NULLNESS]
    rows_too = len(chain.on_windows) < len(chain.conditions)
    above = [filter for filter in walk_nodes(sink) if isinstance(filter, Filter) and _reads_window(filter, node)]
    if rows_too and (above or unclear):
        raise Untranslatable(
            "one filter is on the rows and another is on the window of a SESSION. Flink's planner decides if "
            "rows are filtered before or after sessions are merged. Filter the rows in the table that SESSION "
            "reads",
            above[0].span if above else node.span,
        )


def _fixed(condition: Expression) -> Iterator[Expression]:
    """Columns that a condition restricts to a single value."""
    if isinstance(condition, FunctionCall) and condition.function in _CONSTANT and len(condition.args) == 2:
        left, right = condition.args
        if isinstance(right, Literal):
            yield left
        if isinstance(left, Literal):
            yield right
    if isinstance(condition, FunctionCall) and condition.function == "IS NULL":
        yield condition.args[0]


def _reads_window(filter: Filter, below: Node) -> bool:
    """True if a filter on the output of an aggregation uses a window field of the aggregation."""
    if not any(node is below for node in walk_nodes(filter.input)):
        return False
    return any(window_fields(filter.input, i) - {None} for i in references([filter.condition]))


def _check_ranked(node: Over) -> None:
    """Check a Top-N over sessions.

    Flink distinguishes sessions only by their ends, which may be equal (measured).
    """
    sessions = [
        below
        for below in walk_nodes(node.input)
        if isinstance(below, WindowAssign | GroupWindowAggregate) and below.window.kind is WindowKind.SESSION
    ]
    for session in sessions:
        keys = session.partition_by if isinstance(session, WindowAssign) else session.keys
        places = {place for key in node.calls[0].partition_by for place in _places(node.input, key, session)}
        if not set(keys) <= places:
            raise Untranslatable(
                "a Top-N of sessions needs the sessions' keys in its PARTITION BY. Without these keys, Flink "
                "ranks all sessions together that end at the same time",
                node.span,
            )


def _places(node: Node, key: Expression, session: Node) -> Iterator[Expression]:
    """Rewrite a column in columns of a SESSION's input; yield nothing if there is no such column."""
    while isinstance(key, InputRef):
        if isinstance(node, Project):
            key, node = node.expressions[key.index], node.input
        elif isinstance(node, Filter):
            node = node.input
        elif isinstance(node, WindowAggregate) and key.index < len(node.keys):
            key, node = node.keys[key.index], node.input
        elif isinstance(node, GroupWindowAggregate) and node is session and key.index < len(node.keys):
            yield node.keys[key.index]
            return
        elif isinstance(node, WindowAssign) and node is session:
            yield key
            return
        else:
            return
