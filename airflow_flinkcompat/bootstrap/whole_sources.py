"""Whether a place can be read and holds all of its rows, as far as it tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.connectors.registry import reader
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.bootstrap.archived_topic.spec import topic_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check_source(session: SparkSession, source: BackfillSource, say: Callable[[str], None]) -> None:
    """See that a source can be read, with all of its rows."""
    from airflow_flinkcompat.backfill.connectors.kafka.read import is_compacted
    from airflow_flinkcompat.bootstrap.archived_topic.read import ArchivedTopicReader

    found = reader(session, source)
    found.check()
    topic = topic_of(source)
    if topic is None or (isinstance(found, ArchivedTopicReader) and not found.reads_topic()):
        return
    compacted = is_compacted(session, topic.topics)
    if compacted:
        raise BackfillError(
            f"table {topic.table}: {topic.place} is compacted (cleanup.policy), so that records between others are "
            "gone; name an archive of all that the job has read, with the offsets that they had"
        )
    if compacted is None:
        say(f"whether {topic.place} is compacted its brokers do not tell this user: one that is has lost rows")
