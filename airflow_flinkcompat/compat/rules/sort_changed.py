from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import right, unmeasured, wrong
from airflow_flinkcompat.compat.rule import Example, Verdict, documented, inferred, measured
from airflow_flinkcompat.compat.rule_builders.part_rules import (
    Row,
    by_processing_time,
    filters_row,
    layout_row,
    parts_rule,
    refused,
)
from airflow_flinkcompat.model import Consequence, Outcome
from airflow_flinkcompat.plan.operators import OtherKind, OtherOperator
from airflow_flinkcompat.plan.types import TimeAttribute

PAGE = "Temporal sort page"
KEYS = documented(Outcome.INCOMPATIBLE, f"{PAGE}: sort fields or direction")


def clocks(pair: OperatorPair) -> tuple[object, object]:
    old, new = (dict(side.attributes).get("clock") for side in (pair.old, pair.new))  # type: ignore[attr-defined]
    return old, new


def keys(pair: OperatorPair, difference: Difference) -> Verdict:
    """Rows wait for the watermark in order of arrival; in which order they leave is decided when it comes."""
    old, new = clocks(pair)
    if not all(_sorted_by_columns(side) for side in (pair.old, pair.new)):
        return unmeasured("only columns as sort keys were measured; anything computed becomes a column of its own")
    if old is new is TimeAttribute.ROWTIME and difference.part == "sort keys":
        return right("so-key-add", "so-key-swap", "so-key-dir")
    if by_processing_time(pair.old) and new is TimeAttribute.ROWTIME:
        return right("so-proc-to-row", note="nothing was kept before")
    if old is TimeAttribute.ROWTIME and new is TimeAttribute.PROCTIME:
        return refused("over-frames-sort-clock", consequence=Consequence.REFUSED_AT_SUBMIT)
    return unmeasured("other sort keys by processing time were not measured")


def _sorted_by_columns(side: object) -> bool:
    if not isinstance(side, OtherOperator):
        return False
    detail = dict(side.attributes)
    return all(key in side.rows[0] for key, _, _ in (*detail["time key"], *detail["sort keys"]))


STORED = layout_row("other columns are sorted", KEYS, ("so-field-add", "so-field-del"), ("so-field-swap",))


def row(pair: OperatorPair, difference: Difference) -> Verdict:
    if by_processing_time(pair.old):
        return right("so-proc-field-add", "so-proc-field-swap", note="nothing is kept")
    return STORED.flink(pair, difference) if callable(STORED.flink) else STORED.flink


def row_on_vvr(pair: OperatorPair, difference: Difference) -> Verdict:
    if set(difference.before) == set(difference.after):
        return documented(Outcome.COMPATIBLE, f"{PAGE}: the time column left out of the SELECT list")
    if clocks(pair) == (TimeAttribute.PROCTIME, TimeAttribute.PROCTIME):
        return documented(Outcome.COMPATIBLE, f"{PAGE}: SELECT fields under processing time")
    return documented(Outcome.INCOMPATIBLE, f"{PAGE}: SELECT fields under event time")


def filters(pair: OperatorPair, difference: Difference) -> Verdict:
    if by_processing_time(pair.old) and by_processing_time(pair.new):
        return unmeasured("a condition below a sort by processing time was not measured")
    return wrong("so-where-change", "so-where-add", consequence=None)


WHERE = filters_row("WHERE page", wrong("so-where-change", "so-where-add", consequence=None))
ROWS = {
    "time key": Row("another time column", KEYS, keys),
    "clock": Row("another clock", KEYS, keys),
    "sort keys": Row("the sort keys changed", KEYS, keys),
    "row": Row(STORED.says, row_on_vvr, row),
    "filters": Row(WHERE.says, WHERE.vvr, filters, WHERE.quiet, WHERE.show),
    "windows": Row("other windows below", inferred(Outcome.UNKNOWN), unmeasured("not measured")),
}
RULE = parts_rule(
    code="sort-changed",
    title="A sort by time changed",
    kinds=(OtherKind.TEMPORAL_SORT,),
    rows=ROWS,
    vvr=KEYS,
    flink=measured(Outcome.COMPATIBLE, "so-key-add", "so-key-swap", "so-key-dir"),
    rationale="Rows are kept whole until the watermark passes them. Open-source Flink sorts them only when they leave, "
    "by whatever the query says then; VVR's page calls any other sort key incompatible.",
    example=Example(
        "SELECT customer, amount, order_time FROM orders ORDER BY order_time;",
        "SELECT customer, amount, order_time FROM orders ORDER BY order_time, amount;",
    ),
)
