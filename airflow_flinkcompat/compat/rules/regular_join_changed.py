from airflow_flinkcompat.compat.engines.flink.ranking import wrong
from airflow_flinkcompat.compat.rule import Example, documented, measured
from airflow_flinkcompat.compat.rule_builders.joins import conditions_judge, join_rows, keys_judge
from airflow_flinkcompat.compat.rule_builders.part_rules import Row, parts_rule, refused
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import JoinForm

PAGE = "Join page: type, condition or input schema"
OUTER = wrong("joins-left-condition-changed", note="rows that found no partner are counted under the old condition")
ROWS = {
    "join": Row(
        "another kind of join",
        documented(Outcome.INCOMPATIBLE, PAGE),
        refused("rj-inner-to-left", "rj-left-to-full", "rj-full-to-left"),
    ),
    **join_rows(
        PAGE,
        keys=keys_judge(("rj-key-add", "rj-key-del"), ("rj-keys-reorder",)),
        conditions=conditions_judge(("rj-noneq-add", "rj-noneq-change", "rj-where-above-add"), OUTER),
        kept=(
            ("rj-input-del-col", "rj-input-swap-sametype", "rj-cast-input"),
            ("rj-input-expr", "rj-swap-sametype-calc"),
        ),
        filters=("rj-push-add", "rj-push-add-plain", "rj-push-change"),
    ),
}
JOIN = "SELECT a.customer, a.amount, b.amount\nFROM orders AS a JOIN orders AS b ON {0};"
RULE = parts_rule(
    code="regular-join-changed",
    title="A join changed",
    kinds=(JoinForm.REGULAR.value,),
    rows=ROWS,
    vvr=documented(Outcome.INCOMPATIBLE, PAGE),
    flink=measured(Outcome.INCOMPATIBLE, "rj-key-add", "rj-inner-to-left", "rj-input-del-col", "rj-push-change"),
    rationale="A join keeps the rows of both inputs by the equated columns. What is asked of a pair of rows beyond "
    "them stands outside an inner join's state: open-source Flink keeps running with a changed comparison; VVR's page "
    "knows no such exception.",
    example=Example(JOIN.format("a.item = b.item"), JOIN.format("a.item = b.item AND a.region = b.region")),
)
