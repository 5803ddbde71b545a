"""Rehearse measured restores next to their running jobs; compare findings and outcomes.

``tests/fixtures/measured`` contains the outcome of each pair: the old job was stopped, and the new job was started
instead. In this program the old job continues, and a rehearsal next to it must have the same outcome. It writes
``results/rehearsal-<date>.json`` and ``.md``. ``--only PATTERN`` updates the pairs whose id begins with the pattern
in the result of the same day. The exit status is 1 if a finding differs from the measured outcome, if the rehearsal
leaves anything behind, or if the rows of the live job differ from those of a run without a rehearsal.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.deploy.flink.gateway import ScriptRunner, SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.flink.statements import prepare
from airflow_flinkcompat.deploy.rehearsal.place import Cluster
from airflow_flinkcompat.deploy.rehearsal.report import Rehearsal
from airflow_flinkcompat.deploy.rehearsal.restoring import RunnableSide, Timeouts
from airflow_flinkcompat.deploy.rehearsal.sequence import RehearsalOptions, rehearse
from airflow_flinkcompat.deploy.targets import TargetLocation
from airflow_flinkcompat.deploy.targets.gateway import SqlGatewayTarget
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.model import RehearsalFinding
from dev.measure import measured
from dev.measure.measured import Restore
from dev.measure.progress import Arrival, wait_read, wait_running

RESULTS = Path(__file__).parent / "results"
SLOTS = 16
_SAVEPOINT = re.compile(r"file:\S*/savepoint-\w+-\w+")
_OBJECT_HASH = re.compile(r"(?<=\w)@[0-9a-f]+")
ROWS: Mapping[str, list[str]] = json.loads((measured.FOLDER / "rows.json").read_text(encoding="utf-8"))
"""Input rows of each table before the savepoint, as in the measured runs."""
QUICK = RehearsalOptions(timeouts=Timeouts(settle=0.3, start=60, savepoint=60, clean_up=60))
# Waves of rows: before the rehearsal, before its control, before its new job, after it.
BEFORE, *MEANWHILE, AFTER = range(4)
_MINUTES_APART = 5
_MINUTE = re.compile(r"(?<=2024-01-01 00:)\d\d")
_PRINT = re.compile(r"'connector'\s*=\s*'print'(\s*,\s*'print-identifier'\s*=\s*'[^']*')?")
_TABLE = re.compile(
    r"CREATE TABLE (?P<table>\w+) \((?:(?!CREATE TABLE).)*?'path'='(?P<path>file:///data[^']*)'", re.DOTALL
)

_RIGHT = """w-unchanged w-reformat-comment-alias w-add-window-start x-view-rename x-pipeline-name x-cte u-ttl-add
g-earlyfire-add ga-alias-subquery rj-unchanged tn-rank-add ms-unchanged ij-narrower dd-pa-unchanged wd-unchanged"""
_WRONG_WITHOUT_A_WORD = """w-mod-max-min w-size-1to2-ws g-mod-max-min t-mod-agg-sum-max ga-reorder-sametypes
oa-rows-2-to-4 tn-n-up rj-keys-reorder dd-ra-to-rd"""
_REFUSED_AT_RESTORE = """w-add-agg w-tumble-to-hop w-distinct-add g-add-agg t-order-col u-add-agg x-source-b-int
ga-key-type oa-add-count tn-part-add rj-key-add ij-input-add-col ga-key-notnull
w-del-agg dd-pa-part-add rj-inner-to-left so-field-add"""
_REFUSED_AT_SUBMIT = """w-reorder w-tumble-to-session w-filter-nonwindow-add x-onephase g-proctime g-add-key
x-maxparallelism-change x-stmtset-add-samesource x-stmtset-remove ga-key-del ga-minibatch-on oa-where-add rj-third-add
ms-two-sources-add-last ua-remove-last"""
IDS = tuple(f"{_RIGHT} {_WRONG_WITHOUT_A_WORD} {_REFUSED_AT_RESTORE} {_REFUSED_AT_SUBMIT}".split())


def pairs() -> list[Restore]:
    """The restores of ``IDS``, each with a sink."""
    files = ("flink-2.3-restores.json", "flink-2.3-restores-wide.json")
    found = {pair.id: pair for file in files for pair in measured.load(file, wrap=True, only=IDS)}
    return [found[each] for each in IDS]


def expected(pair: Restore) -> tuple[RehearsalFinding, str]:
    """The finding, and the step at which it is refused."""
    if pair.outcome.startswith("refused_at_"):
        return RehearsalFinding.REFUSED, pair.outcome.removeprefix("refused_at_")
    assert pair.outcome.startswith("restored_"), pair.outcome
    return RehearsalFinding.RESTORED, ""


@dataclass(frozen=True)
class Script:
    """A side, reduced to the parts that a rehearsal needs."""

    script: str
    settings: Mapping[str, str]
    source: str
    engine_version: str | None = None


def cluster(gateway: SqlGateway, jobs: JobManager) -> Cluster:
    """The cluster of a rehearsal, with the given clients."""
    addresses = {"gateway": gateway.endpoint.url, "jobmanager": jobs.endpoint.url}
    return Cluster(SqlGatewayTarget(gateway, jobs), TargetLocation(addresses=addresses))


@contextmanager
def running(gateway: SqlGateway, jobs: JobManager, side: RunnableSide, name: str) -> Iterator[str]:
    """Run the side as a live job with all tasks running; the job ends with the block."""
    job_id = uuid.uuid4().hex
    prepared, runner = prepare(side.script, side.source), ScriptRunner(str, gateway)
    config = {"$internal.pipeline.job-id": job_id, "pipeline.name": name, "table.dml-sync": "false"}
    with gateway.session(side.settings) as session:
        for statement in prepared.setup:
            runner.run(session, statement, statement.text)
        runner.run(session, prepared.job, prepared.job_sql, config)
    try:
        wait_running(jobs, job_id)
        yield job_id
    finally:
        status = jobs.status(job_id)
        if status and not status.terminal:
            jobs.cancel(job_id)


@dataclass
class Feed:
    """Rows that arrive one file at a time while the job reads, so that their order is always the same."""

    jobs: JobManager
    job_id: str
    folder: Path
    tables: Mapping[str, str]
    """Declared table → the name of its rows."""
    rows: Mapping[str, Sequence[str]]
    """The rows of a wave by their name."""
    _waves: int = field(default=0, init=False)

    def arrive(self, wave: int) -> None:
        """Add a file to each folder, five minutes of event time after the last wave, and wait for the job."""
        files = dict.fromkeys(self.tables.values(), 0)
        for name in sorted(files):
            text = "\n".join(self.rows[name]) + "\n"
            hidden = self.folder / name / f".{wave}.csv"
            hidden.write_text(
                _MINUTE.sub(lambda at: f"{int(at[0]) + _MINUTES_APART * wave:02}", text), encoding="utf-8"
            )
            hidden.rename(hidden.with_name(f"{wave}.csv"))
            files[name] = 1
            due = {table: (self._waves + files[rows]) * len(self.rows[rows]) for table, rows in self.tables.items()}
            wait_read(self.jobs, self.job_id, Arrival(due, {}))
        self._waves += 1


@contextmanager
def live(
    gateway: SqlGateway, jobs: JobManager, pair: Restore, folder: Path, tag: str = "live"
) -> Iterator[tuple[Feed, Script, Script]]:
    """Run the old script as a live job until it has read the first wave. Yields the feed and both scripts."""
    old = Script(_placed(pair.old, folder, tag), pair.settings_old, "old.sql")
    new = Script(_placed(pair.new, folder, f"beside-{tag}"), pair.settings_new, "new.sql")
    with running(gateway, jobs, old, pair.id) as job_id:
        rows = {**ROWS, **{name: phases["before"] for name, phases in pair.rows.items()}}
        feed = Feed(jobs, job_id, folder, _tables(pair.old) | _tables(pair.new), rows)
        feed.arrive(BEFORE)
        yield feed, old, new


def rehearsed(gateway: SqlGateway, jobs: JobManager, pair: Restore, folder: Path) -> Rehearsal:
    """Rehearse a pair while the old script runs and has read its rows."""
    with live(gateway, jobs, pair, folder) as (feed, old, new):
        return rehearse(cluster(gateway, jobs), feed.job_id, old, new, QUICK, log=print)


def rehearsed_on_the_way(gateway: SqlGateway, jobs: JobManager, feed: Feed, old: Script, new: Script) -> Rehearsal:
    """Rehearse while rows arrive for the live job: after the savepoint, and after the control."""
    due = iter(MEANWHILE)

    def log(line: str) -> None:
        print(line)
        if line.startswith(("control: ", "rehearsing ")):
            feed.arrive(next(due))

    found = rehearse(cluster(gateway, jobs), feed.job_id, old, new, QUICK, log)
    for wave in due:
        feed.arrive(wave)
    return found


def to_the_end(feed: Feed, printed: Callable[[], Iterable[str]]) -> list[str]:
    """Drain the live job, and return all rows that it has printed, sorted."""
    jobs, trigger = feed.jobs, uuid.uuid4().hex
    feed.arrive(AFTER)
    jobs.call("POST", f"jobs/{feed.job_id}/stop", {"drain": True, "triggerId": trigger})
    jobs.wait_terminal(feed.job_id, timeout=120)
    savepoint = jobs.stop_result(feed.job_id, trigger)
    assert savepoint is not None
    jobs.dispose_savepoint(savepoint)
    return sorted(printed())


def _tables(script: str) -> dict[str, str]:
    """Declared table → the name of its rows."""
    return {match["table"]: _rows_of(match["path"]) for match in _TABLE.finditer(script)}


def _rows_of(path: str) -> str:
    return path.removeprefix("file:///data").strip("/") or "MyTable"


def _placed(script: str, folder: Path, tag: str) -> str:
    """The script over rows in ``folder``, which is still empty; the sink's name is a keyword."""
    script = re.sub(r"(CREATE TABLE|INSERT INTO) Result\b", r"\1 `Result`", script)
    for rows in _tables(script).values():
        (folder / rows).mkdir(parents=True, exist_ok=True)
    script = re.sub(
        r"'path'='(file:///data[^']*)'", lambda match: f"'path'='{(folder / _rows_of(match[1])).as_uri()}'", script
    )
    sinks = iter(range(script.count("'print'")))
    return _PRINT.sub(lambda _: f"'connector'='print','print-identifier'='{tag}.{next(sinks)}'", script)


@dataclass
class RehearsalRunner:
    """A Flink, and the rows that each live job printed without a rehearsal."""

    flink: LocalFlink
    gateway: SqlGateway
    jobs: JobManager
    folder: Path
    undisturbed: dict[str, list[str]] = field(default_factory=dict)
    _runs: Iterator[int] = field(default_factory=count)

    def rehearse(self, pair: Restore) -> dict[str, Any]:
        """The finding of a rehearsal, and the live job's rows next to those of a run without a rehearsal."""
        alone = self._alone(pair)
        run = f"run{next(self._runs)}"
        with live(self.gateway, self.jobs, pair, self.folder / run, run) as (feed, old, new):
            row = _row(pair, rehearsed_on_the_way(self.gateway, self.jobs, feed, old, new))
            rows = to_the_end(feed, lambda: self._printed(run))
        strange = self._printed(f"beside-{run}")
        return {**row, "rows": len(rows), "rows_as_alone": rows == alone and bool(rows) and not strange}

    def _alone(self, pair: Restore) -> list[str]:
        """Pairs that share their old side and their rows."""
        key = f"{pair.old}{sorted(pair.settings_old.items())}{sorted(pair.rows.items())}"
        if key not in self.undisturbed:
            run = f"run{next(self._runs)}"
            with live(self.gateway, self.jobs, pair, self.folder / run, run) as (feed, _, _):
                for wave in MEANWHILE:
                    feed.arrive(wave)
                self.undisturbed[key] = to_the_end(feed, lambda: self._printed(run))
        return self.undisturbed[key]

    def _printed(self, tag: str) -> list[str]:
        """``sink> +I[…]`` of every row printed under this tag."""
        lines = (self.flink.work_dir / "log" / "taskmanager.out").read_text("utf-8", "replace").splitlines()
        return [line.removeprefix(f"{tag}.") for line in lines if line.startswith(f"{tag}.")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", metavar="PATTERN")
    only = parser.parse_args().only
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flinkcompat-rehearsal-")))
        flink = stack.enter_context(LocalFlink(folder / "flink", slots=SLOTS))
        gateway = stack.enter_context(SqlGateway(flink.gateway_url))
        jobs = stack.enter_context(JobManager(flink.jobmanager_url))
        bench = RehearsalRunner(flink, gateway, jobs, folder)
        for pair in (pair for pair in pairs() if re.match(only, pair.id)):
            begin = time.monotonic()
            try:
                row = bench.rehearse(pair)
            except (DeployError, OSError) as error:
                row = {
                    "id": pair.id,
                    "measured": pair.outcome,
                    "finding": "not run",
                    "reason": str(error),
                    "as_measured": False,
                    "rows": 0,
                    "rows_as_alone": False,
                }
            running = [job.name for job in jobs.jobs().values() if not job.terminal]
            row["left"] = [*row.get("left", ()), *running, *(path.name for path in _savepoints(flink))]
            row["seconds"] = round(time.monotonic() - begin, 1)
            rows.append(row)
            print(f"{pair.id}: measured {pair.outcome}, found {row['finding']} {row.get('at', '')}; "
                  f"{row['rows']} rows, as alone: {row['rows_as_alone']}, {row['seconds']} s", flush=True)  # fmt: skip
            _write(rows, keep=bool(only))
    return int(any(row["left"] or not row["as_measured"] or not row["rows_as_alone"] for row in rows))


def _write(rows: Sequence[Mapping[str, Any]], *, keep: bool) -> None:
    """The result so far; with ``keep``, it contains the rows of other pairs in the result of the same day."""
    date = datetime.now(UTC).date().isoformat()
    whole = RESULTS / f"rehearsal-{date}.json"
    if keep and whole.exists():
        again = {row["id"]: row for row in [*json.loads(whole.read_text("utf-8"))["pairs"], *rows]}
        rows = [again[pair.id] for pair in pairs() if pair.id in again]
    data = {"date": date, "flink": "2.3.0", "pairs": rows}
    whole.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (RESULTS / f"rehearsal-{date}.md").write_text(report(data), "utf-8")


def _row(pair: Restore, found: Rehearsal) -> dict[str, Any]:
    as_measured = (found.finding, found.at) == expected(pair)
    names = {
        key: [operator.name.partition("[")[0] for operator in operators]
        for key, operators in (("claimed", found.claimed), ("dropped", found.dropped), ("begun", found.begun))
        if operators is not None
    }
    reason = _OBJECT_HASH.sub("", _SAVEPOINT.sub("SAVEPOINT", found.reason))
    return {
        "id": pair.id,
        "measured": pair.outcome,
        "finding": str(found.finding),
        "at": found.at,
        "as_measured": as_measured,
        "reason": reason,
        **names,
        "live": found.live,
        "left": list(found.left),
    }


def _savepoints(flink: LocalFlink) -> list[Path]:
    return list((flink.work_dir / "savepoints").iterdir())


def report(data: Mapping[str, Any]) -> str:
    """The results as Markdown."""
    rows: Sequence[Mapping[str, Any]] = data["pairs"]
    agreed = sum(row["as_measured"] for row in rows)
    untouched = sum(row.get("live") == "RUNNING, no restart meanwhile" for row in rows)
    as_alone = sum(row["rows_as_alone"] for row in rows)
    clean = sum(not row["left"] for row in rows)
    counts = Counter((row["measured"], f"{row['finding']} {row.get('at', '')}".strip()) for row in rows)
    table = [f"| {measured} | {found} | {count} |" for (measured, found), count in sorted(counts.items())]
    each = [
        f"| {row['id'].removesuffix(' into a sink')} | {row['measured']} | "
        f"{row['finding']} {row.get('at', '')} | {', '.join(row.get('begun') or ())} | "
        f"{row['rows']}{'' if row['rows_as_alone'] else ', NOT as undisturbed'} | {row['seconds']} |"
        for row in rows
    ]
    return "\n".join(
        [
            f"# Rehearsals of measured restores, {data['date']}",
            "",
            f"Flink {data['flink']}, one JobManager, one TaskManager; `python -m dev.benchmarks rehearsal`. The old",
            "script of each pair runs as the live job, over the rows the pair was measured with; a rehearsal beside it",
            "restores the old script as a control, then the new one. `tests/fixtures/measured` holds how each pair",
            "really ended. More rows arrive once the savepoint is taken, behind the control, and after the rehearsal;",
            "then the live job is drained, so that what its state still held is printed too. The same script with the",
            "same rows and nothing beside it is the undisturbed run.",
            "",
            f"* findings as measured: {agreed} of {len(rows)}",
            f"* live job RUNNING without a restart: {untouched} of {len(rows)}",
            f"* all rows of the live job those of the undisturbed run, none missing, none double, and no row of a "
            f"rehearsal: {as_alone} of {len(rows)} ({sum(row['rows'] for row in rows)} rows)",
            f"* no job and no savepoint left behind: {clean} of {len(rows)}",
            "",
            "Consumer positions and transactions on Kafka: `tests/scenarios/deploy/rehearsal/test_kafka.py`, which",
            "also sees the live group moved when what keeps the rehearsal apart is taken away.",
            "",
            "`restored_WRONG` is restored too, and found so: a rehearsal says what Flink accepts, not what comes out.",
            "",
            "| measured | found | pairs |",
            "|---|---|---|",
            *table,
            "",
            "| pair | measured | found | began empty | rows of the live job | seconds |",
            "|---|---|---|---|---|---|",
            *each,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
