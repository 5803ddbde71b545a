"""Rules of Flink's validator for Table API windows and aggregates, and traps that Flink accepts.

The rules V1 to V3 of FLIP-11's validator are as in PyFlink 2.3.0, with PyFlink's messages. Each rule is a pure function
that raises :class:`RefusedByFlink` with the fault and the remedy. Rules that need the columns of tables apply only if
the columns are known.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from airflow_flinkcompat.frontends.table_api import expression_sql as e
from airflow_flinkcompat.frontends.table_api.values import Expr, GroupedTable, NotRead, Spec

NAMES: Mapping[str, str] = {
    "Tumble": "a tumbling window",
    "Slide": "a sliding window",
    "Session": "a session window",
    "Over": "a row window",
}
LENGTHS = ("over", "every", "with_gap")
_ORDER: Mapping[str, tuple[str, ...]] = {
    "Tumble": ("over", "on", "alias"),
    "Slide": ("over", "every", "on", "alias"),
    "Session": ("with_gap", "on", "alias"),
}
_NEEDED: Mapping[str, str] = {
    "over": ".over(lit(10).minutes) or .over(row_interval(10))",
    "every": ".every(lit(2).minutes) or .every(row_interval(2))",
    "with_gap": ".with_gap(lit(10).minutes)",
    "on": '.on(col("ts")) with the time attribute, also for processing time and windows of rows',
    "alias": '.alias("w")',
    "order_by": '.order_by(col("ts")) with the time attribute',
    "preceding": ".preceding(…)",
}
_NUMBER = re.compile(r"\(?-?[\d.]+(E0|e-?\d+)?\)?")


class RefusedByFlink(NotRead):
    """Error for a part of the program, at ``node``, that Flink refuses."""

    node: ast.AST | None = None


def called(node: ast.AST) -> ast.AST:
    """The place of the last call ``c(…)`` in a chain ``a.b(…).c(…)``."""
    attribute = node.func if isinstance(node, ast.Call) else node
    if not isinstance(attribute, ast.Attribute) or attribute.end_col_offset is None or attribute.end_lineno is None:
        return node
    end = attribute.end_col_offset
    last = ast.Pass(
        lineno=attribute.end_lineno, col_offset=end - len(attribute.attr.encode()),
        end_lineno=getattr(node, "end_lineno", None), end_col_offset=getattr(node, "end_col_offset", None),
    )  # fmt: skip
    last.file = getattr(node, "file", "")  # type: ignore[attr-defined]
    return last


def refused(what: str, remedy: str, flink: str = "") -> RefusedByFlink:
    """Make the error from its cause, its remedy, and a short form of Flink's message."""
    return RefusedByFlink(f"{what}; {remedy}" + (f" (Flink: {flink})" if flink else ""))


def parts(expr: Expr) -> Iterator[Expr]:
    """An expression and all expressions in it."""
    yield expr
    for part in _inner(expr):
        yield from parts(part)


def _inner(expr: Expr) -> Iterator[Expr]:
    every = (*expr.parts, *(arg for args in expr.parts if isinstance(args, tuple) for arg in args))
    return (part for part in every if isinstance(part, Expr))


# ------------------------------------------------------------------------------------------- how a window is made
def call_order(spec: Spec, method: str) -> None:
    """Refuse a call whose required preceding call is missing."""
    said = tuple(name for name, _ in spec.calls)
    if spec.kind == "Over":
        missing = {"preceding": "order_by", "following": "order_by", "alias": "order_by"}.get(method)
        if missing in said:
            missing = "preceding" if method == "following" and "preceding" not in said else None
    else:
        order = _ORDER[spec.kind]
        missing = (
            next((name for name in order[: order.index(method)] if name not in said), None) if method in order else None
        )
    if missing is not None:
        raise refused(
            f"{NAMES[spec.kind]} does not accept .{method} at this place",
            f"first write {_NEEDED[missing]}",
            "AttributeError",
        )


def length(kind: str, method: str, given: Expr, said: Iterable[Expr], batch: bool) -> None:
    """Refuse a size, slide or gap that is not a constant above 0, or is of a different type."""
    of = {"over": "size", "every": "slide", "with_gap": "gap"}[method]
    remedy = "write lit(10).minutes" + ("" if kind == "Session" else " or row_interval(10)")
    name = NAMES[kind]
    if kind == "Session" and given.kind != "interval":
        raise refused(
            f"the gap of {name} must be a constant length of time: a session of rows does not exist",
            remedy, "A session window expects a gap literal of a day-time interval type.",
        )  # fmt: skip
    if given.kind == "months":
        raise refused(
            f"the {of} of {name} is in months, which differ in length",
            "write it in days: lit(30).days",
            f"{_TITLE[kind]} expects a size literal of a day-time interval or BIGINT type.",
        )
    if given.kind == "sql" and _NUMBER.fullmatch(str(given.parts[0])):
        raise refused(
            f"the {of} of {name} is a plain number, which is neither a time nor a number of rows",
            remedy, f"{_TITLE[kind]} expects a size literal of a day-time interval or BIGINT type.",
        )  # fmt: skip
    if given.kind not in ("interval", "rows"):
        raise refused(
            f"the {of} of {name} is not a constant: it can be neither a column nor a sum of intervals",
            remedy + " with the computed value", f"{_LITERAL[kind]} expects a {of} value literal.",
        )  # fmt: skip
    if any(other.kind != given.kind for other in said):
        raise refused(
            "size and slide of a sliding window mix time and rows",
            "write both as times, or both with row_interval",
            "A sliding window expects the same type of size and slide.",
        )
    if given.parts[0] <= 0:
        if batch:
            raise NotRead(f"the {of} of {name} is not above 0: Flink reads it differently in batch mode")
        said_by_flink = f"{_ASSIGNER[kind]} parameters must satisfy size > 0" if given.kind == "interval" else ""
        raise refused(f"the {of} of {name} is not above 0", remedy, said_by_flink)


_TITLE = {"Tumble": "Tumbling window", "Slide": "A sliding window"}
_LITERAL = {"Tumble": "A tumble window", "Slide": "A sliding window"}
_ASSIGNER = {"Tumble": "TumblingWindowAssigner", "Slide": "SlidingWindowAssigner", "Session": "SessionWindowAssigner"}


def time_column(kind: str, method: str, given: Expr) -> None:
    """Refuse ``on`` and ``order_by`` with anything but a column."""
    if given.kind == "column":
        return
    if method == "order_by" and given.kind == "order":
        if given.parts[1] == "ASC":
            return
        raise refused(
            "a row window can only be in ascending order of time", "remove .desc",
            "The window can only be ordered in ASCENDING mode.",
        )  # fmt: skip
    quoted = (
        "Second argument in OVER window must be a TIME ATTRIBUTE"
        if kind == "Over"
        else "A group window expects a time attribute for grouping."
    )
    raise refused(
        f".{method} of {NAMES[kind]} needs a column: an expression is not a time attribute",
        'name a column such as col("ts"), for which its table declares a WATERMARK, or which is PROCTIME()', quoted,
    )  # fmt: skip


def bounds(spec: Spec, method: str, given: Expr) -> None:
    """Refuse row-window bounds of fewer than one row, or bounds that mix rows and time."""
    if given.kind == "rows" and given.parts[0] <= 0:
        raise refused(
            f".{method} of a row window has a number of rows that is not above 0", "write row_interval(1) or more",
            "Preceding row interval must be larger than 0.",
        )  # fmt: skip
    before = spec.get("preceding")
    kinds = {_unit(one) for one in (given, *(before or ())) if _unit(one)}
    if len(kinds) > 1:
        raise refused(
            "the bounds of a row window mix rows and time",
            "write both as times (with CURRENT_RANGE), or both as rows (with CURRENT_ROW)",
            "Preceding and following must be of same interval type.",
        )


def _unit(bound: Expr) -> str:
    if bound.kind == "bound":
        return "time" if bound.parts[0].endswith("RANGE") else "rows"
    return {"interval": "time", "rows": "rows"}.get(bound.kind, "")


# ------------------------------------------------------------------------------------------- where a window is used
def used(spec: Spec, method: str) -> None:
    """Refuse a window without an alias, or a type of window that ``method`` does not accept."""
    if (spec.kind == "Over") != (method == "over_window"):
        raise refused(
            f"{method} does not accept {NAMES[spec.kind]}",
            "pass row windows (Over) to over_window, and other windows to window", "Method does not exist",
        )  # fmt: skip
    if not spec.alias:
        call_order(spec, "alias")
        raise refused(
            f"{NAMES[spec.kind]} has no alias", f"add {_NEEDED['alias']} at its end", f"Method {method} does not exist"
        )


def one_row_window(count: int) -> None:
    if count > 1:
        raise refused(
            f"{count} row windows are in one over_window",
            "chain them: .over_window(…).select(…).over_window(…).select(…)",
            "Currently, only a single over window is supported.",
        )


def window_first(prepared: GroupedTable, method: str) -> None:
    """Refuse FLIP-11's order of calls, which is the reverse of the current order."""
    if method in ("window", "over_window") and prepared.window is None and prepared.over is None:
        raise refused(
            f"{method} is called after group_by, but current Flink needs the window first",
            '.window(w).group_by(col("w"), …)'
            if method == "window"
            else "write the keys of a row window in partition_by",
            f"AttributeError: {method}",
        )


def keys(prepared: GroupedTable, given: Sequence[Expr]) -> None:
    """Refuse a ``group_by`` without the window, and window properties as keys."""
    for key in given:
        _no_fields(
            key,
            "a key of group_by",
            "Unknown call expression: start(w)",
            'select it first: col("w").start.alias("begin")',
        )
    if prepared.window is None:
        return
    alias = prepared.window.alias
    count = list(given).count(Expr("column", (alias,)))
    if count != 1:
        raise refused(
            f"group_by names the window {alias} {'twice' if count > 1 else 'not at all'}",
            f'name it once among the keys: .group_by(col("{alias}"), …)',
            "GroupBy must contain exactly one window alias.",
        )


def _no_fields(expr: Expr, where: str, flink: str, remedy: str) -> None:
    found = next((part for part in parts(expr) if part.kind == "field"), None)
    if found is not None:
        name = f"{found.parts[0].parts[0]}.{found.parts[1]}"
        raise refused(f"{name} is in {where}, where no window exists", remedy, flink)


def condition(expr: Expr) -> None:
    """Refuse a filter on window properties, which are not available after the window."""
    field = next((part for part in parts(expr) if part.kind == "field"), None)
    if field is not None:
        _no_fields(
            expr, "a filter", f"Cannot resolve field [{field.parts[0].parts[0]}]",
            "select it with an alias first, and filter by the alias",
        )  # fmt: skip
    plain_aggregates((expr,))


def plain_aggregates(outputs: Iterable[Expr]) -> None:
    """Refuse an aggregate inside of an aggregate."""
    for output in outputs:
        for part in parts(output):
            if part.kind == "aggregate" and any(inner.kind == "aggregate" for inner in parts(part.parts[1])):
                raise refused(
                    "an aggregate is inside of a different aggregate",
                    "select the inner aggregate with an alias first, and aggregate its column in a second step",
                    "It's not allowed to use an aggregate function as input of another aggregate function",
                )


def selected(outputs: Sequence[Expr]) -> None:
    """Refuse properties and aggregates that a ``select`` without a window cannot contain."""
    plain_aggregates(outputs)
    for output in outputs:
        _no_fields(
            output, "a select", "Window properties can only be used on windowed tables.",
            "select it with an alias, in the select after the group_by of the window",
        )  # fmt: skip
        if any(part.kind == "over" for part in parts(output)):
            raise refused(
                "an aggregate is .over(…) a row window that does not exist",
                'define it: .over_window(Over.partition_by(…).order_by(…).alias("w")).select(…)',
                "Could not resolve over call.",
            )


def grouped(prepared: GroupedTable, outputs: Sequence[Expr]) -> None:
    """Refuse columns other than keys, and wrong properties, in the ``select`` of a grouped table."""
    window = prepared.window
    if window is not None and prepared.keys is None:
        raise refused(
            f"no group_by names the window {window.alias}",
            f'write .group_by(col("{window.alias}")) between .window and .select', "AttributeError: select",
        )  # fmt: skip
    if window is None:
        selected(outputs)
    else:
        plain_aggregates(outputs)
        for output in outputs:
            _properties(window, output)
    if any(key.kind not in ("column", "sql") for key in prepared.keys or ()):
        return  # the generated name of an expression key is unknown here
    names = [str(key.parts[0]) for key in prepared.keys or () if key.kind == "column"]
    kept = [name for name in names if window is None or name != window.alias]
    for output in outputs:
        for name in _columns(output):
            if name == "*" or name in kept:
                continue
            if window is not None and name == window.alias:
                raise NotRead(f"the window {name} is selected instead of its properties")
            raise refused(
                f"{name} is selected, but is neither a key of group_by nor in an aggregate",
                "add it to group_by, or aggregate it",
                f"Cannot resolve field [{name}], input field list:[{', '.join(kept)}].",
            )


def _columns(expr: Expr) -> Iterator[str]:
    """Names of columns outside of aggregates and properties."""
    if expr.kind == "column":
        yield str(expr.parts[0])
    elif expr.kind not in ("aggregate", "field", "over", "own"):
        for part in _inner(expr):
            yield from _columns(part)


def fields_of(alias: str, outputs: Iterable[Expr]) -> tuple[str, ...]:
    """The distinct properties of a window in a ``select``."""
    found = (part for output in outputs for part in parts(output) if part.kind == "field")
    return tuple(dict.fromkeys(part.parts[1] for part in found if part.parts[0].parts[0] == alias))


def counts_rows(window: Spec) -> bool:
    """True if a window is measured in rows."""
    return any(part[0].kind == "rows" for method, part in window.calls if method in LENGTHS)


def _properties(window: Spec, output: Expr) -> None:
    for part in parts(output):
        if part.kind != "field":
            continue
        name, field = part.parts[0].parts[0], part.parts[1]
        if name != window.alias:
            raise refused(
                f"{name}.{field} is not a property of a window here",
                f'the window is called {window.alias}: col("{window.alias}").{field}',
                f"Cannot resolve field [{name}]",
            )
        if counts_rows(window):
            if field not in ("start", "end"):
                raise NotRead(f"{name}.{field} of a window over rows is not supported")
            kind = "tumble" if window.kind == "Tumble" else "slide"
            raise refused(
                f"{name}.{field} does not exist: a window of rows has neither begin nor end",
                "select min and max of the time column instead",
                f"Window start and Window end cannot be selected for a row-count {kind} window.",
            )


def over(prepared: GroupedTable, outputs: Sequence[Expr]) -> None:
    """Refuse aggregates and properties that a ``select`` over a row window cannot contain."""
    window = prepared.over
    assert window is not None
    aliases = [window.alias, *(other.alias for other in prepared.others)]
    plain_aggregates(outputs)
    for output in outputs:
        for part in parts(output):
            if part.kind == "field":
                raise refused(
                    f"{part.parts[0].parts[0]}.{part.parts[1]} does not exist: in a row window, each row has a "
                        "separate window",
                    "remove it", "Window start and end properties are not available for Over windows.",
                )  # fmt: skip
            if part.kind == "over" and part.parts[1] not in aliases:
                raise refused(
                    f'an aggregate is .over(col("{part.parts[1]}")), which is not a row window here',
                    f'the row window is called {window.alias}: .over(col("{window.alias}"))',
                    "Could not resolve over call.",
                )
        if e.aggregates(output):
            raise refused(
                "an aggregate has no row window", f'add .over(col("{window.alias}")) to it',
                "Unknown call expression: sum(b)",
            )  # fmt: skip


# ------------------------------------------------------------------------------------------- silent traps
def trap(owner: Expr, name: str) -> str:
    """The trap in ``owner.name`` that Flink accepts; "" if there is none.

    Raises RefusedByFlink for ``lit(10).rows``, which Flink treats as a field of a number.
    """
    if owner == Expr("column", ("*",)) and name in e.AGGREGATES:
        raise refused(
            f"col('*').{name}: an aggregate of the star is not possible", "write lit(1).count", "ValidationException"
        )
    number = owner.kind == "sql" and _NUMBER.fullmatch(str(owner.parts[0]))
    if not number:
        return ""
    value = str(owner.parts[0]).strip("()").removesuffix("E0")
    if name in ("row", "rows"):
        raise refused(
            f"lit({value}).{name} is not a number of rows: Flink reads it as the field {name} of the number {value}",
            f"write row_interval({value})", f"get({value}, '{name}')",
        )  # fmt: skip
    if name in e.UNITS and float(value) != int(float(value)):
        exact = float(value) * e.UNITS[name]
        units = {factor: unit for unit, factor in sorted(e.UNITS.items()) if unit.endswith("s")}
        fits = next((n for n in sorted(units, reverse=True) if exact % n == 0), 0)
        remedy = f"lit({int(exact) // fits}).{units[fits]}" if fits else "a whole number of a smaller unit"
        return (
            f"lit({value}).{name} is {e.UNITS[name] * int(float(value))} ms to Flink, which drops the fraction without "
            f"a word: write lit({int(float(value))}).{name} if that is meant, else {remedy}"
        )
    return ""


WITHOUT_WINDOW = (
    "aggregates without a window: FLIP-11 refuses them on a stream, but Flink since 1.3 sends updates "
    "from an unbounded state"
)
