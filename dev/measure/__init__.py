"""Pairs of scripts on a real Flink: old SQL, savepoint, new SQL from it, and the verdict of ``check``.

Pairs are SQL files under ``dev/measure/pairs``, rows under ``dev/measure/data``, results under ``dev/measure/results``.
"""

from __future__ import annotations

PROGRAMS = (
    "connectors", "corpus", "corpus_restores", "migration_tables", "migrations", "pairs", "planner", "random",
    "reserved_words", "restore_tests", "savepoints", "settings", "stacked", "state", "upgrade_audits",
    "upgrade_restores", "upgrade_tests",
)  # fmt: skip
"""The programs that ``python -m dev.measure`` lists and runs."""
