"""Flink's planner in a separate process, which plans scripts and predicts restores.

The planner needs no running job and no cluster. The Java sources are in ``planner/`` at the root of the repository. A
bare install judges without a planner.
"""
