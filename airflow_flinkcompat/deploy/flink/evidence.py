"""What a cluster shows of a job's state: sizes by vertex, source offsets, whether it ever ran. REST tells no more.

Measured on Flink 2.3 and 1.20: an ended job keeps its checkpoint statistics, so a stopped job's savepoint can be sized
and the first checkpoint of its successor held beside it. Sizes prove nothing alone (windows close), a vertex that is
missing does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from airflow_flinkcompat.deploy.flink.jobmanager import JobManager, JobManagerError

_NOT_FOUND = 404
_NUMBER = re.compile(r"\[\d+\]")
_OFFSET = re.compile(r"\.topic\.(?P<topic>.+)\.partition\.(?P<partition>\d+)\.(?P<kind>currentOffset|committedOffset)$")
_DURATION = re.compile(r"(?P<number>\d+) *(?P<unit>ms|s|min|)")
_SECONDS = {"ms": 0.001, "s": 1.0, "min": 60.0, "": 0.001}
# Of statistics that are renewed after a time nobody here can read.
_LONG_AGE = 60.0
# How many metrics are asked for at once; an address may not grow without bounds.
_METRICS_AT_ONCE = 50


@dataclass(frozen=True)
class VertexState:
    """What one vertex put into a checkpoint or savepoint, in bytes."""

    name: str
    parallelism: int
    bytes: int


@dataclass(frozen=True)
class TakenState:
    """A checkpoint or savepoint as its job's statistics show it: where, bytes by vertex id, and its number."""

    path: str
    vertices: Mapping[str, VertexState] = field(default_factory=dict)
    number: int | None = None

    @property
    def bytes(self) -> int:
        return sum(vertex.bytes for vertex in self.vertices.values())

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> TakenState | None:
        """Read back; None for an empty record."""
        if not row:
            return None
        vertices = {key: VertexState(**vertex) for key, vertex in row.get("vertices", {}).items()}
        return cls(str(row["path"]), vertices, row.get("number"))


def taken_state(jobmanager: JobManager, job_id: str, kind: str) -> TakenState | None:
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
    return TakenState("" if path.startswith("<") else path, vertices, found["id"])


def same_place(one: str | None, other: str | None) -> bool:
    """Whether two savepoint paths name one place; Flink writes ``file:/x`` for ``file:///x``."""

    def plain(path: str | None) -> str:
        return re.sub(r"^file:/+", "file:/", path or "").rstrip("/")

    return plain(one) == plain(other)


def compare_state(saved: TakenState | None, first: TakenState | None) -> tuple[tuple[str, ...], str]:
    """What a savepoint and the first checkpoint after its restore say beside each other, and what is wrong (or "").

    Sizes are sums over all subtasks, so they stand beside each other at any parallelism. A vertex that held state and
    that the new job has not means that state was dropped: operators of one topology keep their ids. Measured on Flink
    2.3, parallelism 1 to 2, 2 to 1 and 2 to 3 (window, grouped and global aggregation, join, Top-N, OVER): every vertex
    that Flink takes a savepoint for has its id, and where another parallelism chains operators otherwise (a sink of
    files) their ids are others, and the savepoint is refused. Only ids that the planner gave
    (``table.exec.uid.generation``) outlive another chaining: at another parallelism a vertex that is missing is
    therefore looked for by the names of its operators, and compared with the vertices they are in now.
    """
    if saved is None or first is None or not saved.vertices or not first.vertices:
        return ("state sizes: not compared, the JobManager does not show them",), ""
    lines = [f"state: {first.bytes:,} bytes in the first checkpoint, {saved.bytes:,} in the savepoint"]
    kept = [(before, first.vertices[key]) for key, before in saved.vertices.items() if key in first.vertices]
    missing = [before for key, before in saved.vertices.items() if before.bytes and key not in first.vertices]
    for before, after in kept:
        if before.bytes:
            now, then = _subtasks(after, before), _subtasks(before, after)
            lines.append(f"  {before.name}: {after.bytes:,} bytes{now}, {before.bytes:,}{then} before")
    if not missing:
        return tuple(lines), ""
    dropped = ", ".join(f"{before.name} ({before.bytes:,} bytes)" for before in missing)
    places = _elsewhere(missing, [before for before, _ in kept], list(first.vertices.values()))
    if not any(place.bytes for place in places):
        return tuple(lines), f"state was dropped: no operator of the new job took that of {dropped}"
    found = ", ".join(f"{place.name} ({place.bytes:,} bytes)" for place in places)
    return (*lines, f"  chained otherwise at this parallelism: {found}; before {dropped}"), ""


def _subtasks(vertex: VertexState, other: VertexState) -> str:
    """How many subtasks hold its state, where that is another number."""
    count = vertex.parallelism
    return f" in {count} subtask{'s' * (count != 1)}" if count != other.parallelism else ""


def _elsewhere(
    missing: Sequence[VertexState], kept: Sequence[VertexState], now: Sequence[VertexState]
) -> list[VertexState]:
    """The vertices of the new job with all operators of the missing ones, beside those of the vertices it has kept.

    None at one parallelism: nothing is chained otherwise then.
    """
    if len({vertex.parallelism for vertex in (*missing, *kept, *now)}) == 1:
        return []
    wanted = sum((_operators(vertex) for vertex in missing), Counter[str]())
    spare = sum((_operators(vertex) for vertex in now), Counter[str]())
    spare -= sum((_operators(vertex) for vertex in kept), Counter[str]())
    return [vertex for vertex in now if _operators(vertex) & wanted] if wanted <= spare else []


def _operators(vertex: VertexState) -> Counter[str]:
    """Names in ``Source: s[1] -> (Calc[2] -> k[3]: Writer, Calc[4])``, without the planner's numbers."""
    names = (_NUMBER.sub("", name).strip() for name in re.split(r" -> |, |[()]", vertex.name))
    return Counter(filter(None, names))


def source_offsets(jobmanager: JobManager, job_id: str) -> dict[str, int]:
    """Next offset by ``topic/partition`` that sources report in metrics (Kafka's do); -1: none reported yet."""
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


def compare_offsets(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[tuple[str, ...], str]:
    """Where sources stood before the stop and stand now, and what is wrong (or ""): one that went back."""
    known = {key: (before[key], offset) for key, offset in after.items() if offset >= 0 and before.get(key, -1) >= 0}
    if not known:
        return ("source offsets: not compared, no connector shows them on both sides",), ""
    back = [f"{key} from {old} to {new}" for key, (old, new) in sorted(known.items()) if new < old]
    if back:
        return (), f"a source went back: {', '.join(back)}"
    return (f"source offsets: {len(known)} partition{'s' * (len(known) != 1)} went on, none went back",), ""


def ever_ran(jobmanager: JobManager, job_id: str) -> bool | None:
    """Whether any task of the job reached RUNNING, so that it may have written rows; None: cannot be told."""
    try:
        for vertex in jobmanager.get(f"jobs/{job_id}").get("vertices", ()):
            for subtask in jobmanager.get(f"jobs/{job_id}/vertices/{vertex['id']}").get("subtasks", ()):
                if int((subtask.get("status-duration") or {}).get("RUNNING", -1)) >= 0 or subtask.get("attempt", 0):
                    return True
    except JobManagerError:
        return None
    return False


def statistics_age(jobmanager: JobManager) -> float:
    """How long in seconds the JobManager shows checkpoint statistics without renewing them (3 by default)."""
    explicit = cluster_options(jobmanager).get("rest.cache.checkpoint-statistics.timeout")
    if explicit is None:
        return float(jobmanager.get("config")["refresh-interval"]) / 1000
    match = _DURATION.fullmatch(explicit.strip())
    return int(match["number"]) * _SECONDS[match["unit"]] if match else _LONG_AGE


def keeps_checkpoints(jobmanager: JobManager, job_id: str, state: str = "CANCELED") -> bool:
    """Whether the job's checkpoints outlive an end in this state: a cancellation (``RETAIN_ON_CANCELLATION``), say."""
    kept = jobmanager.get(f"jobs/{job_id}/checkpoints/config").get("externalization") or {}
    return bool(kept.get("enabled")) and not (state == "CANCELED" and kept.get("delete_on_cancellation"))


def cluster_options(jobmanager: JobManager) -> dict[str, str]:
    """The options in the cluster's file, Flink's own masking of secrets kept."""
    return {row["key"]: row["value"] for row in jobmanager.get("jobmanager/config")}
