"""Clauses as a reader knows them, from resolved values: the quotes of reports on both sides."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from airflow_flinkcompat.plan.nodes import Measure, Window, WindowField, WindowKind
from airflow_flinkcompat.plan.operators import AggregateOperator, AssignedWindow, Operator, Source, StatelessSegment
from airflow_flinkcompat.plan.origins import describe, duration
from airflow_flinkcompat.secrets import MASK, mask_option, mask_secrets
from airflow_flinkcompat.secrets.spellings import is_secret_key

_HINT_KEYS = re.compile(r"[^\s,=]+(?==)")


def format_window(windowing: AssignedWindow | None) -> str:
    """``TUMBLE(order_time, '5' MINUTE)``; "no window" if there is none."""
    if windowing is None:
        return "no window"
    behind = ["PARTITION BY " + format_expressions(windowing.partition_by)] if windowing.partition_by else []
    return format_window_definition(windowing.window, describe(windowing.time), *behind)


def format_window_definition(window: Window, time: str = "", *behind: str) -> str:
    """``TUMBLE('5' MINUTE)``, or with its time column and further attributes."""
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
    """A length in rows: ``10 rows``."""
    return f"{count} row{'' if count == 1 else 's'}"


def format_expressions(expressions: Iterable[Any]) -> str:
    """Expressions in their order, of a set in the order of their texts; "none" if there are none."""
    described = [describe(expression) for expression in expressions]
    return ", ".join(sorted(described) if isinstance(expressions, frozenset) else described) or "none"


def format_conditions(filters: Iterable[Any]) -> str:
    """Conjuncts in a stable order."""
    return " AND ".join(sorted(describe(part) for part in filters)) or "no condition"


def format_order_by(keys: Iterable[tuple[Any, bool, bool | None]]) -> str:
    """The ORDER BY of sort keys (expression, ascending, nulls first); default places of NULLs are omitted."""
    parts = []
    for key, ascending, nulls_first in keys:
        where = "" if nulls_first in (None, ascending) else f" NULLS {'FIRST' if nulls_first else 'LAST'}"
        parts.append(f"{describe(key)}{'' if ascending else ' DESC'}{where}")
    return "ORDER BY " + ", ".join(parts) if parts else "no ORDER BY"


def format_group_by(operator: AggregateOperator) -> str:
    """The GROUP BY list of an aggregation in its order."""
    parts = [
        str(place) if isinstance(place, WindowField) else describe(operator.keys[place]) for place in operator.key_order
    ]
    if operator.window is not None and operator.window.notation == "group window":
        parts = [format_window(operator.window) if part == WindowField.START else part for part in parts]
    return "GROUP BY " + ", ".join(parts) if parts else "no GROUP BY"


def shortened(text: str, length: int = 80) -> str:
    """A text on one line, cut after a word if it is longer. Secrets are masked while their ends are known."""
    line = " ".join(mask_secrets(text).split())
    head = line[:length]
    return line if line == head else (head.rpartition(" ")[0] or head[:-1]) + "…"


def format_value(value: Any) -> str:
    """Any part's value as text, for differences nobody has a better name for."""
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
            # A hint's options come as one text that no longer tells where a value ends.
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
    """``key = value``, a secret masked while its end is known; ``key: not set`` without a value."""
    if value is None:
        return f"{key}: not set"
    return f"{key} = {mask_option(key, value) if isinstance(value, str) else format_value(value)}"
