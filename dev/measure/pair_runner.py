"""Run pairs on one cluster: every distinct old side up to its savepoint, every distinct new side once."""

from __future__ import annotations

import re
import shutil
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

from airflow_flinkcompat.compat import Side as JobSide
from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.deploy.errors import StateFault, StateRefused, TargetError, refusal
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.polling import Overdue, poll
from airflow_flinkcompat.deploy.flink.statements import planned_sql
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.rehearsal.template import take_template
from airflow_flinkcompat.deploy.target import JobRef, Snapshot, Start, same_snapshot
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget, state_options
from airflow_flinkcompat.deploy.targets.jobmanager_jobs import no_connections
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import JobSpec
from airflow_flinkcompat.sql import parse_script
from dev.measure import results
from dev.measure.pairs import Pair, Side
from dev.measure.progress import (
    DATA,
    EVERY,
    SECONDS,
    Ended,
    Feed,
    MeasureError,
    ReadRows,
    arrival,
    checkpoint,
    ends_by_itself,
    tables_read,
    wait_ended,
    wait_read,
    wait_running,
    writes_topics,
)
from dev.measure.pyflink import ProgramRefused, PyFlink
from dev.measure.results import SETTINGS, Measured
from dev.measure.services import Lakes, Services

CLUSTER = {
    # Maximum age of observed values (ms).
    "web.refresh-interval": "100",
    "metrics.fetcher.update-interval": "100",
}
_OUT, _OUT_FOLDER = "file://OUT", "written"
_PRINT = re.compile(r"(CREATE TABLE (?P<table>\w+) [^;]*?'connector' = 'print')")
_SAVEPOINT = re.compile(r"file:\S*/savepoint-\w+-\w+")
_OBJECT_HASH = re.compile(r"(?<=\w)@[0-9a-f]+")
_PLANNER = re.compile(r"\b(ValidationException|TableException|SqlParserException)\b")
_FAILS = "the SQL fails from scratch:"
_TIME_ATTRIBUTE = re.compile(r" \*(ROWTIME|PROCTIME)\*$")
_NUMBERS = count(1)
"""Numbers of runs, of all clusters: the folder, the topics and the tables of a run have its number."""
_Made = TypeVar("_Made")


class HasOutcome(Protocol):
    """Outcome of a pair in one word."""

    @property
    def outcome(self) -> str: ...


_Ended = TypeVar("_Ended", bound=HasOutcome)


@dataclass(frozen=True)
class Savepoint:
    """Result of the old side: its savepoint, its input folder, and its printed and written rows.

    ``written`` lies where the new side's rows come to lie too; ``old`` is the side as it ran.
    """

    path: str
    folder: Path
    printed: tuple[str, ...]
    written: tuple[str, ...]
    old: Side


@dataclass(frozen=True)
class Restored:
    """Result of a restore: ``outcome`` if Flink did not resume, else the rows and the row counts.

    ``read`` and ``due`` are numbers of rows by table, of those that came after the savepoint.
    """

    outcome: str | None = None
    exception: str | None = None
    rows: tuple[str, ...] | None = None
    read: Mapping[str, int] = field(default_factory=dict)
    due: Mapping[str, int] = field(default_factory=dict)


def _numbered(side: Side) -> str:
    """Unique names for the columns of a bare query; "" if the query cannot be resolved."""
    outputs, _ = JobSide(side.script, dict(side.settings), engine="flink").outputs
    columns = outputs[max(outputs)].columns if outputs else ()
    return f" ({', '.join(f'f{number}' for number in range(len(columns)))})" if columns else ""


class PairRunner:
    """One running cluster and its earlier runs."""

    def __init__(
        self, flink: LocalFlink, folder: Path, pyflink: PyFlink | None = None, services: Services | Lakes | None = None
    ) -> None:
        self._pyflink = pyflink
        self._services = services
        lookup = services.secret if services is not None else no_connections
        self._target = SqlGatewayTarget(flink.gateway_url, flink.jobmanager_url, lookup=lookup)
        self._location = TargetLocation(addresses={"gateway": flink.gateway_url, "jobmanager": flink.jobmanager_url})
        self._gateway = SqlGateway(flink.gateway_url)
        self._jobs = JobManager(flink.jobmanager_url)
        url = urlsplit(flink.jobmanager_url)
        self._cluster = {"execution.target": "remote", "rest.address": str(url.hostname), "rest.port": str(url.port)}
        self._printed = flink.work_dir / "log" / "taskmanager.out"
        self._folder = folder
        self._made: dict[Hashable, Future[Any]] = {}
        self._fed: dict[Path, set[Feed]] = defaultdict(set)
        self._lock = threading.Lock()

    def close(self) -> None:
        for client in (self._target, self._gateway, self._jobs):
            client.close()

    def measure(
        self,
        pairs: Iterable[Pair],
        threads: int,
        log: Callable[[str], None],
        until: Callable[[], bool],
        done: Callable[[_Ended], None],
        run: Callable[[Pair], _Ended],
    ) -> list[str]:
        """Run all pairs that start before ``until`` holds, some in parallel; returns errors of failed runs."""

        def one(pair: Pair) -> _Ended:
            measured = run(pair)
            log(f"{pair.id}: {measured.outcome}")
            with self._lock:
                done(measured)
            return measured

        return _failures(self._each(one, pairs, threads, log, until))

    def take(
        self, pairs: Iterable[Pair], threads: int, log: Callable[[str], None]
    ) -> tuple[dict[str, Savepoint], list[str]]:
        """Savepoints of the old sides by id of the pair, and the errors of the others."""
        found = self._each(self.taken, pairs, threads, log)
        return {name: each for name, each in found.items() if isinstance(each, Savepoint)}, _failures(found)

    def _each(
        self,
        action: Callable[[Pair], _Made],
        pairs: Iterable[Pair],
        threads: int,
        log: Callable[[str], None],
        until: Callable[[], bool] = lambda: False,
    ) -> dict[str, _Made | str]:
        """Results of an action by id of the pair, or errors; pairs that did not start are omitted."""

        def one(pair: Pair) -> tuple[str, _Made | str] | None:
            if until():
                return None
            try:
                return pair.id, action(pair)
            except DeployError as error:
                log(f"{pair.id}: could not be run: {error}")
                return pair.id, f"{pair.id}: {error}"

        with ThreadPoolExecutor(threads) as pool:
            return dict(each for each in pool.map(one, pairs) if each is not None)

    def run(self, pair: Pair) -> Measured:
        """Run one pair. Raises MeasureError or another DeployError where it cannot be run."""
        return self._restored(pair, self.taken)

    def restore(self, pair: Pair, savepoint: Savepoint) -> Measured:
        """Restore the savepoint of another line of Flink; a new side that this line does not plan is a result."""
        try:
            return self._restored(pair, lambda _: savepoint)
        except TargetError as error:
            if isinstance(error, StateRefused) or not _PLANNER.search(str(error)):
                raise
            return Measured(pair, savepoint.old.script, pair.new.script, results.NOT_PLANNED, _lasting(error))

    def taken(self, pair: Pair) -> Savepoint:
        """Savepoint of the old side, shared with other pairs if they do not interfere."""
        old = self.complete(pair.old)
        # If a restore adds rows or writes to servers, the next restore must not see them: do not share the savepoint.
        alone = pair.id if _fillers(pair.new) or _leaves_rows(old) or _leaves_rows(pair.new) else ""
        return self._once(("savepoint", old, alone), lambda: self.savepoint(old))

    def _restored(self, pair: Pair, taken: Callable[[Pair], Savepoint]) -> Measured:
        new = self.complete(pair.new)
        reference = self.complete(pair.reference) if pair.reference else new
        before, expected = self.from_scratch(reference)
        if pair.elsewhere:
            before, expected = (), (*before, *expected)
        savepoint = taken(pair)
        restored = self.attempt(new, savepoint)
        outcome = restored.outcome
        if outcome is None:
            printed = () if pair.elsewhere else savepoint.printed
            outcome = results.judge(restored.rows or (), expected, printed, before)
        if outcome == results.RIGHT and pair.caveat:
            outcome = results.ON_THIS_DATA
        return Measured(pair, savepoint.old.script, new.script, outcome, restored.exception, restored.rows, expected)

    def complete(self, side: Side) -> Side:
        """The side with a print sink of its own schema where it ends in a bare query."""
        if side.language == "python":
            return side
        *setup, last = parse_script(side.script, "<pair>").statements
        if not re.match(r"SELECT|WITH", last.text, re.IGNORECASE):
            return side
        with self._gateway.session({**SETTINGS, **dict(side.settings)}) as session:
            for statement in setup:
                session.execute(statement.text.replace("file://DATA", self._folder.as_uri()))
            session.execute(f"CREATE TEMPORARY VIEW Measured{_numbered(side)} AS {last.text}")
            described = session.execute("DESCRIBE Measured").rows
        columns = ", ".join(f"f{i} {_TIME_ATTRIBUTE.sub('', row[1])}" for i, row in enumerate(described))
        sink = f"CREATE TABLE Printed ({columns}) WITH ('connector' = 'print');"
        texts = [f"{statement.text};" for statement in setup]
        script = "\n".join([*texts, sink, f"INSERT INTO Printed\n{last.text};\n"])
        return replace(side, script=script)

    def _once(self, key: Hashable, make: Callable[[], _Made]) -> _Made:
        """Result of ``make``, computed once for all pairs that need it."""
        with self._lock:
            future = self._made.get(key)
            mine = future is None
            if future is None:
                future = self._made[key] = Future()
        if mine:
            try:
                future.set_result(make())
            except BaseException as error:
                future.set_exception(error)
        made: _Made = future.result()
        return made

    def savepoint(self, old: Side, kept_back: Collection[str] = ()) -> Savepoint:
        """Take a savepoint after the first rows; later rows then arrive, except ``kept_back`` (:meth:`bring`)."""
        with self._first_rows(old) as (folder, run, job_id, _):
            try:
                poll(
                    lambda: len(self._rows(run, folder)),
                    lambda rows: rows < old.rows_before,
                    timeout=SECONDS,
                    every=EVERY,
                )
            except Overdue as overdue:
                raise MeasureError(f"{overdue.last} of {old.rows_before} rows printed before the savepoint") from None
            path = self._jobs.stop_with_savepoint(job_id)
        self._arrive({feed for feed in _feeds(old) if feed.rows not in kept_back}, folder, "after")
        return Savepoint(path, folder, self._rows(run, folder), self._written(folder), old)

    def bring(self, savepoint: Savepoint, rows: Collection[str]) -> None:
        """Let the later rows arrive that were held back."""
        self._arrive({feed for feed in _feeds(savepoint.old) if feed.rows in rows}, savepoint.folder, "after")

    def later(self, earlier: Savepoint) -> str:
        """The savepoint of the same side after it has resumed and read the rows after. Raises MeasureError."""
        run, side = next(_NUMBERS), earlier.old
        with self._job(side, earlier.folder, run, Start(Snapshot(earlier.path))) as job_id:
            wait_running(self._jobs, job_id)
            self._wait_read(side, earlier.folder, job_id, "after", {})
            return self._jobs.stop_with_savepoint(job_id)

    def template(self, new: Side) -> str:
        """Savepoint of the side before it has read any row, with stand-ins for its sinks."""
        return self._once(("template", new), lambda: self._template(new))

    def _template(self, new: Side) -> str:
        run = next(_NUMBERS)
        folder = self._made_folder(new, run)
        for feed in _feeds(new):
            (folder / feed.rows).mkdir(exist_ok=True)
        job = JobSpec(self._script(new, folder, run), {**SETTINGS, **dict(new.settings)}, source="<pair>")
        take_template(Cluster(self._target, self._location), job, folder / "template")
        return (folder / "template").as_uri()

    def restored(self, new: Side, savepoint: Savepoint) -> tuple[str, ...]:
        """Rows that the side prints for later rows after a restore. Raises MeasureError if it is refused."""
        restored = self.attempt(new, savepoint)
        if restored.outcome is not None:
            raise MeasureError(f"{restored.outcome}: {restored.exception}")
        return restored.rows or ()

    def from_scratch(self, new: Side) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Rows that the side prints for the earlier and the later rows; if it ends by itself, all are later."""
        return self._once(("from scratch", new), lambda: self._from_scratch(new))

    def after_alone(self, new: Side) -> tuple[str, ...]:
        """Rows that the side prints if it has never seen the rows before."""

        def made() -> tuple[str, ...]:
            with self._first_rows(new, "after") as (folder, run, *_):
                return self._rows(run, folder)

        return self._once(("after", new), made)

    def compiled(self, side: Side) -> str:
        """The plan that Flink compiles of the side's last statement, or statement set."""
        return self._once(("plan", side), lambda: self._compiled(side))

    def _compiled(self, side: Side) -> str:
        *setup, job = parse_script(side.script, "<pair>").statements
        file = self._folder / f"plan-{next(_NUMBERS)}.json"

        def here(text: str) -> str:
            return text.replace("file://DATA", self._folder.as_uri()).replace(_OUT, self._folder.as_uri())

        with self._gateway.session({**SETTINGS, **dict(side.settings)}) as session:
            for statement in setup:
                session.execute(here(statement.text))
            session.execute(f"COMPILE PLAN '{file.as_uri()}' FOR {here(planned_sql(job))}")
        return file.read_text("utf-8").replace(self._folder.as_uri(), "file:///data")

    def _from_scratch(self, new: Side) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if ends_by_itself(new.script):
            return (), self._to_its_end(new)
        with self._first_rows(new) as (folder, run, job_id, read):
            before = self._rows(run, folder)
            self._arrive(_feeds(new), folder, "after")
            self._wait_read(new, folder, job_id, "after", read.rows)
            return before, _without(self._rows(run, folder), before)

    def _to_its_end(self, side: Side) -> tuple[str, ...]:
        folder = self._made_folder(side, next(_NUMBERS))
        for phase in ("before", "after"):
            self._arrive(_feeds(side), folder, phase)
        return self.ended(side, folder)

    def ended(self, side: Side, folder: Path) -> tuple[str, ...]:
        """Rows that a side that ends by itself prints for the rows in a folder. Raises MeasureError."""
        run = next(_NUMBERS)
        try:
            with self._job(side, folder, run, Start()) as job_id:
                wait_ended(self._jobs, job_id)
        except Ended as ended:
            raise MeasureError(f"{_FAILS} {ended}") from None
        return self._rows(run, folder)

    def _made_folder(self, side: Side, run: int) -> Path:
        folder = self._folder / str(run)
        folder.mkdir(parents=True, exist_ok=True)
        if self._services is not None:
            self._services.prepare(folder, side.database)
        return folder

    def _wait_read(
        self, side: Side, folder: Path, job_id: str, phase: str, read: Mapping[str, int], fresh: Collection[Feed] = ()
    ) -> ReadRows:
        partitions = 1 if self._services is None else self._services.partitions
        due = arrival(side.script, phase, fresh, partitions).beyond(read)
        found = wait_read(self._jobs, job_id, due, self._filling(side, folder, phase))
        if self._services is not None:
            # At the next checkpoint, a sink's committer has committed all earlier data.
            checkpoint(self._jobs, job_id)
        return found

    @contextmanager
    def _first_rows(self, side: Side, phase: str = "before") -> Iterator[tuple[Path, int, str, ReadRows]]:
        """Start a side without state until it has read a phase.

        Yields its folder, run number, job id and the rows read of each table.
        """
        run = next(_NUMBERS)
        folder = self._made_folder(side, run)
        self._arrive(_feeds(side), folder, phase)
        try:
            with self._job(side, folder, run, Start()) as job_id:
                wait_running(self._jobs, job_id)
                yield folder, run, job_id, self._wait_read(side, folder, job_id, phase, {})
        except Ended as ended:
            raise MeasureError(f"{_FAILS} {ended}") from None

    def attempt(self, new: Side, old: Savepoint) -> Restored:
        """Start the side from a savepoint while the later rows arrive."""
        run = next(_NUMBERS)
        # Rows of tables that the old SQL did not declare.
        fresh = _feeds(new) - _feeds(old.old) - self._fed[old.folder]
        for phase in ("before", "after"):
            self._arrive(fresh, old.folder, phase)
        try:
            with self._job(new, old.folder, run, Start(Snapshot(old.path))) as job_id:
                read = ReadRows()
                if _feeds(new):
                    wait_running(self._jobs, job_id)
                    read = self._wait_read(new, old.folder, job_id, "after", {}, fresh)
                else:
                    wait_ended(self._jobs, job_id)
                self._check_restored(job_id, old.path)
                rows = _without(self._rows(run, old.folder), old.written)
                return Restored(rows=rows, read=read.rows, due=read.due)
        except StateRefused as error:
            if error.fault is not StateFault.MISFIT:
                raise
            return Restored(results.REFUSED_AT_SUBMIT, _lasting(error))
        except Ended as ended:
            at_restore = not ended.ran or "StateMigrationException" in str(ended)
            return Restored(results.REFUSED_AT_RESTORE if at_restore else results.FAILED_LATER, _lasting(ended))

    def _check_restored(self, job_id: str, savepoint: str) -> None:
        """Raise MeasureError if the JobManager reports a start that is not from this savepoint."""
        if not same_snapshot(began := self._jobs.restored_from(job_id), savepoint):
            raise MeasureError(f"job {job_id} was restored from {began or 'nothing'} instead of {savepoint}")

    @contextmanager
    def _job(self, side: Side, folder: Path, run: int, start: Start) -> Iterator[str]:
        """Run the side as a job over the rows in ``folder``; the job ends with the block."""
        job_id = self._submit(self._script(side, folder, run), side, start)
        try:
            yield job_id
        finally:
            status = self._target.status(JobRef(job_id))
            if status and not status.terminal:
                self._target.cancel(status.job_id)

    def _script(self, side: Side, folder: Path, run: int) -> str:
        script = side.script.replace("file://DATA", folder.as_uri()).replace(_OUT, (folder / _OUT_FOLDER).as_uri())
        if self._services is not None:
            script = self._services.bound(script, folder)
        return _PRINT.sub(rf"\1, 'print-identifier' = '{run}.\g<table>'", script)

    def _submit(self, script: str, side: Side, start: Start) -> str:
        settings = {**SETTINGS, **dict(side.settings)}
        if side.language == "sql":
            job_id = new_id()
            self._target.start(JobSpec(script, settings, source="<pair>"), start, job_id)
            return job_id
        if self._pyflink is None:
            raise MeasureError("a program needs PyFlink")
        try:
            (job_id,) = self._pyflink.submit(script, "pair.py", {**settings, **state_options(start), **self._cluster})
        except ProgramRefused as refused:
            raise refusal(str(refused), str(refused)) from None
        return job_id

    def _rows(self, run: int, folder: Path) -> tuple[str, ...]:
        """Rows that the sinks of a run have printed or written so far, as ``table +I[…]``."""
        line = re.compile(rf"{run}\.(\w+)(?::\d+)?> (.*)")
        printed = self._printed.read_text("utf-8", "replace").splitlines()
        rows = [f"{match[1]} {match[2]}" for text in printed if (match := line.fullmatch(text))]
        return (*rows, *self._written(folder))

    def _written(self, folder: Path) -> tuple[str, ...]:
        """Rows in files, topics and tables of a run."""
        files = sorted(path for path in (folder / _OUT_FOLDER).rglob("*") if path.is_file())
        rows = [f"{path.parent.name} +I[{text}]" for path in files for text in path.read_text("utf-8").splitlines()]
        return (*rows, *(self._services.stored(folder) if self._services else ()))

    def _arrive(self, feeds: Collection[Feed], folder: Path, phase: str) -> None:
        for feed in feeds:
            self._fed[folder].add(feed)
            self._put(feed, folder, phase)

    def _put(self, feed: Feed, folder: Path, phase: str, name: str = "") -> int:
        """Let rows arrive; returns their number."""
        if not feed.topic:
            _copy(feed.rows, folder, phase, name)
            return len(feed.lines(phase))
        if self._services is None:
            raise MeasureError(f"topic {feed.rows} needs a broker")
        return self._services.send(folder, feed, phase)

    def _filling(self, side: Side, folder: Path, phase: str) -> Callable[[], Mapping[str, int]]:
        """Function that adds the filler rows of the phase again, for subtasks that have no rows."""
        numbers = count(1)

        def fill() -> Mapping[str, int]:
            number = next(numbers)
            return {
                table: self._put(feed, folder, f"{phase}.filler", f"{phase}-filler-{number}")
                for table, feed in _fillers(side).items()
            }

        return fill


def _failures(found: Mapping[str, object]) -> list[str]:
    return [each for each in found.values() if isinstance(each, str)]


def _without(rows: Iterable[str], before: Iterable[str]) -> tuple[str, ...]:
    """New rows since the last call, in order."""
    left, since = Counter(before), []
    for row in rows:
        if left[row]:
            left[row] -= 1
        else:
            since.append(row)
    return tuple(since)


def _lasting(error: Exception) -> str:
    """The message without the parts that differ between runs."""
    return _OBJECT_HASH.sub("", _SAVEPOINT.sub("SAVEPOINT", str(error)))


def _feeds(side: Side) -> set[Feed]:
    return {feed for feeds in tables_read(side.script).values() for feed in feeds}


def _leaves_rows(side: Side) -> bool:
    """True if it writes where a restore of the same savepoint writes too."""
    return _OUT in side.script or bool(side.database) or writes_topics(side.script)


def has_fillers(side: Side) -> bool:
    """True if it reads rows that arrive until every subtask has some."""
    return bool(_fillers(side))


def _fillers(side: Side) -> dict[str, Feed]:
    """The tables whose rows have fillers."""
    return {table: feed for table, feeds in tables_read(side.script).items() for feed in feeds if feed.filled}


def _copy(rows: str, folder: Path, phase: str, name: str) -> None:
    """Write the file under a hidden name, then rename it, so that it is complete when visible."""
    (folder / rows).mkdir(parents=True, exist_ok=True)
    hidden = folder / rows / f".{phase}.csv.{threading.get_ident()}"
    shutil.copyfile(DATA / rows / f"{phase}.csv", hidden)
    hidden.rename(folder / rows / f"{name or phase}.csv")
