from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.format import format_expressions
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.rule import Example, Verdict, documented, inferred, measured
from airflow_flinkcompat.compat.rule_builders.part_rules import Row, filters_row, parts_rule, refused
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import OtherKind

PAGE = documented(Outcome.INCOMPATIBLE, "Pattern recognition page")


def reordered(difference: Difference) -> bool:
    return set(difference.before) == set(difference.after)


def partition(pair: OperatorPair, difference: Difference) -> Verdict:
    if reordered(difference):
        return right("mr-part-reorder")
    same = len(difference.before) == len(difference.after)
    return wrong("mr-part-othercol") if same else refused("mr-part-add", "mr-part-removed")


def within(pair: OperatorPair, difference: Difference) -> Verdict:
    """A match that was given up for its length cannot come back; a shorter one asks for none."""
    old, new = (str(side).split() for side in (difference.before, difference.after))
    if not old or not new or old[1:] != new[1:]:
        return unmeasured("WITHIN that comes or goes was not measured")
    if int(new[0]) < int(old[0]):
        return right("patterns-within-shorter")
    return wrong("mr-within-longer")


ROWS = {
    "text": Row(
        "PATTERN, DEFINE, ORDER BY or AFTER MATCH changed",
        inferred(Outcome.INCOMPATIBLE, "Pattern recognition page; DEFINE is not named but part of the pattern"),
        wrong(
            "mr-define-change", "mr-pattern-quant-two", note="others were right on their rows only", consequence=None
        ),
        show=str,
    ),
    "measures": Row("MEASURES changed", PAGE, right("mr-measures-change"), show=str),
    "within": Row("WITHIN changed", PAGE, within, show=str),
    "partition": Row("PARTITION BY changed", PAGE, partition, reordered, format_expressions),
    "partition order": Row("the order of PARTITION BY changed", PAGE, partition, reordered, format_expressions),
    "row": Row("other columns come in", PAGE, refused("mr-input-col-add")),
    "filters": filters_row("WHERE page", wrong("mr-where-add", consequence=None)),
}
MATCH = """\
SELECT * FROM orders MATCH_RECOGNIZE (
  PARTITION BY customer ORDER BY order_time
  MEASURES A.amount AS first_amount, LAST(B.amount) AS last_amount
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (A B+ C) DEFINE A AS A.amount > 10, B AS B.amount < {0}, C AS C.amount > 10
);"""
RULE = parts_rule(
    code="pattern-changed",
    title="A pattern recognition changed",
    kinds=(OtherKind.MATCH_RECOGNIZE,),
    rows=ROWS,
    vvr=ROWS["text"].vvr if isinstance(ROWS["text"].vvr, Verdict) else PAGE,
    flink=measured(Outcome.INCOMPATIBLE, "mr-define-change", "mr-pattern-quant-two", "mr-part-add", "mr-within-longer"),
    rationale="Matches under way are kept with all columns of their rows, as the pattern stood when they began. What "
    "is computed of a match when it is complete stands outside.",
    example=Example(MATCH.format(10), MATCH.format(20)),
)
