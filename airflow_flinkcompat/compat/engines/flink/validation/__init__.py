"""Whether Flink's validator and planner take an INSERT and the tables it uses, as far as a script tells (2.3.0)."""

from airflow_flinkcompat.compat.engines.flink.validation.fault import Fault
from airflow_flinkcompat.compat.engines.flink.validation.query import Query, brought, faults, of_declarations

__all__ = ["Fault", "Query", "brought", "faults", "of_declarations"]
