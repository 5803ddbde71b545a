"""JVMs that Python drives: Flink's own classes, and Kafka's client."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

SPARK_JARS = Path(pyspark.__file__).parent / "jars"
_PACKAGES = (
    "java.lang", "java.net", "java.io", "java.nio", "sun.nio.ch", "java.lang.reflect", "java.text", "java.time",
    "java.util", "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks",
)  # fmt: skip
FLINK_OPTIONS = (
    "-Xmx700m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
    *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _PACKAGES),
)  # fmt: skip
"""Options of a JVM with Flink's client on Java 17."""


@contextmanager
def jvm(classpath: str, options: Sequence[str]) -> Iterator[JavaGateway]:
    """A JVM with these classes, for as long as the block lasts."""
    (py4j,) = SPARK_JARS.glob("py4j-*.jar")
    port, process = launch_gateway(
        jarpath=str(py4j),
        classpath=classpath,
        javaopts=list(options),
        die_on_exit=True,
        return_proc=True,
        redirect_stderr=subprocess.DEVNULL,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield gateway
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=30)
