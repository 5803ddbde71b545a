"""Benchmarks. Every result names what was timed, how, and on which machine."""

from __future__ import annotations

PROGRAMS = ("audit", "backfill", "check", "downtime", "ledgers", "migrate", "rehearsal", "start")
"""The programs that ``python -m dev.benchmarks`` lists and runs."""
