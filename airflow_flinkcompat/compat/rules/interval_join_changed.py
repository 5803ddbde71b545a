from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.rule import Example, Verdict, documented, measured
from airflow_flinkcompat.compat.rule_builders.joins import (
    at_submit,
    conditions_judge,
    join_rows,
    keys_judge,
    one_row_twice,
    sides,
)
from airflow_flinkcompat.compat.rule_builders.part_rules import Row, parts_rule
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import JoinForm
from airflow_flinkcompat.plan.origins import duration

PAGE = "Interval join page: type, condition, bounds or input schema"


def bounds(pair: OperatorPair, difference: Difference) -> Verdict:
    """Rows that the old bounds let go are gone; narrower ones need none of them."""
    (low, high), (new_low, new_high) = difference.before, difference.after
    if new_low < low or new_high > high:
        return wrong("ij-wider-slight", note="right only as long as no row was let go that a wider bound asks for")
    if new_low > new_high or any(one_row_twice(side) for side in sides(pair)):
        return unmeasured("only bounds that some rows can meet were measured")
    if any(side.join != "INNER" for side in sides(pair)):
        return unmeasured("narrower bounds of an outer join were not measured: rows that found a partner are marked")
    return right("ij-narrower", "ij-strict-bound")


def join(pair: OperatorPair, difference: Difference) -> Verdict:
    if difference.after == "INNER":
        return right("ij-left-to-inner")
    if difference.before == "INNER":
        return wrong("ij-inner-to-left", note="rows that found a partner before are not marked")
    return unmeasured("ij-left-to-full was right on its rows: partners found before are not marked on both inputs")


def format_bounds(value: tuple[int, int] | None) -> str:
    return "no bounds" if value is None else f"from {duration(value[0])} to {duration(value[1])}"


CHANGED = documented(Outcome.INCOMPATIBLE, PAGE)
OUTER = unmeasured("a condition of an outer interval join was not measured")
ROWS = {
    "join": Row("another kind of join", CHANGED, join),
    "bounds": Row("the bounds in time changed", CHANGED, bounds, show=format_bounds),
    "times": Row(
        "other time columns",
        CHANGED,
        wrong("ij-key-othercol", note="other time columns are as another key", consequence=None),
    ),
    "clock": Row("another clock", CHANGED, at_submit("joins-interval-clock")),
    **join_rows(
        PAGE,
        keys=keys_judge(("rj-key-add", "rj-key-del"), ("ij-key-othercol",)),
        conditions=conditions_judge(("joins-interval-condition-changed", "joins-interval-condition-added"), OUTER),
        kept=(("ij-input-add-col", "ij-input-swap-sametype", "ij-cast-input"), ("rj-input-expr",)),
        filters=("rj-push-add", "rj-push-add-plain", "rj-push-change"),
    ),
}
JOIN = (
    "SELECT a.customer, a.amount, b.amount\nFROM orders AS a JOIN orders AS b\n"
    "ON a.item = b.item AND a.order_time BETWEEN b.order_time - INTERVAL '{0}' MINUTE AND b.order_time;"
)
RULE = parts_rule(
    code="interval-join-changed",
    title="An interval join changed",
    kinds=(JoinForm.INTERVAL.value,),
    rows=ROWS,
    vvr=CHANGED,
    flink=measured(Outcome.INCOMPATIBLE, "ij-inner-to-left", "ij-key-othercol", "ij-input-add-col"),
    rationale="Rows are kept as long as the bounds allow a partner. Narrower bounds find everything they ask for; "
    "wider ones ask for rows that are gone. INTERVAL '1' HOUR and '60' MINUTE are the same bound.",
    example=Example(JOIN.format(5), JOIN.format(10)),
)
