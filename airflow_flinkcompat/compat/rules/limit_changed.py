from airflow_flinkcompat.compat.changes.diff_fields import Difference
from airflow_flinkcompat.compat.changes.pairs import OperatorPair
from airflow_flinkcompat.compat.engines.flink.ranking import appends_only, right, unmeasured, wrong
from airflow_flinkcompat.compat.rule import Example, Verdict, documented, inferred, measured
from airflow_flinkcompat.compat.rule_builders.part_rules import Row, filters_row, parts_rule, refused, row_types
from airflow_flinkcompat.model import Outcome
from airflow_flinkcompat.plan.operators import OtherKind, OtherOperator, Source
from airflow_flinkcompat.plan.origins import SourceColumn

SORTED = OtherKind.SORT_LIMIT
PAGE = documented(Outcome.INCOMPATIBLE, "LIMIT page: LIMIT, OFFSET or schema")


def on_vvr(pair: OperatorPair, difference: Difference) -> Verdict:
    return inferred(Outcome.INCOMPATIBLE, "LIMIT page; it shows no ORDER BY") if pair.new.kind == SORTED else PAGE


def counts_only(pair: OperatorPair) -> bool:
    """The first rows of a table that only appends, whichever they are: none that was let through is taken back."""
    programs = (pair.pipeline.old_program, pair.pipeline.new_program)
    first = all(
        appends_only(side.segments[0], program) for side, program in zip((pair.old, pair.new), programs, strict=True)
    )
    return first and pair.new.kind == OtherKind.LIMIT and "offset" not in pair.parts


def limit(pair: OperatorPair, difference: Difference) -> Verdict:
    if pair.new.kind == SORTED:
        return wrong("li-sort-n-down")
    if None in (difference.before, difference.after) or not counts_only(pair):
        return unmeasured("measured over a table that only appends, with the same OFFSET")
    if difference.after > difference.before:
        return wrong("li-n-3-to-7", note="once the old LIMIT was reached, what came after is gone")
    return right("li-n-7-to-3")


def keys(pair: OperatorPair, difference: Difference) -> Verdict:
    return wrong("li-sort-key", consequence=None)


def row(pair: OperatorPair, difference: Difference) -> Verdict:
    if pair.new.kind == SORTED:
        return refused("li-sort-col-add")
    old, new = row_types(pair, difference)
    if old != new:
        return refused("over-frames-limit-column-added")
    if not counts_only(pair) or not _in_table_order(pair):
        return unmeasured("only columns of one table that appends, in its order, were measured")
    return right("li-col-swap")


def _in_table_order(pair: OperatorPair) -> bool:
    """Whether all are columns of a table, and have the same types in its order too."""
    found = []
    for side, program in ((pair.old, pair.pipeline.old_program), (pair.new, pair.pipeline.new_program)):
        assert isinstance(side, OtherOperator)
        origin = side.segments[0].origin
        table = next((t for t in program.tables if isinstance(origin, Source) and t.name == origin.table), None)
        names = [column.column for column in side.rows[0] if isinstance(column, SourceColumn)]
        if table is None or len(names) != len(side.rows[0]):
            return False
        found.append([str(column.type) for column in table.columns if column.name in names])
    return found[0] == found[1]


ROWS = {
    "limit": Row("LIMIT changed", on_vvr, limit, show=str),
    "offset": Row(
        "OFFSET changed", on_vvr, unmeasured("li-offset-add was right before the LIMIT was reached"), show=str
    ),
    "sort keys": Row("the sort keys changed", on_vvr, keys),
    "time key": Row("the sort keys changed", on_vvr, keys),
    "clock": Row("the sort keys changed", on_vvr, keys),
    "row": Row("other columns are limited", on_vvr, row),
    "filters": filters_row("WHERE page", wrong("li-where-change")),
}
RULE = parts_rule(
    code="limit-changed",
    title="A LIMIT changed",
    kinds=(OtherKind.LIMIT, SORTED),
    rows=ROWS,
    vvr=PAGE,
    flink=measured(Outcome.INCOMPATIBLE, "li-n-3-to-7", "li-sort-n-down", "li-sort-key", "li-where-change"),
    rationale="What is kept is how many rows went through, and under an ORDER BY which. A lower LIMIT asks for none "
    "that was let go; a higher one does, once the old one was reached.",
    example=Example(
        "SELECT customer, amount FROM orders LIMIT 100;",
        "SELECT customer, amount FROM orders LIMIT 200;",
    ),
)
