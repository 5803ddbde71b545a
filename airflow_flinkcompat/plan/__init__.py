"""What a program computes and keeps: a typed logical DAG of frozen values, built from SQL."""

from airflow_flinkcompat.plan.builder import build_program
from airflow_flinkcompat.plan.program import Fact, FunctionDeclaration, Pipeline, Problem, Program

__all__ = ["Fact", "FunctionDeclaration", "Pipeline", "Problem", "Program", "build_program"]
