"""Engine ``flink``: queries with one operator over one table, in SQL and in the Table API."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from airflow_flinkcompat.compat.changes.pairs import OperatorPair, PipelinePair
from airflow_flinkcompat.compat.changes.query_form import ENDS, QueryApi, QueryForm
from airflow_flinkcompat.compat.verdict import Verdict, refused_at_submit, right, unknown, wrong
from airflow_flinkcompat.plan.expressions import FLIPPED, AggregateCall, Expression, FunctionCall, Literal
from airflow_flinkcompat.plan.nodes import Measure, Table
from airflow_flinkcompat.plan.operators import AggregateOperator, Operator, Output, OverOperator, Source, operators
from airflow_flinkcompat.plan.origins import OperatorColumn, SourceColumn, leaves
from airflow_flinkcompat.plan.program import Pipeline, Program
from airflow_flinkcompat.plan.types import TimeAttribute

ON_WINDOWS = frozenset({"SUM", "AVG", "COUNT", "MAX", "MIN"})
"""Calls on windows whose state is the same in SQL and in the Table API, by measurement."""


NOT_PRUNED = (
    "SQL may drop unread columns in a separate operator. By EXPLAIN, this depends on the columns that the source "
    "reads, and only CSV files were measured"
)


@dataclass(frozen=True)
class SingleOperatorQuery:
    """One side of a query of the measured kind: one operator over plain columns of one table."""

    operator: AggregateOperator | OverOperator
    table: Table
    form: QueryForm

    @property
    def prunes(self) -> bool:
        """True if, by measurement, the source reads only the requested columns."""
        return self.table.option("connector") == "filesystem" and self.table.option("format") == "csv"

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that the operator and its conditions read, in the table's order."""
        operator = self.operator
        read = {leaf.column for part in _read(operator) for leaf in leaves(part) if isinstance(leaf, SourceColumn)}
        return tuple(column.name for column in self.table.columns if column.name in read)

    @property
    def leaves_out(self) -> bool:
        """True if the query reads fewer columns than the table stores.

        If the query reads all columns, the planner cannot push a projection into the scan.
        """
        return len(self.needed) < len(self.table.physical)

    @property
    def computes(self) -> bool:
        """True if an input column of the operator is computed."""
        return any(not self.stored(column) for arriving in self.form.input_columns for column in arriving)

    @property
    def selected(self) -> bool | None:
        """True if a preceding select has exactly the needed columns, False without a select, None otherwise."""
        if "select" not in self.form.operations:
            return False
        (arriving,) = self.form.input_columns or ((),)
        names = tuple(column.column if isinstance(column, SourceColumn) else "" for column in arriving)
        return True if names == self.needed else None

    def narrows(self, columns: tuple[Expression, ...]) -> bool:
        """True if the scan absorbs a ``select`` of these columns: they are distinct, and not all columns."""
        return len(set(columns)) == len(columns) < len(self.table.physical)

    def stored(self, column: Expression) -> bool:
        """True if an expression is a stored column of the table."""
        return isinstance(column, SourceColumn) and column.column in self.table.physical


def sides(pair: PipelinePair) -> tuple[SingleOperatorQuery | None, SingleOperatorQuery | None]:
    """Both sides of a query; None for a side that is not of the measured kind."""
    old, new = pair.query_forms
    return single_operator_query(pair.old, pair.old_program, old), single_operator_query(
        pair.new, pair.new_program, new
    )


def computed_below(pair: PipelinePair) -> bool:
    """True if an unread computed column stays in the input of a Table API aggregation."""
    arriving = (column for side in pair.query_forms for columns in side.input_columns for column in columns)
    stored = {name for program in (pair.old_program, pair.new_program) for t in program.tables for name in t.physical}
    return any(not isinstance(column, SourceColumn) or column.column not in stored for column in arriving)


def nothing_else(pair: PipelinePair) -> bool:
    """True if operators and output are equal on both sides."""
    return not any(operator.differences for operator in pair.operators) and pair.old.columns == pair.new.columns


def by_default(pair: PipelinePair) -> bool:
    """True if neither another query of the job nor a setting affects the plan of a query."""
    sides = (pair.old_pipeline, pair.old_program), (pair.new_pipeline, pair.new_program)
    return all(_by_default(pipeline, program) for pipeline, program in sides)


def _by_default(pipeline: Pipeline, program: Program) -> bool:
    settings = dict(pipeline.settings)
    together = pipeline.statement_set is not None and sum(
        other.statement_set == pipeline.statement_set for other in program.pipelines
    )
    unset = all(not key.startswith("table.") or key == "table.local-time-zone" for key in settings)
    return together <= 1 and unset and settings.get("execution.runtime-mode", "").lower() != "batch"


def by_event_time(operator: AggregateOperator) -> bool:
    """True for an event-time window that is not a row-count window."""
    window = operator.window
    by_time = window is not None and window.time_attribute is TimeAttribute.ROWTIME
    return by_time and window is not None and window.window.measure is not Measure.ROWS


def single_operator_query(output: Output, program: Program, how: QueryForm) -> SingleOperatorQuery | None:
    """One side of a query of the measured kind; None for any other query."""
    found = operators(output)
    if len(found) != 1 or how.api is QueryApi.BOTH or output.segment.filters or output.segment.window_filters:
        return None
    operator = found[0]
    if not isinstance(operator, AggregateOperator | OverOperator) or not isinstance(operator.segment.origin, Source):
        return None
    segment = operator.segment
    name = operator.segment.origin.table
    table = program.table(name)
    if table is None or not table.declared or table.metadata or table.primary_key or operator.segment.origin.hints:
        return None
    side = SingleOperatorQuery(operator, table, how)
    dressed = segment.functions or segment.windows or segment.hints or output.segment.functions or output.segment.hints
    # A watermark computed from other columns keeps these columns in the scan, even if unread.
    by_itself = table.watermark_delay is not None
    by_watermark = table.watermark is None or (table.watermark.column in table.physical and by_itself)
    bare = all(isinstance(column, OperatorColumn) for column in output.columns)
    single = len(_keys(operator)) == 1 and not (isinstance(operator, AggregateOperator) and _unusual(operator))
    stored = all(
        side.stored(leaf) for part in _read(operator) for leaf in leaves(part) if isinstance(leaf, SourceColumn)
    )
    plain = all(isinstance(part, SourceColumn) for part in (*_keys(operator), *arguments(operator.aggregates)))
    return side if by_watermark and bare and single and stored and plain and not dressed else None


def _unusual(operator: AggregateOperator) -> bool:
    return bool(
        operator.repeated_calls or operator.repeated_keys or operator.pruned_inputs or operator.window_computations
    )


def _keys(operator: AggregateOperator | OverOperator) -> tuple[Expression, ...]:
    return operator.keys if isinstance(operator, AggregateOperator) else operator.partition_by


def arguments(calls: Iterable[AggregateCall]) -> tuple[Expression, ...]:
    return tuple(argument for call in calls for argument in call.args)


def _read(operator: AggregateOperator | OverOperator) -> tuple[Expression, ...]:
    """All expressions that an operator and its conditions read."""
    times: tuple[Expression, ...] = ()
    if isinstance(operator, OverOperator):
        times = tuple(key for key, _, _ in operator.order)
    elif operator.window is not None:
        times = (operator.window.time,)
    return (*_keys(operator), *arguments(operator.aggregates), *times, *operator.segment.filters)


def called(calls: Iterable[AggregateCall], functions: frozenset[str], distinct: bool = False) -> bool:
    """True if all calls are calls of these built-in functions over all rows."""
    return all(
        call.function in functions
        and call.language == "builtin"
        and call.filter is None
        and not call.order_by
        and (not call.distinct or (distinct and call.function == "COUNT"))
        for call in calls
    )


COMPUTED_BELOW = (
    "notation-computed-tumble-to-legacy",
    "notation-computed-legacy-to-tumble",
    "notation-computed-select-added",
    "notation-computed-select-removed",
)


GROUPED_ALIKE = ("wording-two-keys-reordered",)


ELSEWHERE = "conditions in a different position were not measured"


_COMPARISONS = frozenset({"=", "<>", *FLIPPED})


def columns_below(pair: PipelinePair) -> Verdict:
    """Verdict on equal operations with different unread columns in their input."""
    old, new = sides(pair)
    if old is not None and new is not None and old.computes != new.computes:
        return chains_differ(old, new)
    if keys_change_places(pair):
        return wrong("wording-select-two-keys-reordered")
    same = nothing_else(pair) and by_default(pair)
    if old is not None and new is not None and same and _both_select_before_window(old, new):
        # On both sides, one operator drops the computed column. State contains values, not their positions.
        return right("wording-select-wider", "wording-select-reordered")
    return unknown("different unread columns in the input of a Table API operation were not measured")


def keys_change_places(pair: PipelinePair) -> bool:
    """True if a preceding ``select`` reorders the keys: the Table API groups by the input's column order."""
    if any(side.operations != ("select", "window") for side in pair.query_forms) or len(pair.operators) != 1:
        return False
    old, new = (_keys_by_position(side) for side in (pair.operators[0].old, pair.operators[0].new))
    return old is not None and new is not None and old != new and set(old) == set(new)


def grouped_alike(pair: OperatorPair) -> bool:
    """True if only ``group_by`` reorders its columns: the Table API uses the input's column order.

    The Table API groups by a set of positions in the input row (``ImmutableBitSet``). SQL first moves the keys to the
    start of the row, in the order of GROUP BY.
    """
    if any(side.api is not QueryApi.TABLE_API for side in pair.pipeline.query_forms):
        return False
    old, new = _keys_by_position(pair.old), _keys_by_position(pair.new)
    return old is not None and old == new and all(map(_of_columns, (pair.old, pair.new)))


def _of_columns(operator: Operator) -> bool:
    """True for an event-time window over plain columns of a table, without a projection before it."""
    if not isinstance(operator, AggregateOperator) or not isinstance(operator.segment.origin, Source):
        return False
    plain = all(part in operator.input_columns for part in arguments(operator.aggregates))
    return by_event_time(operator) and plain and called(operator.aggregates, ON_WINDOWS)


def _keys_by_position(operator: Operator) -> tuple[Expression, ...] | None:
    """The keys in the order of the input columns; None if a key is computed."""
    if not isinstance(operator, AggregateOperator) or not set(operator.keys) <= set(operator.input_columns):
        return None
    return tuple(sorted(operator.keys, key=operator.input_columns.index))


def _both_select_before_window(old: SingleOperatorQuery, new: SingleOperatorQuery) -> bool:
    """True if, on both sides, only a ``select`` of stored columns is between the table and a window."""
    return all(
        side.form.operations == ("select", "window")
        and side.prunes
        and side.table.computed
        and not side.computes
        and isinstance(side.operator, AggregateOperator)
        and by_event_time(side.operator)
        and called(side.operator.aggregates, ON_WINDOWS)
        and not side.operator.segment.filters
        and all(map(side.narrows, side.form.input_columns))
        for side in (old, new)
    )


def chains_differ(old: SingleOperatorQuery, new: SingleOperatorQuery) -> Verdict:
    """Verdict on a computed column that stays in the input of a window on one side only."""
    if not (old.prunes and new.prunes):
        return unknown(NOT_PRUNED)
    return refused_at_submit(*COMPUTED_BELOW)


def merged(pair: PipelinePair) -> Verdict:
    """Verdict on conditions that have a different place among operations that are otherwise equal.

    The planner merges consecutive conditions (FILTER_MERGE). The planner also merges a projection and a condition into
    one Calc.
    """
    if not (nothing_else(pair) and by_default(pair)):
        return unknown(ELSEWHERE)
    if _inserts_query(pair):
        return right("wording-sql-query-inserted")
    old, new = (_runs(steps) for steps in pair.steps)
    if old == new and all(map(_filtered, sides(pair))):
        return right("wording-filters-joined", "wording-filter-moved")
    return unknown(ELSEWHERE)


def _inserts_query(pair: PipelinePair) -> bool:
    """True if one side runs an INSERT statement, and the other inserts a table that ``sql_query`` returns."""
    operations = [tuple(step for step in steps if step not in ENDS) for steps in pair.steps]
    return set(operations) == {(), ("sql_query",)}


def _runs(steps: tuple[str, ...]) -> tuple[frozenset[str] | str, ...]:
    """The operations of a program, with consecutive filters and selects as one operation."""
    found: list[frozenset[str] | str] = []
    for mixed, run in groupby(steps, lambda step: step == "filter" or step.startswith("select:")):
        operations = tuple(run)
        found += [frozenset(operations)] if mixed else operations
    return tuple(found)


def _filtered(side: SingleOperatorQuery | None) -> bool:
    """True for a Table API window after conditions that compare stored columns with constants."""
    if side is None or side.form.api is not QueryApi.TABLE_API or not side.prunes:
        return False
    operator = side.operator
    if not isinstance(operator, AggregateOperator) or not by_event_time(operator):
        return False
    selected = side.form.operations == ("select", "window") and side.selected and not side.computes
    bare = side.form.operations == ("window",)
    known = called(operator.aggregates, ON_WINDOWS) and all(map(_compares, operator.segment.filters))
    return bool(side.table.computed) and known and (bool(selected) or bare)


def _compares(condition: Expression) -> bool:
    if not isinstance(condition, FunctionCall) or condition.function not in _COMPARISONS:
        return False
    return all(isinstance(part, SourceColumn | Literal) for part in condition.args)
