"""Find the state of a migration that past rows can supply, and compute that state with Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from airflow_flinkcompat.backfill.connectors.registry import TableLocations
from airflow_flinkcompat.backfill.protocols import Needs
from airflow_flinkcompat.backfill.result import BackfillError
from airflow_flinkcompat.backfill.spark import Effort, effort, pinned_snapshots, spark_session
from airflow_flinkcompat.backfill.spark_sql.windows import from_micros
from airflow_flinkcompat.compat.side import Side
from airflow_flinkcompat.exec_graph.exec_node import last_name
from airflow_flinkcompat.exec_graph.migration import SAMPLED_KEYS, Accept, Migration, OperatorMigration
from airflow_flinkcompat.exec_graph.model import RestoreEffect, StateKind, StateSpec
from airflow_flinkcompat.history.computable import requested_places, with_computable_state
from airflow_flinkcompat.history.derived_rows import NotComputable
from airflow_flinkcompat.history.entries import LocalClock
from airflow_flinkcompat.history.queries import preview, state_query
from airflow_flinkcompat.history.sources import ALL, AssumedHistory, end_of, read_positions, resumable
from airflow_flinkcompat.history.table_rows import LONG_AGO
from airflow_flinkcompat.migration import NotMigratable
from airflow_flinkcompat.migration.computed import Differences
from airflow_flinkcompat.migration.slices import least_begin, watermarks
from airflow_flinkcompat.model import InputError
from airflow_flinkcompat.savepoint.store import read_metadata
from airflow_flinkcompat.spark_migration import SparkWorkers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from airflow_flinkcompat.history.computing import HistoryComputer


@dataclass(frozen=True)
class _Job:
    """A job whose past input rows are read.

    ``sources``: Source ids in the savepoint, by the table names that plans use. ``new_sources``: Source ids that the
    savepoint lacks, by table name.
    """

    side: Side
    sources: Mapping[str, str]
    new_sources: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KnownHistory:
    """Tables whose past rows are available.

    Attributes:
        tables: Location of the rows by table name; "" for the location that the script declares.
        accepted: With :attr:`Accept.HISTORY`, stored state that differs from history is kept, and entries that only
        history contains are not written.
        prepared: Path or URI of a folder that :meth:`prepare` wrote; None to read all rows.
        sample: Number of keys per operator that Python recomputes before a savepoint is published.
        prepared_once: True if the folder ``prepared`` may no longer exist. If the folder does not exist, all rows are
            read.
    """

    tables: Mapping[str, str]
    master: str | None = None
    accepted: Collection[Accept] = ()
    prepared: str | None = None
    sample: int = SAMPLED_KEYS
    prepared_once: bool = False

    def extend(
        self, found: Migration, new: Side, old: Side | None = None, begins: bool = False
    ) -> tuple[Migration, Mapping[str, str]]:
        """Add computed state to a migration, if the rows that the old job has read are known."""
        return with_computable_state(found, new, old, self.tables, begins)

    def applied(self, found: Migration, old: Side, new: Side) -> Migration:
        """Apply :meth:`extend`, and add the reason to each state that is not computed."""
        made, reasons = self.extend(found, new, old)

        wanting = [
            line.new.name
            for line in made.operators
            if line.new and not line.from_history and line.effect not in (RestoreEffect.RIGHT, RestoreEffect.MOVED)
        ]

        def line(each: OperatorMigration) -> OperatorMigration:
            name = each.new.name if each.new else ""
            # Reasons are keyed by operator name, but several operators may have one name.
            if each.from_history or wanting.count(name) != 1 or name not in reasons:
                return each
            texts = (each.reason, f"not computed from history, because {reasons[name]}")
            return replace(each, reason="; ".join(filter(None, texts)))

        return replace(made, operators=tuple(map(line, made.operators)))

    @contextmanager
    def computing(
        self, old: Side, new: Side, savepoint: str, migration: Migration, say: Callable[[str], None]
    ) -> Iterator[HistoryComputer]:
        """Context that computes state for a migration, after it has compared replaced state with its history."""
        lines = [line for line in migration.operators if line.from_history]
        jobs = self._jobs(old, new, migration)
        held = {each.id: each for each in read_metadata(savepoint).operators}
        with self._computers(*jobs, savepoint=savepoint, say=say) as (computer, former):
            for line in lines:
                assert line.new is not None
                of_old = held.get(line.old.id) if line.old is not None else None
                reached = () if of_old is None else watermarks(of_old, savepoint)
                for sentence in computer.describe_reads(line.new, min(reached, default=None)):
                    say(sentence)
            for line in lines:
                if line.stored_windows_are_open and line.new is not None:
                    say(
                        f"{line.new.name}: the windows in the savepoint are completed, and all other windows are "
                        "treated as emitted"
                    )
            for sentence in self.describe_emitted_windows(new, savepoint, migration):
                say(sentence)
            _report_compared(former, _replaced(lines), savepoint)
            yield computer

    def prepare(
        self, old: Side, new: Side, savepoint: str, migration: Migration, folder: str, say: Callable[[str], None]
    ) -> None:
        """Aggregate history while the old job still runs. :meth:`computing` later reads only newer rows."""
        from airflow_flinkcompat.history.computing import prepare

        with self._computers(*self._jobs(old, new, migration), savepoint=savepoint) as (computer, former):
            lines = [line for line in migration.operators if line.from_history]
            asked = [(computer, line.new) for line in lines if line.new is not None]
            asked += [(replace(former, sample=0), spec) for spec in _replaced(lines)]
            prepare(asked, savepoint, folder, say)

    def sent_until(self, new: Side, savepoint: str, migration: Migration) -> datetime | None:
        """End of the windows that were emitted without the computed state.

        A backfill must complete the results of these windows.
        """
        return _moment(min(self._sent(new, savepoint, migration).values(), default=LONG_AGO))

    def describe_emitted_windows(self, new: Side, savepoint: str, migration: Migration) -> Iterator[str]:
        """Describe the windows that were emitted without the computed state."""
        sent = self._sent(new, savepoint, migration)
        several = len(set(sent.values())) > 1
        for spec, reached in sent.items() if several else [*sent.items()][:1]:
            if (moment := _moment(reached)) is not None:
                until = moment.isoformat(timespec="milliseconds")
                whose = f"{spec.name}: " if several else ""
                yield f"{whose}windows that end by {until} are treated as emitted: run a backfill to complete them"

    def _sent(self, new: Side, savepoint: str, migration: Migration) -> Mapping[StateSpec, int]:
        """Watermark of each window operator, in milliseconds of the operator's local clock."""
        held = {each.id: each for each in read_metadata(savepoint).operators}
        found: dict[StateSpec, int] = {}

        def reached(spec: StateSpec, moment: int) -> None:
            found[spec] = min(moment, found.get(spec, moment))

        for line in migration.operators:
            if not line.from_history or line.new is None or line.old is None or line.old.id not in held:
                continue
            if line.stored_windows_are_open:
                begun = least_begin(held[line.old.id], savepoint)
                if begun is not None:
                    reached(line.new, begun - 1)
                continue
            query = state_query(new, line.new, AssumedHistory(self.places))
            if query.in_windows:
                clock = LocalClock(query.zone)
                for time in watermarks(held[line.old.id], savepoint):
                    reached(line.new, clock.reached(time) if time > LONG_AGO else time)
        return found

    def preview(self, old: Side, new: Side, migration: Migration, savepoint: str | None) -> Iterator[str]:
        """Describe what :meth:`computing` would read and which results are inexact, without Spark."""
        specs = [line.new for line in migration.operators if line.from_history and line.new is not None]
        places, extent = AssumedHistory(self.places), "up to the job's position when it stops"
        try:
            if savepoint is None:
                yield from preview(new, specs, places, extent)
                return
            job, _ = self._jobs(old, new, migration)
            read = replace(read_positions(savepoint, job.sources, self.places), new_tables=frozenset(job.new_sources))
            yield from preview(new, specs, read, "up to its end at that time")
        except NotComputable as error:
            raise NotMigratable(str(error)) from None

    @contextmanager
    def preparing(
        self,
        old: Side,
        new: Side,
        savepoint: str,
        migration: Migration,
        folder: str,
        say: Callable[[str], None],
        keeps: Callable[[Exception], bool],
    ) -> Iterator[None]:
        """Context that runs :meth:`prepare` and :meth:`compare`, and keeps the Spark session for later steps."""
        prepared = self.resumed_from(folder)
        with prepared.deleting_prepared(old, new, keeps):
            self.prepare(old, new, savepoint, migration, folder, say)
            prepared.compare(old, savepoint, migration, say)
            yield

    def compare(self, old: Side, savepoint: str, migration: Migration, say: Callable[[str], None]) -> None:
        """Compare the savepoint's state of computed operators with the state computed from history."""
        lines = [line for line in migration.operators if line.from_history]
        # If fields are kept, the whole old state is compared. A dropped field may differ from history.
        kept = [
            line.old
            for line in lines
            if line.effect is RestoreEffect.REWRITTEN and line.old and not line.dropped_fields
        ]
        specs = [*_replaced(lines), *kept]
        with self._computers(_Job(old, _positions(migration)), savepoint=savepoint, say=say) as (computer,):
            _report_compared(computer, specs, savepoint)

    def resumed_from(self, folder: str) -> KnownHistory:
        """Return the same history, which uses the output of :meth:`preparing` if that exists."""
        return replace(self, prepared=folder, prepared_once=True)

    @contextmanager
    def deleting_prepared(self, old: Side, new: Side, keeps: Callable[[Exception], bool]) -> Iterator[None]:
        """Delete the prepared folder when the block ends. The folder remains if the process is killed."""
        from airflow_flinkcompat.history.prepared import delete_prepared

        assert self.prepared is not None
        places = AssumedHistory(self.places)
        with history_spark(self.master, [(old, places), (new, places)]) as session:

            def forget() -> None:
                with suppress(Exception):  # Report the result of the run; leftover files do no harm.
                    delete_prepared(session, str(self.prepared))

            try:
                yield
            except Exception as error:
                if not keeps(error):
                    forget()
                raise
            forget()

    def audit(
        self, old: Side, savepoint: str, migration: Migration, say: Callable[[str], None] = lambda line: None
    ) -> Sequence[tuple[StateSpec, Differences | NotComputable]]:
        """Compare each operator's state in the savepoint with the state computed from history."""
        specs = [line.old for line in migration.operators if line.old and line.old.kind is StateKind.OPERATOR]
        with self._computers(_Job(old, _positions(migration)), savepoint=savepoint, say=say) as (computer,):
            return list(_audited(computer, specs, savepoint))

    def _jobs(self, old: Side, new: Side, migration: Migration) -> Sequence[_Job]:
        sources = [line for line in migration.operators if line.new and line.new.kind is StateKind.POSITIONS]
        resumed_from = {line.new.name: line.old.id for line in sources if line.keeps and line.new and line.old}
        new_ids = {
            last_name(line.new.name): line.new.id
            for line in sources
            if line.effect is RestoreEffect.COMPUTED and line.new is not None
        }
        return _Job(new, resumed_from, new_ids), _Job(old, _positions(migration))

    @contextmanager
    def _computers(
        self, *jobs: _Job, savepoint: str, say: Callable[[str], None] = lambda line: None
    ) -> Iterator[tuple[HistoryComputer, ...]]:
        # Without computation, the packages that Spark needs may be missing.
        from airflow_flinkcompat.history.computing import HistoryComputer
        from airflow_flinkcompat.history.prepared import NOTHING, PreparedHistory

        found = [
            replace(read_positions(savepoint, job.sources, self.places), new_tables=frozenset(job.new_sources))
            for job in jobs
        ]
        read = [(job.side, locations) for job, locations in zip(jobs, found, strict=True)]
        with history_session(self.master, read, say) as session:
            workers, prepared, accepts = SparkWorkers(session), NOTHING, Accept.HISTORY in self.accepted
            if self.prepared is not None:
                try:
                    prepared = PreparedHistory.read(session, self.prepared)
                except BackfillError as error:
                    if not self.prepared_once:
                        raise InputError(str(error)) from None
                    say("no prepared history exists, so all rows are read")
            computers = []
            for job, locations in zip(jobs, found, strict=True):
                ends = {}
                for table in job.side.program.tables:
                    if (name := table.path[2]) in job.new_sources:
                        ends[name] = end_of(session, resumable(table, locations), ALL)
                        say(f"{name} is read up to {ends[name]}")
                computers.append(
                    HistoryComputer(
                        session,
                        workers,
                        job.side,
                        replace(locations, ends=ends),
                        say,
                        accepts,
                        prepared,
                        self.sample,
                        new_sources={job.new_sources[name]: end for name, end in ends.items()},
                    )
                )
            yield tuple(computers)

    @property
    def places(self) -> Mapping[str, str]:
        """Locations of the tables whose rows are not where the script declares them."""
        return requested_places(self.tables)


def _moment(reached: int) -> datetime | None:
    """End of the last windows that an operator has emitted; None if it has emitted none."""
    return None if reached <= LONG_AGO else from_micros((reached + 1) * 1000)


@contextmanager
def history_spark(
    master: str | None, read: Iterable[tuple[Side, TableLocations]], say: Callable[[str], None] = lambda line: None
) -> Iterator[SparkSession]:
    """Spark session that reads history: the active session, or a new one."""
    needs, places = Needs(), set[str]()
    for side, locations in read:
        for table in side.program.tables:
            try:
                source = locations.source(table)
            except BackfillError:  # The table is a sink, or no query reads it.
                continue
            needs |= source.needs
            places.add(source.place)
    try:
        with spark_session(master, needs, effort(places) if places else Effort.MUCH, say) as session:
            yield session
    except BackfillError as error:
        raise InputError(str(error)) from None


@contextmanager
def history_session(
    master: str | None, read: Iterable[tuple[Side, TableLocations]], say: Callable[[str], None] = lambda line: None
) -> Iterator[SparkSession]:
    """Spark session of :func:`history_spark`, with sources pinned to their state at the start."""
    with history_spark(master, read, say) as session, pinned_snapshots(session):
        yield session


def _replaced(lines: Iterable[OperatorMigration]) -> Sequence[StateSpec]:
    """Old operators whose state is completely replaced by computed state."""
    return [line.old for line in lines if line.effect is RestoreEffect.COMPUTED and line.old is not None]


def _positions(migration: Migration) -> Mapping[str, str]:
    """Ids of the old job's sources, by table name."""
    lines = (line.old for line in migration.operators if line.old is not None)
    return {spec.name: spec.id for spec in lines if spec.kind is StateKind.POSITIONS}


def _report_compared(computer: HistoryComputer, specs: Iterable[StateSpec], savepoint: str) -> None:
    """Print the result of a comparison; raise HistoryDiffers if it found differences."""
    for spec, found in _audited(computer, specs, savepoint):
        if isinstance(found, NotComputable):
            computer.say(f"{spec.name}: the savepoint's state is not compared with history, because {found}")
        elif found:
            computer.report_differences(spec.name, found)
        else:
            computer.say(f"{spec.name}: history and the savepoint are equal for {found.compared} keys or windows")


def _audited(
    computer: HistoryComputer, specs: Iterable[StateSpec], savepoint: str
) -> Iterator[tuple[StateSpec, Differences | NotComputable]]:
    from airflow_flinkcompat.history.computing import audit

    for spec in dict.fromkeys(specs):
        try:
            yield spec, audit(computer, savepoint, spec)
        except NotComputable as error:
            yield spec, error
