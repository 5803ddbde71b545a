"""Compilation of a plan into a tree of steps that hold Spark SQL; nothing here needs Spark."""
