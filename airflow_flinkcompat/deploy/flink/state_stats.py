"""A job's state as a cluster shows it over REST: sizes by vertex, source offsets, whether it ever ran.

Measured on Flink 2.3 and 1.20: an ended job keeps its checkpoint statistics. They contain the size of a stopped job's
savepoint, which is compared with the first checkpoint of its successor. Sizes alone prove nothing (windows close); a
missing vertex does.
"""

from __future__ import annotations

import re

from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError
from airflow_flinkcompat.deploy.target import Snapshot, SnapshotStats, VertexState

_NOT_FOUND = 404
_OFFSET = re.compile(r"\.topic\.(?P<topic>.+)\.partition\.(?P<partition>\d+)\.(?P<kind>currentOffset|committedOffset)$")
_DURATION = re.compile(r"(?P<number>\d+) *(?P<unit>ms|s|min|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "": 0.001}
# Of statistics that are renewed after a time nobody here can read.
_LONG_AGE = 60.0
# How many metrics are asked for at once; an address may not grow without bounds.
_METRICS_AT_ONCE = 50


def snapshot_stats(jobmanager: JobManager, job_id: str, kind: str) -> SnapshotStats | None:
    """The latest ``completed`` checkpoint or ``savepoint`` of a job; None when there is none."""
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
    # "<checkpoint-not-externally-addressable>": it lies in the JobManager's memory.
    taken = found.get("latest_ack_timestamp")
    return SnapshotStats(
        Snapshot("" if path.startswith("<") else path), vertices, found["id"], None if taken is None else taken / 1000
    )


def source_offsets(jobmanager: JobManager, job_id: str) -> dict[str, int]:
    """Next offset by ``topic/partition`` in the metrics of Kafka sources; -1: none reported yet."""
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


def ever_ran(jobmanager: JobManager, job_id: str) -> bool | None:
    """True if any task of the job reached RUNNING and may have written rows; None if unknown."""
    try:
        for vertex in jobmanager.get(f"jobs/{job_id}").get("vertices", ()):
            for subtask in jobmanager.get(f"jobs/{job_id}/vertices/{vertex['id']}").get("subtasks", ()):
                if int((subtask.get("status-duration") or {}).get("RUNNING", -1)) >= 0 or subtask.get("attempt", 0):
                    return True
    except JobManagerError:
        return None
    return False


def statistics_age(jobmanager: JobManager) -> float:
    """Seconds for which the JobManager shows checkpoint statistics without renewing them (3 by default)."""
    explicit = cluster_options(jobmanager).get("rest.cache.checkpoint-statistics.timeout")
    if explicit is None:
        return float(jobmanager.get("config")["refresh-interval"]) / 1000
    match = _DURATION.fullmatch(explicit.strip())
    return int(match["number"]) * _SECONDS[match["unit"]] if match else _LONG_AGE


def keeps_checkpoints(jobmanager: JobManager, job_id: str, state: str = "CANCELED") -> bool:
    """True if checkpoints outlive an end in this state, such as ``CANCELED`` (``RETAIN_ON_CANCELLATION``)."""
    kept = jobmanager.get(f"jobs/{job_id}/checkpoints/config").get("externalization") or {}
    return bool(kept.get("enabled")) and not (state == "CANCELED" and kept.get("delete_on_cancellation"))


def cluster_options(jobmanager: JobManager) -> dict[str, str]:
    """The options in the cluster's file, Flink's own masking of secrets kept."""
    return {row["key"]: row["value"] for row in jobmanager.get("jobmanager/config")}
