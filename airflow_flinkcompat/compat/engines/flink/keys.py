"""Engine ``flink``: the order of group keys in state, which may follow the output and not GROUP BY (EXPLAIN, 2.3.0).

With a condition below a group aggregation or a group window, and nothing but its columns put out, the planner merges
the projection into the aggregation: the keys are then kept in the order of the output. Anything that needs a
projection above (HAVING, an expression, another order of columns) brings back the order of GROUP BY. Windowed
aggregations over a window table function keep that order throughout.
"""

from __future__ import annotations

from airflow_flinkcompat.compat.changes.pairs import PipelinePair
from airflow_flinkcompat.plan.operators import AggregateOperator, Output
from airflow_flinkcompat.plan.origins import KeyOutput, OperatorColumn


def keys_may_move(pair: PipelinePair) -> bool:
    """Whether what changed above the state may have changed the order of the keys in it."""
    return bool(pair.differences) and any(_moved_by_output(output) for output in (pair.old, pair.new))


def _moved_by_output(output: Output) -> bool:
    operator = output.segment.origin
    if not isinstance(operator, AggregateOperator) or len(operator.keys) < 2 or not operator.segment.filters:
        return False
    if operator.window is not None and operator.window.notation != "group window":
        return False
    shown = [
        operator.keys.index(column.output.key)
        for column in output.columns
        if isinstance(column, OperatorColumn)
        and isinstance(column.output, KeyOutput)
        and column.output.key in operator.keys
    ]
    return shown != sorted(shown)
