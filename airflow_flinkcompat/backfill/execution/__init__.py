"""Execution of steps on Spark, with counts of what they met."""
