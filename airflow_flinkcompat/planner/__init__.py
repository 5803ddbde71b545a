"""Flink's planner in its own process: refusals of scripts, and results of a changed script's restore.

No job runs and no cluster is needed. ``planner/`` at the root of the repository holds the Java sources. A bare install
judges without a planner.
"""
