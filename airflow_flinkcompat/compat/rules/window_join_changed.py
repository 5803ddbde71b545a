from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.rule import Example, Verdict, inferred, measured
from airflow_flinkcompat.compat.rule_builders.joins import conditions_judge, join_rows, keys_judge, one_row_twice, sides
from airflow_flinkcompat.compat.rule_builders.part_rules import Row, parts_rule
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import JoinForm

NO_PAGE = inferred(Outcome.UNKNOWN, "no page speaks of window joins")


def join(pair: OperatorPair, difference: Difference) -> Verdict:
    if any(one_row_twice(side) for side in sides(pair)):
        return unmeasured("an input emits one column twice: what is stored of it is not known")
    return right("wj-inner-to-left", "wj-left-to-inner", "wj-semi-to-anti")


COMMON = join_rows(
    "",
    keys=keys_judge(("rj-key-add", "rj-key-del"), ("wj-key-othercol",)),
    conditions=conditions_judge(("wj-noneq-add",), None),
    kept=(("wj-col-add",), ("wj-inputs-swapped",)),
    filters=("wj-where-add", "wj-where-change"),
)
MEANT = {part: Row(row.says, NO_PAGE, row.flink, row.quiet, row.show) for part, row in COMMON.items()}
ROWS = {
    **MEANT,
    "join": Row("another kind of join", NO_PAGE, join),
    "windows": Row("the windows changed", NO_PAGE, wrong("wj-size-2-to-1", "wj-size-1-to-3", "wj-tumble-to-hop")),
}
SIDE = "(SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(order_time), INTERVAL '{0}' MINUTE))) AS {1}"
JOIN = (
    f"SELECT a.customer, b.customer\nFROM {SIDE.format('{0}', 'a')}\nJOIN {SIDE.format('{0}', 'b')}\n"
    "ON a.item = b.item AND a.window_start = b.window_start AND a.window_end = b.window_end;"
)
RULE = parts_rule(
    code="window-join-changed",
    title="A window join changed",
    kinds=(JoinForm.WINDOW.value,),
    rows=ROWS,
    vvr=NO_PAGE,
    flink=measured(Outcome.INCOMPATIBLE, "wj-size-2-to-1", "wj-key-othercol", "wj-col-add", "wj-where-change"),
    rationale="The rows of a window wait for its end, and only then are joined: which rows without a partner are "
    "handed on and what else is asked of a pair is decided there. Another window, key or row is another state.",
    example=Example(JOIN.format(1), JOIN.format(5)),
)
