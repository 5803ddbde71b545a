"""A JVM with Kafka's own client, for tests that have no Spark, and what they ask a broker by it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from dev.services.kafka import Broker, server_jars


@contextmanager
def kafka_client() -> Iterator[Any]:
    """The JVM, for as long as the block lasts."""
    (py4j,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port, process = launch_gateway(
        jarpath=str(py4j),
        classpath=f"{server_jars()}/*",
        javaopts=["-Xmx128m", "-XX:+UseSerialGC"],
        die_on_exit=True,
        return_proc=True,
        redirect_stderr=subprocess.DEVNULL,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        yield gateway.jvm
    finally:
        gateway.shutdown()
        process.stdin.close()
        process.wait(timeout=30)


def positions(broker: Broker, jvm: Any) -> dict[str, dict[str, int]]:
    """Consumer group → committed position by partition."""
    properties = jvm.java.util.Properties()
    properties.setProperty("bootstrap.servers", broker.servers)
    admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(properties)
    try:
        groups = [row.groupId() for row in admin.listConsumerGroups().all().get()]
        found = {name: admin.listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata().get() for name in groups}
        return {
            name: {str(part): offsets[part].offset() for part in offsets.keySet()} for name, offsets in found.items()
        }
    finally:
        admin.close()
