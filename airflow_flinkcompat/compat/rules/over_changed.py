from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.format import format_expressions, format_value, format_window_definition
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.rule import Example, Verdict, documented, inferred, measured
from airflow_flinkcompat.compat.rule_builders.metric_rules import computed
from airflow_flinkcompat.compat.rule_builders.part_rules import Row, filters_row, parts_rule, refused
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.nodes import Frame
from airflow_flinkcompat.plan.operators import OverOperator, Source
from airflow_flinkcompat.plan.origins import duration
from airflow_flinkcompat.plan.types import TimeAttribute

PAGE = "Over Aggregate page"
LIKE = inferred(Outcome.INCOMPATIBLE, "the page's table of incompatible changes was not seen; as other pages say")


def sides(pair: OperatorPair) -> tuple[OverOperator, OverOperator]:
    assert isinstance(pair.old, OverOperator)
    assert isinstance(pair.new, OverOperator)
    return pair.old, pair.new


def reordered(difference: Difference) -> bool:
    return set(difference.before) == set(difference.after)


def partition_on_vvr(pair: OperatorPair, difference: Difference) -> Verdict:
    return documented(Outcome.COMPATIBLE, f"{PAGE}: PARTITION BY order") if reordered(difference) else LIKE


def partition(pair: OperatorPair, difference: Difference) -> Verdict:
    if reordered(difference):
        return right("oa-part-reorder-sametype", note="the planner puts the keys in an order of its own")
    same = len(difference.before) == len(difference.after)
    return wrong("oa-part-othercol") if same else refused("oa-part-add")


def order(pair: OperatorPair, difference: Difference) -> Verdict:
    if sides(pair)[0].clock is not sides(pair)[1].clock:
        return refused("over-frames-clock", consequence=Consequence.REFUSED_AT_SUBMIT)
    return unmeasured("another ORDER BY on the same clock was not measured")


def frame(pair: OperatorPair, difference: Difference) -> Verdict:
    old, new = difference.before, difference.after
    if any(side.other or side.window or side.following != 0 for side in (old, new)):
        return unmeasured("Flink has no frame on a stream that ends anywhere but at the current row")
    if old.unit == new.unit == "ROWS" and None not in (old.preceding, new.preceding):
        return wrong("oa-rows-2-to-4", "oa-rows-4-to-2", "over-rows-fewer", "over-proctime-rows-fewer")
    if not all(side.clock is TimeAttribute.ROWTIME for side in sides(pair)):
        return unmeasured("other frames were measured by event time only")
    if old.unit == new.unit == "RANGE" and None not in (old.preceding, new.preceding):
        narrower = new.preceding < old.preceding
        return right("oa-range-narrower") if narrower else wrong("oa-range-wider", note="older rows were let go")
    if old.preceding is None and new.preceding is None:
        known = all(map(computed, sides(pair)))
        return right("oa-frame-range-to-rows") if known else unmeasured("measured for a SUM only")
    if None not in (old.preceding, new.preceding):
        return wrong("over-rows-to-range")
    return refused("oa-unbounded-to-rows")


def keeps_no_rows(pair: OperatorPair) -> bool:
    """An unbounded frame by processing time keeps its accumulators alone."""
    return all(
        side.clock is TimeAttribute.PROCTIME
        and side.frame == Frame(side.frame.unit)
        and isinstance(side.segment.origin, Source)
        for side in sides(pair)
    )


def row(pair: OperatorPair, difference: Difference) -> Verdict:
    if keeps_no_rows(pair):
        return right("over-frames-passed-on-other", "over-frames-passed-on-added", "over-frames-passed-on-added-rows")
    return wrong("oa-passthrough-add", consequence=None)


def all_columns(pair: OperatorPair, difference: Difference) -> Verdict:
    if keeps_no_rows(pair):
        return right("over-frames-passed-on-other", "over-frames-passed-on-added", "over-frames-passed-on-added-rows")
    return unmeasured("which of its columns the planner keeps is not known")


def format_frame(value: Frame) -> str:
    if value.other:
        return str(value.other).upper()
    ahead = "" if value.following == 0 else f" AND {bound(value.unit, value.following)} FOLLOWING"
    ends = "" if value.window is None else f" within {format_window_definition(value.window)}"
    return f"{value.unit} {bound(value.unit, value.preceding)} PRECEDING{ahead}{ends}"


def bound(unit: str, far: int | None) -> str:
    return "UNBOUNDED" if far is None else duration(far) if unit == "RANGE" else str(far)


UNREAD = inferred(Outcome.COMPATIBLE, "Source table page: a field that is not used")
ROWS = {
    "partition by": Row("PARTITION BY changed", partition_on_vvr, partition, reordered, format_expressions),
    "order": Row("ORDER BY changed", LIKE, order),
    "clock": Row("another clock", LIKE, order),
    "frame": Row("the frame changed", LIKE, frame, show=format_frame),
    "row": Row("other columns are passed on", documented(Outcome.INCOMPATIBLE, f"{PAGE}: input schema"), row),
    "all columns": Row("other columns come in", UNREAD, all_columns, lambda difference: True),
    "filters": filters_row("WHERE page", wrong("oa-where-add", consequence=None)),
    "windows": Row(
        "the rows were assigned to other windows",
        unmeasured("no page speaks of it"),
        unmeasured("not measured"),
        show=format_value,
    ),
}
OVER = """\
SELECT customer, amount,
  SUM(amount) OVER (PARTITION BY customer ORDER BY order_time ROWS {0} PRECEDING)
FROM orders;"""
RULE = parts_rule(
    code="over-changed",
    title="An OVER aggregation changed",
    kinds=(OverOperator.KIND,),
    of=OverOperator,
    rows=ROWS,
    vvr=LIKE,
    flink=measured(Outcome.INCOMPATIBLE, "oa-part-othercol", "oa-rows-2-to-4", "oa-range-wider", "oa-passthrough-add"),
    rationale="It keeps the rows its frame may still need, whole, by its partition keys. A frame that reaches less far "
    "back needs none that is gone; the order of the partition keys says nothing.",
    example=Example(OVER.format(5), OVER.format(10)),
)
