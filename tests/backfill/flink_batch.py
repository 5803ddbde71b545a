"""Flink itself in batch mode, in one JVM of the test's own: what every translation is compared with."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from airflow_flinkcompat.deploy.local import flink_home

_PACKAGES = (
    "java.lang",
    "java.net",
    "java.io",
    "java.nio",
    "sun.nio.ch",
    "java.lang.reflect",
    "java.text",
    "java.time",
)
_PACKAGES += ("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks")
_OPTIONS = ["-Xmx700m", "-XX:+UseSerialGC", *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _PACKAGES)]
_CONFIGURATION = {
    "parallelism.default": "1",
    "table.local-time-zone": "UTC",
    "taskmanager.memory.network.min": "16mb",
    "taskmanager.memory.network.max": "16mb",
    "taskmanager.memory.managed.size": "64mb",
}


class FlinkBatch:
    """Runs statements in a TableEnvironment of the JVM."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._java = gateway.jvm

    def run(self, statements: list[str], settings: Mapping[str, str] | None = None) -> None:
        """Runs DDL and INSERT statements in a fresh environment, each to its end."""
        configuration = self._java.org.apache.flink.configuration.Configuration()
        for key, value in {**_CONFIGURATION, **(settings or {})}.items():
            configuration.setString(key, value)
        builder = self._java.org.apache.flink.table.api.EnvironmentSettings.newInstance()
        environment = self._java.org.apache.flink.table.api.TableEnvironment.create(
            builder.inBatchMode().withConfiguration(configuration).build()
        )
        for statement in statements:
            result: Any = environment.executeSql(statement)
            getattr(result, "await")()


@contextmanager
def flink_batch() -> Iterator[FlinkBatch]:
    """One Flink for as long as the block lasts; the JVM ends with it."""
    jars = ":".join(map(str, sorted((flink_home() / "lib").glob("*.jar"))))
    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port, process = launch_gateway(
        jarpath=str(py4j),
        classpath=jars,
        javaopts=_OPTIONS,
        die_on_exit=True,
        return_proc=True,
        redirect_stderr=subprocess.DEVNULL,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield FlinkBatch(gateway)
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=30)
