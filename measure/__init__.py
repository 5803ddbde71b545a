"""Change pairs on a real Flink: the old SQL, its savepoint, the new SQL from it, and what ``check`` had said.

Pairs are SQL files under ``measure/pairs``, rows under ``measure/data``, results under ``measure/results``.
"""
