"""Rehearse measured restores next to their running jobs; compare findings and outcomes.

``python -m dev.benchmarks rehearsal`` writes ``results/rehearsal-<date>.json`` and ``.md``. Exit status: 1 when a
finding differs from what was measured, when anything was left behind, or when the live job's rows were not those of a
run that nothing was rehearsed beside. ``--only PATTERN``: the pairs whose id begins with it, which take their places in
the result of the same day.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy import DeployError, JobManager, SqlGateway
from airflow_flinkcompat.deploy.restore_test import Rehearsal
from airflow_flinkcompat.local_flink import LocalFlink
from dev.measure.measured import Restore
from dev.measure.rehearsals import MEANWHILE, expected, live, pairs, rehearsed_on_the_way, to_the_end

RESULTS = Path(__file__).parent / "results"
SLOTS = 16
_SAVEPOINT = re.compile(r"file:\S*/savepoint-\w+-\w+")
_OBJECT_HASH = re.compile(r"(?<=\w)@[0-9a-f]+")


@dataclass
class PairRunner:
    """One Flink, and what each live job printed when nothing was rehearsed beside it."""

    flink: LocalFlink
    gateway: SqlGateway
    jobs: JobManager
    folder: Path
    undisturbed: dict[str, list[str]] = field(default_factory=dict)
    _runs: Iterator[int] = field(default_factory=count)

    def rehearse(self, pair: Restore) -> dict[str, Any]:
        """What was found, and the live job's rows beside those of a run alone."""
        alone = self._alone(pair)
        run = f"run{next(self._runs)}"
        with live(self.gateway, self.jobs, pair, self.folder / run, run) as (feed, old, new):
            row = _row(pair, rehearsed_on_the_way(self.gateway, self.jobs, feed, old, new))
            rows = to_the_end(feed, lambda: self._printed(run))
        strange = self._printed(f"beside-{run}")
        return {**row, "rows": len(rows), "rows_as_alone": rows == alone and bool(rows) and not strange}

    def _alone(self, pair: Restore) -> list[str]:
        """Pairs share their old side."""
        key = f"{pair.old}{sorted(pair.settings_old.items())}"
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
        bench = PairRunner(flink, gateway, jobs, folder)
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
    """The result so far; ``keep``: with the rows of other pairs in the result of the same day."""
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
            "Consumer positions and transactions on Kafka: `tests/scenarios/deploy/restore_test/test_kafka.py`, which",
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
