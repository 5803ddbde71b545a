"""Rows to read, and runs in the one Spark session."""

from tests.support.backfill.fixtures import history, results, run

__all__ = ["history", "results", "run"]
