"""Computation of operator state with Spark, which adds to the state of a savepoint."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from airflow_flinkcompat.backfill.compile.compiler import push_down_ranges
from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.exec_graph.layout import StateLayout
from airflow_flinkcompat.exec_graph.migration import OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateSpec
from airflow_flinkcompat.exec_graph.rewriting import as_it_is
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.entries import LocalClock
from airflow_flinkcompat.history.entry_writer import SCHEMA, EntryWriter
from airflow_flinkcompat.history.prepared import NOTHING, PreparedExecution, PreparedFolder, PreparedHistory, can_resume
from airflow_flinkcompat.history.queries import state_query
from airflow_flinkcompat.history.sampling import WrittenKeys, check_sample, sample_of, write_sample
from airflow_flinkcompat.history.sources import SourceEnd, check_source
from airflow_flinkcompat.history.state_rows import StateQuery
from airflow_flinkcompat.history.table_rows import LONG_AGO
from airflow_flinkcompat.history.watermarks import least_watermark
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.migration.computed import ComputedOperator, Differences
from airflow_flinkcompat.migration.rewriting import OperatorRewriting
from airflow_flinkcompat.migration.slices import reached as how_far
from airflow_flinkcompat.migration.slices import watermarks
from airflow_flinkcompat.migration.workers import Scattered
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.savepoint.keyed_state import group_parts, group_ranges, keyed_headers
from airflow_flinkcompat.savepoint.metadata import KeyGroups, OperatorState
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.secrets.placeholders import environment_lookup, placeholders_in_script, redactor_of
from airflow_flinkcompat.spark_migration import SparkWorkers

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import Row, SparkSession


R = TypeVar("R")
_NOTHING_STORED = "the operator receives rows only when a window ends and emits them immediately"


@dataclass(frozen=True)
class HistoryComputer:
    """Computer of state from the rows that a job had read by its savepoint.

    Attributes:
        sample: Number of keys per operator that plain Python recomputes.
        reached: Watermarks in milliseconds by operator id, if the job has never run.
        new_sources: End positions by source id, if the savepoint lacks a source.
    """

    session: SparkSession
    workers: SparkWorkers
    side: Side
    locations: TableLocations
    say: Callable[[str], None] = lambda line: None
    accepts: bool = False
    prepared: PreparedHistory = NOTHING
    sample: int = 0
    reached: Mapping[str, int] = field(default_factory=dict)
    new_sources: Mapping[str, SourceEnd] = field(default_factory=dict)

    def regroup(
        self,
        wanted: ComputedOperator,
        scatter: Callable[[tuple[KeyGroups, range]], Scattered],
        parts: Sequence[tuple[KeyGroups, range]],
        gather: Callable[[range, Iterable[tuple[int, bytes]]], R],
        groups: Sequence[range],
    ) -> list[R]:
        """Scatter stored entries by key group, add computed entries, and gather both by key group."""
        spec = wanted.made.new
        assert spec is not None
        watermark = self.reached.get(spec.id, wanted.watermark)
        with self.reading(spec.name):
            query = self.query(spec, watermark, wanted.made.stored_windows_are_open)
            entries = self.entries(query, replace(wanted, watermark=watermark))
            return self.workers.regroup(scatter, parts, gather, groups, entries)

    def advance_source(self, source: OperatorState, template: str) -> OperatorState:
        """State of a source that the old savepoint lacks.

        The source starts after the rows that the history covers.
        """
        if source.id not in self.new_sources:
            raise NotMigratable(
                f"the history of {source.name or source.id} has no known end, after which the new source could start"
            )
        return self.new_sources[source.id].advance_source(source, template)

    def report_differences(self, operator: str, found: Differences) -> None:
        """Report differences between history and the savepoint; raise HistoryDiffers unless they are accepted."""
        if found and not self.accepts:
            raise found.to_error(operator)
        if found:
            self.say(
                f"{operator}: the history differs from the rows that the job has read, which was accepted. "
                f"Differing keys or windows: {found}"
            )

    def check_sample(self, wanted: ComputedOperator, written: Sequence[KeyGroups], folder: str) -> None:
        """Recompute some keys in plain Python and compare them with the written keys."""
        spec = wanted.made.new
        assert spec is not None
        if not self.sample:
            return
        watermark = self.reached.get(spec.id, wanted.watermark)
        prefix = f"{spec.name}: no key was recomputed in plain Python:"
        with self.reading(spec.name):
            query = state_query(self.side, spec, self.locations, watermark)
            if not query.states:
                self.say(f"{prefix} {_NOTHING_STORED}")
                return
            if wanted.made.stored_windows_are_open:
                self.say(f"{prefix} only the savepoint shows which windows were emitted")
                return
            if not query.plain:
                self.say(f"{prefix} recomputation supports only GROUP BY, windows and joins without a state TTL")
                return
            before = [sample_of(self.session, self.prepared, each, watermark) for each in query.plain]
            prepared = any(self.prepared.covers(push_down_ranges(each.steps), watermark) for each in query.states)
            if prepared and None in before:
                self.say(
                    f"{prefix} the prepared history contains no recomputed keys, and prepared rows are not read again"
                )
                return
            state = WrittenKeys(spec.name, folder, written, query.key, wanted.max_parallelism)
            keys = 0
            for each, found in zip(query.plain, before, strict=True):
                rows, sample = found or (each, None)
                keys += check_sample(self.session, rows, watermark, state, self.workers, self.sample, sample)
        if keys:
            self.say(f"{spec.name}: the state of {keys} keys is equal when recomputed in plain Python")
        else:
            self.say(f"{prefix} there is no key, or the sampled keys have too many rows")

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """Add the name of the operator to errors of the block, and remove secrets from their messages."""
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        redactor = redactor_of(placeholders_in_script(self.side.script), environment_lookup(os.environ))
        try:
            yield
        except NotComputable as error:
            raise NotMigratable(f"{what} cannot be computed from history: {error}") from None
        except BackfillError as error:
            raise NotMigratable(f"the history of {what} cannot be read: {redactor(str(error))}") from None
        except (PySparkException, Py4JError) as error:
            reason = redactor(str(error)).splitlines()[0]
            raise NotMigratable(f"the history of {what} cannot be read: {reason}") from None

    def query(self, spec: StateSpec, watermark: int | None, stored_windows_are_open: bool = False) -> StateQuery:
        """Build the query for an operator's state; raise NotComputable if history does not determine it."""
        from pyspark.sql import functions as F

        from airflow_flinkcompat.backfill.execution.frames import Execution

        query = state_query(self.side, spec, self.locations, watermark)
        if query.clocks:
            watermark = min(least_watermark(self.session, rows) for rows in query.clocks)
            query = state_query(self.side, spec, self.locations, watermark)
        timed = query.in_windows or not query.stores_watermark
        if watermark is None and query.states and timed and not stored_windows_are_open:
            raise NotComputable("the savepoint does not store the watermark of this operator")
        if watermark is not None:
            LocalClock(query.zone).reached(watermark)
        for doubt in query.doubts:
            open_yet = F.col("c0") > (max(watermark or 0, LONG_AGO) + 1) * 1000
            if Execution(self.session).frame(doubt.steps).where(open_yet).take(1):
                raise NotComputable(doubt.reason)
        return query

    def describe_reads(self, spec: StateSpec, watermark: int | None) -> Sequence[str]:
        """Describe the rows from which an operator's state is computed, without secrets."""
        with self.reading(spec.name):
            query = state_query(self.side, spec, self.locations)
        if not query.states:
            return [f"{spec.name} is empty: {_NOTHING_STORED}"]
        prepared = all(self.prepared.covers(push_down_ranges(each.steps), watermark) for each in query.states)
        remark = ", after the prepared rows" if prepared else ""
        if query.time_to_live:
            remark += "; the arrival time of a row is taken as the last write time of its value"
        return [
            f"{spec.name} is computed from {read.source.place}, up to the job's position{remark}"
            for read in query.reads
        ]

    def entries(self, query: StateQuery, wanted: ComputedOperator) -> RDD[tuple[int, bytes]]:
        from airflow_flinkcompat.backfill.execution.ordered import ARRIVAL

        execution = PreparedExecution(self.session, self.prepared, wanted.watermark)
        steps = [push_down_ranges(each.steps) for each in query.states]
        for source in {source: None for each in steps for source in execution.sources(each)}:
            check_source(self.session, source, self.say)
        entries = []
        for each, step in zip(query.states, steps, strict=True):
            writer = EntryWriter(
                query.key,
                each.state,
                wanted.header,
                wanted.max_parallelism,
                query.windows,
                query.spans,
                wanted.watermark,
                query.zone,
                each.moment,
                wanted.now - query.time_to_live,
            )
            with execution.planning():
                frame = execution.frame(step).drop(ARRIVAL)
                entries.append(frame.mapInArrow(writer.batches, SCHEMA).rdd.map(_group_and_entries))
        return self.session.sparkContext.union(entries or [self.session.sparkContext.parallelize([], 1)])


def _group_and_entries(row: Row) -> tuple[int, bytes]:
    return row[0], bytes(row[1])


def audit(computer: HistoryComputer, savepoint: str, spec: StateSpec) -> Differences:
    """Compare an operator's state in a savepoint with the state computed from history."""
    held = {each.id: each for each in read_metadata(savepoint).operators}
    if spec.id not in held:
        raise SavepointUnreadable(f"{savepoint} has no operator {spec.name}: pass a savepoint of this script")
    operator = held[spec.id]
    watermark = computer.reached.get(spec.id, how_far(spec, operator, savepoint, computer.workers))
    query = computer.query(spec, watermark)
    if query.incomparable:
        raise NotComputable(query.incomparable)
    assert isinstance(spec.layout, StateLayout)
    keyed = tuple(each.keyed for each in operator.subtasks or () if each.keyed is not None)
    if not keyed:
        raise NotComputable(f"the savepoint contains no keyed state of {spec.name}")
    header = next(keyed_headers(operator, savepoint))
    states = tuple(as_it_is(each, each) for each in spec.layout.states)
    line = OperatorMigration(
        RestoreEffect.REWRITTEN, spec, spec, "", tuple(range(len(spec.layout.key))), states, from_history=True
    )
    wanted = ComputedOperator(line, header, operator.max_parallelism, watermark, round(time.time() * 1000))
    widths = operator.max_parallelism, operator.max_parallelism
    work = OperatorRewriting(savepoint, keyed, line, header, widths, "", 0)
    ranges = group_ranges(operator.max_parallelism, computer.workers.parts(0, operator.max_parallelism))
    found, parts = Differences(), group_parts(keyed, computer.workers.parts)
    with computer.reading(spec.name):
        entries = computer.entries(query, wanted)
        for part in computer.workers.regroup(work.scatter, parts, work.compare, ranges, entries):
            found += part
    return found


def prepare(
    asked: Sequence[tuple[HistoryComputer, StateSpec]], savepoint: str, folder: str, say: Callable[[str], None]
) -> None:
    """Aggregate the rows that a job had read by a savepoint, and store the result for a later run."""
    # Subtasks may have different watermarks. The lowest watermark excludes no window that is still open.
    watermark = min(
        (time for each in read_metadata(savepoint).operators for time in watermarks(each, savepoint)), default=None
    )
    first, _ = asked[0]
    with first.reading("the prepared history"):
        prepared = PreparedFolder(first.session, folder)
    for computer, spec in asked:
        with computer.reading(spec.name):
            query = state_query(computer.side, spec, computer.locations, watermark)
            for read in query.reads:
                check_source(computer.session, read.source, say)
            found = [push_down_ranges(each.steps) for each in query.states]
            if unmerged := sum(not can_resume(each) for each in found):
                say(
                    f"{spec.name}: {unmerged} of {len(found)} states cannot be prepared. These states are "
                    "computed from all rows after the job has stopped"
                )
            # Without slices, the operator stores no watermark to compare with, so no row may be omitted.
            reached = watermark if query.windows is not None else None
            for each in found:
                prepared.write_groups(each, reached, say)
            resumed = any(prepared.written.covers(each, reached) for each in found)
            if computer.sample and not query.spans and resumed:
                for plain in query.plain:
                    write_sample(prepared, plain, query.states, reached, computer.sample)
    with first.reading("the prepared history"):
        prepared.finish()
