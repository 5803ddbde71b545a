"""Run shadow runs over written changes, and compare every differing row with the expected one.

``shadow_changes.toml`` describes the jobs, their rows and the changes. The jobs read files or a topic with three
partitions, and write to a keyed topic, to a topic in transactions and to PostgreSQL. The old script of each change
runs as the live job. ``results/shadow-changes-<date>.json`` and ``.md`` contain the findings. ``--only REGEX`` limits
the changes by name, and updates their results of the same day.
The exit status is 1 if a finding or a row is not the expected one, or if anything remains.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
import tomllib
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.migration import SavepointMigration
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.shadow.report import ShadowReport
from airflow_flinkcompat.deploy.shadow.sequence import shadow
from airflow_flinkcompat.deploy.target import JobRef
from airflow_flinkcompat.exec_graph.migration import Accept, MigrationExtent
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.jars import fetch
from dev.benchmarks.rehearsal import RESULTS, SLOTS, cluster, running
from dev.benchmarks.shadow import JARS, QUICK
from dev.measure.progress import Arrival, wait_read
from dev.services.kafka import Broker, kafka_broker, kafka_client
from dev.services.postgres import Postgres, postgres

_PARTITIONS = 3
_SETTINGS = {"parallelism.default": "1", "execution.checkpointing.interval": "500 ms"}
_DATA = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Job:
    """A live job; ``before`` and ``between``: its rows before and after the first savepoint, by table."""

    script: str
    before: Mapping[str, Sequence[str]]
    between: Mapping[str, Sequence[str]]
    topics: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ScriptChange:
    """A change of a job's script by replaced texts, with the expected finding and differing rows by sink.

    ``state``: the expected finding about the state, which is otherwise not compared.
    """

    name: str
    job: str
    finding: str
    state: str = ""
    new: Sequence[Sequence[str]] = ()
    at: str = ""
    rows: Mapping[str, Sequence[Sequence[str]]] = field(default_factory=dict)
    expect: Sequence[str] = ()
    migrate: bool = False
    accept: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


JOBS = {name: Job(**each) for name, each in _DATA["jobs"].items()}
CHANGES = tuple(ScriptChange(**each) for each in _DATA["changes"])


def migration_of(where: Cluster, job_id: str, old: Side, new: Side, accepted: Sequence[str] = ()) -> SavepointMigration:
    """The migration of a live job's savepoint that keeps as much state as possible."""
    return SavepointMigration(
        old, new, where, JobRef(job_id), at_least=MigrationExtent.PARTIAL, plan_dir=None, rehearsed=False, log=print,
        accepted=tuple(map(Accept, accepted)),
    )  # fmt: skip


@dataclass
class Services:
    """A Flink, and a broker and a database for the jobs that use them.

    ``place``: the cluster of shadow runs; None for that of the Gateway.
    """

    gateway: SqlGateway
    jobs: JobManager
    folder: Path
    broker: Broker | None = None
    jvm: Any = None
    database: Postgres | None = None
    place: Cluster | None = None

    def shadow(self, change: ScriptChange) -> ShadowReport:
        """Compare a change next to its live job, which reads the rows ``between`` during the run."""
        job = JOBS[change.job]
        place = self.folder / uuid.uuid4().hex
        names = {each: self._topic(each, job) for each in job.topics}
        text = self._placed(job.script, place, names)
        proposed = text
        for before, after in change.new:
            assert before in proposed, f"{change.name}: {before!r} is not in the script"
            proposed = proposed.replace(before, after)
        settings = {**_SETTINGS, **job.settings}
        old = Side(text, settings, engine="flink", engine_version="2.3.0", source="old.sql")
        new = replace(old, script=proposed, settings={**settings, **change.settings}, source="new.sql")
        read: Counter[str] = Counter()

        def arrive(rows: Mapping[str, Sequence[str]], wave: str) -> None:
            for table, lines in rows.items():
                read[table] += len(lines)
                if table in names:
                    self._send(names[table], lines)
                else:
                    _write(place / table, wave, lines)
            wait_read(self.jobs, job_id, Arrival(read, {}))

        def log(line: str) -> None:
            print(line)
            if line.startswith("waiting"):
                arrive(job.between, "2")

        for table in {*job.before} - {*names}:
            (place / table).mkdir(parents=True)
        with running(self.gateway, self.jobs, old, change.name) as job_id:
            arrive(job.before, "1")
            where = self.place or cluster(self.gateway, self.jobs)
            made = migration_of(where, job_id, old, new, change.accept) if change.migrate else None
            options = replace(QUICK, expected=tuple(change.expect), from_earliest=bool(change.state))
            return shadow(where, job_id, old, new, options, log, made)

    def _topic(self, name: str, job: Job) -> str:
        assert self.broker is not None
        return self.broker.topic(self.jvm, _PARTITIONS if name in job.before else 1)

    def _send(self, topic: str, lines: Sequence[str]) -> None:
        assert self.broker is not None
        for number, line in enumerate(lines):
            key, _, value = line.rpartition("|")
            self.broker.send(self.jvm, topic, [(key or None, value)], number % _PARTITIONS)

    def _placed(self, script: str, place: Path, names: Mapping[str, str]) -> str:
        known = {f"topic:{name}": topic for name, topic in names.items()}
        known["folder"] = place.as_uri()
        if self.broker is not None:
            known["servers"] = self.broker.servers
        if self.database is not None:
            known["database"] = f"{self.database.url}?user=postgres"
        return re.sub(r"<([a-z:]+)>", lambda match: known[match[1]], script)


def _write(folder: Path, wave: str, lines: Sequence[str]) -> None:
    """Add a file, complete as soon as it is visible."""
    hidden = folder / f".{wave}"
    hidden.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    hidden.rename(folder / f"{wave}.csv")


def faults(change: ScriptChange, found: ShadowReport) -> list[str]:
    """Differences between a report and the expected one."""
    rows = {
        each.sink: [[str(value) for value in row.values()] for row in each.rows.to_pylist()]
        for each in found.sinks
        if each.rows is not None
    }
    expected = {sink: [list(row) for row in of_sink] for sink, of_sink in change.rows.items()}
    compared = (
        ("finding", str(found.finding), change.finding),
        ("state", str(found.state.finding) if found.state else "", change.state),
        ("at", found.at, change.at),
        ("rows", rows, expected),
        ("left", found.left, ()),
    )
    return [f"{what}: {seen!r} instead of {wanted!r}" for what, seen, wanted in compared if seen != wanted]


@contextmanager
def services(*, kafka: bool) -> Iterator[tuple[Services, Callable[[], list[str]]]]:
    """Run a Flink, and a broker and a database if ``kafka``; with a function that lists what remains."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flinkcompat-changes-")))
        database = stack.enter_context(postgres() if kafka else nullcontext())
        if database is not None:
            database.run(_DATA["tables"])
            passwords = folder / "pgpass"
            passwords.write_text(f"*:*:*:*:{database.password}\n", encoding="utf-8")
            passwords.chmod(0o600)
            os.environ["PGPASSFILE"] = str(passwords)  # because scripts with passwords are refused
        (folder / "broker").mkdir()
        broker = stack.enter_context(kafka_broker(folder / "broker") if kafka else nullcontext())
        jars = [fetch(name) for name in (*JARS, "flink-sql-connector-kafka")] if kafka else []
        flink = stack.enter_context(LocalFlink(folder / "flink", slots=SLOTS, extra_jars=jars))
        gateway = stack.enter_context(SqlGateway(flink.gateway_url))
        jobs = stack.enter_context(JobManager(flink.jobmanager_url))
        jvm = stack.enter_context(kafka_client() if kafka else nullcontext())

        def left() -> list[str]:
            savepoints = [each.name for each in (flink.work_dir / "savepoints").iterdir()]
            return [*savepoints, *(job.name for job in jobs.jobs().values() if not job.terminal)]

        yield Services(gateway, jobs, folder, broker, jvm, database), left


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=".*", metavar="REGEX")
    only = parser.parse_args().only
    chosen = [each for each in CHANGES if re.fullmatch(only, each.name)]
    path = RESULTS / f"shadow-changes-{datetime.now(UTC).date().isoformat()}.json"
    results: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    with services(kafka=any(JOBS[each.job].topics for each in chosen)) as (running_services, left):
        for change in chosen:
            begin = time.monotonic()
            print(f"---- {change.name}", flush=True)
            found = running_services.shadow(change)
            print("\n".join(found.lines()))
            results[change.name] = {
                "finding": f"{found.finding} at {found.at}" if found.at else str(found.finding),
                "differing": sum(each.differing for each in found.sinks),
                "faults": [*faults(change, found), *(f"left: {each}" for each in left())],
                "seconds": round(time.monotonic() - begin),
            }
            print(f"==== {change.name}: {results[change.name]}", flush=True)
            path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
            path.with_suffix(".md").write_text(report(results, path.stem[-10:]), "utf-8")
    return int(any(each["faults"] for each in results.values()))


def report(results: Mapping[str, Mapping[str, Any]], date: str) -> str:
    """The results as Markdown."""
    right = sum(not each["faults"] for each in results.values())
    lines = [
        f"# Shadow runs over written changes, {date}",
        "",
        "Flink 2.3.0 with one TaskManager, Kafka 4.1.2 and PostgreSQL, `python -m dev.benchmarks shadow_changes`. The",
        "old script of each change runs as the live job. The finding and all differing rows are compared with those in",
        "[shadow_changes.toml](../shadow_changes.toml), and nothing may remain on the cluster.",
        "",
        f"* as expected: {right} of {len(results)}",
        "",
        "| change | finding | differing rows or keys | faults |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{name}` | {each['finding']} | {each['differing'] or ''} | {'; '.join(each['faults'])} |"
        for name, each in results.items()
    ]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
