"""Flink itself, in one JVM of the test's own: what every translation is compared with.

Batch mode, and streaming to the end of bounded files for what Flink runs in no other way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import Any
from unittest import mock

from py4j import protocol
from py4j.java_gateway import JavaGateway

from airflow_flinkcompat.local_flink.cluster import flink_home
from airflow_flinkcompat.local_flink.jars import fetch
from dev.services.jvm import FLINK_OPTIONS, SPARK_JARS, jvm

_CONFIGURATION = {
    "parallelism.default": "1",
    "table.local-time-zone": "UTC",
    "taskmanager.memory.network.min": "16mb",
    "taskmanager.memory.network.max": "16mb",
    "taskmanager.memory.managed.size": "64mb",
}
# The file sink commits at checkpoints. An interval of 0 emits a watermark with each row that advances it.
_STREAMING = {"execution.checkpointing.interval": "1 s", "pipeline.auto-watermark-interval": "0"}


# If PySpark was started in this process, it treats every py4j error as an error of its own JVM.
_ERRORS_OF_PY4J = mock.patch("py4j.java_gateway.get_return_value", protocol.get_return_value)


class FlinkBatch:
    """Runs statements in a TableEnvironment of the JVM; what Flink refuses is a `Py4JJavaError`."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._gateway, self._java = gateway, gateway.jvm

    @_ERRORS_OF_PY4J
    def run(
        self,
        statements: list[str],
        settings: Mapping[str, str] | None = None,
        streaming: bool = False,
        query: tuple[str, str] | None = None,
    ) -> None:
        """Runs DDL and INSERT statements in a fresh environment, each to its end.

        ``streaming``: as a streaming job, which a source of files ends with the last possible watermark. Watermarks are
        emitted with each row that moves them, so that the rows that come too late do not depend on the machine.
        ``query``: in the end, a query of the Table API as PyFlink writes it, and its sink.
        """
        configuration = self._java.org.apache.flink.configuration.Configuration()
        given = {**_CONFIGURATION, **(_STREAMING if streaming else {}), **(settings or {})}
        for key, value in given.items():
            configuration.setString(key, value)
        builder = self._java.org.apache.flink.table.api.EnvironmentSettings.newInstance()
        environment = self._java.org.apache.flink.table.api.TableEnvironment.create(
            (builder.inStreamingMode() if streaming else builder.inBatchMode()).withConfiguration(configuration).build()
        )
        for statement in statements:
            result: Any = environment.executeSql(statement)
            getattr(result, "await")()
        if query is not None:
            getattr(inserted(self._gateway, environment, *query), "await")()


def parquet_jars() -> tuple[Path, ...]:
    """Jars for Flink's parquet format: its own jar, and Hadoop's classes from Spark."""
    return (fetch("flink-sql-parquet"), *sorted(SPARK_JARS.glob("hadoop-client-*.jar")))


def columnar_jars() -> tuple[Path, ...]:
    """Jars for Flink's parquet and orc formats."""
    return (*parquet_jars(), fetch("flink-sql-orc"))


@contextmanager
def flink_batch(more: Iterable[Path] = ()) -> Iterator[FlinkBatch]:
    """One Flink for as long as the block lasts, ``more`` jars beside its own; the JVM ends with it."""
    jars = ":".join(map(str, (*sorted((flink_home() / "lib").glob("*.jar")), *more)))
    with jvm(jars, FLINK_OPTIONS) as gateway:
        yield FlinkBatch(gateway)


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
