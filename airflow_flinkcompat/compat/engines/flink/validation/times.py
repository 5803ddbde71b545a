"""Whether windows and an ORDER BY stand on a time attribute, as Flink demands; asked of a 2.3.0 planner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_flinkcompat.compat.engines.flink.validation.columns import written
from airflow_flinkcompat.compat.engines.flink.validation.fault import Fault
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan.expressions import Expression, InputRef
from airflow_flinkcompat.plan.nodes import (
    Filter,
    GroupWindowAggregate,
    Join,
    Node,
    Over,
    Project,
    Scan,
    Sort,
    Union,
    WindowAggregate,
    WindowAssign,
    walk_nodes,
)
from airflow_flinkcompat.plan.operators import JoinForm, JoinOperator, Output, operators
from airflow_flinkcompat.plan.ordering import HIDDEN_KEY
from airflow_flinkcompat.plan.program import Pipeline
from airflow_flinkcompat.plan.types import TIMESTAMPS, Column, TimeAttribute

_DECLARE = "declare WATERMARK FOR it, or take a column that has one"


def faults(pipeline: Pipeline) -> Iterator[Fault]:
    """What Flink refuses of the windows of a query, and of how it orders its rows.

    Args:
        pipeline: The INSERT. Of operations of the Table API nothing is said: those are refused in words of their own.

    Yields:
        The faults. In batch mode any column with a time will do, and rows are ordered by whatever there is.
    """
    if pipeline.steps:
        return
    settings = dict(pipeline.settings)
    mode = settings.get("execution.runtime-mode", "streaming").lower()
    root = pipeline.sink.input
    for node in walk_nodes(root):
        if isinstance(node, WindowAssign | GroupWindowAggregate) and node.time_attribute is None:
            yield from _window(node.input, node.time, mode)
    sort = _last_sort(root)
    if sort is not None and sort.keys and sort.limit is None and mode == "streaming" and not _sorts_anything(settings):
        yield from _order(sort)


def of_output(pipeline: Pipeline, output: Output) -> Iterator[Fault]:
    """Find more than one column of event time that goes into a sink."""
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
        yield Fault(
            "event times", f"several columns of event time go to sink {table.name}: {', '.join(names)}; {remedy}"
        )


def _event_times(node: Node, forms: Mapping[Span | None, JoinForm]) -> list[bool]:
    """Tell which columns of a node are event time for sure."""
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


def of_view(root: Node) -> Iterator[Fault]:
    """Find the windows of a view that are on no time; whether it is a time attribute is asked when a query reads it."""
    for node in walk_nodes(root):
        if isinstance(node, WindowAssign | GroupWindowAggregate) and node.time_attribute is None:
            yield from _window(node.input, node.time, mode="")


def _sorts_anything(settings: Mapping[str, str]) -> bool:
    return settings.get("table.exec.non-temporal-sort.enabled", "").lower() == "true"


def _window(below: Node, time: Expression, mode: str) -> Iterator[Fault]:
    column = _column(below, time)
    if column is None:
        return
    said = f"a window is on {column.name}, a {column.type.with_nullability(True)}"
    if column.type.name not in TIMESTAMPS:
        yield Fault("time of window", f"{said}, which is no time; {_DECLARE}")
    elif mode == "streaming":
        # Whether a column is still a time attribute behind other operators may be known less well here than by Flink.
        yield Fault("time of window", f"{said} without a watermark; {_DECLARE}", certain=isinstance(below, Scan))


def _last_sort(root: Node) -> Sort | None:
    """The ORDER BY of the query itself: that of a subquery Flink leaves out."""
    if isinstance(root, Project) and isinstance(root.input, Sort) and len(root.schema) < len(root.input.schema):
        return root.input if root.input.schema[-1].name.startswith(HIDDEN_KEY) else None
    return root if isinstance(root, Sort) else None


def _order(sort: Sort) -> Iterator[Fault]:
    key, ascending, _ = sort.keys[0]
    column = _column(sort.input, key)
    if column is None or (column.time_attribute is not None and ascending):
        return
    name = "what is not selected" if column.name.startswith(HIDDEN_KEY) else column.name
    said = f"rows are ordered by {name}{'' if ascending else ' DESC'}, and those of a stream have no end"
    remedy = "order them by a time attribute, ascending, or take a LIMIT"
    certain = column.type.name not in TIMESTAMPS or column.time_attribute is not None
    yield Fault("order", f"{said}; {remedy}", certain=certain)


def _column(below: Node, expression: Expression) -> Column | None:
    """The column that an expression names, where its type is known."""
    if not isinstance(expression, InputRef) or expression.index >= len(below.schema):
        return None
    column = below.schema[expression.index]
    return column if column.type.is_known else None
