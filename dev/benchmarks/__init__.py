"""Benchmarks. Every result states the measured operation, the method and the machine."""

from __future__ import annotations

PROGRAMS = (
    "audit",
    "backfill",
    "bootstrap",
    "check",
    "downtime",
    "ledgers",
    "migrate",
    "migration_downtime",
    "rehearsal",
    "shadow",
    "shadow_changes",
    "shadow_rows",
    "start",
    "switch",
    "upgrade",
)
"""The programs that ``python -m dev.benchmarks`` lists and runs."""
