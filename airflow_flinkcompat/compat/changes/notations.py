"""How a query is written, as far as a plan depends on it: in SQL or through the Table API, and what that leaves below.

Flink plans the Table API otherwise than SQL: the columns that nobody reads stay below a window or an aggregation, and
calls over row windows are not rewritten (measured, EXPLAIN on 2.3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from airflow_flinkcompat.plan.expressions import Expression
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinOperator,
    Operator,
    OtherOperator,
    Output,
    OverOperator,
    Windowing,
    operators,
)
from airflow_flinkcompat.plan.program import Pipeline

ENDS = ("from_path", "insert", "execute")
"""Steps that say where a query begins and ends."""


class Notation(StrEnum):
    """In what the operators of a query are written that may be written in either."""

    SQL = "SQL"
    TABLE_API = "the Table API"
    BOTH = "SQL and the Table API"


@dataclass(frozen=True)
class Written:
    """How one side's query is written.

    ``operations`` of the Table API, sources first, without what other rules compare; ``arriving`` the columns that come
    into each operator where the Table API is used, the nearest the sink first: all of them, read or not.
    """

    notation: Notation
    operations: tuple[str, ...]
    arriving: tuple[tuple[Expression, ...], ...] = ()

    @property
    def through(self) -> tuple[Notation, tuple[str, ...]]:
        """Through what it is written, whatever columns come in."""
        return self.notation, self.operations


def operations(steps: Iterable[str], *, filters: bool = False) -> tuple[str, ...]:
    """The operations among the steps of a query, with or without filters, whose conditions other rules compare.

    A query in SQL on top of them all only reads what they made.
    """
    found = [step.partition(":")[0] for step in steps if step not in ENDS]
    while found and found[-1] == "sql_query":
        found.pop()
    return tuple(step for step in found if filters or step != "filter")


def written_by(pipeline: Pipeline, output: Output) -> Written:
    """How one side's query is written."""
    said = operations(pipeline.steps)
    notation = _notation(said, operators(output))
    if notation is Notation.SQL:
        return Written(notation, said)
    return Written(notation, said, tuple(columns for each in operators(output) for columns in _arriving(each)))


def _arriving(operator: Operator) -> tuple[tuple[Expression, ...], ...]:
    """All the columns of each input, where it was seen or may be that the Table API leaves them there unread."""
    if isinstance(operator, AggregateOperator):
        return (operator.arriving,)
    return operator.arriving if isinstance(operator, JoinOperator | OtherOperator) else ()


def _notation(said: tuple[str, ...], found: tuple[Operator, ...]) -> Notation:
    """A step of the Table API stands for one operator: where there are more of them, SQL wrote some."""
    there = Counter(_step(operator) for operator in found)
    made = Counter("aggregate" if step == "distinct" else step for step in said)
    counts = [(made[step], count) for step, count in there.items() if step != "other"]
    if not counts:
        return Notation.TABLE_API if said else Notation.SQL
    if all(by_api == count for by_api, count in counts):
        return Notation.TABLE_API
    return Notation.BOTH if any(by_api for by_api, _ in counts) else Notation.SQL


def _step(operator: Operator) -> str:
    """The step that makes an operator, where SQL could have made it too; what only SQL makes is no step."""
    match operator:
        case AggregateOperator(window=None):
            return "aggregate"
        case AggregateOperator(window=Windowing(notation="group window")):
            return "window"
        case OverOperator() | OtherOperator(kind="OVER aggregation"):
            return "over"
        case AggregateOperator():
            return "sql"
    return "other"
