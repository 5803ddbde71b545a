"""Computes the state of a job's operators with Spark, beside what a savepoint holds of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_flinkcompat.backfill.connectors.registry import reader
from airflow_flinkcompat.backfill.errors import BackfillError
from airflow_flinkcompat.backfill.placeholder_values import driver_redactor
from airflow_flinkcompat.backfill.protocols import Needs
from airflow_flinkcompat.backfill.steps import reads_of
from airflow_flinkcompat.bootstrap.aggregations import AccumulatorQuery, NotComputable, accumulator_query
from airflow_flinkcompat.bootstrap.entries import EntryWriter
from airflow_flinkcompat.bootstrap.positions import RowsRead
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.migration import ComputedOperator, NotMigratable
from airflow_flinkcompat.migration.workers import Scattered
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.metadata import KeyGroups, OperatorState
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.spark_migration.workers import SparkWorkers
from airflow_flinkcompat.state.layout import StateField, StateLayout
from airflow_flinkcompat.state.migration import Migration
from airflow_flinkcompat.state.model import StateKind

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

R = TypeVar("R")


@dataclass(frozen=True)
class HistoryComputer:
    """Computes state from the rows that the job of a savepoint had read.

    Attributes:
        session: Of Spark.
        workers: On the same session.
        side: The new script.
        locations: Where the rows lie, and which of them were read.
    """

    session: SparkSession
    workers: SparkWorkers
    side: Side
    locations: RowsRead

    def regrouped(
        self,
        wanted: ComputedOperator,
        scatter: Callable[[tuple[KeyGroups, range]], Scattered],
        parts: Sequence[tuple[KeyGroups, range]],
        gather: Callable[[range, Iterable[tuple[int, bytes]]], R],
        groups: Sequence[range],
    ) -> list[R]:
        """Content scattered by the number of a key group, the computed entries beside it, gathered by it.

        Args:
            wanted: The operator.
            scatter: What of a part comes to which group.
            parts: All that is read of the old savepoint.
            gather: What to do with a range of groups.
            groups: The ranges, all groups together, in order.

        Returns:
            What came of each range, in order.

        Raises:
            NotMigratable: The state cannot be computed, or history cannot be read.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        redactor = driver_redactor((), os.environ)
        spec = wanted.made.new
        assert spec is not None
        assert isinstance(spec.layout, StateLayout)
        try:
            query = accumulator_query(self.side, spec, self.locations)
            (state,) = spec.layout.states
            writer = EntryWriter(
                spec.layout.key, state, wanted.header, wanted.max_parallelism, query.windows, wanted.watermark
            )
            computed = _plain(self._frame(query), query).rdd.mapPartitions(partial(_entries, writer))
            return self.workers.regrouped(scatter, parts, gather, groups, computed)
        except NotComputable as error:
            raise NotMigratable(f"{spec.name} cannot be computed from history: {error}") from None
        except BackfillError as error:
            raise NotMigratable(f"the history of {spec.name} cannot be read: {redactor(str(error))}") from None
        except (PySparkException, Py4JError) as error:
            told = redactor(str(error)).splitlines()[0]
            raise NotMigratable(f"the history of {spec.name} cannot be read: {told}") from None

    def _frame(self, query: AccumulatorQuery) -> DataFrame:
        from airflow_flinkcompat.backfill.execution.frames import Execution

        for read in reads_of(query.steps):
            reader(self.session, read.source).check()
        return Execution(self.session).frame(query.steps)


def _plain(frame: DataFrame, query: AccumulatorQuery) -> DataFrame:
    """The rows in values that Python reads exactly: times as numbers."""
    slices = (StateField("TIMESTAMP(3)"),) if query.windows is not None else ()
    fields = (*query.keys, *slices, *query.accumulators)
    return frame.selectExpr(*(_exact(field.type, f"c{i}") for i, field in enumerate(fields)))


def _exact(type: str, column: str) -> str:
    if type.startswith("TIMESTAMP"):
        return f"unix_micros(CAST({column} AS TIMESTAMP_LTZ)) AS {column}"
    if type.startswith("DATE"):
        return f"unix_date({column}) AS {column}"
    return column


def _entries(writer: EntryWriter, rows: Iterable[Any]) -> Iterator[tuple[int, bytes]]:
    return writer.entries(rows)


@contextmanager
def history_computer(
    side: Side,
    savepoint: str,
    migration: Migration,
    tables: Mapping[str, str],
    master: str | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Iterator[HistoryComputer]:
    """Who computes from history what a migration takes from it, on a Spark of its own or the one that is active.

    Args:
        side: The new script.
        savepoint: Path or URI of the old job's savepoint.
        migration: What becomes of its state.
        tables: Places that stand for those of tables, by name.
        master: Of Spark; None: all cores of this machine.
        say: Gets a line for what is read.

    Yields:
        The computer, with the workers on whom it computes.

    Raises:
        InputError: Spark does not start.
        NotMigratable: A state cannot be computed.
        SavepointUnreadable: The savepoint cannot be had from here.
    """
    from airflow_flinkcompat.backfill.spark.session import spark_session

    locations = read_positions(savepoint, migration, tables)
    computed = [line.new for line in migration.operators if line.from_history and line.new is not None]
    needs = Needs()
    for spec in computed:
        try:
            for read in reads_of(accumulator_query(side, spec, locations).steps):
                say(f"{spec.name} is computed from {read.source.place}, as far as the job had read it")
                needs |= read.source.needs
        except NotComputable as error:
            raise NotMigratable(f"{spec.name} cannot be computed from history: {error}") from None
    try:
        with spark_session(master, needs) as session:
            yield HistoryComputer(session, SparkWorkers(session), side, locations)
    except BackfillError as error:
        raise InputError(str(error)) from None


def read_positions(savepoint: str, migration: Migration, tables: Mapping[str, str]) -> RowsRead:
    """Where the rows lie that the job of a savepoint had read.

    Args:
        savepoint: Path or URI of it.
        migration: What becomes of its state; positions that go on are those up to which history is read.
        tables: Places that stand for those of tables, by name.

    Returns:
        The places, each with how far it is read.

    Raises:
        SavepointUnreadable: It cannot be had from here.
    """
    held: Mapping[str, OperatorState] = {each.id: each for each in read_metadata(savepoint).operators}
    lines = [line for line in migration.operators if line.keeps and line.new and line.old]
    readers = {
        line.new.name.rpartition(".")[2].strip("`"): held[line.old.id]
        for line in lines
        if line.new is not None and line.old is not None and line.new.kind is StateKind.POSITIONS
    }
    return RowsRead(tables=dict(tables), savepoint=savepoint, readers=readers)
