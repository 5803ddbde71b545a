"""Validation of INSERT statements and tables: faults in a script that Flink 2.3.0 refuses."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A reason why Flink refuses an INSERT, or may refuse it.

    Attributes:
        kind: The part at fault. Two versions of a query have the same fault if the kinds are equal.
        message: The fault and the remedy.
        certain: False if the refusal depends on a fact that the script does not show.
        by_line: True if one line of Flink refuses the statement but another line accepts it. In this case, a running
            job with the same statement proves nothing about a different line.
        late: True if Flink refuses the fault when a query is planned, but accepts it in a view that no query reads.
        undescribed: The table whose connector decides, if the catalogue does not describe the connector; else "".
        of_name: True if a table lacks a named column, so that every engine refuses the statement.
    """

    kind: str
    message: str
    certain: bool = True
    late: bool = False
    of_name: bool = False
    by_line: bool = False
    undescribed: str = ""


__all__ = ["Fault"]
