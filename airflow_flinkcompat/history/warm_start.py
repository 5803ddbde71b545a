"""Warm start of a new job: a savepoint as if the job had already read its tables.

The savepoint is written like the savepoint of a migration, but from a modified template instead of an old savepoint.
End positions and the watermark of the rows are written into the template, as if the job had read all rows without
storing keyed state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.steps import reads_of
from airflow_flinkcompat.compat.migration_report import MIGRATED_LINES, MigratedOperator, MigrationReport
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.exec_graph.exec_node import CompiledPlan, last_name
from airflow_flinkcompat.exec_graph.layout import Unknown
from airflow_flinkcompat.exec_graph.migration import Migration, MigrationExtent, OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.history.known_history import KnownHistory, history_session, history_spark
from airflow_flinkcompat.history.parsed_topic import ParsedTopic
from airflow_flinkcompat.history.queries import preview, state_query
from airflow_flinkcompat.history.sources import (
    ALL,
    EPOCH,
    RESUMES_AFTER_ROWS,
    AssumedHistory,
    HistoryLocations,
    SourceEnd,
    SourceEnds,
    TopicEnd,
    Until,
    check_source,
    end_of,
    resumable,
)
from airflow_flinkcompat.history.watermarks import NEVER, watermark
from airflow_flinkcompat.migration.slices import watermarks, with_watermark
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.plan.nodes import Scan, Table
from airflow_flinkcompat.savepoint.metadata import Inline, KeyGroups, OperatorState, SavepointMetadata, SubtaskState
from airflow_flinkcompat.savepoint.store import METADATA, read_handle, read_metadata
from airflow_flinkcompat.spark_migration import SparkWorkers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_flinkcompat.history.computing import HistoryComputer


_WARM = "WARM START: all state is computed from history"
_NOT_WARM = "NO WARM START: some state cannot be computed from history, so no savepoint is written"


@dataclass(frozen=True)
class WarmStart:
    """Initial state of a job that has never run.

    ``until``: End positions by table name. Other tables are read completely. ``reasons``: Why state is incomplete, by
    the name of its source or operator; empty if all state is complete.
    """

    side: Side
    plan: CompiledPlan
    history: KnownHistory
    until: Mapping[str, Until]
    state: Migration
    reasons: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, own: Migration, side: Side, plan: CompiledPlan, history: KnownHistory, until: Mapping[str, Until]
    ) -> WarmStart:
        """Determine the initial state of a job, without Spark."""
        lines = Migration(tuple(_line(line.new) for line in own.operators if line.new is not None))
        state, reasons = history.extend(lines, side, begins=True)
        started = cls(side, plan, history, until, state)
        return replace(started, reasons=dict(started._missing(reasons)))

    def _missing(self, found: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        read = {last_name(spec.name) for spec in self._sources}
        if unknown := sorted(self.until.keys() - read):
            raise InputError(
                f"--until {unknown[0]}: the script reads no table with this name. The script reads "
                f"{', '.join(sorted(read))}"
            )
        if self.side.version not in MIGRATED_LINES:
            tested = " and ".join(MIGRATED_LINES)
            yield "the job", f"computing state was tested only with Flink {tested}, not with {self.side.version}"
        for node in self.plan.nodes:
            if not node.inputs and not any(_is_of(node.config, spec) for spec in self._sources):
                yield node.description, "this source stores no positions, so the job would read its rows again"
        for spec in self._sources:
            try:
                self._resumable(spec)
            except BackfillError as error:
                yield last_name(spec.name), str(error)
        for line in self.state.operators:
            kept = line.new
            if kept is not None and kept.kind is StateKind.OPERATOR and line.effect is not RestoreEffect.COMPUTED:
                reason = kept.layout.reason if isinstance(kept.layout, Unknown) else "its state layout is unknown"
                yield kept.name, found.get(kept.name, reason)
            elif kept is not None and kept.kind is StateKind.OPERATOR:
                query = state_query(self.side, kept, AssumedHistory(self.history.places))
                untimed = [table.name for table in query.tables if table.watermark is None]
                if untimed and (query.in_windows or not query.stores_watermark):
                    yield kept.name, f"table {untimed[0]} declares no watermark, so its rows do not determine one"

    @property
    def report(self) -> MigrationReport:
        lines = (
            line
            if line.new is None or line.new.kind is not StateKind.POSITIONS
            else replace(line, effect=RestoreEffect.EMPTY)
            if last_name(line.new.name) in self.reasons
            else replace(line, effect=RestoreEffect.COMPUTED, reason=RESUMES_AFTER_ROWS)
            for line in self.state.operators
        )
        kept = MigrationExtent.NONE if self.reasons else MigrationExtent.WHOLE
        return MigrationReport(kept, tuple(map(MigratedOperator.of, lines)))

    @property
    def headline(self) -> str:
        """Sentence about the warm start that begins with words in capitals."""
        return _NOT_WARM if self.reasons else _WARM

    def preview(self) -> Iterator[str]:
        """Describe the rows that a run reads and the inexact parts of its result, without Spark."""
        lines = (line for line in self.state.operators if line.effect is RestoreEffect.COMPUTED)
        specs = [line.new for line in lines if line.new is not None and line.new.kind is StateKind.OPERATOR]
        places = AssumedHistory(self.history.places)
        yield from preview(self.side, specs, places, "up to --until, or up to its end when the command runs")

    @property
    def _sources(self) -> Sequence[StateSpec]:
        return [line.new for line in self.state.operators if line.new and line.new.kind is StateKind.POSITIONS]

    def _table(self, spec: StateSpec) -> Table:
        """Find the table of a source; raise BackfillError if it is ambiguous or has no history."""
        name = last_name(spec.name)
        found = [table for table in self.side.program.tables if table.path[2] == name]
        if len(found) != 1:
            raise BackfillError(f"the script declares {len(found)} tables with this name: exactly one is required")
        if name not in self.history.tables:
            raise BackfillError(f"the history of table {name} is not specified: pass --history {name}")
        return found[0]

    @property
    def _locations(self) -> TableLocations:
        return HistoryLocations(tables=self.history.places)

    def _resumable(self, spec: StateSpec) -> Table:
        table = self._table(spec)
        resumable(table, self._locations)
        return table

    @contextmanager
    def ready(self) -> Iterator[None]:
        """Context that checks the rows, and keeps a Spark session for the computation."""
        with history_spark(self.history.master, [(self.side, self._locations)]) as session:
            for name, end in self._ends(session).items():
                source = SourceEnds(ends=((name, end),)).source(self._tables[name])
                check_source(session, source, lambda line: None)  # Warnings are printed when the rows are read.
            yield

    @property
    def _tables(self) -> Mapping[str, Table]:
        """Tables with history, by name; raise BackfillError if one has no history."""
        return {last_name(spec.name): self._table(spec) for spec in self._sources}

    def _ends(self, session: SparkSession) -> dict[str, SourceEnd]:
        """Current end of each table, by name. Raises BackfillError if a table has no history."""
        return {
            name: end_of(session, resumable(table, self._locations), self.until.get(name, ALL))
            for name, table in self._tables.items()
        }

    @contextmanager
    def computing(self, template: str, say: Callable[[str], None]) -> Iterator[tuple[str, HistoryComputer]]:
        """Context that yields a folder with the initial savepoint and the computer of state."""
        from airflow_flinkcompat.history.computing import HistoryComputer

        with history_session(self.history.master, [(self.side, self._locations)], say) as session:
            ends = self._ends(session)
            for name, end in ends.items():
                say(f"{name} is read up to {end}")
            locations = self._parsed_once(ends)
            sample = self.history.sample
            computer = HistoryComputer(session, SparkWorkers(session), self.side, locations, say, sample=sample)
            with TemporaryDirectory(prefix="flinkcompat-warm-start-") as folder:
                head, reached = self._unfilled(template, computer, locations, say)
                Path(folder, METADATA).write_bytes(head.to_bytes())
                yield folder, replace(computer, reached=reached)

    def _parsed_once(self, ends: Mapping[str, SourceEnd]) -> SourceEnds:
        """Locations at which every read of a topic selects the columns that any operator needs."""
        of_ends = SourceEnds(ends=tuple(ends.items()))
        specs = [line.new for line in self.state.operators if line.new and line.new.kind is StateKind.OPERATOR]
        queries = [state_query(self.side, spec, of_ends) for spec in specs]
        reads = [read.source for query in queries for each in query.states for read in reads_of(each.steps)]

        def selecting(end: SourceEnd) -> SourceEnd:
            if not isinstance(end, TopicEnd) or not isinstance(end.source, ParsedTopic):
                return end
            return replace(end, source=end.source.selected_by(reads))

        return SourceEnds(ends=tuple((name, selecting(end)) for name, end in ends.items()))

    def _unfilled(
        self, template: str, computer: HistoryComputer, ends: SourceEnds, say: Callable[[str], None]
    ) -> tuple[SavepointMetadata, Mapping[str, int]]:
        """Return the template with positions, watermarks and no keyed entries; also watermarks by operator."""
        head = read_metadata(template)
        specs = {line.new.id: line.new for line in self.state.operators if line.new is not None}
        by_name = dict(ends.ends)
        of_tables: dict[str, int] = {}
        reached: dict[str, int] = {}
        shown: list[str] = []

        def filled(operator: OperatorState) -> OperatorState:
            spec = specs.get(operator.id)
            if spec is not None and spec.kind is StateKind.POSITIONS:
                return by_name[last_name(spec.name)].advance_source(operator, template)
            if spec is None or spec.kind is StateKind.SINK:
                return _empty(operator)
            query = state_query(self.side, spec, computer.locations)
            if not list(watermarks(operator, template)) and query.stores_watermark:
                return _empty(operator)
            for table in query.tables:
                if table.name not in of_tables:
                    of_tables[table.name] = self._watermark(computer, table, ends)
            # For an operator with several inputs, Flink uses the lowest watermark of the inputs.
            slowest = min(query.tables, key=lambda table: of_tables[table.name])
            if (text := _watermark_text(slowest, of_tables[slowest.name], not query.stores_watermark)) not in shown:
                shown.append(text)
                say(text)
            reached[spec.id] = of_tables[slowest.name]
            return with_watermark(operator, template, reached[spec.id])

        made = tuple(_with_headers_of(each, filled(each), template) for each in head.operators)
        return replace(head, operators=made), reached

    def _watermark(self, computer: HistoryComputer, table: Table, ends: SourceEnds) -> int:
        pipeline = next(
            each
            for each in self.side.program.pipelines
            if any(isinstance(node, Scan) and node.table == table for node in each.sink.nodes)
        )
        with computer.reading(f"table {table.name}"):
            return watermark(computer.session, pipeline, self.plan, table, ends)


def _line(spec: StateSpec) -> OperatorMigration:
    """Migration of a state as if the job had read all rows and stored no keyed state."""
    if spec.kind is StateKind.POSITIONS:
        return OperatorMigration(RestoreEffect.RIGHT, spec, spec, "")
    return OperatorMigration(RestoreEffect.EMPTY, spec, spec, "")


def _is_of(config: Mapping[str, Any], spec: StateSpec) -> bool:
    return "scanTableSource" in config and config["scanTableSource"]["table"]["identifier"] == spec.name


def _empty(operator: OperatorState) -> OperatorState:
    subtasks = tuple(SubtaskState(each.index) for each in operator.subtasks or ())
    return replace(operator, coordinator=None, subtasks=subtasks)


def _with_headers_of(template: OperatorState, filled: OperatorState, path: str) -> OperatorState:
    """Copy the keyed state headers of the template, which has no keys, into an operator."""

    def inline(keyed: KeyGroups | None) -> KeyGroups | None:
        return keyed and replace(keyed, handle=Inline("headers", read_handle(keyed.handle, path)))

    keyed = {each.index: inline(each.keyed) for each in template.subtasks or ()}
    subtasks = filled.subtasks and tuple(replace(each, keyed=keyed[each.index]) for each in filled.subtasks)
    return replace(filled, subtasks=subtasks)


def _watermark_text(table: Table, reached: int, of_rows: bool) -> str:
    if reached == NEVER:
        begins = "none of the table's rows is treated as emitted" if of_rows else "all windows over the table are open"
        return f"table {table.name} has no watermark yet: {begins}"
    time = (EPOCH + timedelta(milliseconds=reached + 1)).replace(tzinfo=None).isoformat(timespec="milliseconds")
    of = {column.name: column.type.name for column in table.columns}
    if table.watermark is not None and of[table.watermark.column] == "TIMESTAMP_LTZ":
        time += "Z"
    if of_rows:
        return (
            f"results for rows of table {table.name} before {time} are treated as emitted: run a backfill to "
            "compute them"
        )
    return f"windows over table {table.name} that end by {time} are treated as emitted: run a backfill to compute them"
