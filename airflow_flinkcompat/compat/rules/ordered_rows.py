"""Rules about OVER aggregations, MATCH_RECOGNIZE, ORDER BY and LIMIT."""

from __future__ import annotations

from airflow_flinkcompat.compat.changes.differences import Difference
from airflow_flinkcompat.compat.changes.format import format_expressions, format_value, format_window_definition
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import appends_only
from airflow_flinkcompat.compat.rule import Example
from airflow_flinkcompat.compat.rule_builders.part_rules import (
    Row,
    filters_row,
    is_processing_time_sort,
    layout_judge,
    parts_rule,
    same_row_types,
)
from airflow_flinkcompat.compat.rule_builders.projections import computed
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
from airflow_flinkcompat.plan.nodes import Frame
from airflow_flinkcompat.plan.operators import OtherKind, OtherOperator, OverOperator, Source
from airflow_flinkcompat.plan.origins import SourceColumn, duration
from airflow_flinkcompat.plan.types import TimeAttribute

OVER_PAGE = "Over Aggregate page"
LIKE = inferred(
    Outcome.INCOMPATIBLE,
    "the page's table of incompatible changes was not available; the verdict follows from other pages",
)


def over_sides(pair: OperatorPair) -> tuple[OverOperator, OverOperator]:
    assert isinstance(pair.old, OverOperator)
    assert isinstance(pair.new, OverOperator)
    return pair.old, pair.new


def is_partition_reordered(difference: Difference) -> bool:
    return set(difference.before) == set(difference.after)


def partition_on_vvr(pair: OperatorPair, difference: Difference) -> Verdict:
    return (
        documented(Outcome.COMPATIBLE, f"{OVER_PAGE}: PARTITION BY order")
        if is_partition_reordered(difference)
        else LIKE
    )


def over_partition(pair: OperatorPair, difference: Difference) -> Verdict:
    if is_partition_reordered(difference):
        return right("oa-part-reorder-sametype", note="the planner sorts the partition keys")
    same = len(difference.before) == len(difference.after)
    return wrong("oa-part-othercol") if same else refused("oa-part-add")


def over_order(pair: OperatorPair, difference: Difference) -> Verdict:
    if over_sides(pair)[0].clock is not over_sides(pair)[1].clock:
        return refused_at_submit("over-frames-clock")
    return unknown("a different ORDER BY on the same clock was not measured")


def frame(pair: OperatorPair, difference: Difference) -> Verdict:
    old, new = difference.before, difference.after
    if any(side.other or side.window or side.following != 0 for side in (old, new)):
        return unknown("in streaming mode, Flink supports only frames that end at the current row")
    if old.unit == new.unit == "ROWS" and None not in (old.preceding, new.preceding):
        return wrong("oa-rows-2-to-4", "oa-rows-4-to-2", "over-rows-fewer", "over-proctime-rows-fewer")
    if not all(side.clock is TimeAttribute.ROWTIME for side in over_sides(pair)):
        return unknown("other frames were measured only in event time")
    if old.unit == new.unit == "RANGE" and None not in (old.preceding, new.preceding):
        narrower = new.preceding < old.preceding
        return (
            right("oa-range-narrower")
            if narrower
            else wrong("oa-range-wider", note="rows that the wider frame needs were already removed")
        )
    if old.preceding is None and new.preceding is None:
        known = all(map(computed, over_sides(pair)))
        return (
            right("oa-frame-range-to-rows")
            if known
            else unknown("a change from RANGE to ROWS was measured only for SUM")
        )
    if None not in (old.preceding, new.preceding):
        return wrong("over-rows-to-range")
    return refused("oa-unbounded-to-rows")


def keeps_no_rows(pair: OperatorPair) -> bool:
    """True for unbounded processing-time frames over a source, which store only accumulators."""
    return all(
        side.clock is TimeAttribute.PROCTIME
        and side.frame == Frame(side.frame.unit)
        and isinstance(side.segment.origin, Source)
        for side in over_sides(pair)
    )


PASSED_ON = right("over-frames-passed-on-other", "over-frames-passed-on-added", "over-frames-passed-on-added-rows")


def over_row(pair: OperatorPair, difference: Difference) -> Verdict:
    return PASSED_ON if keeps_no_rows(pair) else wrong("oa-passthrough-add", consequence=None)


def all_columns(pair: OperatorPair, difference: Difference) -> Verdict:
    return PASSED_ON if keeps_no_rows(pair) else unknown("the columns that the planner keeps are unknown")


def format_frame(value: Frame) -> str:
    if value.other:
        return str(value.other).upper()
    ahead = "" if value.following == 0 else f" AND {bound(value.unit, value.following)} FOLLOWING"
    ends = "" if value.window is None else f" within {format_window_definition(value.window)}"
    return f"{value.unit} {bound(value.unit, value.preceding)} PRECEDING{ahead}{ends}"


def bound(unit: str, far: int | None) -> str:
    return "UNBOUNDED" if far is None else duration(far) if unit == "RANGE" else str(far)


UNREAD = inferred(Outcome.COMPATIBLE, "Source table page: a change of an unused field")
OVER_ROWS = {
    "partition by": Row(
        "PARTITION BY changed", partition_on_vvr, over_partition, is_partition_reordered, format_expressions
    ),
    "order": Row("ORDER BY changed", LIKE, over_order),
    "clock": Row("the clock changed", LIKE, over_order),
    "frame": Row("the frame changed", LIKE, frame, show=format_frame),
    "row": Row(
        "different columns are passed downstream",
        documented(Outcome.INCOMPATIBLE, f"{OVER_PAGE}: input schema"),
        over_row,
    ),
    "all columns": Row("the input columns differ", UNREAD, all_columns, lambda difference: True),
    "filters": filters_row("WHERE page", wrong("oa-where-add", consequence=None)),
    "windows": Row(
        "the rows were assigned to different windows",
        unknown("no page covers windows below an OVER aggregation"),
        unknown("windows below an OVER aggregation were not measured"),
        show=format_value,
    ),
}
OVER = """\
SELECT customer, amount,
  SUM(amount) OVER (PARTITION BY customer ORDER BY order_time ROWS {0} PRECEDING)
FROM orders;"""
OVER_CHANGED = parts_rule(
    code="over-changed",
    title="An OVER aggregation changed",
    kinds=(OverOperator.KIND,),
    of=OverOperator,
    rows=OVER_ROWS,
    vvr=LIKE,
    flink=measured(Outcome.INCOMPATIBLE, "oa-part-othercol", "oa-rows-2-to-4", "oa-range-wider", "oa-passthrough-add"),
    rationale=(
        "The operator stores whole input rows by its partition keys as long as the frame may need the rows. A shorter "
        "frame needs no removed rows. The order of the partition keys does not matter."
    ),
    example=Example(OVER.format(5), OVER.format(10)),
)

MATCH_PAGE = documented(Outcome.INCOMPATIBLE, "Pattern recognition page")


def match_partition(pair: OperatorPair, difference: Difference) -> Verdict:
    if is_partition_reordered(difference):
        return right("mr-part-reorder")
    same = len(difference.before) == len(difference.after)
    return wrong("mr-part-othercol") if same else refused("mr-part-add", "mr-part-removed")


def match_within(pair: OperatorPair, difference: Difference) -> Verdict:
    """Verdict on a changed WITHIN; a longer WITHIN cannot restore matches that were abandoned."""
    old, new = (str(side).split() for side in (difference.before, difference.after))
    if not old or not new or old[1:] != new[1:]:
        return unknown("adding or removing WITHIN was not measured")
    if int(new[0]) < int(old[0]):
        return right("patterns-within-shorter")
    return wrong("mr-within-longer")


MATCH_ROWS = {
    "text": Row(
        "PATTERN, DEFINE, ORDER BY or AFTER MATCH changed",
        inferred(
            Outcome.INCOMPATIBLE,
            "Pattern recognition page; the page does not name DEFINE, but DEFINE is part of the pattern",
        ),
        wrong(
            "mr-define-change",
            "mr-pattern-quant-two",
            note="other changes were correct only for the measured rows",
            consequence=None,
        ),
        show=str,
    ),
    "measures": Row("MEASURES changed", MATCH_PAGE, right("mr-measures-change"), show=str),
    "within": Row("WITHIN changed", MATCH_PAGE, match_within, show=str),
    "partition": Row("PARTITION BY changed", MATCH_PAGE, match_partition, is_partition_reordered, format_expressions),
    "partition order": Row(
        "the order of PARTITION BY changed", MATCH_PAGE, match_partition, is_partition_reordered, format_expressions
    ),
    "row": Row("the input columns differ", MATCH_PAGE, refused("mr-input-col-add")),
    "filters": filters_row("WHERE page", wrong("mr-where-add", consequence=None)),
}
MATCH = """\
SELECT * FROM orders MATCH_RECOGNIZE (
  PARTITION BY customer ORDER BY order_time
  MEASURES A.amount AS first_amount, LAST(B.amount) AS last_amount
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (A B+ C) DEFINE A AS A.amount > 10, B AS B.amount < {0}, C AS C.amount > 10
);"""
PATTERN_CHANGED = parts_rule(
    code="pattern-changed",
    title="A pattern recognition changed",
    kinds=(OtherKind.MATCH_RECOGNIZE,),
    of=OtherOperator,
    rows=MATCH_ROWS,
    vvr=MATCH_ROWS["text"].vvr if isinstance(MATCH_ROWS["text"].vvr, Verdict) else MATCH_PAGE,
    flink=measured(Outcome.INCOMPATIBLE, "mr-define-change", "mr-pattern-quant-two", "mr-part-add", "mr-within-longer"),
    rationale=(
        "The operator stores partial matches of the old pattern with all columns of their rows. Measures are computed "
        "when a match completes and are not stored."
    ),
    example=Example(MATCH.format(10), MATCH.format(20)),
)

SORT_PAGE = "Temporal sort page"
SORT_KEYS = documented(Outcome.INCOMPATIBLE, f"{SORT_PAGE}: sort fields or direction")


def sort_clocks(pair: OperatorPair) -> tuple[object, object]:
    old, new = (dict(side.attributes).get("clock") for side in (pair.old, pair.new))  # type: ignore[attr-defined]
    return old, new


def sort_keys(pair: OperatorPair, difference: Difference) -> Verdict:
    """Verdict on sort keys. Rows wait for the watermark unsorted and are sorted only at emission."""
    old, new = sort_clocks(pair)
    if not all(_sorted_by_columns(side) for side in (pair.old, pair.new)):
        return unknown("only plain columns were measured as sort keys, because an expression becomes a computed column")
    if old is new is TimeAttribute.ROWTIME and difference.part == "sort keys":
        return right("so-key-add", "so-key-swap", "so-key-dir")
    if is_processing_time_sort(pair.old) and new is TimeAttribute.ROWTIME:
        return right("so-proc-to-row", note="nothing was stored before")
    if old is TimeAttribute.ROWTIME and new is TimeAttribute.PROCTIME:
        return refused_at_submit("over-frames-sort-clock")
    return unknown("different sort keys in processing time were not measured")


def _sorted_by_columns(side: object) -> bool:
    if not isinstance(side, OtherOperator):
        return False
    detail = dict(side.attributes)
    return all(key in side.rows[0] for key, _, _ in (*detail["time key"], *detail["sort keys"]))


SORT_LAYOUT = layout_judge(("so-field-add", "so-field-del"), ("so-field-swap",))


def sort_row(pair: OperatorPair, difference: Difference) -> Verdict:
    if is_processing_time_sort(pair.old):
        return right("so-proc-field-add", "so-proc-field-swap", note="nothing is stored")
    return SORT_LAYOUT(pair, difference)


def sort_row_on_vvr(pair: OperatorPair, difference: Difference) -> Verdict:
    if set(difference.before) == set(difference.after):
        return documented(Outcome.COMPATIBLE, f"{SORT_PAGE}: the time column left out of the SELECT list")
    if sort_clocks(pair) == (TimeAttribute.PROCTIME, TimeAttribute.PROCTIME):
        return documented(Outcome.COMPATIBLE, f"{SORT_PAGE}: SELECT fields under processing time")
    return documented(Outcome.INCOMPATIBLE, f"{SORT_PAGE}: SELECT fields under event time")


def sort_filters(pair: OperatorPair, difference: Difference) -> Verdict:
    if is_processing_time_sort(pair.old) and is_processing_time_sort(pair.new):
        return unknown("a condition below a sort in processing time was not measured")
    return wrong("so-where-change", "so-where-add", consequence=None)


SORT_WHERE = filters_row("WHERE page", wrong("so-where-change", "so-where-add", consequence=None))
SORT_ROWS = {
    "time key": Row("the time column changed", SORT_KEYS, sort_keys),
    "clock": Row("the clock changed", SORT_KEYS, sort_keys),
    "sort keys": Row("the sort keys changed", SORT_KEYS, sort_keys),
    "row": Row("different columns are sorted", sort_row_on_vvr, sort_row),
    "filters": Row(SORT_WHERE.sentence, SORT_WHERE.vvr, sort_filters, SORT_WHERE.quiet, SORT_WHERE.show),
    "windows": Row("the windows below the sort changed", unknown(), unknown("windows below a sort were not measured")),
}
SORT_CHANGED = parts_rule(
    code="sort-changed",
    title="A sort by time changed",
    kinds=(OtherKind.TEMPORAL_SORT,),
    of=OtherOperator,
    rows=SORT_ROWS,
    vvr=SORT_KEYS,
    flink=right("so-key-add", "so-key-swap", "so-key-dir"),
    rationale=(
        "The sort stores whole rows until the watermark passes them. Open-source Flink sorts these rows only at "
        "emission, by the current query. VVR's page calls any change of the sort keys incompatible."
    ),
    example=Example(
        "SELECT customer, amount, order_time FROM orders ORDER BY order_time;",
        "SELECT customer, amount, order_time FROM orders ORDER BY order_time, amount;",
    ),
)

SORTED = OtherKind.SORT_LIMIT
LIMIT_PAGE = documented(Outcome.INCOMPATIBLE, "LIMIT page: LIMIT, OFFSET or schema")


def limit_on_vvr(pair: OperatorPair, difference: Difference) -> Verdict:
    return (
        inferred(Outcome.INCOMPATIBLE, "LIMIT page, which shows no ORDER BY") if pair.new.kind == SORTED else LIMIT_PAGE
    )


def counts_only(pair: OperatorPair) -> bool:
    """True for a LIMIT without ORDER BY over append-only rows, with an unchanged OFFSET."""
    programs = (pair.pipeline.old_program, pair.pipeline.new_program)
    first = all(
        appends_only(side.segments[0], program) for side, program in zip((pair.old, pair.new), programs, strict=True)
    )
    return first and pair.new.kind == OtherKind.LIMIT and "offset" not in pair.parts


def limit(pair: OperatorPair, difference: Difference) -> Verdict:
    if pair.new.kind == SORTED:
        return wrong("li-sort-n-down")
    if None in (difference.before, difference.after) or not counts_only(pair):
        return unknown("a changed LIMIT was measured only over an append-only table with the same OFFSET")
    if difference.after > difference.before:
        return wrong("li-n-3-to-7", note="rows that arrived after the old LIMIT was reached are missing")
    return right("li-n-7-to-3")


LIMIT_KEYS = wrong("li-sort-key", consequence=None)


def limit_row(pair: OperatorPair, difference: Difference) -> Verdict:
    if pair.new.kind == SORTED:
        return refused("li-sort-col-add")
    if not same_row_types(pair, difference):
        return refused("over-frames-limit-column-added")
    if not counts_only(pair) or not _in_table_order(pair):
        return unknown("only columns of one append-only table in the order of the table were measured")
    return right("li-col-swap")


def _in_table_order(pair: OperatorPair) -> bool:
    """True if both sides select only table columns, with equal types in the order of the table."""
    found = []
    for side, program in ((pair.old, pair.pipeline.old_program), (pair.new, pair.pipeline.new_program)):
        assert isinstance(side, OtherOperator)
        origin = side.segments[0].origin
        table = program.table(origin.table) if isinstance(origin, Source) else None
        names = [column.column for column in side.rows[0] if isinstance(column, SourceColumn)]
        if table is None or len(names) != len(side.rows[0]):
            return False
        found.append([str(column.type) for column in table.columns if column.name in names])
    return found[0] == found[1]


LIMIT_ROWS = {
    "limit": Row("LIMIT changed", limit_on_vvr, limit, show=str),
    "offset": Row(
        "OFFSET changed", limit_on_vvr, unknown("li-offset-add was correct before the LIMIT was reached"), show=str
    ),
    "sort keys": Row("the sort keys changed", limit_on_vvr, LIMIT_KEYS),
    "time key": Row("the sort keys changed", limit_on_vvr, LIMIT_KEYS),
    "clock": Row("the sort keys changed", limit_on_vvr, LIMIT_KEYS),
    "row": Row("different columns are limited", limit_on_vvr, limit_row),
    "filters": filters_row("WHERE page", wrong("li-where-change")),
}
LIMIT_CHANGED = parts_rule(
    code="limit-changed",
    title="A LIMIT changed",
    kinds=(OtherKind.LIMIT, SORTED),
    of=OtherOperator,
    rows=LIMIT_ROWS,
    vvr=LIMIT_PAGE,
    flink=measured(Outcome.INCOMPATIBLE, "li-n-3-to-7", "li-sort-n-down", "li-sort-key", "li-where-change"),
    rationale=(
        "The state contains the number of emitted rows and, with an ORDER BY, also the rows. A lower LIMIT needs no "
        "removed rows. A higher LIMIT needs removed rows if the old LIMIT was reached."
    ),
    example=Example("SELECT customer, amount FROM orders LIMIT 100;", "SELECT customer, amount FROM orders LIMIT 200;"),
)
