"""Execution of steps on Spark, with counts of rows and windows."""
