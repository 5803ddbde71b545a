"""Operators of a savepoint: part of the query, or part of a sink."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from airflow_flinkcompat.savepoint.metadata import OperatorState
from airflow_flinkcompat.savepoint.source_positions import SPLITS

UNPUBLISHED: Mapping[str, str] = {
    "bucket-states": "files in progress",
    "streaming_committer_raw_states": "committables",
    "writer_raw_states": "state of the writer",
}
"""Lists in which Flink's sinks keep rows that are not published yet, with the meaning of each list."""
_LISTS_OF_SINKS = frozenset(
    (
        *UNPUBLISHED,
        *("max-part-counter", "end_of_input_state", "files-state", "expired-files"),
        *("pending-partitions", "pending-partitions-with-time", "watermarks"),
    )
)
"""Lists of StreamingSink, SinkWriterOperator and CommitterOperator in Flink 1.20 and 2.3."""
_OF_PLANNER = re.compile(r"Source: .*|\w+\[\d+\]|\w+\(.*\)", re.DOTALL)
"""Names by Flink's planner; the last form without ``table.exec.simplify-operator-name-enabled``.

Operators of sinks have other names, such as ``totals[9]: Writer`` or ``StreamingFileWriter``.
"""


class OperatorPart(StrEnum):
    """The part of a job that an operator belongs to."""

    QUERY = "query"
    SINK = "sink"
    UNKNOWN = "unknown"


def part_by_state(operator: OperatorState) -> OperatorPart:
    """The part that the state of an operator shows.

    Args:
        operator: The operator.

    Returns:
        ``query`` for a source or keyed state, ``sink`` for lists that only sinks have, else ``unknown``.
    """
    lists = {state.name for each in operator.lists for state in each.lists}
    if SPLITS in lists or any(each.by_key for each in operator.subtasks or ()):
        return OperatorPart.QUERY
    return OperatorPart.SINK if lists and lists <= _LISTS_OF_SINKS else OperatorPart.UNKNOWN


def part_by_name(name: str) -> OperatorPart:
    """The part that the name of an operator shows.

    Args:
        name: The name; "" if it is not stored.

    Returns:
        The part; ``unknown`` without a name.
    """
    if not name:
        return OperatorPart.UNKNOWN
    return OperatorPart.QUERY if _OF_PLANNER.fullmatch(name) else OperatorPart.SINK
