"""The layout of an operator that a script's own plan tells, without Flink's.

Told is an operator straight over tables whose rows are only added; of any other it says why not. Wherever it tells a
layout, it is what Flink 2.3.0's compiled plan tells (``python -m measure.layouts``, and stored plans in
``tests/state/test_layouts_of_scripts.py``).
"""

from __future__ import annotations

from airflow_flinkcompat.plan.operators import AggregateOperator, JoinOperator, Operator, RankOperator, Source
from airflow_flinkcompat.state.compiled.symbols import Symbols
from airflow_flinkcompat.state.layout import LayoutUnknown, StateLayout
from airflow_flinkcompat.state.layouts.of_aggregation import told_aggregation
from airflow_flinkcompat.state.layouts.of_rows import told_join, told_rank
from airflow_flinkcompat.state.layouts.plan_types import Untold


def operator_layout(operator: Operator, symbols: Symbols, time_to_live: bool = False) -> StateLayout | LayoutUnknown:
    """How an operator stores what it keeps.

    Args:
        operator: Over rows that are only added.
        symbols: The table of meanings.
        time_to_live: Whether the job's state has one; that of windows lives as long as they do.

    Returns:
        Its layout, or why it is not told.
    """
    try:
        if any(not isinstance(each.origin, Source) or each.functions for each in operator.segments):
            raise Untold("only operators straight over tables are told")
        match operator:
            case AggregateOperator():
                return told_aggregation(operator, time_to_live)
            case RankOperator():
                return told_rank(operator, symbols, time_to_live)
            case JoinOperator():
                return told_join(operator, symbols, time_to_live)
        raise Untold(f"what {operator.kind} keeps is told by compiled plans alone")
    except Untold as error:
        return LayoutUnknown(str(error))
