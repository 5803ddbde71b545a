"""Clauses and differences as text, and their places in both scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from airflow_flinkcompat.compat.changes.change import Change
from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.model import Span
from airflow_flinkcompat.plan import OtherStatement
from airflow_flinkcompat.plan.nodes import Measure, Table, Window, WindowField, WindowKind
from airflow_flinkcompat.plan.operators import AggregateOperator, AssignedWindow, Operator, Source, StatelessSegment
from airflow_flinkcompat.plan.origins import describe, duration
from airflow_flinkcompat.secrets import mask_secrets
from airflow_flinkcompat.secrets.redact import MASK, mask_option, shortened
from airflow_flinkcompat.secrets.spellings import is_secret_key

_HINT_KEYS = re.compile(r"[^\s,=]+(?==)")


def format_window(windowing: AssignedWindow | None) -> str:
    """Format a window as ``TUMBLE(order_time, '5' MINUTE)``, or "no window"."""
    if windowing is None:
        return "no window"
    behind = ["PARTITION BY " + format_expressions(windowing.partition_by)] if windowing.partition_by else []
    return format_window_definition(windowing.window, describe(windowing.time), *behind)


def format_window_definition(window: Window, time: str = "", *behind: str) -> str:
    """Format a window as ``TUMBLE('5' MINUTE)``, with its time column and other attributes if passed."""
    lengths = {
        WindowKind.TUMBLE: (window.size,),
        WindowKind.HOP: (window.slide, window.size),
        WindowKind.CUMULATE: (window.slide, window.size),
        WindowKind.SESSION: (window.gap,),
    }[window.kind]
    written = format_row_count if window.measure is Measure.ROWS else duration
    offset = [f"OFFSET {duration(window.offset)}"] if window.offset else []
    parts = [*filter(None, [time]), *(written(length) for length in lengths if length is not None), *offset, *behind]
    return f"{window.kind}({', '.join(parts)})"


def format_row_count(count: int) -> str:
    """Format a number of rows as ``10 rows``."""
    return f"{count} row{'' if count == 1 else 's'}"


def format_expressions(expressions: Iterable[Any]) -> str:
    """Format expressions in their order, or sorted by their text if they are a set; "none" if empty."""
    described = [describe(expression) for expression in expressions]
    return ", ".join(sorted(described) if isinstance(expressions, frozenset) else described) or "none"


def format_conditions(filters: Iterable[Any]) -> str:
    """Format conditions, sorted by their text and joined by AND."""
    return " AND ".join(sorted(describe(part) for part in filters)) or "no condition"


def format_order_by(keys: Iterable[tuple[Any, bool, bool | None]]) -> str:
    """Format sort keys (expression, ascending, nulls first) as ORDER BY, without default NULL positions."""
    parts = []
    for key, ascending, nulls_first in keys:
        where = "" if nulls_first in (None, ascending) else f" NULLS {'FIRST' if nulls_first else 'LAST'}"
        parts.append(f"{describe(key)}{'' if ascending else ' DESC'}{where}")
    return "ORDER BY " + ", ".join(parts) if parts else "no ORDER BY"


def format_group_by(operator: AggregateOperator) -> str:
    """Format the GROUP BY list of an aggregation in its order."""
    parts = [
        str(place) if isinstance(place, WindowField) else describe(operator.keys[place]) for place in operator.key_order
    ]
    if operator.window is not None and operator.window.notation == "group window":
        parts = [format_window(operator.window) if part == WindowField.START else part for part in parts]
    return "GROUP BY " + ", ".join(parts) if parts else "no GROUP BY"


def format_value(value: Any) -> str:
    """Format the value of any part, for differences without a specific format."""
    match value:
        case None:
            return "absent"
        case AssignedWindow():
            return format_window(value)
        case StatelessSegment():
            return _format_segment(value)
        case frozenset():
            return ", ".join(sorted(format_value(part) for part in value)) or "none"
        case ("OPTIONS", str(text)):
            # All options of a hint are one text, in which the end of a value is unclear.
            return f"OPTIONS({MASK if any(map(is_secret_key, _HINT_KEYS.findall(text))) else mask_secrets(text)})"
        case tuple():
            return ", ".join(format_value(part) for part in value) or "none"
        case dict():
            return ", ".join(format_setting(key, part) for key, part in sorted(value.items())) or "none"
    return describe(value)


def _format_segment(segment: StatelessSegment) -> str:
    match segment.origin:
        case Source(table=read):
            pass
        case Operator(kind=read):
            pass
        case _:
            read = "literal rows"
    filters = segment.filters | segment.window_filters
    return f"{read} WHERE {format_conditions(filters)}" if filters else read


def format_setting(key: str, value: Any) -> str:
    """Format a setting as ``key = value`` with secrets masked, or ``key: not set`` without a value."""
    if value is None:
        return f"{key}: not set"
    return f"{key} = {mask_option(key, value) if isinstance(value, str) else format_value(value)}"


_PARTS = {
    "types": "types of columns",
    "order": "order of columns",
    "computed": "computed columns",
    "metadata": "metadata columns",
    "partitions": "partitioning",
    "operators": "stateful operators",
    "source": "input",
}
_WHOLE = {
    "inserts": "the queries of the script",
    "pairing": "the pairing of old and new queries",
    "insert order": "the order of the queries",
    "statement set": "the statement set around the queries",
    "engine": "the engine or its version",
    "unread": "a statement that could not be read",
}


def name_difference(difference: Difference, change: Change) -> str:
    """Format a difference as a clause, such as ``the primary key of table t changed``."""
    place, _, rest = difference.key.partition("/")
    if place == "statement":
        return _statement(difference)
    if difference.part in _WHOLE:
        return f"{_WHOLE[difference.part]} changed"
    if place == "table":
        return _table(rest.rpartition("/")[0], difference)
    if place in ("view", "function", "setting"):
        return f"{place} {rest} {_format_verb(difference)}"
    return f"{_part(difference)} of {_owner(difference, change)} changed"


def differing_values(difference: Difference) -> tuple[Any, Any]:
    """Both values for a report: the differing entries of a mapping, or the name of a table."""
    old, new = difference.before, difference.after
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        return tuple({key: side[key] for key in keys if key in side} for side in (old, new))  # type: ignore[return-value]
    return tuple(side.name if isinstance(side, Table) else side for side in (old, new))  # type: ignore[return-value]


def format_query(sink: str, article: str = "the") -> str:
    """Format a query as ``the query into SINK``, or as ``the bare SELECT`` if it has no sink."""
    return f"{article} query into {sink}" if sink else f"{article} bare SELECT"


def format_operator(pair: OperatorPair) -> str:
    """Format an operator as its kind and its query."""
    return f"the {pair.new.kind} in {format_query(pair.pipeline.sink)}"


def _format_verb(difference: Difference) -> str:
    if difference.before is None:
        return "was added"
    return "was removed" if difference.after is None else "changed"


def _part(difference: Difference) -> str:
    return f"the {_PARTS.get(difference.part, difference.part)}"


def _table(name: str, difference: Difference) -> str:
    if difference.part == "declared":
        return f"the {'deployed' if difference.before is None else 'proposed'} script does not declare table {name}"
    return f"{_part(difference)} of table {name} changed"


def _statement(difference: Difference) -> str:
    fact = difference.before if difference.after is None else difference.after
    if not isinstance(fact, OtherStatement):
        return "statements are in a different order"
    verb = "was removed" if difference.after is None else "was added"
    if fact.kind == "replaced":
        return f"an earlier declaration of {fact.subject[1] or 'the same name'} {verb}"
    return f"the statement {shortened(str(fact), 60)} {verb}"


def _owner(difference: Difference, change: Change) -> str:
    """Format the query or the operator to which a difference belongs."""
    for pipeline in change.pipelines:
        if difference in pipeline.differences:
            return format_query(pipeline.sink)
        for pair in pipeline.operators:
            if difference in pair.differences:
                return format_operator(pair)
    return "a query"


def clause_spans(differences: Iterable[Difference]) -> tuple[Span | None, Span | None]:
    """Range of the differing clauses in each script; None if a script has no such place."""
    pairs = [(each.before, each.after) for each in differences]
    old = place_of(each for before, after in pairs for each in _changed_members(before, after))
    return old, place_of(each for before, after in pairs for each in _changed_members(after, before))


def place_of(values: Iterable[Any]) -> Span | None:
    """Range from the first to the last place of some values; None unless all are in one source file."""
    found = [span for value in values for span in _spans(value)]
    if len(found) == 1:
        return found[0]  # returned unchanged: the lines of a span are computed only when shown
    if len({span.source for span in found}) != 1:
        return None
    first = min(found, key=lambda span: (span.line, span.column))
    last = max(found, key=lambda span: (span.end_line, span.end_column))
    return Span(first.source, first.line, first.column, last.end_line, last.end_column)


def _changed_members(value: Any, other: Any) -> Iterable[Any]:
    """Members that the other value lacks; the moved members if both values have the same members."""
    if not (isinstance(value, tuple | frozenset) and isinstance(other, tuple | frozenset)):
        return (value,)
    added = [each for each in value if each not in other]
    if added or isinstance(value, frozenset) or len(value) != len(other):
        return added
    return [one for one, another in zip(value, other, strict=True) if one != another]


def _spans(value: Any) -> Iterator[Span]:
    """The outermost spans of a value's parts."""
    if isinstance(value, tuple | frozenset):
        for each in value:
            yield from _spans(each)
    elif is_dataclass(value) and not isinstance(value, Span):
        own = getattr(value, "span", None)
        if own is not None:
            yield own
            return
        for each in fields(value):
            if each.compare:
                yield from _spans(getattr(value, each.name))
