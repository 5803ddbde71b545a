"""What the one Spark session of the tests is started with: the needs of all connectors."""

from __future__ import annotations

from functools import reduce
from operator import or_

from airflow_flinkcompat.backfill.connectors.delta import NEEDS as DELTA
from airflow_flinkcompat.backfill.connectors.iceberg import NEEDS as ICEBERG
from airflow_flinkcompat.backfill.connectors.jdbc import NEEDS as POSTGRESQL
from airflow_flinkcompat.backfill.connectors.kafka import NEEDS as KAFKA
from airflow_flinkcompat.backfill.protocols import Needs
from airflow_flinkcompat.local_flink.jars import fetch
from dev.services.kafka import ivy_directory

CONF = {
    "spark.jars.ivy": str(ivy_directory()),
    # Kafka's delegation tokens, which nothing here uses, in a version that is there.
    "spark.jars.excludes": "org.apache.spark:spark-token-provider-kafka-0-10_2.13",
    "spark.jars": str(fetch("spark-token-provider-kafka")),
}
NEEDS = reduce(or_, [Needs(conf=tuple(CONF.items())), DELTA, ICEBERG, POSTGRESQL, KAFKA])
