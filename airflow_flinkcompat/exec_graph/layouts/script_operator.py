"""The layout of an operator that a script's own plan tells, without Flink's.

Told is an operator straight over tables whose rows are only added; of any other it says why not. Wherever it tells a
layout, it is what Flink 2.3.0's compiled plan tells (``python -m measure.layouts``, and stored plans in
``tests/exec_graph/test_layouts_of_scripts.py``).
"""

from __future__ import annotations

from airflow_flinkcompat.exec_graph.compiled.symbols import Symbols
from airflow_flinkcompat.exec_graph.layout import LayoutUnknown, StateLayout
from airflow_flinkcompat.exec_graph.layouts.plan_types import LayoutNotDerived
from airflow_flinkcompat.exec_graph.layouts.script_aggregation import derive_aggregation
from airflow_flinkcompat.exec_graph.layouts.script_compositions import with_script_compositions
from airflow_flinkcompat.exec_graph.layouts.script_rows import derive_join, derive_rank
from airflow_flinkcompat.plan.operators import AggregateOperator, JoinOperator, Operator, RankOperator, Source


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
            raise LayoutNotDerived("only operators directly over tables are known")
        match operator:
            case AggregateOperator():
                found: StateLayout | LayoutUnknown = derive_aggregation(operator, time_to_live)
            case RankOperator():
                found = derive_rank(operator, symbols, time_to_live)
            case JoinOperator():
                found = derive_join(operator, symbols, time_to_live)
            case _:
                raise LayoutNotDerived(f"what {operator.kind} keeps is known from compiled plans alone")
        return found if isinstance(found, LayoutUnknown) else with_script_compositions(operator, found)
    except LayoutNotDerived as error:
        return LayoutUnknown(str(error))
