"""Compare the state of jobs as tables, queried in SQL, with the rows that a real Flink emits.

Each job of ``dev/measure/state.sql`` reads its input on a real Flink and is stopped with a canonical savepoint. Its
query over the tables of the savepoint must return the rows that Flink emits for the same input, as a multiset:
emitted up to the savepoint, emitted after it if the input ends there, or the result of a batch query. Floating-point
numbers are compared to 12 significant digits.

Exit status: 0 all rows are equal, 1 some are not, 2 a job could not be run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.savepoint.binary import SavepointUnreadable
from airflow_flinkcompat.state import QueryFailed, open_savepoint
from airflow_flinkcompat.testing.fixture_cases import FixtureError
from dev.measure import results
from dev.measure.pair_runner import PairRunner
from dev.measure.pairs import CACHE, RELEASES, Pair
from dev.measure.progress import tables_read
from dev.measure.run_migrations import migration_of_plans
from dev.measure.running import add_arguments, bench_of, deadline, say
from dev.measure.state_jobs import (
    Compared,
    StateJob,
    bounded,
    columns_of,
    fault,
    load_jobs,
    nameless,
    since,
    state_rows,
)
from dev.tools import explanation

NAME = "state/flink"
EQUAL, DIFFERENT = "equal", "different"
_LEGEND = """\
*Compared* is the source of Flink's rows. A column *without a name* is named after its place or after the planner's
number of an expression, or is an internal state of the operator. *Bytes* are columns of nested types, and of
serializers without columns. Without a result, a job has another state on this line, or this line cannot plan it."""
_REPORTS = Path(__file__).parents[1] / "benchmarks" / "results"


@dataclass(frozen=True)
class Ending:
    """Outcome of one job: rows by number, the number of state rows, and columns without a name or type."""

    job: StateJob
    fault: str
    expected: Mapping[str, int] = field(default_factory=dict)
    rows: int = 0
    unnamed: Sequence[str] = ()
    binary: Sequence[str] = ()

    @property
    def outcome(self) -> str:
        return DIFFERENT if self.fault else EQUAL

    def entry(self) -> dict[str, Any]:
        """The entry of a results file."""
        return {
            "id": self.job.id,
            "about": self.job.about,
            "compared": self.job.compared.value,
            "outcome": self.outcome,
            "fault": self.fault or None,
            "rows": self.rows,
            "unnamed": list(self.unnamed),
            "binary": list(self.binary),
            "expected": dict(sorted(self.expected.items())),
        }


def measured(bench: PairRunner, job: StateJob, version: str) -> Ending:
    """Run a job up to its savepoint, and compare the tables. Raises DeployError if this fails."""
    side = bench.complete(job.side)
    made, _ = migration_of_plans((bench.compiled(side),) * 2, (side, side), (version, version))
    specs = [line.old for line in made.operators if line.old is not None]
    savepoint = bench.savepoint(side, {feed.rows for feeds in tables_read(side.script).values() for feed in feeds})
    match job.compared:
        case Compared.EMITTED:
            expected = since(savepoint.printed, ())
        case Compared.CLOSING:
            expected = since(bench.ended(bounded(side), savepoint.folder), savepoint.printed)
        case Compared.BATCH:
            assert job.batch is not None
            expected = since(bench.ended(bench.complete(job.batch), savepoint.folder), ())
    opened = open_savepoint(savepoint.path, specs)
    try:
        found = state_rows(opened, job)
    except (QueryFailed, SavepointUnreadable) as error:
        return Ending(job, f"{type(error).__name__}: {error}; {columns_of(opened)}", expected)
    return Ending(job, fault(found, expected), expected, found.num_rows, *nameless(opened))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dev.measure state", description=__doc__)
    add_arguments(parser)
    parser.add_argument("--out", type=Path, help="the results file; by default the newest one in dev/measure/results")
    options = parser.parse_args(arguments)
    try:
        path, failures = run(options)
    except (DeployError, FixtureError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for failure in failures:
        print(f"error: could not be run: {failure}", file=sys.stderr)
    data = results.read(path)
    print(f"\n{summary(data)}\n{path}")
    return 2 if failures else int(any(entry["outcome"] != EQUAL for entry in data["jobs"]))


def run(options: argparse.Namespace) -> tuple[Path, list[str]]:
    """Return the results file, and the errors of jobs that failed to run. Other results remain."""
    line, today = options.flink, datetime.now(UTC).date().isoformat()
    path: Path = options.out or results.FOLDER / f"{NAME}-{line}-{today}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    jobs = {job.id: job for job in load_jobs(line, options.only)}
    entries = {entry["id"]: entry for entry in results.read(path)["jobs"]} if path.exists() and options.only else {}
    folder = CACHE / f"state-{line}"
    shutil.rmtree(folder, ignore_errors=True)
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores before the run"

    def add(ending: Ending) -> None:
        if ending.fault:
            say(f"  {ending.job.id}: {ending.fault}")
        entries[ending.job.id] = ending.entry()
        head = {"flink": RELEASES[line], "date": today, "machine": load}
        results.write({**head, "jobs": [entries[name] for name in sorted(entries)]}, path)

    pairs = [Pair(job.id, "state as tables", job.about, job.side, job.side) for job in jobs.values()]
    with bench_of(line, folder) as bench:
        failures = bench.measure(
            pairs,
            options.threads,
            say,
            deadline(options.minutes),
            add,
            lambda pair: measured(bench, jobs[pair.id], RELEASES[line]),
        )
    if options.out is None:
        report(today)
    return path, failures


def summary(data: Mapping[str, Any]) -> str:
    """Numbers of equal and different jobs, and the differences."""
    wrong = [entry for entry in data["jobs"] if entry["outcome"] != EQUAL]
    lines = [f"  {entry['id']}: {entry['fault']}" for entry in wrong]
    equal = len(data["jobs"]) - len(wrong)
    return "\n".join([f"Flink {data['flink']}, {data['date']}: {equal} of {len(data['jobs'])} jobs equal.", *lines])


def report(day: str) -> None:
    """Write the results of a day on all lines of Flink as a page."""
    found = [results.read(path) for path in sorted(results.FOLDER.glob(f"{NAME}-*-{day}.json"), reverse=True)]
    (_REPORTS / f"state-{day}.md").write_text("\n".join(_page(day, found)) + "\n", "utf-8")


def _page(day: str, found: Sequence[Mapping[str, Any]]) -> list[str]:
    outcomes = [{entry["id"]: entry for entry in data["jobs"]} for data in found]
    jobs = {name: entry for of_line in reversed(outcomes) for name, entry in of_line.items()}
    rows = [
        f"| {name} | {jobs[name]['about']} | {jobs[name]['compared']} | "
        + " | ".join(_cell(of_line.get(name)) for of_line in outcomes)
        + f" | {_columns(jobs[name]['unnamed'])} | {_columns(jobs[name]['binary'])} |"
        for name in sorted(jobs)
    ]
    lines = [
        f"* Flink {data['flink']}: {_equal(data)} of {len(data['jobs'])} jobs equal, "
        f"{_count(data, 'unnamed')} columns without a name in SQL and {_count(data, 'binary')} columns as bytes; "
        f"{data['machine']}."
        for data in found
    ]
    method, _, _ = explanation(__doc__).partition("\n\nExit")
    names = " | ".join(f"rows on {data['flink']}" for data in found)
    head = f"| job | about | compared | {names} | without a name | bytes |"
    return [
        f"# State as tables compared with Flink, {day}", "", method, "", *lines, "", _LEGEND, "",
        head, "|---" * (5 + len(found)) + "|", *rows,
    ]  # fmt: skip


def _cell(entry: Mapping[str, Any] | None) -> str:
    if entry is None:
        return ""
    return f"{entry['rows']} equal" if entry["outcome"] == EQUAL else "**different**"


def _columns(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _equal(data: Mapping[str, Any]) -> int:
    return sum(entry["outcome"] == EQUAL for entry in data["jobs"])


def _count(data: Mapping[str, Any], key: str) -> int:
    return sum(len(entry[key]) for entry in data["jobs"])


if __name__ == "__main__":
    raise SystemExit(main())
