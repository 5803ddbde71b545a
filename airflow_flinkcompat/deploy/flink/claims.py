"""Operators of a savepoint that a restored job did not take, and whether two jobs run the same query.

Measured on Flink 2.3.0 and 1.20.3: with ignore-unclaimed-state, a restore logs ``Skipping savepoint state for operator
<id>`` for every operator of the savepoint that the program lacks, even for one without state, between two lines that
name the job.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

_STARTING = re.compile(r"Starting job ([0-9a-f]{32}) from savepoint ")
_SKIPPING = re.compile(r"Skipping savepoint state for operator ([0-9a-f]{32})")
_RESTORED = re.compile(r"Reset the checkpoint ID of job ([0-9a-f]{32}) to ")


def skipped_by_log(lines: Iterable[str], job_id: str) -> frozenset[str] | None:
    """Ids of the operators that the restore of ``job_id`` skipped.

    None if the log is inconclusive: it lacks this restore, or another job was logged in between.
    """
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
# The planner puts the inserter in front of some connectors' sinks, not of others, where a row's time is written.
_QUERY_OPERATOR = re.compile(r"\[\d+\]:(?!Sink\(|StreamRecordTimestampInserter\()")
# Calc( and select=[ are open.
_IN_SELECT = 2
_NAME_OF_QUERY_OPERATOR = re.compile(r"Source: .*|\w+\[\d+\]")


def query_of(plan: Mapping[str, Any]) -> Counter[str]:
    """The operators of the query in a job's plan as REST describes them, sinks apart.

    A line of the description reads ``[12]:GlobalWindowAggregate(groupBy=[…], …)``; an operator of a sink's connector
    has no number before it, or is known by its name. Left out are the numbers, and the names a Calc gives: before a
    sink they are the sink's.
    """
    lines = (line for node in plan["plan"]["nodes"] for line in str(node.get("description", "")).split("<br/>"))
    texts = (line.lstrip(" +-:|") for line in lines)
    return Counter(_unnamed(_NUMBER.sub("", text, count=1)) for text in texts if _QUERY_OPERATOR.match(text))


def _unnamed(text: str) -> str:
    """``:Calc(select=[a, CAST(b AS INT) AS c])`` without ``AS c``; anything but a Calc as it is."""
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


def is_of_the_query(name: str) -> bool:
    """True if an operator (``GroupAggregate[3]``) is a source or a computation, not part of a sink."""
    return _NAME_OF_QUERY_OPERATOR.fullmatch(name) is not None
