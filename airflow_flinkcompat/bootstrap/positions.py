"""The rows of a table below the positions of a savepoint: exactly those that the job had read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from airflow_flinkcompat.backfill.connectors.files.spec import FileSource
from airflow_flinkcompat.backfill.connectors.kafka.spec import KafkaSource, Position
from airflow_flinkcompat.backfill.errors import Untranslatable
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.bootstrap.archived_topic.spec import TopicWithArchive
from airflow_flinkcompat.bootstrap.archives import HistoryLocations, no_positions, require_looks
from airflow_flinkcompat.bootstrap.source_ends import SourceEnd
from airflow_flinkcompat.exec_graph.exec_node import last_name
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.savepoint.metadata import OperatorState
from airflow_flinkcompat.savepoint.source_positions import file_positions, kafka_positions
from airflow_flinkcompat.savepoint.store import read_metadata


@dataclass(frozen=True)
class RowsRead(HistoryLocations):
    """Places of tables of which only what a job had read is read.

    Attributes:
        savepoint: Path or URI of the job's savepoint.
        readers: By the name of a table what the savepoint holds of its source.
        new_tables: The tables of which it holds nothing, as the job did not read them.
        ends: How far each of these is read, once that is known.
    """

    savepoint: str = ""
    readers: Mapping[str, OperatorState] = field(default_factory=dict)
    new_tables: frozenset[str] = frozenset()
    ends: Mapping[str, SourceEnd] = field(default_factory=dict)

    def source(self, table: Table) -> BackfillSource:
        """Where a table is read from, and how far."""
        found, name = super().source(table), table.path[2]
        if name in self.new_tables:
            return self.ends[name].source if name in self.ends else found
        operator = self.readers.get(name)
        if operator is None:
            raise Untranslatable(f"the savepoint tells no positions of table {table.name}", table.span)
        connector = table.option("connector")
        if isinstance(found, TopicWithArchive):
            return replace(found, topic=_of_topic(found.topic, operator, self.savepoint))
        if isinstance(found, KafkaSource) and connector == "kafka":
            return _of_topic(found, operator, self.savepoint)
        if isinstance(found, FileSource) and connector == "filesystem":
            require_looks(table)
            read = file_positions(operator, self.savepoint)
            if not read.seen and (read.waiting or read.begun):
                raise Untranslatable(
                    f"table {table.name}: the savepoint is of a source that looked once, and does not tell which files "
                    "that had found",
                    table.span,
                )
            return replace(found, read=read)
        raise Untranslatable(no_positions(table, found), table.span)


def read_positions(savepoint: str, sources: Mapping[str, str], tables: Mapping[str, str]) -> RowsRead:
    """Where the rows lie that the job of a savepoint had read."""
    held: Mapping[str, OperatorState] = {each.id: each for each in read_metadata(savepoint).operators}
    readers = {last_name(name): held[number] for name, number in sources.items() if number in held}
    return RowsRead(tables=dict(tables), savepoint=savepoint, readers=readers)


def _of_topic(source: KafkaSource, operator: OperatorState, savepoint: str) -> KafkaSource:
    if len(source.topics.names) > 1:
        raise Untranslatable(f"table {source.table}: several topics are not read by positions yet")
    offsets = tuple((each.partition, each.offset) for each in kafka_positions(operator, savepoint))
    return replace(source, end=Position("read", offsets=offsets))
