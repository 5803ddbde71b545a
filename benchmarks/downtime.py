"""How long a job stands still while it is redeployed, beside raw REST calls that do the same: ``make bench-downtime``.

Timed is, by the cluster's own clock, from the end of the old job (its stop with savepoint) to the first checkpoint that
the new one completed. Ours is ``deploy`` with everything it does in between: the ledger's entries, the looks that make
a retry possible, the stop's result. The raw calls are what a script of a few lines would do: stop, wait for the
savepoint, a session, the statements, the job with the savepoint's path. Both take turns on one Flink, with one job each
of the same script. A ratio of 1 would be a redeploy that costs no downtime beside the raw calls.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import sleep
from typing import Any

import httpx

from airflow_flinkcompat.compat import Side
from airflow_flinkcompat.deploy import Ledger, LocalFlink, Options, SqlGatewayTarget, deploy

RATIO_GOAL = 1.2
SETUP = (
    """CREATE TABLE orders (customer BIGINT, amount BIGINT, ts AS LOCALTIMESTAMP, WATERMARK FOR ts AS ts) WITH (
  'connector' = 'datagen', 'rows-per-second' = '200', 'fields.customer.min' = '0', 'fields.customer.max' = '999')""",
    "CREATE TABLE totals (customer BIGINT, total BIGINT, since TIMESTAMP(3)) WITH ('connector' = 'blackhole')",
)
JOB = (
    "INSERT INTO totals SELECT customer, SUM(amount), window_start\n"
    "FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY customer, window_start, window_end"
)
SETTINGS = {"parallelism.default": "1", "execution.checkpointing.interval": "1 s"}
_LOOK_SECONDS = 0.02


@dataclass(frozen=True)
class Downtime:
    """Milliseconds from the end of the old job: to the new one's creation, and to its first checkpoint."""

    created: float
    proven: float


class Cluster:
    """Raw REST calls, the way a small script makes them."""

    def __init__(self, flink: LocalFlink) -> None:
        self._client = httpx.Client(timeout=60, trust_env=False)
        self._jobs, self._gateway = f"{flink.jobmanager_url}/jobs", f"{flink.gateway_url}/v3/sessions"

    def call(self, method: str, address: str, body: Any = None) -> Any:
        return self._client.request(method, address, json=body).raise_for_status().json()

    def until(self, look: Callable[[], Any]) -> Any:
        while not (found := look()):
            sleep(_LOOK_SECONDS)
        return found

    def start(self, name: str, savepoint: str | None = None) -> str:
        """The job's id, once it is accepted."""
        properties = {**SETTINGS, "pipeline.name": name}
        session = f"{self._gateway}/{self.call('POST', self._gateway, {'properties': properties})['sessionHandle']}"
        config = {"execution.state-recovery.path": savepoint} if savepoint else {}
        for statement in SETUP:
            self._execute(session, statement, {})
        job_id = self._execute(session, JOB, config)
        self.call("DELETE", session)
        return job_id

    def _execute(self, session: str, statement: str, config: dict[str, str]) -> str:
        body = {"statement": statement, "executionConfig": config}
        operation = f"{session}/operations/{self.call('POST', f'{session}/statements', body)['operationHandle']}"

        def ready() -> Any:
            page = self.call("GET", f"{operation}/result/0?rowFormat=JSON")
            return page if page["resultType"] != "NOT_READY" else None

        return str(self.until(ready).get("jobID"))

    def stop(self, job_id: str) -> str:
        """The savepoint, once the job has ended."""
        trigger = self.call("POST", f"{self._jobs}/{job_id}/stop", {"drain": False})["request-id"]

        def completed() -> Any:
            answer = self.call("GET", f"{self._jobs}/{job_id}/savepoints/{trigger}")
            return answer["operation"] if answer["status"]["id"] == "COMPLETED" else None

        savepoint = str(self.until(completed)["location"])
        self.until(lambda: self.call("GET", f"{self._jobs}/{job_id}/status")["status"] == "FINISHED")
        return savepoint

    def first_checkpoint(self, job_id: str) -> float:
        """When it was complete (milliseconds since the epoch); waits for it."""

        def done() -> Any:
            history = self.call("GET", f"{self._jobs}/{job_id}/checkpoints")["history"]
            return [row for row in history if row["status"] == "COMPLETED" and not row["is_savepoint"]]

        return float(min(row["latest_ack_timestamp"] for row in self.until(done)))

    def downtime(self, old: str, new: str) -> Downtime:
        proven = self.first_checkpoint(new)
        times = {job_id: self.call("GET", f"{self._jobs}/{job_id}")["timestamps"] for job_id in (old, new)}
        ended = times[old]["FINISHED"]
        return Downtime(times[new]["CREATED"] - ended, proven - ended)


def measure(flink: LocalFlink, root: Path, rounds: int) -> Iterator[tuple[Downtime, Downtime]]:
    """Ours and the raw calls, taking turns at going first."""
    cluster = Cluster(flink)
    script = ";\n".join((*SETUP, JOB)) + ";\n"
    side = Side(script, SETTINGS, engine="flink", source="orders.sql")
    ledger = Ledger(root / "ledger", "ours")
    raw = cluster.start("raw")
    with SqlGatewayTarget(flink.gateway_url, flink.jobmanager_url) as target:

        def ours() -> str:
            head = ledger.head()
            checked = head.sha256 if head else None
            entry = deploy(target, ledger, side, checked_old_sha256=checked, options=Options(settle_seconds=0))
            return str(entry.job_id)

        own = ours()
        for job_id in (raw, own):
            cluster.first_checkpoint(job_id)

        def redeploy_ours() -> Downtime:
            nonlocal own
            old, own = own, ours()
            return cluster.downtime(old, own)

        def redeploy_raw() -> Downtime:
            nonlocal raw
            old, raw = raw, cluster.start("raw", cluster.stop(raw))
            return cluster.downtime(old, raw)

        for number in range(rounds):
            if number % 2:
                second, first = redeploy_raw(), redeploy_ours()
            else:
                first, second = redeploy_ours(), redeploy_raw()
            yield first, second
        for job_id in (raw, own):
            target.cancel(job_id)


def results(pairs: Sequence[tuple[Downtime, Downtime]]) -> Iterator[str]:
    """The rounds as a table, then the medians and their ratio."""
    yield "| Round | Ours: job created | first checkpoint | Raw calls: job created | first checkpoint |"
    yield "|---|---|---|---|---|"
    for number, (ours, raw) in enumerate(pairs, 1):
        yield f"| {number} | {ours.created:.0f} | {ours.proven:.0f} | {raw.created:.0f} | {raw.proven:.0f} |"
    created, proven = (
        [statistics.median(getattr(pair[side], name) for pair in pairs) for side in (0, 1)]
        for name in ("created", "proven")
    )
    yield f"| Median | {created[0]:.0f} | {proven[0]:.0f} | {created[1]:.0f} | {proven[1]:.0f} |"
    ratio = proven[0] / proven[1]
    yield ""
    yield (
        f"Downtime, end of the old job to the first checkpoint of the new one: {proven[0]:.0f} ms ours, "
        f"{proven[1]:.0f} ms by raw calls, ratio {ratio:.2f} (goal ≤ {RATIO_GOAL:g}: "
        f"{'met' if ratio <= RATIO_GOAL else 'missed'})."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="redeploys of each (default: 9)")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write the results there too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, LocalFlink(Path(folder) / "flink") as flink:
        pairs = list(measure(flink, Path(folder), arguments.rounds))
    load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    lines = [f"# Downtime of a redeploy, {datetime.now(UTC).date()}", ""]
    lines += [f"Milliseconds; Flink 2.3.0 on one machine, {load}. `make bench-downtime` makes this file.", ""]
    lines += results(pairs)
    print("\n".join(lines))
    if arguments.write:
        arguments.write.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
