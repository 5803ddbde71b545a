"""Which types Flink turns into which where a query is written into a sink (every pair was asked of a 2.3.0 planner)."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_flinkcompat.plan.types import CHARACTERS, INTEGERS, DataType

_NUMBERS = frozenset({*INTEGERS, "DECIMAL", "FLOAT", "DOUBLE"})
_FROM: Mapping[str, frozenset[str]] = {
    "VARCHAR": frozenset(CHARACTERS),
    "VARBINARY": frozenset({"BINARY", "VARBINARY"}),
    **{name: frozenset(INTEGERS[: i + 1]) for i, name in enumerate(INTEGERS)},
    "DECIMAL": _NUMBERS,
    "FLOAT": _NUMBERS - {"DOUBLE"},
    "DOUBLE": _NUMBERS,
    "DATE": frozenset({"DATE", "TIMESTAMP"}),
    "TIME": frozenset({"TIME", "TIMESTAMP"}),
    "TIMESTAMP": frozenset({"TIMESTAMP", "TIMESTAMP_LTZ"}),
    "TIMESTAMP_LTZ": frozenset({"TIMESTAMP", "TIMESTAMP_LTZ"}),
}
"""Types from which a type is made without a CAST; any other is made of itself alone."""


def fits(source: DataType, target: DataType) -> bool | None:
    """Whether Flink writes values of one type into a column of another without a CAST."""
    if not (source.is_known and target.is_known) or "NULL" in (source.name, target.name):
        return None
    if source.elements or target.elements:
        alike = source.name == target.name and len(source.elements) == len(target.elements)
        return alike and all(fits(a, b) for a, b in zip(source.elements, target.elements, strict=True))
    return source.name in _FROM.get(target.name, {target.name})
