"""Faults in the columns of an INSERT, in event times, and in joins FOR SYSTEM_TIME AS OF."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from airflow_flinkcompat.compat.engines.flink.validation import Fault
from airflow_flinkcompat.compat.engines.flink.validation.functions import is_implicitly_cast
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan.expressions import (
    ACCESSES,
    Expression,
    FunctionCall,
    InputRef,
    conjuncts,
    through,
    transform,
    walk,
)
from airflow_flinkcompat.plan.nodes import (
    Filter,
    GroupWindowAggregate,
    Join,
    Node,
    Opaque,
    Over,
    Project,
    Scan,
    Sink,
    Sort,
    Table,
    Union,
    WindowAggregate,
    WindowAssign,
    walk_nodes,
)
from airflow_flinkcompat.plan.operators import JoinForm, JoinOperator, Output, operators
from airflow_flinkcompat.plan.ordering import HIDDEN_KEY
from airflow_flinkcompat.plan.program import Pipeline
from airflow_flinkcompat.plan.scalars import time_attribute_of
from airflow_flinkcompat.plan.types import TIMESTAMPS, Column, TimeAttribute


def column_faults(sink: Sink) -> Iterator[Fault]:
    """Faults in the columns of an INSERT; none for undeclared tables or partly unread queries."""
    table = sink.table
    if table is None or not table.declared or not _read_whole(sink):
        return
    columns = written(table)
    named = {column.name: column for column in columns}
    fixed = {name for name, value in sink.partition if value}
    if sink.columns:
        if found := list(_list(sink, table, named, fixed)):
            yield from found
            return
        targets: Sequence[Column] = [named[name] for name in sink.columns if name in named]
        if len(targets) < len(sink.columns):  # for example, fields of a ROW column
            return
    else:
        targets = [column for column in columns if column.name not in fixed]
    if len(sink.schema) != len(targets):
        given, wanted = len(sink.schema), ", ".join(column.name for column in targets)
        yield Fault(
            "number of columns",
            (
                f"the query returns {given} column{'' if given == 1 else 's'}, but sink {table.name} expects "
                f"{len(targets)} ({wanted}); return one value for each column, or list the columns after the sink's "
                f"name"
            ),
        )
        return
    for column, target in zip(sink.schema, targets, strict=True):
        if is_implicitly_cast(column.type, target.type) is False:
            yield Fault(
                f"type of {target.name}",
                (
                    f"the query returns a {_type(column)} for column {target.name} of sink {table.name}, which is a "
                    f"{_type(target)}; CAST the value, or declare the column with the type of the query"
                ),
            )


def written(table: Table) -> tuple[Column, ...]:
    """Columns of a sink that an INSERT fills: neither computed columns nor VIRTUAL metadata."""
    metadata = {name for name, _, virtual in table.metadata if not virtual}
    return tuple(column for column in table.columns if column.name in table.physical or column.name in metadata)


def _type(column: Column) -> str:
    return str(column.type.with_nullability(True))


def _read_whole(sink: Sink) -> bool:
    """True if all columns of the query are known."""
    for node in sink.nodes:
        if (isinstance(node, Opaque) and node.reason) or (isinstance(node, Scan) and not node.table.declared):
            return False
    return True


def _list(sink: Sink, table: Table, named: dict[str, Column], fixed: set[str]) -> Iterator[Fault]:
    """Faults of the column list after a sink's name."""
    for name in dict.fromkeys(sink.columns):
        if name not in named and "." not in name:
            yield Fault(
                "column list",
                f"sink {table.name} has no column {name} to write to; use one of the sink's columns",
                of_name=True,
            )
        if sink.columns.count(name) > 1:
            yield Fault("column list", f"column {name} of sink {table.name} is listed twice; list it once")
    for column in named.values():
        needed = not column.type.nullable or column.name in table.primary_key
        whole = (name for name in (*sink.columns, *fixed) if name.partition(".")[0] == column.name)
        if needed and not any(whole):
            yield Fault(
                "column list",
                (
                    f"column {column.name} of sink {table.name} does not accept NULL, but the INSERT does not list "
                    "it; list the column, or make it nullable"
                ),
            )


_REFUSED = ("RIGHT", "FULL")


_EQUALITIES = ("=", "IS NOT DISTINCT FROM")


def temporal_join_faults(root: Node) -> Iterator[Fault]:
    """Faults that Flink finds in a query's joins FOR SYSTEM_TIME AS OF."""
    yield from _below(root, ())


def _below(node: Node, above: Sequence[Expression]) -> Iterator[Fault]:
    """Faults of a node and its inputs. ``above`` are downstream WHERE conditions on the node's columns."""
    match node:
        case Filter():
            yield from _below(node.input, (*above, *conjuncts(node.condition)))
        case Project():
            computed = through(node.expressions)
            yield from _below(node.input, [transform(part, computed) for part in above])
        case Join():
            width = len(node.left.schema)
            if node.temporal is not None:
                yield from _of(node, above)
            yield from _below(node.left, [part for part in above if _sides(part, width) == {True}])
            right = _shifted(width)
            yield from _below(node.right, [transform(part, right) for part in above if _sides(part, width) == {False}])
        case _:
            for each in node.inputs:
                yield from _below(each, ())


def _of(join: Join, above: Sequence[Expression]) -> Iterator[Fault]:
    own = () if join.condition is None else conjuncts(join.condition)
    by_event_time = join.temporal is not None and time_attribute_of(join.temporal, join.schema)
    # The key of a temporal join is only in ON; the key of a lookup join may also be in WHERE.
    compared = own if by_event_time is TimeAttribute.ROWTIME else (*own, *above)
    width = len(join.left.schema)
    keys = [key for part in compared if (key := _key(part, width)) is not None]
    if join.kind in _REFUSED:
        yield Fault("kind of join", f"a join FOR SYSTEM_TIME AS OF cannot be a {join.kind} JOIN; use INNER or LEFT")
    elif not keys:
        yield Fault(
            "key of join",
            "a join FOR SYSTEM_TIME AS OF does not compare columns of both sides with =; compare the key columns",
        )
    elif not any(_is_stored(key) for key in keys):
        message = "the key of a join FOR SYSTEM_TIME AS OF is computed; compare a column of the joined table itself"
        yield Fault("key of join", message, certain=False)


def _is_stored(key: Expression) -> bool:
    return isinstance(key, InputRef) or (isinstance(key, FunctionCall) and key.function in ACCESSES)


def _key(part: Expression, width: int) -> Expression | None:
    """The operand of an equality that reads only the right input, if the other reads only the left input."""
    if not isinstance(part, FunctionCall) or part.function not in _EQUALITIES:
        return None
    sides = [_sides(arg, width) for arg in part.args]
    return part.args[sides.index({False})] if {True} in sides and {False} in sides else None


def _shifted(width: int) -> Callable[[Expression], Expression]:
    return lambda leaf: replace(leaf, index=leaf.index - width) if isinstance(leaf, InputRef) else leaf


def _sides(expression: Expression, width: int) -> set[bool]:
    return {part.index < width for part in walk(expression) if isinstance(part, InputRef)}


_DECLARE = "declare WATERMARK FOR this column, or use a column with a watermark"


def time_faults(pipeline: Pipeline) -> Iterator[Fault]:
    """Faults in the windows and the row order of a SQL query.

    In batch mode, a window may be over any time column, and rows may be ordered by any column.
    """
    if pipeline.steps:
        return
    settings = dict(pipeline.settings)
    mode = settings.get("execution.runtime-mode", "streaming").lower()
    for node in pipeline.sink.nodes:
        if isinstance(node, WindowAssign | GroupWindowAggregate) and node.time_attribute is None:
            yield from _window(node.input, node.time, mode)
    sort = _last_sort(pipeline.sink.input)
    if sort is not None and sort.keys and sort.limit is None and mode == "streaming" and not _sorts_anything(settings):
        yield from _order(sort)


def output_time_faults(pipeline: Pipeline, output: Output) -> Iterator[Fault]:
    """The fault of several event-time columns that go to one sink."""
    table = pipeline.sink.table
    if table is None or not table.declared:
        return
    forms = {operator.span: operator.form for operator in operators(output) if isinstance(operator, JoinOperator)}
    fixed = {name for name, value in pipeline.sink.partition if value}
    columns = {column.name: column for column in written(table) if column.name not in fixed}
    targets = [columns[name] for name in pipeline.sink.columns if name in columns] or list(columns.values())
    flags = _event_times(pipeline.sink.input, forms)
    names = [
        column.name
        for column, flag, target in zip(pipeline.sink.schema, flags, targets, strict=False)
        if flag and column.type.with_nullability(True) == target.type.with_nullability(True)  # a CAST ends event time
    ]
    if len(names) > 1:
        remedy = f"CAST all but one to {pipeline.sink.schema[flags.index(True)].type.with_nullability(True)}"
        yield Fault("event times", f"several event-time columns go to sink {table.name}: {', '.join(names)}; {remedy}")


def _event_times(node: Node, forms: Mapping[Span | None, JoinForm]) -> list[bool]:
    """Flags for the columns of a node: True if a column is certainly event time."""
    declared = [column.time_attribute is TimeAttribute.ROWTIME for column in node.schema]
    match node:
        case Scan() | WindowAggregate():
            return declared
        case GroupWindowAggregate():
            return [flag and place >= len(node.keys) for place, flag in enumerate(declared)]
        case Project():
            below = _event_times(node.input, forms)
            return [isinstance(each, InputRef) and below[each.index] for each in node.expressions]
        case Filter() | Sort():
            return _event_times(node.input, forms)
        case Over():
            return [*_event_times(node.input, forms), *[False] * len(node.calls)]
        case WindowAssign():
            below = _event_times(node.input, forms)
            return [*below, *declared[len(below) :]]
        case Union():
            branches = [_event_times(each, forms) for each in node.branches]
            return [all(flags) for flags in zip(*branches, strict=True)]
        case Join() if node.temporal is not None:
            return [*_event_times(node.left, forms), *[False] * len(node.right.schema)]
        case Join() if forms.get(node.span) in (JoinForm.INTERVAL, JoinForm.WINDOW):
            return [*_event_times(node.left, forms), *_event_times(node.right, forms)]
    return [False] * len(node.schema)


def view_time_faults(root: Node) -> Iterator[Fault]:
    """Faults of windows in a view: columns without a time type. Checks of queries cover time attributes."""
    for node in walk_nodes(root):
        if isinstance(node, WindowAssign | GroupWindowAggregate) and node.time_attribute is None:
            yield from _window(node.input, node.time, mode="")


def _sorts_anything(settings: Mapping[str, str]) -> bool:
    return settings.get("table.exec.non-temporal-sort.enabled", "").lower() == "true"


def _window(below: Node, time: Expression, mode: str) -> Iterator[Fault]:
    column = _column(below, time)
    if column is None:
        return
    text = f"a window is on {column.name}, a {column.type.with_nullability(True)}"
    if column.type.name not in TIMESTAMPS:
        yield Fault("time of window", f"{text}, which is not a time type; {_DECLARE}")
    elif mode == "streaming":
        # After other operators, Flink may know better if a column is still a time attribute.
        yield Fault("time of window", f"{text} without a watermark; {_DECLARE}", certain=isinstance(below, Scan))


def _last_sort(root: Node) -> Sort | None:
    """The outermost ORDER BY of a query; None if there is none. Flink ignores the ORDER BY of a subquery."""
    if isinstance(root, Project) and isinstance(root.input, Sort) and len(root.schema) < len(root.input.schema):
        return root.input if root.input.schema[-1].name.startswith(HIDDEN_KEY) else None
    return root if isinstance(root, Sort) else None


def _order(sort: Sort) -> Iterator[Fault]:
    key, ascending, _ = sort.keys[0]
    column = _column(sort.input, key)
    if column is None or (column.time_attribute is not None and ascending):
        return
    name = "an expression that is not selected" if column.name.startswith(HIDDEN_KEY) else column.name
    text = f"rows are ordered by {name}{'' if ascending else ' DESC'}, but a stream has no end"
    remedy = "order rows by a time attribute, ascending, or add a LIMIT"
    certain = column.type.name not in TIMESTAMPS or column.time_attribute is not None
    yield Fault("order", f"{text}; {remedy}", certain=certain)


def _column(below: Node, expression: Expression) -> Column | None:
    """The column that an expression refers to; None if the type of the column is unknown."""
    if not isinstance(expression, InputRef) or expression.index >= len(below.schema):
        return None
    column = below.schema[expression.index]
    return column if column.type.is_known else None
