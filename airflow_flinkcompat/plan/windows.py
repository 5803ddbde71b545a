"""Windows of a syntax tree: arguments, definitions, and window fields among the columns of a plan."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from sqlglot import exp

from airflow_flinkcompat.frontends import ProgramStatement
from airflow_flinkcompat.plan.catalog import BindError
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression, FunctionCall, InputRef, Literal, walk
from airflow_flinkcompat.plan.nodes import (
    Correlate,
    Filter,
    Measure,
    Node,
    Project,
    Sort,
    Window,
    WindowAggregate,
    WindowAssign,
    WindowField,
    WindowKind,
)
from airflow_flinkcompat.plan.scalars import GROUP_WINDOWS, ScalarBinder
from airflow_flinkcompat.plan.types import UNKNOWN, Column, DataType, TimeAttribute, timestamp
from airflow_flinkcompat.sql import Statement, nodes

PARAMETERS = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
_PROPERTIES = {
    "START": WindowField.START,
    "END": WindowField.END,
    "ROWTIME": WindowField.TIME,
    "PROCTIME": WindowField.PROCTIME,
}
_FIELDS = (WindowField.START, WindowField.END, WindowField.TIME)


def is_window_function(tree: nodes.TableFunction) -> bool:
    """True for TUMBLE, HOP, CUMULATE and SESSION in FROM."""
    return isinstance(tree.this, exp.Identifier) and tree.this.name.upper() in PARAMETERS


def is_group_window(tree: exp.Expression) -> bool:
    """True for the legacy calls of TUMBLE, HOP and SESSION in GROUP BY."""
    return isinstance(tree, exp.Anonymous) and tree.name.upper() in GROUP_WINDOWS


def window_property(tree: exp.Expression) -> WindowField | None:
    """The window field that TUMBLE_START or a similar call returns; None for other calls."""
    if not isinstance(tree, exp.Anonymous):
        return None
    head, _, tail = tree.name.upper().partition("_")
    return _PROPERTIES.get(tail) if head in GROUP_WINDOWS else None


def property_column(name: WindowField, time: DataType, attribute: TimeAttribute | None) -> Column:
    """The column for a field of a legacy group window."""
    if name in (WindowField.START, WindowField.END):
        return Column(name.value, timestamp(3))
    return Column(name.value, time if name is WindowField.TIME else UNKNOWN, attribute)


def window_columns(time: Column) -> tuple[Column, ...]:
    """Columns of the window fields. Bounds are always TIMESTAMP(3); window_time has its column's type."""
    return (
        Column(WindowField.START.value, timestamp(3)),
        Column(WindowField.END.value, timestamp(3)),
        Column(WindowField.TIME.value, time.type, time.time_attribute),
    )


def window_arguments(tree: nodes.TableFunction, scalars: ScalarBinder) -> dict[str, exp.Expression]:
    """The arguments of a windowing function by name, including positional arguments."""
    kind = tree.this.name.upper()
    names = PARAMETERS[kind]
    found: dict[str, exp.Expression] = {}
    for i, arg in enumerate(tree.expressions):
        if isinstance(arg, nodes.NamedArgument):
            name, arg = arg.this.name.upper(), arg.expression
        elif i < len(names):
            name = names[i]
        else:
            raise BindError("window", f"{kind} accepts at most {len(names)} arguments", scalars.span(tree))
        if name not in names or name in found:
            raise BindError("window", f"{kind} has no argument {name} here", scalars.span(arg))
        if isinstance(arg, exp.Table | exp.Subquery):
            arg = nodes.TableArgument(this=arg)
        found[name] = arg
    return found


def define_window(
    kind: WindowKind, args: Mapping[str, exp.Expression], tree: exp.Expression, scalars: ScalarBinder
) -> Window:
    """The window definition from length arguments; raise :class:`BindError` if one is missing or variable."""
    measures, lengths = {}, {}
    for name, arg in args.items():
        measures[name], lengths[name] = _length(arg, scalars)
    needed = set(PARAMETERS[kind]) - {"DATA", "TIMECOL", "OFFSET"}
    if missing := sorted(needed - lengths.keys()):
        raise BindError("window", f"{kind} lacks {', '.join(missing)}", scalars.span(tree))
    if len(set(measures.values())) > 1:
        raise BindError("window", "the lengths of a window must be of one kind, time or rows", scalars.span(tree))
    measure = measures[min(needed)]
    if measure is Measure.ROWS and kind not in (WindowKind.TUMBLE, WindowKind.HOP):
        raise BindError("window", f"{kind} cannot count rows: use TUMBLE or HOP", scalars.span(tree))
    return Window(
        kind,
        size=lengths.get("SIZE"),
        slide=lengths.get("SLIDE", lengths.get("STEP")),
        gap=lengths.get("GAP"),
        offset=lengths.get("OFFSET", 0),
        measure=measure,
    )


def group_window(call: exp.Anonymous, scalars: ScalarBinder) -> tuple[Expression, Window]:
    """The time column and the window definition in a call of a legacy group window or its fields."""
    kind = WindowKind(call.name.upper().partition("_")[0])
    names = {"TUMBLE": ("SIZE",), "HOP": ("SLIDE", "SIZE"), "SESSION": ("GAP",)}[kind.value]
    trees = call.expressions
    if len(trees) not in (len(names) + 1, len(names) + 2):
        raise BindError(
            "window", f"{kind} requires a time column and {' and '.join(names).lower()}", scalars.span(call)
        )
    window = define_window(kind, dict(zip((*names, "OFFSET"), trees[1:], strict=False)), call, scalars)
    return scalars.bind(trees[0]), window


def through_table_api(statement: Statement) -> bool:
    """True if a program created the queries of a statement through the Table API.

    The Table API has windows without SQL syntax: windows over rows, and row windows that end or look ahead.
    """
    return isinstance(statement, ProgramStatement) and bool(statement.query_steps)


def _length(tree: exp.Expression, scalars: ScalarBinder) -> tuple[Measure, int]:
    """The unit and length of a window argument; ``ROW_INTERVAL(n)`` is a length in rows."""
    if isinstance(tree, exp.Anonymous) and tree.name.upper() == "ROW_INTERVAL" and through_table_api(scalars.statement):
        rows = tree.expressions[0] if len(tree.expressions) == 1 else None
        if not isinstance(rows, exp.Literal) or not rows.name.isdecimal() or int(rows.name) == 0:
            raise BindError("window", "the number of rows in a window must be a constant above 0", scalars.span(tree))
        return Measure.ROWS, int(rows.name)
    value = scalars.bind(tree.this if isinstance(tree, exp.Paren) else tree)
    if not isinstance(value, Literal) or value.type.name != "INTERVAL_DAY_TIME" or not isinstance(value.value, int):
        raise BindError("window", "a window length must be a constant day-time interval", scalars.span(tree))
    return Measure.TIME, value.value


def aggregation_window(
    node: Node,
    keys: tuple[Expression, ...],
    sets: tuple[tuple[int, ...], ...] | None,
    calls: tuple[AggregateCall, ...] = (),
) -> Window | None:
    """The window of a windowed aggregation; None unless every grouping set has both bounds of one window."""
    found = [window_origin(node, key) for key in keys]
    for one in sets if sets is not None else (tuple(range(len(keys))),):
        bounds = [origin for i in one if (origin := found[i]) is not None]
        windows = {id(assign) for assign, _ in bounds}
        if len(windows) != 1 or not {WindowField.START, WindowField.END} <= {name for _, name in bounds}:
            return None
    assign = next(origin for origin in found if origin is not None)[0]
    used = (*keys, *[arg for call in calls for arg in call.args])
    # If the aggregation uses a computation on a window field, Flink materialises the window first (measured).
    return None if any(map(partial(_computes_on_window, node), used)) else assign.window


def window_origin(node: Node, expression: Expression) -> tuple[WindowAssign, WindowField] | None:
    """The windowing node and field of a column that is an unchanged window field; None for other columns."""
    while isinstance(expression, InputRef):
        match node:
            case Project():
                expression = node.expressions[expression.index]
                node = node.input
            case Filter() | Sort():
                node = node.input
            case Correlate():
                if expression.index >= len(node.input.schema):
                    return None
                node = node.input
            case WindowAssign():
                place = expression.index - len(node.input.schema)
                if place >= 0:
                    return node, _FIELDS[place]
                node = node.input
            case WindowAggregate():
                if expression.index >= len(node.keys):
                    return None
                # The aggregation passes its window on, so an aggregation on these fields runs on the same window.
                return window_origin(node.input, node.keys[expression.index])
            case _:
                return None
    return None


def _computes_on_window(node: Node, expression: Expression) -> bool:
    """True if this expression is, or reads, a computation on a window field."""
    if isinstance(expression, FunctionCall):
        parts = [part for part in walk(expression) if isinstance(part, InputRef)]
        return any(window_origin(node, p) is not None or _computes_on_window(node, p) for p in parts)
    while isinstance(expression, InputRef):
        if isinstance(node, Project):
            expression = node.expressions[expression.index]
            node = node.input
        elif isinstance(node, Filter | Sort) or (
            isinstance(node, Correlate) and expression.index < len(node.input.schema)
        ):
            node = node.input
        else:
            return False
    return isinstance(expression, FunctionCall) and _computes_on_window(node, expression)


def refusal(window: Window) -> str | None:
    """Flink's message if it refuses a windowing function with these lengths; None if it accepts them."""
    kind, size, slide, offset = window.kind, window.size, window.slide, window.offset
    match kind:
        case WindowKind.TUMBLE if size is not None and size <= 0:
            return f"TUMBLE table function based aggregate requires size to be positive, but got {size} ms"
        case WindowKind.TUMBLE if size is not None and abs(offset) >= size:
            return (
                "TUMBLE table function parameters must satisfy abs(offset) < size, "
                f"but got size {size} ms and offset {offset} ms"
            )
        case WindowKind.HOP if size is not None and slide is not None and min(size, slide) <= 0:
            return (
                "HOP table function based aggregate requires slide and size to be positive, "
                f"but got slide {slide} ms and size {size} ms"
            )
        case WindowKind.CUMULATE if size is not None and slide is not None and min(size, slide) <= 0:
            return (
                "CUMULATE table function based aggregate requires maxSize and step to be positive, "
                f"but got maxSize {size} ms and step {slide} ms"
            )
        case WindowKind.CUMULATE if size is not None and slide is not None and size % slide:
            return (
                "CUMULATE table function based aggregate requires maxSize must be an integral multiple of step, "
                f"but got maxSize {size} ms and step {slide} ms"
            )
    return None
