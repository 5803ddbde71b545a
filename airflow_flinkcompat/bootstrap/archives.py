"""Where the rows of history lie: as declared, at a place named for a table, or in a topic's archive and the topic."""

from __future__ import annotations

from dataclasses import dataclass, replace

from airflow_flinkcompat.backfill.connectors.files.spec import FileSource
from airflow_flinkcompat.backfill.connectors.kafka.spec import KafkaSource
from airflow_flinkcompat.backfill.connectors.locations import TableLocations
from airflow_flinkcompat.backfill.errors import Untranslatable
from airflow_flinkcompat.backfill.protocols import BackfillSource
from airflow_flinkcompat.bootstrap.archived_topic.spec import ArchivedTopic
from airflow_flinkcompat.bootstrap.time_boundary.spec import BoundaryArchive, names_a_time
from airflow_flinkcompat.plan.nodes import Table
from airflow_flinkcompat.savepoint.source_positions import FilesRead


@dataclass(frozen=True)
class HistoryLocations(TableLocations):
    """Places of which ``URI#…`` names an archive of a topic.

    Behind ``#`` stand its columns that tell partition and offset, ``PARTITION,OFFSET``, or the event time from which on
    rows come from the topic.
    """

    def source(self, table: Table) -> BackfillSource:
        """Where a table is read from."""
        name = table.path[2]
        uri, mark, joined = self.tables.get(name, "").partition("#")
        if not mark:
            return super().source(table)
        if table.option("connector") != "kafka":
            raise Untranslatable(
                f"table {table.name} is no topic, to which {uri} would be joined as its archive: leave out #{joined}",
                table.span,
            )
        of = BoundaryArchive.of if names_a_time(joined) else ArchivedTopic.of
        return of(table, KafkaSource.of(table), TableLocations({name: uri}).source, joined)


@dataclass(frozen=True)
class AssumedHistory(HistoryLocations):
    """The same before it is known what a job had read."""

    def source(self, table: Table) -> BackfillSource:
        """Where a table is read from."""
        found = super().source(table)
        if not isinstance(found, FileSource):
            return found
        if table.option("connector") == "kafka":
            raise Untranslatable(no_positions(table, found), table.span)
        return replace(found, read=FilesRead(frozenset(), (), ()))


def require_looks(table: Table) -> None:
    """Sees that a source of files keeps which ones it has found."""
    if table.option("connector") == "filesystem" and table.option("source.monitor-interval") is None:
        raise Untranslatable(
            f"table {table.name} is read once, by a job that ends: with source.monitor-interval it goes on, and its "
            "savepoints tell which files it has found",
            table.span,
        )


def no_positions(table: Table, found: BackfillSource) -> str:
    """Why rows of a place are not told by the positions of the source of its table."""
    name = table.path[2]
    columns = f"; name its columns of partition and offset: {name}=URI#PARTITION,OFFSET"
    time = f", or the event time below which its rows are read: {name}=URI#2026-01-31T00:00:00Z"
    remedy = columns + time if table.option("connector") == "kafka" else ""
    return f"which rows of {found.place} the job had read from table {table.name} its positions do not say{remedy}"
