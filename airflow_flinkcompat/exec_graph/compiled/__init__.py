"""Compiled plans as Flink's ``COMPILE PLAN`` writes them, read into nodes, and the meaning of what these keep."""

from airflow_flinkcompat.exec_graph.compiled.nodes import CompiledPlan, Node, PlanError, read_plan
from airflow_flinkcompat.exec_graph.compiled.states import Aspect

__all__ = ["Aspect", "CompiledPlan", "Node", "PlanError", "read_plan"]
