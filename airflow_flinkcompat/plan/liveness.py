"""What nobody reads: metrics and columns that Flink's planner leaves out, left out of the operators' view."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airflow_flinkcompat.plan.expressions import AggregateCall, Expression
from airflow_flinkcompat.plan.joining import BOUNDS
from airflow_flinkcompat.plan.operators import (
    AggregateOperator,
    JoinForm,
    JoinOperator,
    OtherOperator,
    OverOperator,
    RankOperator,
    Region,
)
from airflow_flinkcompat.plan.origins import (
    ColumnOutput,
    OperatorColumn,
    PassedOutput,
    RankNumber,
    WindowColumn,
    leaves,
)
from airflow_flinkcompat.plan.ranks import is_key
from airflow_flinkcompat.plan.types import UNKNOWN


def live(region: Region, read: Iterable[Expression]) -> Region:
    """The region with only those metrics and columns in its operator that somebody reads, and so on below.

    ``read`` is what is computed above the region.
    """
    origin = region.origin
    above = (*read, *region.filters, *region.window_filters, *(call for call, _ in region.functions))
    windows = (part for window in region.windows for part in (window.time, *window.partition_by))
    wanted = {leaf.output for part in (*above, *windows) for leaf in leaves(part) if isinstance(leaf, OperatorColumn)}
    match origin:
        case AggregateOperator():
            return replace(region, origin=_aggregate(origin, wanted))
        case OverOperator():
            return replace(region, origin=_over(origin, wanted))
        case JoinOperator():
            return replace(region, origin=_join(origin, wanted))
        case RankOperator():
            return replace(region, origin=_rank(origin, wanted))
        case OtherOperator():
            return replace(region, origin=_other(origin, wanted))
    return region


def _aggregate(operator: AggregateOperator, wanted: set[object]) -> AggregateOperator:
    places = [i for i, call in enumerate(operator.aggregates) if call in wanted]
    kept = tuple(operator.aggregates[i] for i in places)
    asked, planned = _asked(operator, kept), _asked(operator, operator.aggregates)
    return replace(
        operator,
        aggregates=kept,
        left_out=planned if planned != asked else (),
        argument_types=tuple(operator.argument_types[i] for i in places),
        region=live(operator.region, asked),
    )


def _asked(operator: AggregateOperator, calls: Iterable[AggregateCall]) -> tuple[Expression, ...]:
    """What an aggregation with these calls wants of its input, in order of first mention.

    The planner drops a metric nobody reads after it has planned what goes in: an expression, a filter, a further column
    or another order of columns stays (EXPLAIN).
    """
    arguments = (part for call in calls for part in (*call.args, call.filter) if part is not None)
    return tuple(dict.fromkeys((*operator.keys, *arguments)))


def _over(operator: OverOperator, wanted: set[object]) -> OverOperator:
    places = [i for i, call in enumerate(operator.aggregates) if call in wanted]
    kept = tuple(operator.aggregates[i] for i in places)
    arguments = (part for call in kept for part in (*call.args, call.filter) if part is not None)
    asked = (*operator.partition_by, *(key for key, _, _ in operator.order), *arguments)
    used = {output.column for output in wanted if isinstance(output, PassedOutput)} | set(asked)
    return replace(
        operator,
        aggregates=kept,
        argument_types=tuple(operator.argument_types[i] for i in places),
        row=tuple(column for column in operator.input_row if column in used),
        region=live(operator.region, operator.input_row),
    )


def _join(operator: JoinOperator, wanted: set[object]) -> JoinOperator:
    asked = (*operator.conditions, *operator.times, *(side for pair in operator.keys for side in pair))
    used = {(output.input, output.column) for output in wanted if isinstance(output, PassedOutput)}
    used |= {
        (leaf.operator, leaf.output) for part in asked for leaf in leaves(part) if isinstance(leaf, OperatorColumn)
    }

    def kept(side: int, column: Expression) -> bool:
        bound = isinstance(column, WindowColumn) and column.field in BOUNDS
        return (side, column) in used or (bound and operator.form is JoinForm.WINDOW)

    places = [[i for i, column in enumerate(row) if kept(side, column)] for side, row in enumerate(operator.rows)]
    rows = [tuple(row[i] for i in found) for row, found in zip(operator.rows, places, strict=True)]
    types = [tuple(row[i] for i in found) for row, found in zip(operator.row_types, places, strict=True)]
    regions = tuple(live(region, row) for region, row in zip(operator.regions, rows, strict=True))
    return replace(operator, rows=(rows[0], rows[1]), row_types=(types[0], types[1]), regions=regions)


def _rank(operator: RankOperator, wanted: set[object]) -> RankOperator:
    """Partition and order keys stay in the row, and so do the keys of an aggregation below, whoever reads them; its
    metrics are taken to be planned whether they are read or not.
    """
    below = operator.region.origin
    aggregation = below if isinstance(below, AggregateOperator) else None
    asked = (*operator.partition, *(key for key, _, _ in operator.order))
    used = {output.column for output in wanted if isinstance(output, PassedOutput)} | set(asked)
    if aggregation is not None and aggregation.grouping_sets is None:
        used |= {column for column in operator.row if is_key(column)}
    places = [i for i, column in enumerate(operator.row) if column in used]
    row = tuple(operator.row[i] for i in places)
    metrics = () if aggregation is None else aggregation.aggregates
    read = (*row, *asked, *operator.region.filters, *operator.region.window_filters)
    stored = {leaf.output for part in read for leaf in leaves(part) if isinstance(leaf, OperatorColumn)}
    return replace(
        operator,
        row=row,
        row_types=tuple(operator.row_types[i] for i in places),
        number_read=RankNumber() in wanted and operator.first != operator.last,
        selected=() if stored >= set(metrics) else operator.selected,
        region=live(operator.region, (*operator.row, *asked, *(OperatorColumn(0, m, type=UNKNOWN) for m in metrics))),
    )


def _other(operator: OtherOperator, wanted: set[object]) -> OtherOperator:
    """A union hands on the columns that are read; any other construct reads all its columns."""
    rows, types = operator.rows, operator.row_types
    if operator.kind == "UNION ALL":
        used = sorted({output.index for output in wanted if isinstance(output, ColumnOutput)})
        rows = tuple(tuple(row[i] for i in used) for row in rows)
        types = tuple(tuple(row[i] for i in used) for row in types)
    regions = tuple(live(region, row) for region, row in zip(operator.regions, rows, strict=True))
    return replace(operator, regions=regions, rows=rows, row_types=types)
