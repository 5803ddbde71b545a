"""What the one Spark session of the tests is started with: the needs of all connectors."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path

from airflow_flinkcompat.backfill.connectors import delta, iceberg, jdbc, kafka
from airflow_flinkcompat.backfill.connectors.base import Needs
from airflow_flinkcompat.deploy.jars import Jar, cache_directory, fetch_jar

_CENTRAL = "https://repo.maven.apache.org/maven2/"
_TOKENS = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
_TOKENS_PATH = "org/apache/spark/spark-token-provider-kafka-0-10_2.13/4.0.0/spark-token-provider-kafka-0-10_2.13-4.0.0"
_TOKENS_SHA256 = "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767"
_FLINK_KAFKA = "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"
_FLINK_KAFKA_PATH = "org/apache/flink/flink-sql-connector-kafka/5.0.0-2.2/flink-sql-connector-kafka-5.0.0-2.2.jar"
_FLINK_KAFKA_SHA256 = "5605c691d11a501382c383fecba37a7a552467da5ab7ba904ef5d6f3d62c5616"


def ivy_directory() -> Path:
    """Ivy's own cache, which a fresh machine fills once; with Maven's beside it, it trips over half-filled folders."""
    return cache_directory() / "ivy"


def _tokens() -> Path:
    """Kafka's delegation tokens: not every mirror has the version Spark asks for, and nothing here uses any."""
    return fetch_jar(Jar("tokens", f"{_TOKENS}:4.0.0", f"{_CENTRAL}{_TOKENS_PATH}.jar", _TOKENS_SHA256))


def flink_kafka() -> Path:
    """Flink's own Kafka connector."""
    return fetch_jar(Jar("flink-kafka", _FLINK_KAFKA, _CENTRAL + _FLINK_KAFKA_PATH, _FLINK_KAFKA_SHA256))


_CONF = {"spark.jars.ivy": str(ivy_directory()), "spark.jars.excludes": _TOKENS, "spark.jars": str(_tokens())}
NEEDS = reduce(or_, [Needs(conf=tuple(_CONF.items())), *(part.NEEDS for part in (delta, iceberg, jdbc, kafka))])
