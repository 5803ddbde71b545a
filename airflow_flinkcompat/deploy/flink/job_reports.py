"""REST reports of a cluster about a job: state sizes, history and restore.

Measured on Flink 2.3 and 1.20:

* The JobManager keeps the checkpoint statistics of ended jobs. These statistics include the size of a stopped job's
savepoint, which is compared with the first checkpoint of the next job. A smaller first checkpoint does not prove lost
state, because windows close. A missing vertex with state does prove lost state.
* The JobManager keeps the ten newest checkpoints (``web.checkpoints.history``), the sixteen newest failures
  (``web.exception-history-size``), the latest restore and the number of restores. A restart of the JobManager (high
  availability) loses all these records.
* With ignore-unclaimed-state, a restore logs ``Skipping savepoint state for operator <id>`` for every operator of the
  savepoint that the program lacks, even for stateless operators. In the log, these lines are between two lines that
  contain the job id.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.target import JobHistory, Snapshot, SnapshotStats, VertexState

_NOT_FOUND = 404
_SOURCE_ROWS = re.compile(r"Source__[^.]*\.numRecordsIn")
_OFFSET = re.compile(r"\.topic\.(?P<topic>.+)\.partition\.(?P<partition>\d+)\.(?P<kind>currentOffset|committedOffset)$")
_DURATION = re.compile(r"(?P<number>\d+) *(?P<unit>ms|s|min|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "": 0.001}
# Assumed refresh interval if the interval of the statistics cannot be parsed.
_LONG_AGE = 60.0
# Maximum number of metrics in a request, because the length of a URL is limited.
_METRICS_AT_ONCE = 50


def snapshot_stats(jobmanager: JobManager, job_id: str, kind: str) -> SnapshotStats | None:
    """Statistics of a job's latest ``completed`` checkpoint or ``savepoint``, or None."""
    found = (jobmanager.checkpoints(job_id).get("latest") or {}).get(kind)
    if not found:
        return None
    rows = jobmanager.get(f"jobs/{job_id}").get("vertices", ())
    try:
        details = jobmanager.get(f"jobs/{job_id}/checkpoints/details/{found['id']}").get("tasks") or {}
    except JobManagerError as error:
        if error.status != _NOT_FOUND:
            raise
        details = {}
    sizes = {key: int(task.get("state_size") or 0) for key, task in details.items()}
    vertices = {
        row["id"]: VertexState(row["name"], row["parallelism"], sizes[row["id"]]) for row in rows if row["id"] in sizes
    }
    path = str(found.get("external_path") or "")
    # The path is "<checkpoint-not-externally-addressable>" if the checkpoint is in the JobManager's memory.
    taken = found.get("latest_ack_timestamp")
    return SnapshotStats(
        Snapshot("" if path.startswith("<") else path), vertices, found["id"], None if taken is None else taken / 1000
    )


def source_offsets(jobmanager: JobManager, job_id: str) -> dict[str, int]:
    """Next offset by ``topic/partition`` from the metrics of Kafka sources, or -1 if not reported yet."""
    offsets: dict[str, int] = {}
    for vertex in jobmanager.get(f"jobs/{job_id}").get("vertices", ()):
        path = f"jobs/{job_id}/vertices/{vertex['id']}/metrics"
        names = [row["id"] for row in jobmanager.get(path) if _OFFSET.search(row["id"])]
        for begin in range(0, len(names), _METRICS_AT_ONCE):
            for row in jobmanager.get(f"{path}?get={','.join(names[begin : begin + _METRICS_AT_ONCE])}"):
                match = _OFFSET.search(row["id"])
                if match and match["kind"] == "currentOffset":
                    key = f"{match['topic']}/{match['partition']}"
                    offsets[key] = max(offsets.get(key, -1), int(float(row.get("value", -1))))
    return offsets


def highest_metric(jobmanager: JobManager, job_id: str, name: str) -> float | None:
    """The highest value of a metric among all subtasks of a job, or None if not reported."""
    return max(_of_subtasks(jobmanager, job_id, lambda id_: id_.rpartition(".")[2] == name, "max"), default=None)


def source_rows(jobmanager: JobManager, job_id: str) -> int | None:
    """The number of rows that the sources of a job have read since its start, or None if not reported."""
    values = _of_subtasks(jobmanager, job_id, lambda id_: _SOURCE_ROWS.fullmatch(id_) is not None, "sum")
    return int(sum(values)) if values else None


def _of_subtasks(jobmanager: JobManager, job_id: str, wanted: Callable[[str], bool], by: str) -> list[float]:
    """The values of wanted metrics, each aggregated over the subtasks (``max``, ``sum``)."""
    values: list[float] = []
    for vertex in jobmanager.get(f"jobs/{job_id}").get("vertices", ()):
        path = f"jobs/{job_id}/vertices/{vertex['id']}/subtasks/metrics"
        ids = [row["id"] for row in jobmanager.get(path) if wanted(row["id"])]
        for begin in range(0, len(ids), _METRICS_AT_ONCE):
            asked = quote(",".join(ids[begin : begin + _METRICS_AT_ONCE]), safe=",")
            values += [float(row[by]) for row in jobmanager.get(f"{path}?get={asked}&agg={by}")]
    return values


def ever_ran(jobmanager: JobManager, job_id: str) -> bool | None:
    """True if any task of the job reached RUNNING and may have written rows, or None if unknown."""
    try:
        for vertex in jobmanager.get(f"jobs/{job_id}").get("vertices", ()):
            for subtask in jobmanager.get(f"jobs/{job_id}/vertices/{vertex['id']}").get("subtasks", ()):
                if int((subtask.get("status-duration") or {}).get("RUNNING", -1)) >= 0 or subtask.get("attempt", 0):
                    return True
    except JobManagerError:
        return None
    return False


def statistics_age(jobmanager: JobManager) -> float:
    """Maximum age of the JobManager's checkpoint statistics in seconds (3 by default)."""
    explicit = cluster_options(jobmanager).get("rest.cache.checkpoint-statistics.timeout")
    if explicit is None:
        return float(jobmanager.get("config")["refresh-interval"]) / 1000
    match = _DURATION.fullmatch(explicit.strip())
    return int(match["number"]) * _SECONDS[match["unit"]] if match else _LONG_AGE


def keeps_checkpoints(jobmanager: JobManager, job_id: str, state: str = "CANCELED") -> bool:
    """True if checkpoints are retained when the job ends in ``state``, such as ``CANCELED``."""
    kept = jobmanager.get(f"jobs/{job_id}/checkpoints/config").get("externalization") or {}
    return bool(kept.get("enabled")) and not (state == "CANCELED" and kept.get("delete_on_cancellation"))


def cluster_options(jobmanager: JobManager) -> dict[str, str]:
    """The options in the cluster's configuration file. Flink masks the values of secrets."""
    return {row["key"]: row["value"] for row in jobmanager.get("jobmanager/config")}


_FAILURES_KEPT = 16
_COMPLETED = "COMPLETED"


def job_history(jobmanager: JobManager, job_id: str) -> JobHistory:
    """The history of a job since its start. Raises JobManagerError."""
    history = jobmanager.get(f"jobs/{job_id}/exceptions").get("exceptionHistory") or {}
    failures = sorted(entry["timestamp"] / 1000 for entry in history.get("entries") or ())
    statistics = jobmanager.checkpoints(job_id)
    counts: Mapping[str, Any] = statistics.get("counts") or {}
    restored: Mapping[str, Any] = (statistics.get("latest") or {}).get("restored") or {}
    rows = [*(statistics.get("history") or ()), *filter(None, ((statistics.get("latest") or {}).get("completed"),))]
    ended = [row["latest_ack_timestamp"] / 1000 for row in rows if row["status"] == _COMPLETED]
    at = restored.get("restore_timestamp")
    return JobHistory(
        failures=tuple(failures),
        all_failures=not history.get("truncated") and len(failures) < _FAILURES_KEPT,
        checkpoint=min(ended, default=None),
        restored=restored.get("external_path"),
        restored_at=None if at is None else at / 1000,
        restored_number=restored.get("id"),
        restored_own=f"/{job_id}/chk-" in (restored.get("external_path") or ""),
        restores=int(counts.get("restored", 0)),
        newest=max((int(row["id"]) for row in rows), default=0),
        completed=int(counts.get("completed", 0)),
        triggered=int(counts.get("total", 0)),
    )


_STARTING = re.compile(r"Starting job ([0-9a-f]{32}) from savepoint ")
_SKIPPING = re.compile(r"Skipping savepoint state for operator ([0-9a-f]{32})")
_RESTORED = re.compile(r"Reset the checkpoint ID of job ([0-9a-f]{32}) to ")


def skipped_by_log(lines: Iterable[str], job_id: str) -> frozenset[str] | None:
    """Ids of the operators that the restore of ``job_id`` skipped, or None if the log is inconclusive."""
    skipped: set[str] | None = None
    for line in lines:
        boundary = _STARTING.search(line) or _RESTORED.search(line)
        if boundary and boundary[1] == job_id:
            if boundary.re is _RESTORED:
                return None if skipped is None else frozenset(skipped)
            skipped = set()
        elif boundary and skipped is not None:
            return None
        elif skipped is not None and (found := _SKIPPING.search(line)):
            skipped.add(found[1])
    return None


def failed_at_restore(exceptions: Mapping[str, Any]) -> bool:
    """True if the latest failure happened while a task restored its state or opened its operators."""
    entries = (exceptions.get("exceptionHistory") or {}).get("entries") or [{}]
    trace = str(entries[0].get("stacktrace", ""))
    return "StateMigrationException" in trace or "StreamTask.restoreInternal" in trace


_NUMBER = re.compile(r"\[\d+\]")
# The planner adds the StreamRecordTimestampInserter only before sinks that write a row's timestamp.
_QUERY_OPERATOR = re.compile(r"\[\d+\]:(?!Sink\(|StreamRecordTimestampInserter\()")
# Bracket depth of an expression directly inside ``Calc(select=[``.
_IN_SELECT = 2


def query_of(plan: Mapping[str, Any]) -> Counter[str]:
    """The operators of a job's query as REST describes them, without sinks.

    An operator is a line such as ``[12]:GlobalWindowAggregate(groupBy=[…], …)``. Operators of a sink's connector have
    no number or a known name. The result omits the operator numbers and the column aliases in a Calc. In the Calc
    before a sink, the aliases are the sink's column names.
    """
    lines = (line for node in plan["plan"]["nodes"] for line in str(node.get("description", "")).split("<br/>"))
    texts = (line.lstrip(" +-:|") for line in lines)
    return Counter(_unnamed(_NUMBER.sub("", text, count=1)) for text in texts if _QUERY_OPERATOR.match(text))


def _unnamed(text: str) -> str:
    """Remove aliases (``AS c``) from an operator such as ``:Calc(select=[a, CAST(b AS INT) AS c])``."""
    if not text.startswith(":Calc("):
        return text
    kept, depth, naming = [], 0, False
    for place, character in enumerate(text):
        if character in "([{":
            depth += 1
        elif depth == _IN_SELECT and (character in ",]"):
            naming = False
        elif depth == _IN_SELECT and text.startswith(" AS ", place):
            naming = True
        if character in ")]}":
            depth -= 1
        if not naming:
            kept.append(character)
    return "".join(kept)
