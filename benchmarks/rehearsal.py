"""Rehearses every chosen measured restore beside its running old job, and writes what was found beside what happened.

``python -m benchmarks.rehearsal`` writes ``results/rehearsal-<date>.json`` and ``.md``. Exit status: 1 when a finding
differs from what was measured, or when anything was left behind.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow_flinkcompat.deploy import DeployError, JobManager, LocalFlink, SqlGateway
from airflow_flinkcompat.deploy.rehearsal import Rehearsal
from tests.deploy.rehearsals import expected, pairs, rehearsed
from tests.measured import Restore

RESULTS = Path(__file__).parent / "results"
SLOTS = 16
_SAVEPOINT = re.compile(r"file:\S*/savepoint-\w+-\w+")
_OBJECT_HASH = re.compile(r"(?<=\w)@[0-9a-f]+")


def main() -> int:
    rows: list[dict[str, Any]] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="flinkcompat-rehearsal-")))
        flink = stack.enter_context(LocalFlink(folder / "flink", slots=SLOTS))
        gateway = stack.enter_context(SqlGateway(flink.gateway_url))
        jobs = stack.enter_context(JobManager(flink.jobmanager_url))
        for number, pair in enumerate(pairs()):
            begin = time.monotonic()
            try:
                row = _row(pair, rehearsed(gateway, jobs, pair, folder / str(number)))
            except (DeployError, OSError) as error:
                row = {
                    "id": pair.id,
                    "measured": pair.outcome,
                    "finding": "not run",
                    "reason": str(error),
                    "as_measured": False,
                }
            running = [job.name for job in jobs.jobs().values() if not job.terminal]
            row["left"] = [*row.get("left", ()), *running, *(path.name for path in _savepoints(flink))]
            row["seconds"] = round(time.monotonic() - begin, 1)
            rows.append(row)
            print(f"{pair.id}: measured {pair.outcome}, found {row['finding']} {row.get('at', '')}", flush=True)
    date = datetime.now(UTC).date().isoformat()
    data = {"date": date, "flink": "2.3.0", "pairs": rows}
    (RESULTS / f"rehearsal-{date}.json").write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", "utf-8")
    (RESULTS / f"rehearsal-{date}.md").write_text(report(data), "utf-8")
    return int(any(row["left"] or not row["as_measured"] for row in rows))


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
    clean = sum(not row["left"] for row in rows)
    counts = Counter((row["measured"], f"{row['finding']} {row.get('at', '')}".strip()) for row in rows)
    table = [f"| {measured} | {found} | {count} |" for (measured, found), count in sorted(counts.items())]
    each = [
        f"| {row['id'].removesuffix(' into a sink')} | {row['measured']} | "
        f"{row['finding']} {row.get('at', '')} | {', '.join(row.get('begun') or ())} | {row['seconds']} |"
        for row in rows
    ]
    return "\n".join(
        [
            f"# Rehearsals of measured restores, {data['date']}",
            "",
            f"Flink {data['flink']}, one JobManager, one TaskManager; `python -m benchmarks.rehearsal`. The old script",
            "of each pair runs as the live job, over the rows the pair was measured with; a rehearsal beside it",
            "restores the old script as a control, then the new one. `tests/fixtures/measured` holds how each pair",
            "really ended.",
            "",
            f"* findings as measured: {agreed} of {len(rows)}",
            f"* live job RUNNING without a restart: {untouched} of {len(rows)}",
            f"* no job and no savepoint left behind: {clean} of {len(rows)}",
            "",
            "`restored_WRONG` is restored too, and found so: a rehearsal says what Flink accepts, not what comes out.",
            "",
            "| measured | found | pairs |",
            "|---|---|---|",
            *table,
            "",
            "| pair | measured | found | began empty | seconds |",
            "|---|---|---|---|---|",
            *each,
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
