from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured
from airflow_flinkcompat.compat.rule import Example, Verdict, documented, measured
from airflow_flinkcompat.compat.rule_builders.joins import conditions_judge, join_rows, keys_judge, one_row_twice, sides
from airflow_flinkcompat.compat.rule_builders.part_rules import Row, parts_rule
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import JoinForm

PAGE = "Temporal join page: type, condition or input schema"
CHANGED = documented(Outcome.INCOMPATIBLE, PAGE)


def join(pair: OperatorPair, difference: Difference) -> Verdict:
    kinds = {difference.before, difference.after}
    if kinds != {"INNER", "LEFT"} or any(one_row_twice(side) for side in sides(pair)):
        return unmeasured("only INNER and LEFT were measured")
    return right("tj-inner-to-left", "tj-left-to-inner")


COMMON = join_rows(
    PAGE,
    keys=keys_judge(("rj-key-add", "rj-key-del"), ("rj-keys-reorder", "ij-key-othercol")),
    conditions=conditions_judge(("tj-cond-change-noneq",), unmeasured("a condition under LEFT was not measured")),
    kept=(
        ("tj-left-add-col", "tj-left-swap-sametype", "tj-cond-add-noneq"),
        ("tj-subq-expr-change", "tj-view-col-change"),
    ),
    filters=("tj-subq-filter-change",),
)
ROWS = {
    **COMMON,
    "join": Row("another kind of join", CHANGED, join),
    "times": Row("rows are looked up by another time", CHANGED, unmeasured("another time column was not measured")),
    "clock": Row("another clock", CHANGED, unmeasured("another clock was not measured")),
    # The page names no exception for conditions that the vendor's switch lets pass elsewhere.
    "filters": Row("a condition on the rows that reach it changed", CHANGED, COMMON["filters"].flink),
}
RATES = (
    "CREATE TABLE rates (item STRING, rate BIGINT, other BIGINT, since TIMESTAMP(3),\n"
    "  WATERMARK FOR since AS since, PRIMARY KEY (item) NOT ENFORCED) WITH ('connector' = 'upsert-kafka');\n"
)
JOIN = RATES + (
    "SELECT orders.customer, orders.amount * {0}\nFROM orders JOIN rates FOR SYSTEM_TIME AS OF orders.order_time\n"
    "ON orders.item = rates.item;"
)
RULE = parts_rule(
    code="temporal-join-changed",
    title="A temporal join changed",
    kinds=(JoinForm.TEMPORAL.value,),
    rows=ROWS,
    vvr=CHANGED,
    flink=measured(Outcome.INCOMPATIBLE, "tj-left-add-col", "tj-subq-filter-change"),
    rationale="Rows of the left input wait for the watermark, versions of the right one for the rows that need them. "
    "Whether rows without a version are handed on, and what is asked of a row and its version, is decided when they "
    "leave.",
    example=Example(JOIN.format("rates.rate"), JOIN.format("(rates.rate + rates.other)")),
)
