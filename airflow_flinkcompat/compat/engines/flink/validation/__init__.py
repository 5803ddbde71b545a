"""INSERT statements and tables that Flink 2.3.0 refuses, as far as the script shows."""

from airflow_flinkcompat.compat.engines.flink.validation.fault import Fault
from airflow_flinkcompat.compat.engines.flink.validation.query import Query, brought, faults, of_declarations

__all__ = ["Fault", "Query", "brought", "faults", "of_declarations"]
