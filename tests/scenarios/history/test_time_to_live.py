"""State with a time to live: a value is of the rows since it last expired, and has expired where none came for long."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airflow_flinkcompat.compat import Side as JobSide
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.polling import poll
from airflow_flinkcompat.deploy.redeploy.run import new_id
from airflow_flinkcompat.deploy.target import JobRef, Snapshot, Start
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.exec_graph.layout import NamedState, StateLayout
from airflow_flinkcompat.exec_graph.migration import Migration
from airflow_flinkcompat.history.known_history import KnownHistory
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.migration import migrate_savepoint
from airflow_flinkcompat.model import JobSpec
from dev.measure.pair_runner import CLUSTER, PairRunner
from dev.measure.pairs import Side
from dev.measure.progress import Arrival, wait_read, wait_running
from dev.measure.results import SETTINGS
from dev.measure.savepoint_fixtures import migration_of
from dev.stored_rows import last_written
from tests.scenarios.history.stored import stored

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(600)]
LIVES = 60
"""Seconds; state is computed in less."""
TTL = {"table.exec.state.ttl": f"{LIVES} s"}
ORDERS, LEFTS = "orders", "lefts"
TABLES = "".join(
    f"""CREATE TABLE {name} (
  a STRING, b BIGINT, c STRING, d BIGINT, ts TIMESTAMP(3), came AS PROCTIME(), WATERMARK FOR ts AS ts
) WITH (
  'connector' = 'filesystem', 'path' = 'file://DATA/{name}', 'format' = 'csv', 'source.monitor-interval' = '100 ms'
);
"""
    for name in (ORDERS, LEFTS)
)
ROW = "{0},{1},{2},{3},2026-01-31 00:00:00.{3:03}\n"
LONG_AGO = [("x", 1, "p", 10), ("x", 2, "q", 70), ("y", 3, "p", 30), ("z", 4, "p", 40), ("z", 4, "p", 40)]
RECENT = [("x", 5, "p", 50), ("x", 6, "p", 20), ("w", 7, "q", 60)]
SINCE = [("x", 8, "p", 15), ("y", 9, "p", 25), ("x", 1, "q", 5)]
FIRST = "SELECT a, b FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS n FROM orders) WHERE n = 1"
LAST = "SELECT {} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY {} DESC) AS n FROM orders) WHERE n = 1"
JOIN = "SELECT o.a, o.b, l.{} FROM orders o JOIN lefts l ON o.a = l.a"


@dataclass(frozen=True)
class Change:
    old: str
    new: str


CHANGES = {
    "a metric is added": Change("a, COUNT(*), SUM(b)", "a, COUNT(*), SUM(b), MAX(d)"),
    "other keys": Change("a, COUNT(*), SUM(b)", "a, c, COUNT(*), MIN(d)"),
    "a join reads another column": Change(JOIN.format("c"), JOIN.format("d")),
    "the first row of another key": Change(FIRST.format("a", "came"), FIRST.format("c", "came")),
    "the last row with another column": Change(LAST.format("a, b", "came"), LAST.format("a, d", "came")),
    "the last row by event time, with another column": Change(LAST.format("a, b", "ts"), LAST.format("a, d", "ts")),
}


def side(query: str) -> Side:
    if not query.startswith("SELECT"):
        keys = [key for key in query.split(", ") if len(key) == 1]
        query = f"SELECT {query} FROM orders GROUP BY {', '.join(keys)}"
    return Side(f"{TABLES}{query};\n", tuple(TTL.items()))


@dataclass(frozen=True)
class Rig:
    """A Flink, and a folder with the rows of both tables."""

    target: SqlGatewayTarget
    jobs: JobManager
    runner: PairRunner
    folder: Path

    def arrive(self, name: str, rows: list[tuple[str, int, str, int]]) -> None:
        for table in (ORDERS, LEFTS):
            (self.folder / table).mkdir(exist_ok=True)
            hidden = self.folder / table / f".{name}"
            hidden.write_text("".join(ROW.format(*row) for row in rows), "utf-8")
            hidden.rename(self.folder / table / f"{name}.csv")

    def script(self, of: Side) -> str:
        return of.script.replace("file://DATA", self.folder.as_uri())

    @contextmanager
    def running(self, of: Side, start: Start) -> Iterator[str]:
        job_id = new_id()
        self.target.start(JobSpec(self.script(of), {**SETTINGS, **TTL}, source="<pair>"), start, job_id)
        wait_running(self.jobs, job_id)
        try:
            yield job_id
        finally:
            status = self.target.status(JobRef(job_id))
            if status and not status.terminal:
                self.target.cancel(job_id)

    def read(self, job_id: str, rows: int) -> None:
        wait_read(self.jobs, job_id, Arrival(dict.fromkeys((ORDERS, LEFTS), rows), {}), dict)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("living")
    with (
        LocalFlink(folder / "flink", slots=12, config=CLUSTER) as flink,
        closing(PairRunner(flink, folder / "data")) as runner,
        closing(SqlGatewayTarget(flink.gateway_url, flink.jobmanager_url)) as target,
        closing(JobManager(flink.jobmanager_url)) as jobs,
    ):
        (folder / "data").mkdir()
        yield Rig(target, jobs, runner, folder / "data")


@dataclass(frozen=True)
class Left:
    """What jobs left, and when, in seconds since 1970."""

    savepoints: Mapping[Side, str]
    at: float

    def wait_for_what_expires(self) -> None:
        """Until nothing is about to expire: what is computed may do so seconds before what a job stored itself."""
        expires, around = self.at + LIVES, LIVES / 4
        if abs(time.time() - expires) < around:
            poll(time.time, lambda now: now < expires + around, timeout=LIVES, every=1)


@pytest.fixture(scope="module")
def left(rig: Rig) -> Left:
    """What jobs left that all read the same rows, some of them so long ago that their values had expired."""
    sides = dict.fromkeys(
        rig.runner.complete(side(query)) for each in CHANGES.values() for query in (each.old, each.new)
    )
    with ExitStack() as stack:
        rig.arrive("long-ago", LONG_AGO)
        jobs = {each: stack.enter_context(rig.running(each, Start())) for each in sides}
        for job in jobs.values():
            rig.read(job, len(LONG_AGO))
        expired = time.time() + LIVES * 1.25
        poll(time.time, lambda now: now < expired, timeout=2 * LIVES, every=1)
        rig.arrive("recent", RECENT)
        for job in jobs.values():
            rig.read(job, len(LONG_AGO) + len(RECENT))
        at = time.time()
        return Left({each: rig.jobs.stop_with_savepoint(job) for each, job in jobs.items()}, at)


Living = Mapping[tuple[str, bytes], tuple[int, bytes]]


def living(savepoint: str, made: Migration, now: float) -> Living:
    """The entries that have not expired: when each was last written, and its value."""
    states = {
        (line.new.id, state.name): state
        for line in made.operators
        if line.new is not None and isinstance(line.new.layout, StateLayout)
        for state in line.new.layout.states
    }
    found = {}
    for (operator, name), entries in stored(savepoint).items():
        state = states.get((operator, name))
        for key, value in entries if state is not None else ():
            if (written := last_written(state, value)) > (now - LIVES) * 1000:
                found[name, key] = written, as_inserted(state, value[state.content_begin :])
    return found


def as_inserted(state: NamedState, value: bytes) -> bytes:
    """The value; of a row that Flink keeps without what says that it took the place of another one."""
    return value[:4] + b"\0" + value[5:] if state.name == "deduplicate-state" and state.value.form == "row" else value


def same(
    one: Mapping[tuple[str, bytes], tuple[int, bytes]], other: Mapping[tuple[str, bytes], tuple[int, bytes]]
) -> bool:
    """Whether both hold the same, written last at about the same time."""
    assert {key: value for key, (_, value) in one.items()} == {key: value for key, (_, value) in other.items()}
    return bool(one) and max(abs(one[key][0] - other[key][0]) for key in one) < 10_000


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_the_job_goes_on_as_though_it_had_always_run(
    change: Change, rig: Rig, left: Left, spark: SparkSession, tmp_path: Path
) -> None:
    old, new = (rig.runner.complete(side(query)) for query in (change.old, change.new))
    before, after = (JobSide(rig.script(each), TTL, engine="flink") for each in (old, new))
    history = KnownHistory(dict.fromkeys((ORDERS, LEFTS) if "JOIN" in change.new else (ORDERS,), ""))
    made, reasons = history.extend(migration_of(rig.runner.compiled(old), rig.runner.compiled(new)), after, before)
    assert not reasons
    begin, template, target, said = (
        left.savepoints[old],
        rig.runner.template(new),
        f"{tmp_path.as_uri()}/to",
        list[str](),
    )
    with history.computing(before, after, begin, made, said.append) as computer:
        migrate_savepoint(begin, template, target, made, round(left.at * 1000), computer.workers, computer)
    assert "is taken as the last write time of its value" in "".join(said)
    assert same(living(target, made, left.at), living(left.savepoints[new], made, left.at))
    rig.arrive("since", SINCE)
    left.wait_for_what_expires()
    later = []
    for begin in (target, left.savepoints[new]):
        with rig.running(new, Start(Snapshot(begin))) as job:
            rig.read(job, len(SINCE))
            later.append(living(rig.jobs.stop_with_savepoint(job), made, left.at))
    assert same(*later)
