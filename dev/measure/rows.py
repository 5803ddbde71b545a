"""Printed rows: what the restored job printed beside what a run from scratch prints for the same later rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

RIGHT = "restored_right"
ON_THIS_DATA = "restored_right_on_this_data"
UPSERT_ONLY = "restored_right_upsert_only"
WRONG = "restored_WRONG"
REFUSED_AT_SUBMIT = "refused_at_submit"
REFUSED_AT_RESTORE = "refused_at_restore"
FAILED_LATER = "failed_while_running"
NOT_PLANNED = "not_planned"
OUTCOMES = {
    RIGHT: "RUNNING, same changelog (or same net changelog) as a from-scratch run of the new SQL",
    ON_THIS_DATA: "right here, wrong on other data",
    UPSERT_ONLY: "RUNNING, right when applied by key; the retractions (-U/-D) carry rows of the old SQL",
    WRONG: "RUNNING without any error, wrong rows",
    REFUSED_AT_SUBMIT: "JobManager: the savepoint does not fit the new program's operators (the submission call fails)",
    REFUSED_AT_RESTORE: "job accepted, then a task fails while its state is restored",
    FAILED_LATER: "restored, RUNNING, fails when a row or watermark is processed",
    NOT_PLANNED: "the planner of the new line refuses the SQL, before any savepoint is read",
}
"""The outcomes and what the operator of the job sees."""


def judge(restored: Sequence[str], expected: Sequence[str], old: Sequence[str] = (), before: Sequence[str] = ()) -> str:
    """RIGHT, UPSERT_ONLY or WRONG. Rows read ``sink +I[…]``; order does not count, for subtasks print as they like.

    ``old`` are the rows the old SQL printed up to its savepoint, ``before`` those the new SQL from scratch printed for
    the same rows: where one of them fires early, only all rows together tell what the sink holds in the end.
    """
    if Counter(restored) == Counter(expected) or net(restored) == net(expected):
        return RIGHT
    if net([*old, *restored]) == net([*before, *expected]):
        return RIGHT
    return UPSERT_ONLY if _upserts(restored) == _upserts(expected) else WRONG


def net(rows: Iterable[str]) -> dict[str, int]:
    """How often each row stands in the end: +I and +U count up, -U and -D down; what cancels out is left out."""
    counts: Counter[str] = Counter()
    for row in rows:
        sink, kind, values = parts(row)
        counts[f"{sink} {values}"] += 1 if kind.startswith("+") else -1
    return {row: count for row, count in counts.items() if count}


def _upserts(rows: Iterable[str]) -> Counter[tuple[str, str]]:
    return Counter((sink, values) for sink, kind, values in map(parts, rows) if kind.startswith("+"))


def parts(row: str) -> tuple[str, str, str]:
    """``sink``, ``+I`` and ``[…]``."""
    sink, _, change = row.partition(" ")
    return sink, change[:2], change[2:]
