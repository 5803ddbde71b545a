"""Engine ``flink``: how a restore ends where a query moves between SQL and the Table API, or within the Table API.

Measured on 2.3.0 with PyFlink. SQL leaves out the columns nobody reads before it reads them, the Table API does not:
what is computed of a table then stays as an operator of its own below the window, unless a ``select`` in front leaves
it out. SQL makes COUNT and $SUM0 of SUM and AVG over rows, the Table API does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_flinkcompat.compat.flink import surely_projected
from airflow_flinkcompat.compat.flink_ranking import ON_2_3, REFUSED, WRONG, right, unmeasured, wrong
from airflow_flinkcompat.compat.notations import Notation, Written
from airflow_flinkcompat.compat.outcome import Consequence
from airflow_flinkcompat.compat.pairs import PipelinePair
from airflow_flinkcompat.compat.rule import Verdict
from airflow_flinkcompat.plan.expressions import AggregateCall, Expression
from airflow_flinkcompat.plan.nodes import Measure, Table
from airflow_flinkcompat.plan.operators import AggregateOperator, Output, OverOperator, Source, operators
from airflow_flinkcompat.plan.origins import OperatorColumn, SourceColumn, WindowColumn, leaves
from airflow_flinkcompat.plan.program import Pipeline, Program
from airflow_flinkcompat.plan.types import TimeAttribute

REWRITTEN = ("SUM", "AVG")
"""Calls over row windows that SQL makes others of."""
ON_WINDOWS = frozenset({"SUM", "AVG", "COUNT", "MAX", "MIN"})
OVER_ROWS = frozenset({"MAX", "COUNT"})
WITHOUT_WINDOW = frozenset({"SUM"})
"""Calls whose state was seen to be the same in both notations."""
UNLIKE = "only one aggregation of plain columns by one key, straight from a table to a sink, was measured"
AND_MORE = "what else changes with it was not measured"
BEHIND_SELECT = "Table API behind a select against legacy SQL: tumble, hop, session, filter, AVG, COUNT DISTINCT"
NOTHING_COMPUTED = "Table API against legacy SQL TUMBLE, HOP, SESSION, WHERE over a source without computed columns"
REWRITTEN_CALLS = "Table API over SUM, AVG against SQL OVER, by rows and by range: the calls are kept otherwise"
COMPUTED_BELOW = "Table API against legacy SQL, a computed column: on one side it is computed below the window"
NOT_PRUNED = (
    "which columns a source reads by itself decides whether SQL drops the others in an operator of its own (EXPLAIN): "
    "without a select in front, only files in CSV were measured"
)


@dataclass(frozen=True)
class Plain:
    """One side of a query such as were measured: one operator over one table, its columns taken as they stand."""

    operator: AggregateOperator | OverOperator
    table: Table
    written: Written

    @property
    def prunes(self) -> bool:
        """Whether the source reads only the columns that are asked for, as far as that was measured."""
        return self.table.option("connector") == "filesystem" and self.table.option("format") == "csv"

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns the operator and its conditions read, in the table's order."""
        operator = self.operator
        read = {leaf.column for part in _read(operator) for leaf in leaves(part) if isinstance(leaf, SourceColumn)}
        return tuple(column.name for column in self.table.columns if column.name in read)

    @property
    def computes(self) -> bool:
        """Whether something computed comes into the operator that nobody reads."""
        return any(not self.stored(column) for arriving in self.written.arriving for column in arriving)

    @property
    def selected(self) -> bool | None:
        """Whether a select in front leaves just what is needed; False without a select, None for any other."""
        if "select" not in self.written.operations:
            return False
        (arriving,) = self.written.arriving or ((),)
        names = tuple(column.column if isinstance(column, SourceColumn) else "" for column in arriving)
        return True if names == self.needed else None

    def stored(self, column: Expression) -> bool:
        """Whether it is a column the table stores."""
        return isinstance(column, SourceColumn) and column.column in self.table.physical


def standing(pair: PipelinePair) -> Verdict | None:
    """What becomes of state by the way the query is written; None where it is written as it was."""
    old, new = pair.written
    if not pair.moved:
        return None if old == new else _columns_below(pair)
    if _rewritten(pair, old, new):
        bounded = all(over.frame.preceding is not None for over in _overs(pair))
        return wrong(REWRITTEN_CALLS, WRONG if bounded else REFUSED)
    sides = _plain(pair.old, pair.old_program, old), _plain(pair.new, pair.new_program, new)
    if sides[0] is None or sides[1] is None:
        return unmeasured(UNLIKE)
    if not all(map(_by_default, ((pair.old_pipeline, pair.old_program), (pair.new_pipeline, pair.new_program)))):
        return unmeasured("only a query that is a job of its own, planned as Flink plans by default, was measured")
    if any(operator.differences for operator in pair.operators) or pair.old.columns != pair.new.columns:
        return unmeasured(AND_MORE)
    return _moved(sides[0], sides[1], pair)


def _moved(old: Plain, new: Plain, pair: PipelinePair) -> Verdict:
    operator = old.operator
    if isinstance(operator, OverOperator):
        return _over(old, new, operator)
    if operator.window is None:
        return _without_window(old, new, operator)
    return _on_window(old, new, operator, pair)


def _on_window(old: Plain, new: Plain, operator: AggregateOperator, pair: PipelinePair) -> Verdict:
    assert operator.window is not None
    if operator.window.time_attribute is not TimeAttribute.ROWTIME or operator.window.window.measure is Measure.ROWS:
        return unmeasured("only windows of event time were measured in both notations")
    if not _called(operator.aggregates, ON_WINDOWS, distinct=True) or operator.grouping_sets is not None:
        return unmeasured(UNLIKE)
    if old.computes != new.computes:
        return _chains_differ(old, new)
    if _shows_window(pair.old) and not all(map(surely_projected, (pair.old, pair.new))):
        # EXPLAIN: the Table API hands up the fields that are selected, SQL always the same ones.
        return unmeasured("the window's fields come last in the output, so SQL alone puts a projection there (EXPLAIN)")
    through_api = [side for side in (old, new) if side.written.notation is Notation.TABLE_API]
    if len(through_api) > 1:
        return unmeasured("a select in front of a window was measured over computed columns only")
    if all(side.selected for side in through_api):
        return right(BEHIND_SELECT, ON_2_3)
    if any(side.selected is None for side in through_api):
        return unmeasured("only a select of just the columns that are needed was measured")
    if old.computes or old.table.computed or new.table.computed:
        return unmeasured("both sides read what is computed: not measured")
    if not (old.prunes and new.prunes):
        return unmeasured(NOT_PRUNED)
    return right(NOTHING_COMPUTED, ON_2_3)


def _chains_differ(old: Plain, new: Plain) -> Verdict:
    if not (old.prunes and new.prunes):
        return unmeasured(NOT_PRUNED)
    return wrong(COMPUTED_BELOW, Consequence.REFUSED_AT_SUBMIT)


def _without_window(old: Plain, new: Plain, operator: AggregateOperator) -> Verdict:
    if not _called(operator.aggregates, WITHOUT_WINDOW) or operator.region.filters:
        return unmeasured("only SUM over all rows was measured")
    if not (old.prunes and new.prunes):
        return unmeasured(NOT_PRUNED)
    if old.selected is not False or new.selected is not False or old.table.computed or new.table.computed:
        return unmeasured("a select in front of it, or a computed column, was not measured")
    marks = [side.table.watermark is not None for side in (old, new)]
    if all(marks):
        source = "group_by against SQL GROUP BY over a source with a watermark: SQL drops the other columns above it"
        return wrong(source, Consequence.REFUSED_AT_SUBMIT)
    return unmeasured(AND_MORE) if any(marks) else right("group_by against SQL GROUP BY", ON_2_3)


def _over(old: Plain, new: Plain, operator: OverOperator) -> Verdict:
    if not _called(operator.aggregates, OVER_ROWS) or len(operator.aggregates) > 1:
        return unmeasured("only one MAX or COUNT was measured")
    bounded = operator.frame.preceding is not None and not operator.frame.other
    if operator.clock is not TimeAttribute.ROWTIME or not bounded or operator.region.filters:
        return unmeasured("only bounded frames by event time, without a condition, were measured")
    if old.table.computed or new.table.computed or "select" in (*old.written.operations, *new.written.operations):
        return unmeasured("only rows straight from a table without computed columns were measured")
    return right("Table API over MAX, COUNT against SQL OVER, by rows and by range", ON_2_3)


def computed_below(pair: PipelinePair) -> bool:
    """Whether something computed that nobody reads stays below an aggregation of the Table API."""
    arriving = (column for side in pair.written for columns in side.arriving for column in columns)
    stored = {name for program in (pair.old_program, pair.new_program) for t in program.tables for name in t.physical}
    return any(not isinstance(column, SourceColumn) or column.column not in stored for column in arriving)


def _columns_below(pair: PipelinePair) -> Verdict:
    """The same operations, over other columns that nobody reads."""
    old, new = pair.written
    sides = _plain(pair.old, pair.old_program, old), _plain(pair.new, pair.new_program, new)
    if sides[0] is not None and sides[1] is not None and sides[0].computes != sides[1].computes:
        return _chains_differ(sides[0], sides[1])
    return unmeasured("other columns that stay below an operation of the Table API were not measured")


def _rewritten(pair: PipelinePair, old: Written, new: Written) -> bool:
    """Whether calls over row windows are rewritten on one side only."""
    if {old.notation, new.notation} != {Notation.SQL, Notation.TABLE_API}:
        return False
    return any(call.function in REWRITTEN and not call.distinct for over in _overs(pair) for call in over.aggregates)


def _overs(pair: PipelinePair) -> list[OverOperator]:
    return [each.new for each in pair.operators if isinstance(each.new, OverOperator)]


def _by_default(side: tuple[Pipeline, Program]) -> bool:
    """Whether nothing else decides how a query is planned: no other query of its job, and no setting."""
    pipeline, program = side
    settings = dict(pipeline.settings)
    together = pipeline.statement_set is not None and sum(
        other.statement_set == pipeline.statement_set for other in program.pipelines
    )
    unset = all(not key.startswith("table.") or key == "table.local-time-zone" for key in settings)
    return together <= 1 and unset and settings.get("execution.runtime-mode", "").lower() != "batch"


def _plain(output: Output, program: Program, how: Written) -> Plain | None:
    """One side of a query as such as were measured; None for any other."""
    found = operators(output)
    if len(found) != 1 or how.notation is Notation.BOTH or output.region.filters or output.region.window_filters:
        return None
    operator = found[0]
    if not isinstance(operator, AggregateOperator | OverOperator) or not isinstance(operator.region.origin, Source):
        return None
    region = operator.region
    name = operator.region.origin.table
    table = next((each for each in program.tables if each.name == name and each.declared), None)
    if table is None or table.metadata or table.primary_key or operator.region.origin.hints:
        return None
    side = Plain(operator, table, how)
    dressed = region.functions or region.windows or region.hints or output.region.functions or output.region.hints
    by_watermark = table.watermark is None or table.watermark.column in table.physical
    bare = all(isinstance(column, OperatorColumn) for column in output.columns)
    single = len(_keys(operator)) == 1 and not (isinstance(operator, AggregateOperator) and _unusual(operator))
    stored = all(
        side.stored(leaf) for part in _read(operator) for leaf in leaves(part) if isinstance(leaf, SourceColumn)
    )
    plain = all(isinstance(part, SourceColumn) for part in (*_keys(operator), *_arguments(operator.aggregates)))
    return side if by_watermark and bare and single and stored and plain and not dressed else None


def _unusual(operator: AggregateOperator) -> bool:
    return bool(operator.repeated_calls or operator.repeated_keys or operator.left_out or operator.window_computations)


def _keys(operator: AggregateOperator | OverOperator) -> tuple[Expression, ...]:
    return operator.keys if isinstance(operator, AggregateOperator) else operator.partition_by


def _arguments(calls: Iterable[AggregateCall]) -> tuple[Expression, ...]:
    return tuple(argument for call in calls for argument in call.args)


def _read(operator: AggregateOperator | OverOperator) -> tuple[Expression, ...]:
    """Everything an operator and its conditions read."""
    times: tuple[Expression, ...] = ()
    if isinstance(operator, OverOperator):
        times = tuple(key for key, _, _ in operator.order)
    elif operator.window is not None:
        times = (operator.window.time,)
    return (*_keys(operator), *_arguments(operator.aggregates), *times, *operator.region.filters)


def _called(calls: Iterable[AggregateCall], functions: frozenset[str], distinct: bool = False) -> bool:
    """Whether all calls are of these functions, built in, and over all rows."""
    return all(
        call.function in functions
        and call.language == "builtin"
        and call.filter is None
        and not call.order_by
        and (not call.distinct or (distinct and call.function == "COUNT"))
        for call in calls
    )


def _shows_window(output: Output) -> bool:
    """Whether a field of the window is put out."""
    shown = (column.output for column in output.columns if isinstance(column, OperatorColumn))
    return any(isinstance(each, WindowColumn) for each in shown)
