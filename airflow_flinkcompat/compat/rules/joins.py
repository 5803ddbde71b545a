"""Rules about regular, interval, temporal and window joins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.format import format_value
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.rule import Example, Rule, RuleMatch
from airflow_flinkcompat.compat.rule_builders.part_rules import Ids, Judge, Row, filters_row, layout_judge, parts_rule
from airflow_flinkcompat.compat.verdict import (
    Verdict,
    documented,
    inferred,
    measured,
    refused,
    refused_at_submit,
    right,
    unknown,
    wrong,
)
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan import functions
from airflow_flinkcompat.plan.expressions import Expression, FunctionCall, called
from airflow_flinkcompat.plan.operators import JoinForm, JoinOperator
from airflow_flinkcompat.plan.origins import OperatorColumn, describe, duration, leaves

COMPARISONS = frozenset({"<", "<=", ">", ">=", "<>"})


def sides(pair: OperatorPair) -> tuple[JoinOperator, JoinOperator]:
    assert isinstance(pair.old, JoinOperator)
    assert isinstance(pair.new, JoinOperator)
    return pair.old, pair.new


def compares(part: Expression) -> bool:
    """True for a comparison over columns of both inputs that the planner neither splits nor pushes down.

    From an OR over conditions on single inputs, the planner may derive conditions that it pushes down.
    """
    if not isinstance(part, FunctionCall) or part.function not in COMPARISONS:
        return False
    calls = [call.function for call in called(part)]
    inputs = {leaf.operator for leaf in leaves(part) if isinstance(leaf, OperatorColumn)}
    split = {"AND", "OR", "NOT", "CASE", "IF", "COALESCE"}
    return len(inputs) == 2 and not split & set(calls) and all(functions.lookup(name) for name in calls)


def conditions_judge(ids: Ids, outer: Verdict | None) -> Judge:
    """Create a judge of conditions over both inputs on ``flink``; ``outer`` is the verdict on outer joins."""

    def judge(pair: OperatorPair, difference: Difference) -> Verdict:
        changed = difference.before ^ difference.after
        if not all(map(compares, changed)):
            return unknown("only comparisons between a column of each input were measured")
        if any(one_row_twice(side) for side in sides(pair)):
            return unknown("an input emits the same column twice, which makes the state layout unknown")
        if outer is not None and any(side.join != "INNER" for side in sides(pair)):
            return outer
        return right(*ids)

    return judge


def one_row_twice(side: JoinOperator) -> bool:
    return any(len(set(row)) != len(row) for row in side.rows)


def keys_judge(count: Ids, other: Ids) -> Judge:
    """Create a judge of join keys: with more or fewer keys, a restore is refused; other keys are misread."""

    def judge(pair: OperatorPair, difference: Difference) -> Verdict:
        return wrong(*other) if len(difference.before) == len(difference.after) else refused(*count)

    return judge


def format_join_keys(keys: Any) -> str:
    return " AND ".join(f"{describe(one)} = {describe(other)}" for one, other in keys) or "no equated columns"


def format_join_conditions(parts: Iterable[Expression]) -> str:
    return " AND ".join(sorted(map(describe, parts))) or "nothing else"


def join_rows(vvr: Verdict, *, keys: Judge, conditions: Judge, stored: tuple[Ids, Ids], filters: Row) -> dict[str, Row]:
    """Rule rows for the common parts of joins: equated columns, conditions, stored rows, filters, windows."""
    below = unknown("different windows below a join were not measured")
    return {
        "keys": Row("the equality columns changed", vvr, keys, show=format_join_keys),
        "conditions": Row("the join condition on row pairs changed", vvr, conditions, show=format_join_conditions),
        "row": Row("different columns of an input are stored", vvr, layout_judge(*stored)),
        "filters": filters,
        "windows": Row("the windows of an input changed", below, below, show=format_value),
    }


PUSHED_DOWN = wrong("rj-push-add", "rj-push-add-plain", "rj-push-change", consequence=None)
REGULAR_PAGE = "Join page: type, condition or input schema"
ON_REGULAR_PAGE = documented(Outcome.INCOMPATIBLE, REGULAR_PAGE)
REGULAR_OUTER = wrong("joins-left-condition-changed", note="the state counts the matches of a row by the old condition")
REGULAR_ROWS = {
    "join": Row(
        "the join type changed", ON_REGULAR_PAGE, refused("rj-inner-to-left", "rj-left-to-full", "rj-full-to-left")
    ),
    **join_rows(
        ON_REGULAR_PAGE,
        keys=keys_judge(("rj-key-add", "rj-key-del"), ("rj-keys-reorder",)),
        conditions=conditions_judge(("rj-noneq-add", "rj-noneq-change", "rj-where-above-add"), REGULAR_OUTER),
        stored=(
            ("rj-input-del-col", "rj-input-swap-sametype", "rj-cast-input"),
            ("rj-input-expr", "rj-swap-sametype-calc"),
        ),
        filters=filters_row(f"{REGULAR_PAGE}; WHERE page", PUSHED_DOWN),
    ),
}
REGULAR_JOIN = "SELECT a.customer, a.amount, b.amount\nFROM orders AS a JOIN orders AS b ON {0};"
REGULAR_JOIN_CHANGED = parts_rule(
    code="regular-join-changed",
    title="A join changed",
    kinds=(JoinForm.REGULAR.value,),
    of=JoinOperator,
    rows=REGULAR_ROWS,
    vvr=ON_REGULAR_PAGE,
    flink=measured(Outcome.INCOMPATIBLE, "rj-key-add", "rj-inner-to-left", "rj-input-del-col", "rj-push-change"),
    rationale=(
        "A join stores the rows of both inputs by the equality columns. Other conditions on row pairs are not part of "
        "an inner join's state. Open-source Flink resumes correctly with a changed comparison. VVR's page documents "
        "no such exception."
    ),
    example=Example(
        REGULAR_JOIN.format("a.item = b.item"), REGULAR_JOIN.format("a.item = b.item AND a.region = b.region")
    ),
)

INTERVAL_PAGE = "Interval join page: type, condition, bounds or input schema"


def interval_bounds(pair: OperatorPair, difference: Difference) -> Verdict:
    """Verdict on time bounds; wider bounds need rows that the state no longer contains."""
    (low, high), (new_low, new_high) = difference.before, difference.after
    if new_low < low or new_high > high:
        return wrong("ij-wider-slight", note="correct only until rows that a wider bound needs are removed")
    if new_low > new_high or any(one_row_twice(side) for side in sides(pair)):
        return unknown("only bounds that some rows can satisfy were measured")
    if any(side.join != "INNER" for side in sides(pair)):
        return unknown("narrower bounds of an outer join were not measured: the join marks rows with a match")
    return right("ij-narrower", "ij-strict-bound")


def interval_join(pair: OperatorPair, difference: Difference) -> Verdict:
    if difference.after == "INNER":
        return right("ij-left-to-inner")
    if difference.before == "INNER":
        return wrong("ij-inner-to-left", note="rows that found a match earlier are not marked")
    return unknown(
        "ij-left-to-full was correct only for the measured rows: earlier matches are not marked on both inputs"
    )


def format_bounds(value: tuple[int, int] | None) -> str:
    return "no bounds" if value is None else f"from {duration(value[0])} to {duration(value[1])}"


ON_INTERVAL_PAGE = documented(Outcome.INCOMPATIBLE, INTERVAL_PAGE)
INTERVAL_OUTER = unknown("a condition of an outer interval join was not measured")
INTERVAL_ROWS = {
    "join": Row("the join type changed", ON_INTERVAL_PAGE, interval_join),
    "bounds": Row("the time bounds changed", ON_INTERVAL_PAGE, interval_bounds, show=format_bounds),
    "times": Row(
        "the time columns changed",
        ON_INTERVAL_PAGE,
        wrong("ij-key-othercol", note="different time columns act like a different key", consequence=None),
    ),
    "clock": Row("the clock changed", ON_INTERVAL_PAGE, refused_at_submit("joins-interval-clock")),
    **join_rows(
        ON_INTERVAL_PAGE,
        keys=keys_judge(("rj-key-add", "rj-key-del"), ("ij-key-othercol",)),
        conditions=conditions_judge(
            ("joins-interval-condition-changed", "joins-interval-condition-added"), INTERVAL_OUTER
        ),
        stored=(("ij-input-add-col", "ij-input-swap-sametype", "ij-cast-input"), ("rj-input-expr",)),
        filters=filters_row(f"{INTERVAL_PAGE}; WHERE page", PUSHED_DOWN),
    ),
}
INTERVAL_JOIN = (
    "SELECT a.customer, a.amount, b.amount\nFROM orders AS a JOIN orders AS b\n"
    "ON a.item = b.item AND a.order_time BETWEEN b.order_time - INTERVAL '{0}' MINUTE AND b.order_time;"
)
INTERVAL_JOIN_CHANGED = parts_rule(
    code="interval-join-changed",
    title="An interval join changed",
    kinds=(JoinForm.INTERVAL.value,),
    of=JoinOperator,
    rows=INTERVAL_ROWS,
    vvr=ON_INTERVAL_PAGE,
    flink=measured(Outcome.INCOMPATIBLE, "ij-inner-to-left", "ij-key-othercol", "ij-input-add-col"),
    rationale=(
        "The join stores rows as long as the bounds allow a match. Narrower bounds find all rows that they need. "
        "Wider bounds need rows that were already removed. INTERVAL '1' HOUR and INTERVAL '60' MINUTE are the same "
        "bound."
    ),
    example=Example(INTERVAL_JOIN.format(5), INTERVAL_JOIN.format(10)),
)

ON_TEMPORAL_PAGE = documented(Outcome.INCOMPATIBLE, "Temporal join page: type, condition or input schema")


def temporal_join(pair: OperatorPair, difference: Difference) -> Verdict:
    kinds = {difference.before, difference.after}
    if kinds != {"INNER", "LEFT"} or any(one_row_twice(side) for side in sides(pair)):
        return unknown("only INNER and LEFT were measured")
    return right("tj-inner-to-left", "tj-left-to-inner")


TEMPORAL_ROWS = {
    "join": Row("the join type changed", ON_TEMPORAL_PAGE, temporal_join),
    "times": Row(
        "the time column of the lookup changed", ON_TEMPORAL_PAGE, unknown("a different time column was not measured")
    ),
    "clock": Row("the clock changed", ON_TEMPORAL_PAGE, unknown("a different clock was not measured")),
    **join_rows(
        ON_TEMPORAL_PAGE,
        keys=keys_judge(("rj-key-add", "rj-key-del"), ("rj-keys-reorder", "ij-key-othercol")),
        conditions=conditions_judge(("tj-cond-change-noneq",), unknown("a condition under LEFT was not measured")),
        stored=(
            ("tj-left-add-col", "tj-left-swap-sametype", "tj-cond-add-noneq"),
            ("tj-subq-expr-change", "tj-view-col-change"),
        ),
        # For temporal joins, the page documents no switch that ignores conditions.
        filters=Row(
            "a condition on the input rows changed", ON_TEMPORAL_PAGE, wrong("tj-subq-filter-change", consequence=None)
        ),
    ),
}
RATES = (
    "CREATE TABLE rates (item STRING, rate BIGINT, other BIGINT, since TIMESTAMP(3),\n"
    "  WATERMARK FOR since AS since, PRIMARY KEY (item) NOT ENFORCED) WITH ('connector' = 'upsert-kafka');\n"
)
TEMPORAL_JOIN = RATES + (
    "SELECT orders.customer, orders.amount * {0}\nFROM orders JOIN rates FOR SYSTEM_TIME AS OF orders.order_time\n"
    "ON orders.item = rates.item;"
)
TEMPORAL_JOIN_CHANGED = parts_rule(
    code="temporal-join-changed",
    title="A temporal join changed",
    kinds=(JoinForm.TEMPORAL.value,),
    of=JoinOperator,
    rows=TEMPORAL_ROWS,
    vvr=ON_TEMPORAL_PAGE,
    flink=measured(Outcome.INCOMPATIBLE, "tj-left-add-col", "tj-subq-filter-change"),
    rationale=(
        "Rows of the left input are stored until the watermark passes them. Versions of the right input are stored as "
        "long as rows may need them. The join evaluates unmatched rows and other conditions at emission."
    ),
    example=Example(TEMPORAL_JOIN.format("rates.rate"), TEMPORAL_JOIN.format("(rates.rate + rates.other)")),
)

NO_PAGE = unknown("no page covers window joins")


def window_join(pair: OperatorPair, difference: Difference) -> Verdict:
    if any(one_row_twice(side) for side in sides(pair)):
        return unknown("an input emits the same column twice, which makes the state layout unknown")
    return right("wj-inner-to-left", "wj-left-to-inner", "wj-semi-to-anti")


WINDOW_ROWS = {
    **join_rows(
        NO_PAGE,
        keys=keys_judge(("rj-key-add", "rj-key-del"), ("wj-key-othercol",)),
        conditions=conditions_judge(("wj-noneq-add",), None),
        stored=(("wj-col-add",), ("wj-inputs-swapped",)),
        filters=replace(filters_row("", wrong("wj-where-add", "wj-where-change", consequence=None)), vvr=NO_PAGE),
    ),
    "join": Row("the join type changed", NO_PAGE, window_join),
    "windows": Row("the windows changed", NO_PAGE, wrong("wj-size-2-to-1", "wj-size-1-to-3", "wj-tumble-to-hop")),
}
WINDOWED_SIDE = "(SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '{0}' MINUTE))) AS {1}"
WINDOW_JOIN = (
    f"SELECT a.customer, b.customer\nFROM {WINDOWED_SIDE.format('{0}', 'a')}\nJOIN {WINDOWED_SIDE.format('{0}', 'b')}\n"
    "ON a.item = b.item AND a.window_start = b.window_start AND a.window_end = b.window_end;"
)
WINDOW_JOIN_CHANGED = parts_rule(
    code="window-join-changed",
    title="A window join changed",
    kinds=(JoinForm.WINDOW.value,),
    of=JoinOperator,
    rows=WINDOW_ROWS,
    vvr=NO_PAGE,
    flink=measured(Outcome.INCOMPATIBLE, "wj-size-2-to-1", "wj-key-othercol", "wj-col-add", "wj-where-change"),
    rationale=(
        "A window join evaluates matches, unmatched rows and other conditions only at the end of a window. A "
        "different window, key or row means different state."
    ),
    example=Example(WINDOW_JOIN.format(1), WINDOW_JOIN.format(5)),
)

MEASURED_FORMS = ({JoinForm.REGULAR, JoinForm.INTERVAL}, {JoinForm.REGULAR, JoinForm.TEMPORAL})
OTHER_FORMS = inferred(
    Outcome.INCOMPATIBLE, "the different operator finds no state; the result of the restore was not measured"
)
SELF_JOIN = "SELECT a.customer, b.customer\nFROM orders AS a JOIN orders AS b\nON a.item = b.item{0};"


@Rule(
    code="join-form-changed",
    title="A join became a different kind of join",
    vvr=documented(Outcome.INCOMPATIBLE, "Join pages: type"),
    flink=refused_at_submit("rj-inner-to-interval", "tj-to-regular"),
    rationale="Regular, interval, temporal and window joins are different operators with different state.",
    example=Example(
        SELF_JOIN.format(""),
        SELF_JOIN.format(" AND a.order_time BETWEEN b.order_time - INTERVAL '1' MINUTE AND b.order_time"),
    ),
    operators=(JoinOperator,),
    parts=("form",),
)
def join_form_changed(pair: OperatorPair) -> Iterable[RuleMatch]:
    forms = [side.form for side in (pair.old, pair.new) if isinstance(side, JoinOperator)]
    if len(set(forms)) == 2 and JoinForm.JOIN not in forms:
        claims = tuple(difference.key for difference in pair.differences)
        yield RuleMatch(
            f"a {forms[0].value} became a {forms[1].value}",
            claims,
            forms[0].value,
            forms[1].value,
            verdicts={} if set(forms) in MEASURED_FORMS else {"flink": OTHER_FORMS},
        )
