"""The plan of a script: a typed logical DAG of frozen values, built from SQL."""

# This import is first, because it selects the build of sqlglot (a compiled build cannot be extended).
import airflow_flinkcompat.sql  # noqa: F401
from airflow_flinkcompat.model import FunctionDeclaration
from airflow_flinkcompat.plan.builder import build_program
from airflow_flinkcompat.plan.program import OtherStatement, Pipeline, Problem, Program

__all__ = ["OtherStatement", "FunctionDeclaration", "Pipeline", "Problem", "Program", "build_program"]
