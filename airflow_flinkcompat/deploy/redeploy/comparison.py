"""State and offsets of a job compared with those of its predecessor.

Sizes prove nothing alone (windows close); a missing vertex does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from airflow_flinkcompat.deploy.target import SnapshotStats, VertexState

_NUMBER = re.compile(r"\[\d+\]")


def compare_state(saved: SnapshotStats | None, first: SnapshotStats | None) -> tuple[tuple[str, ...], str]:
    """Compare a savepoint with the first checkpoint after its restore; the second text is the fault or "".

    Sizes are sums over all subtasks, so they are comparable at any parallelism. If a vertex held state and the new job
    lacks it, state was dropped: operators of one topology keep their ids. Measured on Flink 2.3, parallelism 1 to 2, 2
    to 1 and 2 to 3 (window, grouped and global aggregation, join, Top-N, OVER): every vertex for which Flink accepts a
    savepoint has its id. If another parallelism changes the chaining (a file sink), the ids differ and the savepoint is
    refused. Only planner-generated ids (``table.exec.uid.generation``) survive another chaining. At another parallelism
    a missing vertex is therefore searched by the names of its operators, and compared with their present vertices.
    """
    if saved is None or first is None or not saved.vertices or not first.vertices:
        return ("state sizes: not compared, the target does not show them",), ""
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
        return tuple(lines), f"state was dropped: no operator of the new job restored the state of {dropped}"
    found = ", ".join(f"{place.name} ({place.bytes:,} bytes)" for place in places)
    return (*lines, f"  chained differently at this parallelism: {found}; before: {dropped}"), ""


def _subtasks(vertex: VertexState, other: VertexState) -> str:
    """Number of subtasks that hold its state, if it differs."""
    count = vertex.parallelism
    return f" in {count} subtask{'s' * (count != 1)}" if count != other.parallelism else ""


def _elsewhere(
    missing: Sequence[VertexState], kept: Sequence[VertexState], now: Sequence[VertexState]
) -> list[VertexState]:
    """Vertices of the new job that contain all operators of the missing ones, and those that they joined.

    None at equal parallelism: the chaining is the same then.
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


def compare_offsets(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[tuple[str, ...], str]:
    """Source positions before the stop and now, and the fault (or ""): a source that went back."""
    known = {key: (before[key], offset) for key, offset in after.items() if offset >= 0 and before.get(key, -1) >= 0}
    if not known:
        return ("source offsets: not compared, no connector shows them on both sides",), ""
    back = [f"{key} from {old} to {new}" for key, (old, new) in sorted(known.items()) if new < old]
    if back:
        return (), f"a source went back: {', '.join(back)}"
    return (f"source offsets: {len(known)} partition{'s' * (len(known) != 1)} resumed, none went back",), ""
