"""The stateful operators of a plan, a module for each kind; what is common to them is in ``base``."""

from airflow_flinkcompat.plan.operators.aggregate import AggregateKind, AggregateOperator
from airflow_flinkcompat.plan.operators.base import (
    AssignedWindow,
    Operator,
    Output,
    Rows,
    Source,
    StatelessSegment,
    TooLarge,
    appends,
    operators,
    segments,
    sources,
)
from airflow_flinkcompat.plan.operators.join import JoinForm, JoinOperator
from airflow_flinkcompat.plan.operators.other import OtherKind, OtherOperator
from airflow_flinkcompat.plan.operators.over import OverOperator
from airflow_flinkcompat.plan.operators.rank import RankKind, RankOperator

__all__ = [
    "AggregateKind",
    "AggregateOperator",
    "AssignedWindow",
    "JoinForm",
    "JoinOperator",
    "Operator",
    "OtherKind",
    "OtherOperator",
    "Output",
    "OverOperator",
    "RankKind",
    "RankOperator",
    "Rows",
    "Source",
    "StatelessSegment",
    "TooLarge",
    "appends",
    "operators",
    "segments",
    "sources",
]
