"""Expressions of PyFlink said to the Java Table API of the tests' Flink, word by word, so that no PyFlink is needed."""

from __future__ import annotations

import re
from functools import reduce
from typing import Any

_PROPERTIES = {
    *("sum", "count", "avg", "min", "max", "distinct", "start", "end", "rowtime", "proctime"),
    *("milli", "second", "seconds", "minute", "minutes", "hour", "hours"),
}
_EXPRESSION = "org.apache.flink.table.expressions.Expression"
_VARIADIC = dict.fromkeys(("select", "group_by", "partition_by"), _EXPRESSION)
_VARIADIC["over_window"] = "org.apache.flink.table.api.OverWindow"
_CONSTANTS = ("CURRENT_ROW", "CURRENT_RANGE", "UNBOUNDED_ROW", "UNBOUNDED_RANGE")
_OTHERWISE = {"alias": "as", "from_path": "from", "over_window": "window"}
_API = "org.apache.flink.table.api"


def inserted(gateway: Any, environment: Any, query: str, sink: str) -> Any:
    """Runs a query of the Table API, as PyFlink writes it, into a sink; what Java answers."""
    api = reduce(getattr, _API.split("."), gateway.jvm)
    names: dict[str, Any] = {
        name: _Said(gateway, getattr(api, name)) for name in ("Tumble", "Slide", "Session", "Over")
    }
    names |= {name: _Said(gateway, getattr(api.Expressions, name)) for name in _CONSTANTS}
    for name in ("col", "lit", "row_interval"):
        names[name] = _Call(gateway, api.Expressions, name)
    names["t_env"] = _Said(gateway, environment)
    return eval(query, {"__builtins__": {}}, names)._java.executeInsert(sink)


class _Said:
    """A Java object under PyFlink's names."""

    def __init__(self, gateway: Any, java: Any) -> None:
        self._gateway, self._java = gateway, java

    def __getattr__(self, name: str) -> Any:
        call = _Call(self._gateway, self._java, name)
        return call() if name in _PROPERTIES else call

    def __gt__(self, other: Any) -> _Said:
        return _Call(self._gateway, self._java, "is_greater")(other)


class _Call:
    def __init__(self, gateway: Any, owner: Any, name: str) -> None:
        self._gateway, self._owner, self._name = gateway, owner, name

    def __call__(self, *args: Any) -> _Said:
        camel = re.sub("_(.)", lambda found: found[1].upper(), self._name)
        name = _OTHERWISE.get(self._name, camel)
        given = [arg._java if isinstance(arg, _Said) else arg for arg in args]
        if self._name in _VARIADIC:
            kind = reduce(getattr, _VARIADIC[self._name].split("."), self._gateway.jvm)
            array = self._gateway.new_array(kind, len(given))
            for i, value in enumerate(given):
                array[i] = value
            given = [array]
        return _Said(self._gateway, getattr(self._owner, name)(*given))
