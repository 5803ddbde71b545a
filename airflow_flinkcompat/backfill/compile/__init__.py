"""Compilation of a plan into a tree of steps that contain Spark SQL; nothing here needs Spark."""
