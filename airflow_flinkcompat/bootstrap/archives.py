"""Where the rows of history lie: as declared, at a place named for a table, or in a topic's archive and the topic."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_flinkcompat.backfill.connectors.files.spec import FileSource
from airflow_flinkcompat.backfill.connectors.kafka.spec import KafkaSource
from airflow_flinkcompat.backfill.connectors.locations import AssumedLocations, TableLocations
from airflow_flinkcompat.backfill.errors import Untranslatable
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.bootstrap.archived_topic.spec import ArchivedTopic
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.savepoint.source_positions import FilesRead


@dataclass(frozen=True)
class HistoryLocations(TableLocations):
    """Places of which ``URI#PARTITION,OFFSET`` names an archive, with its columns that tell partition and offset."""

    def source(self, table: Table) -> BackfillSource:
        """Where a table is read from.

        Args:
            table: One that the job reads.

        Returns:
            The source.

        Raises:
            BackfillError: Where it lies is not known, or it is not read exactly.
        """
        name = table.path[2]
        uri, mark, columns = self.tables.get(name, "").partition("#")
        if not mark:
            return super().source(table)
        if table.option("connector") != "kafka":
            raise Untranslatable(
                f"table {table.name} is no topic, and {uri} is named with columns of partition and offset: leave out "
                f"#{columns}",
                table.span,
            )
        return ArchivedTopic.of(table, KafkaSource.of(table), TableLocations({name: uri}).source, columns)


@dataclass(frozen=True)
class AssumedHistory(HistoryLocations, AssumedLocations):
    """The same before all places are named, and before it is known what a job had read."""

    def source(self, table: Table) -> BackfillSource:
        """Where a table is read from.

        Args:
            table: One that the job reads.

        Returns:
            The source.

        Raises:
            BackfillError: No place would do.
        """
        found = super().source(table)
        return replace(found, read=FilesRead(frozenset(), (), ())) if isinstance(found, FileSource) else found
