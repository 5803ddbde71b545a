"""Time in which the pages list a thousand deployments.

The ledgers are those of ``dev.benchmarks.ledger_index``, on a local disk. A user who may read every DAG asks for the
first page, for the last one, and for what a filter leaves; beside it stands reading the index alone, which each of them
does. What Airflow itself does for a request (signing in, rights, the database) is not in it.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from airflow_flinkcompat.airflow.plugin import views
from airflow_flinkcompat.airflow.plugin.fleet import Attention, ListFilter, deployment_list
from airflow_flinkcompat.airflow.plugin.ledgers import FoundLedgers, NamedLedger
from airflow_flinkcompat.deploy.ledger.history import _encoded
from airflow_flinkcompat.deploy.ledger.listing import deployment_rows, rebuild_index
from dev.benchmarks.ledger_index import DEPLOYMENTS, history
from dev.benchmarks.rights import OnlyDags
from dev.tools import publish

LIMIT, ROUNDS = 50, 5


def fill(root: Path, count: int) -> list[str]:
    """Writes the ledgers and their index; the names of the DAGs that own them."""
    names = [f"job_{number:04d}" for number in range(count)]
    for name in names:
        (root / name).mkdir()
        for number, entry in enumerate(history(name), 1):
            stored = replace(entry, number=number, at="2026-11-26T18:00:00.000+00:00")
            (root / name / f"{number:06d}.json").write_bytes(_encoded(stored))
    rebuild_index(root)
    return [f"redeploy_{name}" for name in names]


def measured(root: Path, count: int) -> list[str]:
    """Rows of a table: what is asked for, and how long it takes."""
    dags = fill(root, count)
    ledger = NamedLedger(str(root))
    found, rights = FoundLedgers((ledger,)), OnlyDags(dags, dags)

    def page(wanted: ListFilter, offset: int = 0) -> Callable[[], int]:
        return lambda: len(deployment_list(found, rights, wanted, LIMIT, offset).model_dump_json())

    asked = {
        "the index alone": lambda: len(deployment_rows(root)),
        f"the first {LIMIT}": page(ListFilter()),
        f"the last {LIMIT}": page(ListFilter(), max(0, count - LIMIT)),
        "those that wait, by a word": page(ListFilter(frozenset({Attention.PENDING}), text="payments")),
    }
    entries = ledger.entries("job_0000")
    one = f"one deployment of {len(entries)} entries, once read"
    asked[one] = lambda: len(views.deployment_page(ledger, "job_0000", entries, rights).model_dump_json())
    return [row(what, call) for what, call in asked.items()]


def row(what: str, call: Callable[[], int]) -> str:
    """A row of the table: the least time by the clock, and the least of the processor."""
    clock, processor = [], []
    for _ in range(ROUNDS):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        call()
        clock.append(time.perf_counter() - begin)
        processor.append(time.process_time() - begin_cpu)
    return f"| {what} | {min(clock):.3f} s | {min(processor):.3f} s |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deployments", type=int, default=DEPLOYMENTS, metavar="N")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the table there, too")
    given = parser.parse_args()
    logging.getLogger("airflow_flinkcompat").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(Path(folder), given.deployments)
    text = "\n".join(
        [
            f"# The list of deployments, {datetime.now(UTC):%Y-%m-%d}",
            "",
            f"`python -m dev.benchmarks deployment-list`: {given.deployments} deployments of "
            f"{len(history('a'))} entries each on a local disk;",
            f"Python {platform.python_version()}, {os.cpu_count()} cores that other work shares.",
            "",
            f"| what is asked for | best of {ROUNDS}, by the clock | processor |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
    publish(text, given.write)


if __name__ == "__main__":
    main()
