"""Benchmarks: what is timed, how, and on what is printed with every result."""

from __future__ import annotations

PROGRAMS = (
    "audit",
    "backfill",
    "bootstrap",
    "bootstrap_switch",
    "check",
    "cli",
    "deployment_list",
    "downtime",
    "imports",
    "kubernetes_downtime",
    "ledger_index",
    "migrate",
    "planner",
    "rehearsal",
)
"""The programs that ``python -m dev.benchmarks`` lists and runs."""
