"""Topics of the tests' broker: their tables, and what an upsert has left in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dev.services.kafka import Broker


def topic_table(name: str, columns: str, topic: str, servers: str, connector: str = "kafka", **options: str) -> str:
    """CREATE TABLE on a topic; keyword arguments are options with ``_`` for ``-`` and ``__`` for ``.``."""
    given = {"connector": connector, "topic": topic, "properties.bootstrap.servers": servers}
    given |= {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    return f"CREATE TABLE {name} ({columns}) WITH ({pairs})"


def held(spark: SparkSession, broker: Broker, topic: str) -> dict[str, str]:
    """The last value of every key that has one."""
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", broker.servers).option("subscribe", topic)
    rows = (
        reader.load()
        .orderBy("partition", "offset")
        .selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
        .collect()
    )
    last = {row.key: row.value for row in rows}
    return {key: value for key, value in last.items() if value is not None}
