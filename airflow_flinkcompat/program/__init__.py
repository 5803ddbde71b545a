"""PyFlink programs as text: which statements they stand for, read from the source and never run.

A program becomes a :class:`~airflow_flinkcompat.sql.Script`: its SQL as it is, its Table API as the SQL that says the
same, marked with the operations it came through, and the parts that were not understood.
"""

from airflow_flinkcompat.program.flip.program import parse_table
from airflow_flinkcompat.program.reader import parse_program

__all__ = ["parse_program", "parse_table"]
