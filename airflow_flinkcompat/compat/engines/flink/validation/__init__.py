"""INSERT statements and tables that Flink 2.3.0 refuses, as far as the script shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """Something for which Flink refuses an INSERT, or may refuse it.

    Attributes:
        kind: The part at fault, by which the faults of two versions of a query are distinguished.
        message: The fault and the remedy.
        certain: False if it depends on something that the script does not show.
        by_line: Whether one line of Flink refuses it that another accepts, so that a deployed script proves nothing.
        late: Whether Flink refuses it where a query is planned, and takes it in a view that no query reads.
        undescribed: The table on whose connector it depends, if no catalogue describes that connector's rows.
        of_name: Whether a table lacks a column of a name, which no engine can read otherwise.
    """

    kind: str
    message: str
    certain: bool = True
    late: bool = False
    of_name: bool = False
    by_line: bool = False
    undescribed: str = ""


__all__ = ["Fault"]
