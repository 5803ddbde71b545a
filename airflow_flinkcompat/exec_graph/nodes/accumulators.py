"""The accumulator of each aggregate function."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from airflow_flinkcompat.exec_graph.layout import Begins, Merges, Unknown
from airflow_flinkcompat.savepoint.kinds import KeyedStateKind

_TEXT = "VARCHAR(2147483647)"


_PACKAGE = "org.apache.flink.table.runtime.functions.aggregate."


CARRIED_ONLY = frozenset({"LAG"})
"""Functions whose accumulators were never rewritten."""


MAP_VIEW = "RAW('org.apache.flink.table.api.dataview.MapView')"


_LIST_VIEW = "RAW('org.apache.flink.table.api.dataview.ListView')"


_DECIMAL = re.compile(r"DECIMAL\(\d+, (?P<scale>\d+)\)")


@dataclass(frozen=True)
class StateView:
    """A map or list that stands beside the accumulator, in a state of its own.

    Attributes:
        name: The end of the state's name.
        value: The type of its values.
        key: The type of its keys; None of a list.
    """

    name: str
    value: str
    key: str | None = None

    @property
    def kind(self) -> KeyedStateKind:
        """What the state holds."""
        return KeyedStateKind.LIST if self.key is None else KeyedStateKind.MAP


@dataclass(frozen=True)
class Accumulator:
    """What one call keeps.

    Attributes:
        fields: What each field says of the call, and its type.
        views: What stands beside them.
    """

    fields: tuple[tuple[str, str], ...]
    views: tuple[StateView, ...] = ()


def accumulator(function: str, result: str, argument: str, retracting: bool) -> Accumulator | Unknown:
    """What one call keeps."""
    made = (_RETRACTING if retracting else _APPENDING).get(function) or _EITHER.get(function)
    if made is None:
        of = " over rows that are taken back" if retracting else ""
        return Unknown(f"what {function} keeps{of} was not measured")
    return made(result, argument)


def is_retractable_extreme(type: str) -> bool:
    """Whether MIN or MAX keeps beside its value all others, of which one follows where that is taken back."""
    return type.startswith(_PACKAGE) and "WithRetractAccumulator<`m" in type


def begins(function: str, part: str, type: str) -> Begins | None:
    """What stands in a field of an accumulator before any row came."""
    if part == "count" or function in ("SUM0", "AVG"):
        return Begins.ZERO
    if part == "spread":
        return Begins.NO_SPREAD
    return Begins.NULL if function in ("SUM", "MIN", "MAX") and not type.startswith(_PACKAGE) else None


def merges(function: str, part: str, type: str, distinct: bool) -> Merges | None:
    """What is left of a field of two accumulators that become one."""
    if distinct:
        return None
    if part in ("sum", "count"):
        return Merges.ADDED
    plain = part == "value" and not type.startswith(_PACKAGE)
    return {"MIN": Merges.LEAST, "MAX": Merges.GREATEST}.get(function) if plain else None


def _average(result: str, argument: str) -> Accumulator | Unknown:
    total = _total(argument)
    if total is None:
        return Unknown(f"what AVG of {argument} keeps was not measured")
    return Accumulator((("sum", total), ("count", "BIGINT")))


def _total(argument: str) -> str | None:
    if argument in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return "BIGINT"
    if argument in ("FLOAT", "DOUBLE"):
        return "DOUBLE"
    match = _DECIMAL.fullmatch(argument)
    return f"DECIMAL(38, {match['scale']})" if match else None


def _extreme(result: str, argument: str) -> Accumulator:
    return Accumulator((("value", _TEXT if result.startswith(("CHAR(", "VARCHAR(")) else result),))


def _retracted_extreme(name: str) -> Callable[[str, str], Accumulator]:
    def made(result: str, argument: str) -> Accumulator:
        least = name[:3].lower()
        fields = f"`{least}` {result}, `mapSize` BIGINT, `map` {MAP_VIEW}"
        type = f"{_PACKAGE}{name}WithRetractAggFunction${name}WithRetractAccumulator<{fields}>"
        return Accumulator((("value", type),), (StateView("map", "BIGINT", f"{result} NOT NULL"),))

    return made


def _chosen(name: str) -> Callable[[str, str], Accumulator]:
    return lambda result, argument: Accumulator((("value", f"ROW<`{name}Value` {result}, `{name}Order` BIGINT>"),))


def _retracted_chosen(name: str) -> Callable[[str, str], Accumulator]:
    def made(result: str, argument: str) -> Accumulator:
        function = f"{name.capitalize()}ValueWithRetract"
        views = f"`valueToOrderMap` {MAP_VIEW}, `orderToValueMap` {MAP_VIEW}"
        fields = f"`{name}Value` {result}, `{name}Order` BIGINT, {views}"
        return Accumulator(
            (("value", f"{_PACKAGE}{function}AggFunction${function}Accumulator<{fields}>"),),
            (
                StateView("valueToOrderMap", "ARRAY<BIGINT>", f"{result} NOT NULL"),
                StateView("orderToValueMap", f"ARRAY<{result} NOT NULL>", "BIGINT"),
            ),
        )

    return made


def _retracted_list(result: str, argument: str) -> Accumulator:
    fields = f"`list` {_LIST_VIEW}, `retractList` {_LIST_VIEW}"
    type = f"{_PACKAGE}ListAggWithRetractAggFunction$ListAggWithRetractAccumulator<{fields}>"
    views = StateView("list", f"{_TEXT} NOT NULL"), StateView("retractList", f"{_TEXT} NOT NULL")
    return Accumulator((("value", type),), views)


def _lagged(result: str, argument: str) -> Accumulator:
    fields = f"`offset` INT, `defaultValue` {argument}, `buffer` RAW('java.util.LinkedList')"
    return Accumulator((("value", f"{_PACKAGE}LagAggFunction$LagAcc<{fields}>"),))


_WELFORD = (
    f"{_PACKAGE}WelfordM2AggFunction$WelfordM2Accumulator"
    "<`n` BIGINT NOT NULL, `mean` DOUBLE NOT NULL, `m2` DOUBLE NOT NULL>"
)


_Made = Callable[[str, str], Accumulator | Unknown]


_EITHER: Mapping[str, _Made] = {
    "COUNT": lambda result, argument: Accumulator((("count", "BIGINT"),)),
    "SUM0": lambda result, argument: Accumulator((("sum", result),)),
    "AVG": _average,
    "WELFORD_M2": lambda result, argument: Accumulator((("spread", _WELFORD),)),
}


_APPENDING: Mapping[str, _Made] = {
    "SUM": lambda result, argument: Accumulator((("sum", result),)),
    "MIN": _extreme,
    "MAX": _extreme,
    "FIRST_VALUE": _chosen("first"),
    "LAST_VALUE": _chosen("last"),
    "LISTAGG": lambda result, argument: Accumulator((("delimiter", _TEXT), ("list", _TEXT))),
    "LAG": _lagged,
}


_RETRACTING: Mapping[str, _Made] = {
    "SUM": lambda result, argument: Accumulator((("sum", result), ("count", "BIGINT"))),
    "MIN": _retracted_extreme("Min"),
    "MAX": _retracted_extreme("Max"),
    "FIRST_VALUE": _retracted_chosen("first"),
    "LAST_VALUE": _retracted_chosen("last"),
    "LISTAGG": _retracted_list,
}
