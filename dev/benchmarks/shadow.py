"""Run shadow runs over measured restores, and compare their findings with the measured outcomes.

The old script of each pair runs as the live job. The later rows of the measured run arrive between the savepoints of
the shadow run.
``results/shadow-<date>.json`` and ``.md`` contain the findings. ``--only REGEX`` limits the pairs by id, and
``--minutes`` the time. Pairs in the result of the same day are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy import DeployError
from airflow_flinkcompat.deploy.flink.gateway import SqlGateway
from airflow_flinkcompat.deploy.flink.jobmanager import JobManager
from airflow_flinkcompat.deploy.rehearsal.restoring import Timeouts
from airflow_flinkcompat.deploy.shadow.report import ShadowReport
from airflow_flinkcompat.deploy.shadow.rows import ShadowFinding
from airflow_flinkcompat.deploy.shadow.sequence import ShadowOptions, shadow
from airflow_flinkcompat.local_flink import LocalFlink
from airflow_flinkcompat.local_flink.jars import fetch
from dev.benchmarks.rehearsal import RESULTS, SLOTS, Feed, cluster, live
from dev.measure import measured
from dev.measure.measured import Restore
from dev.measure.progress import Arrival, wait_read
from dev.services.postgres import Postgres, postgres

_WRONG = "restored_WRONG"
LATER: Mapping[str, list[str]] = json.loads((measured.FOLDER / "later-rows.json").read_text(encoding="utf-8"))
"""Input rows of each table after the savepoint, as in the measured runs."""
OUTCOMES = (_WRONG, measured.RIGHT)
_CAUGHT = (ShadowFinding.DIFFERS, ShadowFinding.CHANGED)
QUICK = ShadowOptions(
    seconds=0.5,
    run_seconds=120.0,
    from_earliest=True,
    timeouts=Timeouts(settle=0.3, start=90, savepoint=60, clean_up=60),
)


_LOOKUP = """CREATE TABLE d (k TEXT, name TEXT, grp TEXT, val BIGINT);
INSERT INTO d VALUES ('k1', 'n1', 'g1', 1000), ('k2', 'n2', 'g1', 2000), ('k3', 'n3', 'g2', 3000),
  ('k4', 'g1', 'n1', 4000), ('u', 'n5', 'g2', 5000), ('v', 'n6', 'g1', 6000);"""
"""The lookup table of the measured runs."""
JARS = ("flink-connector-jdbc-core", "flink-connector-jdbc-postgres", "postgresql")


def pairs(database: Postgres) -> list[Restore]:
    """The measured restores on 2.3 that Flink accepts; the wrong ones first.

    The measured runs used two connectors of their own. A table of ``database`` replaces the lookup table, and
    ``blackhole``, which also accepts upserts, replaces the sink.
    """
    files = ("flink-2.3-restores.json", measured.WIDE)
    found = [pair for file in files for pair in measured.load(file, wrap=True) if pair.outcome in OUTCOMES]
    connectors = {
        "'connector'='csvlookup','path'='/data/D.csv'": (
            f"'connector'='jdbc','url'='{database.url}?user=postgres','table-name'='d'"
        ),
        "'connector' = 'uprint'": "'connector' = 'blackhole'",
    }

    def on_this_cluster(script: str) -> str:
        return reduce(lambda text, each: text.replace(*each), connectors.items(), script)

    placed = (replace(pair, old=on_this_cluster(pair.old), new=on_this_cluster(pair.new)) for pair in found)
    return sorted(placed, key=lambda pair: OUTCOMES.index(pair.outcome))


def shadowed(
    gateway: SqlGateway, jobs: JobManager, pair: Restore, folder: Path, options: ShadowOptions
) -> ShadowReport:
    """Compare the rows of a pair's scripts next to the old script's job."""
    later = {**LATER, **{name: phases["after"] for name, phases in pair.rows.items()}}
    with live(gateway, jobs, pair, folder) as (feed, old, new):

        def log(line: str) -> None:
            if line.startswith("waiting"):
                _arrive_later(feed, later)

        return shadow(cluster(gateway, jobs), feed.job_id, old, new, options, log)


def _arrive_later(feed: Feed, later: Mapping[str, Sequence[str]]) -> None:
    """Add the rows that were read after the restart in the measured runs, and wait for the live job."""
    for name in set(feed.tables.values()):
        hidden = feed.folder / name / ".later.csv"
        hidden.write_text("\n".join(later[name]) + "\n", encoding="utf-8")
        hidden.rename(hidden.with_name("later.csv"))
    due = {table: len(feed.rows[rows]) + len(later[rows]) for table, rows in feed.tables.items()}
    wait_read(feed.jobs, feed.job_id, Arrival(due, {}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=".*", metavar="REGEX")
    parser.add_argument("--minutes", type=float, default=240.0)
    parser.add_argument("--again", action="store_true", help="Run pairs again that the result contains.")
    parser.add_argument("--verbose", action="store_true", help="Print each report.")
    options = parser.parse_args()
    path = RESULTS / f"shadow-{datetime.now(UTC).date().isoformat()}.json"
    rows: dict[str, dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    end = time.monotonic() + options.minutes * 60
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flinkcompat-shadow-")))
        jars = [fetch(name) for name in JARS]
        database = stack.enter_context(postgres())
        database.run(_LOOKUP)
        passwords = folder / "pgpass"
        passwords.write_text(f"*:*:*:*:{database.password}\n", encoding="utf-8")
        passwords.chmod(0o600)
        os.environ["PGPASSFILE"] = str(passwords)  # because scripts with passwords are refused
        flink = stack.enter_context(LocalFlink(folder / "flink", slots=SLOTS, extra_jars=jars))
        gateway = stack.enter_context(SqlGateway(flink.gateway_url))
        jobs = stack.enter_context(JobManager(flink.jobmanager_url))
        for number, pair in enumerate(pairs(database)):
            known = pair.id in rows and not options.again
            if known or not re.fullmatch(options.only, pair.id) or time.monotonic() > end:
                continue
            begin = time.monotonic()
            try:
                wrong = pair.outcome == _WRONG
                found = shadowed(gateway, jobs, pair, folder / f"run{number}", replace(QUICK, from_earliest=not wrong))
                if wrong and found.finding is ShadowFinding.EQUAL:
                    found = shadowed(gateway, jobs, pair, folder / f"run{number}-earliest", QUICK)
                if options.verbose:
                    print("\n".join(found.lines()))
                row: dict[str, Any] = {"finding": str(found.finding), "reason": found.reason, "left": list(found.left)}
                state = found.state
                row["state"] = None if state is None else {"finding": str(state.finding), "reason": state.reason}
                row["sinks"] = [[str(each.finding), *each.compared, each.differing] for each in found.sinks]
            except (DeployError, OSError) as error:
                row = {"finding": "not run", "reason": str(error), "left": [], "state": None, "sinks": []}
            left = [each.name for each in (flink.work_dir / "savepoints").iterdir()]
            row["left"] = [*row["left"], *left, *(job.name for job in jobs.jobs().values() if not job.terminal)]
            rows[pair.id] = {"measured": pair.outcome, **row, "seconds": round(time.monotonic() - begin, 1)}
            shown = f"{row['finding']} {row['sinks']} {row['reason'][:200]}, state {row['state']}"
            print(f"{pair.id}: {pair.outcome}, {shown}", flush=True)
            path.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", "utf-8")
            path.with_suffix(".md").write_text(report(rows, path.stem[-10:]), "utf-8")
    return int(any(row["left"] for row in rows.values()))


def report(rows: Mapping[str, Mapping[str, Any]], date: str) -> str:
    """The results as Markdown."""
    lines = [
        f"# Shadow runs over measured restores, {date}",
        "",
        "Flink 2.3.0 with one TaskManager, `python -m dev.benchmarks shadow`. The old script of each pair runs as the",
        "live job, over the rows of the measured restart. The table counts the findings by the outcome that was",
        "measured with a restart. The state (`--from-earliest`) of a wrong restore is compared if both scripts write",
        "equal rows. The state of a right restore is always compared.",
        "",
        "| measured | rows | state | pairs |",
        "|---|---|---|---|",
    ]
    counts = Counter((row["measured"], row["finding"], _state(row)) for row in rows.values())
    lines += [f"| {' | '.join(parts)} | {count} |" for parts, count in sorted(counts.items())]
    wrong = [(name, row) for name, row in rows.items() if row["measured"] == _WRONG]
    by_rows = [name for name, row in wrong if row["finding"] in _CAUGHT]
    by_state = [name for name, row in wrong if name not in by_rows and _state(row) == ShadowFinding.DIFFERS]
    lines += [
        "",
        f"* wrong restores with different rows: {len(by_rows)} of {len(wrong)}",
        f"* wrong restores with equal rows, but wrong state: {len(by_state)} ({', '.join(by_state)})",
        f"* nothing remained: {sum(not row['left'] for row in rows.values())} of {len(rows)}",
        "",
        "## Wrong restores without a difference",
        "",
    ]
    for name, row in wrong:
        if name not in (*by_rows, *by_state):
            lines.append(f"* `{name}`: {row['finding']} {row['reason'].partition(chr(10))[0][:300]}".rstrip())
    return "\n".join([*lines, ""])


def _state(row: Mapping[str, Any]) -> str:
    return row["state"]["finding"] if row["state"] else ""


if __name__ == "__main__":
    sys.exit(main())
