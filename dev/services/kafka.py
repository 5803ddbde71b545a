"""A Kafka broker of the tests' own: one KRaft node on loopback, its jars fetched once by Spark's Ivy."""

from __future__ import annotations

import base64
import fcntl
import socket
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.local_flink.processes import choose_ports
from airflow_flinkcompat.model.installation import cache_directory
from dev.services.jvm import SPARK_JARS, jvm

_VERSION = "4.1.2"
_MODULE = ("org.apache.kafka", "kafka_2.13", _VERSION)
_HEAP = "-Xmx384m"
_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{broker},CONTROLLER://127.0.0.1:{controller}
log.dirs={folder}/logs
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.max.timeout.ms=3600000
group.initial.rebalance.delay.ms=0
auto.create.topics.enable=false
log.retention.ms=-1
num.network.threads=1
num.io.threads=2
"""

Record = tuple[str | None, str | bytes | None]


class Broker:
    """Creates topics and sends records by Kafka's own client inside Spark's JVM."""

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def topic(self, jvm: Any, partitions: int = 1, name: str = "", cleanup: str = "delete") -> str:
        """A new topic; of a name of its own where none is given."""
        name = name or f"t{uuid.uuid4().hex[:10]}"
        with self.admin(jvm) as admin:
            topic = jvm.org.apache.kafka.clients.admin.NewTopic(name, partitions, jvm.Short.parseShort("1"))
            settings = jvm.java.util.HashMap()
            settings.put("cleanup.policy", cleanup)
            topics = jvm.java.util.ArrayList()
            topics.add(topic.configs(settings))
            admin.createTopics(topics).all().get()
        return name

    def send(self, jvm: Any, topic: str, records: Sequence[Record], partition: int = 0, millis: int = 10**12) -> None:
        """Send (key, value) records with timestamps ``millis``, ``millis + 1`` …; a value None is a tombstone."""
        properties = self._properties(jvm)
        serializer = "org.apache.kafka.common.serialization.ByteArraySerializer"
        properties.setProperty("key.serializer", serializer)
        properties.setProperty("value.serializer", serializer)
        producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(properties)
        record = jvm.org.apache.kafka.clients.producer.ProducerRecord
        sent = [
            producer.send(record(topic, partition, millis + i, _bytes(key), _bytes(value)))
            for i, (key, value) in enumerate(records)
        ]
        for each in sent:
            each.get()
        producer.close()

    def delete_below(self, jvm: Any, topic: str, offsets: Mapping[int, int]) -> None:
        """Deletes the records of partitions below an offset, as retention does."""
        wanted, java = jvm.java.util.HashMap(), jvm.java.lang
        with self.admin(jvm) as admin:
            # Py4J does not find a static method if an instance method has the same name.
            loader = admin.getClass().getClassLoader()
            kind = java.Class.forName("org.apache.kafka.clients.admin.RecordsToDelete", True, loader)
            named = [each for each in kind.getMethods() if each.getName() == "beforeOffset"]
            (before,) = (each for each in named if each.getParameterCount() == 1)
            for partition, offset in offsets.items():
                values = java.reflect.Array.newInstance(java.Class.forName("java.lang.Object"), 1)
                java.reflect.Array.set(values, 0, java.Long.valueOf(offset))
                key = jvm.org.apache.kafka.common.TopicPartition(topic, partition)
                wanted.put(key, before.invoke(None, values))
            admin.deleteRecords(wanted).all().get()

    def received(self, jvm: Any, topic: str, isolation: str = "read_committed") -> list[tuple[str | None, str | None]]:
        """Keys and values of a whole topic; with ``read_uncommitted`` also those of open transactions."""
        properties = self._properties(jvm)
        text = "org.apache.kafka.common.serialization.StringDeserializer"
        settings = {"isolation.level": isolation, "key.deserializer": text, "value.deserializer": text}
        for key, value in (settings | {"enable.auto.commit": "false"}).items():
            properties.setProperty(key, value)
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties)
        try:
            partitions = jvm.java.util.ArrayList()
            for found in consumer.partitionsFor(topic):
                partitions.add(jvm.org.apache.kafka.common.TopicPartition(topic, found.partition()))
            consumer.assign(partitions)
            consumer.seekToBeginning(partitions)
            ends = consumer.endOffsets(partitions)
            seen: list[tuple[str | None, str | None]] = []
            while any(consumer.position(each) < ends[each] for each in partitions):
                records = consumer.poll(jvm.java.time.Duration.ofSeconds(1)).iterator()
                seen += [(each.key(), each.value()) for each in records]
            return seen
        finally:
            consumer.close()

    @contextmanager
    def admin(self, jvm: Any) -> Iterator[Any]:
        admin = jvm.org.apache.kafka.clients.admin.AdminClient.create(self._properties(jvm))
        try:
            yield admin
        finally:
            admin.close()

    def _properties(self, jvm: Any) -> Any:
        properties = jvm.java.util.Properties()
        properties.setProperty("bootstrap.servers", self.servers)
        return properties


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


@contextmanager
def kafka_broker(folder: Path) -> Iterator[Broker]:
    """One broker for as long as the block lasts."""
    broker, controller = choose_ports(dict.fromkeys(("the broker", "its controller"))).values()
    configuration = folder / "kraft.properties"
    configuration.write_text(_PROPERTIES.format(broker=broker, controller=controller, folder=folder), encoding="utf-8")
    java = ["java", _HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{server_jars()}/*"]
    # An argument that begins with "-" would be taken for an option.
    name = "A" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:].rstrip("=")
    format = [*java, "kafka.tools.StorageTool", "format", "-t", name, "-c", str(configuration)]
    subprocess.run(format, check=True, capture_output=True, timeout=120)
    log = folder / "broker.log"
    with log.open("wb") as output:
        process = subprocess.Popen([*java, "kafka.Kafka", str(configuration)], stdout=output, stderr=subprocess.STDOUT)
    try:
        _await(process, broker, log)
        yield Broker(f"127.0.0.1:{broker}")
    finally:
        process.kill()  # nothing of its data is kept, and an orderly end takes long
        process.wait()


def server_jars() -> Path:
    """Kafka's server with what it needs at run time; fetched on first use, by one process at a time."""
    folder = ivy_directory() / f"kafka-{_VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    complete = folder / "complete"
    with (ivy_directory() / ".kafka").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if complete.exists():
            return folder
        (ivy,) = SPARK_JARS.glob("ivy-*.jar")
        retrieve = f"{folder}/[artifact]-[revision].[ext]"
        command = ["java", "-jar", str(ivy), "-cache", str(ivy_directory() / "kafka-cache"), "-dependency", *_MODULE]
        subprocess.run(
            [*command, "-confs", "default", "-retrieve", retrieve], check=True, capture_output=True, timeout=600
        )
        complete.touch()
    return folder


def ivy_directory() -> Path:
    """Ivy's own cache, filled once. Without it, Ivy fails on incomplete folders in Maven's cache."""
    return cache_directory() / "ivy"


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Returns once the broker listens; raises with what it said when it ends before."""

    def listens() -> bool | None:
        """None where it has ended."""
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
        return False if process.poll() is None else None

    with suppress(Overdue):
        if poll(listens, lambda found: found is False, timeout=120):
            return
    said = log.read_text(encoding="utf-8", errors="replace")[-3000:]
    raise RuntimeError(f"the broker did not start on {port}: {said}")


@contextmanager
def kafka_client() -> Iterator[Any]:
    """A JVM with Kafka's own client, for tests without Spark, for as long as the block lasts."""
    with jvm(f"{server_jars()}/*", ["-Xmx128m", "-XX:+UseSerialGC"]) as gateway:
        yield gateway.jvm


def positions(broker: Broker, java: Any) -> dict[str, dict[str, int]]:
    """Consumer group → committed position by partition."""
    with broker.admin(java) as admin:
        groups = [row.groupId() for row in admin.listConsumerGroups().all().get()]
        found = {name: admin.listConsumerGroupOffsets(name).partitionsToOffsetAndMetadata().get() for name in groups}
        return {
            name: {str(part): offsets[part].offset() for part in offsets.keySet()} for name, offsets in found.items()
        }
