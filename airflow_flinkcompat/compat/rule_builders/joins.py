"""What the rules over joins have in common: which conditions stand outside the state, and what the stored rows hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.format import format_value
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.rule import Verdict, documented
from airflow_flinkcompat.compat.rule_builders.part_rules import Ids, Judge, Row, filters_row, layout_row, refused
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, walk
from airflow_flinkcompat.plan.operators import JoinOperator
from airflow_flinkcompat.plan.origins import OperatorColumn, describe, leaves

COMPARISONS = frozenset({"<", "<=", ">", ">=", "<>"})


def sides(pair: OperatorPair) -> tuple[JoinOperator, JoinOperator]:
    assert isinstance(pair.old, JoinOperator)
    assert isinstance(pair.new, JoinOperator)
    return pair.old, pair.new


def compares(part: Expression) -> bool:
    """A plain comparison of both inputs: the planner neither splits it nor moves it, it is asked of each pair of rows.

    An OR of conditions on one input each lets the planner derive conditions that it moves below.
    """
    if not isinstance(part, FunctionCall) or part.function not in COMPARISONS:
        return False
    calls = [inner.function for inner in walk(part) if isinstance(inner, FunctionCall)]
    inputs = {leaf.operator for leaf in leaves(part) if isinstance(leaf, OperatorColumn)}
    split = {"AND", "OR", "NOT", "CASE", "IF", "COALESCE"}
    return len(inputs) == 2 and not split & set(calls) and all(functions.lookup(name) for name in calls)


def conditions_judge(ids: Ids, outer: Verdict | None) -> Judge:
    """Verdict on ``flink`` for conditions over both inputs.

    ``outer`` is that for joins that also hand on single rows, None where these are no other.
    """

    def judge(pair: OperatorPair, difference: Difference) -> Verdict:
        changed = difference.before ^ difference.after
        if not all(map(compares, changed)):
            return unmeasured("only comparisons of a column of one input with one of the other were measured")
        if any(one_row_twice(side) for side in sides(pair)):
            return unmeasured("an input emits one column twice: what is stored of it is not known")
        if outer is not None and any(side.join != "INNER" for side in sides(pair)):
            return outer
        return right(*ids)

    return judge


def one_row_twice(side: JoinOperator) -> bool:
    return any(len(set(row)) != len(row) for row in side.rows)


def keys_judge(count: Ids, other: Ids) -> Judge:
    """Another number of keys is another type of key; as many of another meaning are read as if they were the same."""

    def judge(pair: OperatorPair, difference: Difference) -> Verdict:
        return wrong(*other) if len(difference.before) == len(difference.after) else refused(*count)

    return judge


def shown_keys(keys: Any) -> str:
    return " AND ".join(f"{describe(one)} = {describe(other)}" for one, other in keys) or "no equated columns"


def shown_conditions(parts: Iterable[Expression]) -> str:
    return " AND ".join(sorted(map(describe, parts))) or "nothing else"


def join_rows(page: str, *, keys: Judge, conditions: Judge, kept: tuple[Ids, Ids], filters: Ids) -> dict[str, Row]:
    """The parts all joins have: equated columns, other conditions, the rows kept, conditions on what comes in."""
    changed = documented(Outcome.INCOMPATIBLE, page)
    below = unmeasured("other windows below this join were not measured")
    return {
        "keys": Row("the equated columns changed", changed, keys, show=shown_keys),
        "conditions": Row("the condition on a pair of rows changed", changed, conditions, show=shown_conditions),
        "row": layout_row("other columns are kept of an input", changed, *kept),
        "filters": filters_row(f"{page}; WHERE page", wrong(*filters, consequence=None)),
        "windows": Row("the windows of an input changed", below, below, show=format_value),
    }


def at_submit(*ids: str) -> Verdict:
    return refused(*ids, consequence=Consequence.REFUSED_AT_SUBMIT)
