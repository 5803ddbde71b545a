"""Benchmarks. Every result names what was timed, how, and on which machine."""

from __future__ import annotations

PROGRAMS = (
    "audit",
    "backfill",
    "check",
    "cli",
    "deployment_list",
    "downtime",
    "imports",
    "kubernetes_downtime",
    "ledger_index",
    "migrate",
    "rehearsal",
)
"""The programs that ``python -m dev.benchmarks`` lists and runs."""
